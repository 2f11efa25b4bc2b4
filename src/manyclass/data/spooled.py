"""Rows that are slow to read, kept in a temporary file from their second reading on."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from manyclass.data.stores import COPIED_BYTES, Addressed, Pieces, Store, give_back, stretches

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
    def has_random_access(self) -> bool:
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
        with closing(_Writer.begun(self._n_bytes, self.n_rows)) as writer:
            for chunk in self._store.chunks(n_rows):
                n_bytes += sum(part.nbytes for part in _arrays(chunk))
                writer.add(chunk)
                yield chunk
            self._n_bytes, self._held = n_bytes, writer.ended()


def _arrays(chunk: Any) -> tuple[np.ndarray, ...]:
    return (chunk.data, chunk.indices) if sp.issparse(chunk) else (chunk,)


class _Writer:
    """Chunks in files, one for each of the arrays that they consist of; none where `files` is None."""

    def __init__(self, folder: str | None, n_rows: int):
        self._folder, self._n_rows = folder, n_rows
        self._files: list[IO[bytes]] = []
        self._dtypes: list[np.dtype] = []
        self._n_columns = self._n_written = 0

    @classmethod
    def begun(cls, n_bytes: float, n_rows: int) -> _Writer:
        """One for so many bytes and rows, or that writes nothing, where these are none or there is no room for them."""
        folder = os.environ.get("TMPDIR") or ("/var/tmp" if os.path.isdir("/var/tmp") else tempfile.gettempdir())
        try:
            has_room = 0 < n_bytes <= DISK_SHARE * shutil.disk_usage(folder).free
        except OSError:
            has_room = False
        return cls(folder if has_room else None, n_rows)

    def add(self, chunk: Any) -> None:
        if self._folder is None:
            return
        arrays = _arrays(chunk)
        try:
            if not self._files:
                self._files = [tempfile.TemporaryFile(dir=self._folder) for _ in arrays]
                self._dtypes, self._n_columns = [array.dtype for array in arrays], chunk.shape[1]
                self._indptr = np.zeros(self._n_rows + 1 if sp.issparse(chunk) else 0, np.int64)
            for file, array, dtype in zip(self._files, arrays, self._dtypes, strict=True):
                file.write(np.ascontiguousarray(array, dtype=dtype).data)
        except OSError:  # as of a disk that others have filled
            self.close()
            return
        stop = self._n_written + chunk.shape[0]
        if sp.issparse(chunk):
            self._indptr[self._n_written + 1 : stop + 1] = chunk.indptr[1:]
            self._indptr[self._n_written + 1 : stop + 1] += self._indptr[self._n_written]
        self._n_written = stop

    def ended(self) -> Store | None:
        """The rows that have been written."""
        if not self._files or self._n_written != self._n_rows:
            return None
        for file in self._files:
            file.flush()
        maps = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in self._files]
        arrays = [np.frombuffer(held, dtype) for held, dtype in zip(maps, self._dtypes, strict=True)]
        if len(arrays) == 1:
            return Pieces([arrays[0].reshape(-1, self._n_columns)], maps)
        return _SparseRows(arrays[0], arrays[1], self._indptr, self._n_columns, maps)

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._folder, self._files = None, []


class _SparseRows(Addressed):
    """Compressed sparse rows in mapped files, whose pages are given back once they have been copied."""

    def __init__(
        self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_columns: int, maps: Sequence[mmap.mmap]
    ):
        self._data, self._indices, self._indptr, self._n_columns = data, indices, indptr, n_columns
        self._maps, self.n_rows = maps, len(indptr) - 1

    def read(self, start: int, stop: int) -> Any:
        return self._copied([slice(start, stop)])

    def take(self, index: np.ndarray) -> Any:
        order = np.argsort(index, kind="stable")
        near = int(COPIED_BYTES * self.n_rows / max(self._data.nbytes + self._indices.nbytes, 1)) + 1
        found = self._copied(index[order][some] for some in stretches(index[order], near))
        return found[np.argsort(order, kind="stable")]

    def _copied(self, groups: Iterable[Any]) -> Any:
        """The rows of groups, each a slice of the rows or an array of their numbers."""
        counts, data, indices = [np.zeros(1, np.int64)], [self._data[:0]], [self._indices[:0]]
        for rows in groups:
            if isinstance(rows, slice):
                counts.append(np.diff(self._indptr[rows.start : rows.stop + 1]))
                places: Any = slice(*self._indptr[[rows.start, rows.stop]])
            else:
                counts.append(self._indptr[rows + 1] - self._indptr[rows])
                first = np.cumsum(counts[-1]) - counts[-1]
                places = np.arange(counts[-1].sum()) + np.repeat(self._indptr[rows] - first, counts[-1])
            data.append(np.array(self._data[places]))
            indices.append(np.array(self._indices[places]))
            give_back(self._maps)
        indptr = np.cumsum(np.concatenate(counts)).astype(self._indices.dtype)
        shape = (len(indptr) - 1, self._n_columns)
        return sp.csr_array((np.concatenate(data), np.concatenate(indices), indptr), shape=shape)
