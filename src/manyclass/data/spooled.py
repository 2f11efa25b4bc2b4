"""Rows that are slow to read, kept in a temporary file from their second reading on."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from manyclass.data.stores import Pieces, Store

DISK_SHARE = 0.5
"""Of the free space, that may be taken."""


class Spooled(Store):
    """The rows of another store, which the second pass over them writes to a temporary file.

    The first pass counts them; predictions need no other. From the third on rows are read from that file, any of them
    at once. It has no name, lies where the variable TMPDIR says or in /var/tmp, which unlike /tmp is on a disk, and is
    gone with this object. Where there is no room rows are read from the store again.
    """

    def __init__(self, store: Store):
        self._store, self._n_bytes = store, 0.0
        self._held: Store | None = None
        self.n_rows, self.row_bytes = store.n_rows, store.row_bytes

    @property
    def has_random_access(self) -> bool:  # type: ignore[override]
        return self._held is not None

    @property
    def _source(self) -> Store:
        return self._store if self._held is None else self._held

    def read(self, start: int, stop: int) -> Any:
        return self._source.read(start, stop)

    def take(self, index: np.ndarray) -> Any:
        return self._source.take(index)

    def chunks(self, n_rows: int) -> Iterator[Any]:
        return self._watched(n_rows) if self._held is None else self._held.chunks(n_rows)

    def _watched(self, n_rows: int) -> Iterator[Any]:
        n_bytes = 0.0
        with closing(_Writer.begun(self._n_bytes)) as writer:
            for chunk in self._store.chunks(n_rows):
                n_bytes += sum(part.nbytes for part in _arrays(chunk))
                writer.add(chunk)
                yield chunk
            self._n_bytes, self._held = n_bytes, writer.ended()


def _arrays(chunk: Any) -> tuple[np.ndarray, ...]:
    return (chunk.data, chunk.indices) if sp.issparse(chunk) else (chunk,)


class _Writer:
    """Chunks in files, one for each of the arrays that they consist of; none where `files` is None."""

    def __init__(self, folder: str | None):
        self._folder = folder
        self._files: list[IO[bytes]] = []
        self._dtypes: list[np.dtype] = []
        self._counts: list[np.ndarray] = []
        self._n_columns = 0

    @classmethod
    def begun(cls, n_bytes: float) -> _Writer:
        """One for so many bytes, or that writes nothing, where these are none or there is no room for them."""
        folder = os.environ.get("TMPDIR") or ("/var/tmp" if os.path.isdir("/var/tmp") else tempfile.gettempdir())
        try:
            has_room = 0 < n_bytes <= DISK_SHARE * shutil.disk_usage(folder).free
        except OSError:
            has_room = False
        return cls(folder if has_room else None)

    def add(self, chunk: Any) -> None:
        if self._folder is None:
            return
        arrays = _arrays(chunk)
        try:
            if not self._files:
                self._files = [tempfile.TemporaryFile(dir=self._folder) for _ in arrays]
                self._dtypes, self._n_columns = [array.dtype for array in arrays], chunk.shape[1]
            for file, array, dtype in zip(self._files, arrays, self._dtypes, strict=True):
                file.write(np.ascontiguousarray(array, dtype=dtype).data)
        except OSError:  # as of a disk that others have filled
            self.close()
            return
        self._counts.append(np.diff(chunk.indptr) if sp.issparse(chunk) else np.empty(chunk.shape[0], np.uint8))

    def ended(self) -> Store | None:
        """The rows that have been written."""
        if not self._files:
            return None
        for file in self._files:
            file.flush()
        maps = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in self._files]
        arrays = [np.frombuffer(held, dtype) for held, dtype in zip(maps, self._dtypes, strict=True)]
        if len(arrays) == 1:
            return Pieces([arrays[0].reshape(-1, self._n_columns)], maps)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self._counts), dtype=np.int64)])
        return _SparseRows(arrays[0], arrays[1], indptr, self._n_columns, maps)

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._folder, self._files = None, []


class _SparseRows(Store):
    """Compressed sparse rows in mapped files, whose pages are given back once they have been copied."""

    has_random_access = True

    def __init__(
        self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_columns: int, maps: Sequence[mmap.mmap]
    ):
        self._data, self._indices, self._indptr, self._n_columns = data, indices, indptr, n_columns
        self._maps, self.n_rows = maps, len(indptr) - 1

    def chunks(self, n_rows: int) -> Iterator[Any]:
        return (self.read(start, min(start + n_rows, self.n_rows)) for start in range(0, self.n_rows, n_rows))

    def read(self, start: int, stop: int) -> Any:
        return self._rows(slice(*self._indptr[[start, stop]]), np.diff(self._indptr[start : stop + 1]))

    def take(self, index: np.ndarray) -> Any:
        counts = np.diff(self._indptr)[index]
        first = np.cumsum(counts) - counts
        return self._rows(np.arange(counts.sum()) + np.repeat(self._indptr[index] - first, counts), counts)

    def _rows(self, places: Any, counts: np.ndarray) -> Any:
        data, indices = np.array(self._data[places]), np.array(self._indices[places])
        for held in self._maps:
            held.madvise(mmap.MADV_DONTNEED)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(indices.dtype)
        return sp.csr_array((data, indices, indptr), shape=(len(counts), self._n_columns))
