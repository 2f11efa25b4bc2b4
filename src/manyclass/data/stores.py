"""Where rows lie that are read in chunks, and how to get at some of them."""

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

COPIED_BYTES = 4 << 20
"""Of a mapped file that may be resident before its pages are given back."""
SCATTERED_ROWS = 16
"""Rows that lie apart, likewise: each may bring a megabyte around it with it."""


def is_table(chunk: Any) -> bool:
    """Whether rows are a table of pyarrow, whose columns may be of any kind."""
    return hasattr(chunk, "column_names")


def taken(chunk: Any, index: np.ndarray) -> Any:
    """The rows of an array, CSR array or table that integers name."""
    return chunk.take(index) if is_table(chunk) else chunk[index]


def stacked(parts: Sequence[Any]) -> Any:
    """Arrays or tables one below the other: those that have rows, and sparse where all of these are."""
    held = [part for part in parts if part.shape[0]] or parts[:1]
    if is_table(held[0]):
        import pyarrow as pa

        return pa.concat_tables(held, promote_options="permissive")
    if all(map(sp.issparse, held)):
        return sp.csr_array(sp.vstack(held, format="csr"))
    held = [part.toarray() if sp.issparse(part) else part for part in held]
    return array_namespace(held[0]).concat(held, axis=0)


class Store(ABC):
    """Rows as arrays (NumPy or CSR, of one kind and dtype), or as tables, read again whenever they are asked for."""

    n_rows: int
    kinds: Mapping[str, str] | None = None
    """Of the columns of tables, by name."""
    is_slow = False
    """Whether rows are parsed or made each time, rather than read."""
    row_bytes = 0.0
    """That a row takes while it is read, if that is more than its array does."""

    @property
    def has_random_access(self) -> bool:
        """Whether any rows can be read at once; for some stores only from the third pass on."""
        return False

    @abstractmethod
    def chunks(self, n_rows: int) -> Iterator[Any]:
        """All rows in order, in arrays of about `n_rows` rows that the caller may keep."""

    def read(self, start: int, stop: int) -> Any:
        """Consecutive rows."""
        return self.take(np.arange(start, stop))

    def take(self, index: np.ndarray) -> Any:
        """The rows named by an integer array; here by one pass over all rows up to the last of them."""
        order = np.argsort(index, kind="stable")
        wanted, start = index[order], 0
        found: list[Any] = []
        for chunk in self.chunks(1 << 14):
            stop = start + chunk.shape[0]
            inside = wanted[(wanted >= start) & (wanted < stop)]
            if len(inside) or not found:
                found.append(taken(chunk, inside - start))
            start = stop
            if not len(wanted) or start > wanted[-1]:
                break
        return taken(stacked(found), np.argsort(order, kind="stable"))


class Repeated(Store):
    """Whatever can be read from its beginning again and again.

    `read` takes a number of rows, which it need not obey; it gives arrays, or tables with columns of these kinds, in
    order.
    """

    is_slow = True

    def __init__(self, read: Callable[[int], Iterable[Any]], n_rows: int, kinds: Mapping[str, str] | None = None):
        self._read, self.n_rows, self.kinds = read, n_rows, kinds

    def chunks(self, n_rows: int) -> Iterator[Any]:
        return iter(self._read(n_rows))


class Transformed(Store):
    """Rows of a store through a function of their arrays or tables, row by row, that gives arrays."""

    def __init__(self, store: Store, function: Callable[[Any], Any], row_bytes: float | None = None):
        self._store, self._function = store, function
        self.row_bytes = store.row_bytes if row_bytes is None else row_bytes
        self.n_rows, self.is_slow = store.n_rows, store.is_slow

    @property
    def has_random_access(self) -> bool:
        return self._store.has_random_access

    def chunks(self, n_rows: int) -> Iterator[Any]:
        return map(self._function, self._store.chunks(n_rows))

    def read(self, start: int, stop: int) -> Any:
        return self._function(self._store.read(start, stop))

    def take(self, index: np.ndarray) -> Any:
        return self._function(self._store.take(index))


class Addressed(Store):
    """Rows of which any can be read at once."""

    has_random_access = True

    def chunks(self, n_rows: int) -> Iterator[Any]:
        return (self.read(start, min(start + n_rows, self.n_rows)) for start in range(0, max(self.n_rows, 1), n_rows))


class Whole(Addressed):
    """An array or CSR matrix that is in memory, or a table with columns of these kinds."""

    def __init__(self, X: Any, kinds: Mapping[str, str] | None = None):
        self.X, self.n_rows, self.kinds = X, int(X.shape[0]), kinds

    def read(self, start: int, stop: int) -> Any:
        return self.X[start:stop]

    def take(self, index: np.ndarray) -> Any:
        return taken(self.X, index)


class Pieces(Addressed):
    """Arrays one below the other, of which each can be read anywhere: memory maps, or what is indexed like them.

    Each has `shape` and `dtype`, and is indexed by a slice or by an array of integers. `files` are what the arrays are
    the memory of: the pages of what is mapped are given back once they have been copied, so that they do not stay
    resident.
    """

    def __init__(self, pieces: Sequence[Any], files: Sequence[Any] = ()):
        self.pieces = [piece for piece in pieces if piece.shape[0]] or list(pieces[:1])
        self.files = [file for file in files if isinstance(file, mmap.mmap)]
        self.starts = np.cumsum([0, *(piece.shape[0] for piece in self.pieces)])
        self.n_rows, self.n_features = int(self.starts[-1]), int(self.pieces[0].shape[1])
        self.dtype = np.result_type(*{piece.dtype for piece in self.pieces})

    def read(self, start: int, stop: int) -> np.ndarray:
        out = self._empty(stop - start)
        step = max(COPIED_BYTES // max(self.n_features * self.dtype.itemsize, 1), 1)
        inside = np.searchsorted(self.starts, [start, stop - 1], side="right") - 1
        for number in range(int(inside[0]), int(inside[1]) + 1):
            piece = self.pieces[number]
            first, last = max(start, int(self.starts[number])), min(stop, int(self.starts[number + 1]))
            for begin in range(first, last, step):
                end = min(begin + step, last)
                offset = int(self.starts[number])
                out[begin - start : end - start] = piece[begin - offset : end - offset]
                give_back(self.files)
        return out

    def take(self, index: np.ndarray) -> np.ndarray:
        out = self._empty(len(index))
        order = np.argsort(index, kind="stable")
        near = max(COPIED_BYTES // max(self.n_features * self.dtype.itemsize, 1), 1)
        for number in np.unique(np.searchsorted(self.starts, index, side="right") - 1):
            inside = order[(index[order] >= self.starts[number]) & (index[order] < self.starts[number + 1])]
            places = index[inside] - self.starts[number]
            for some in stretches(places, near):
                out[inside[some]] = self.pieces[number][places[some]]
                give_back(self.files)
        return out

    def _empty(self, n_rows: int) -> np.ndarray:
        """Memory of its own, which the system has again as soon as the array is gone: an allocator may keep it."""
        n_bytes = n_rows * self.n_features * self.dtype.itemsize
        if n_bytes < COPIED_BYTES // 8:
            return np.empty((n_rows, self.n_features), dtype=self.dtype)
        return np.frombuffer(mmap.mmap(-1, n_bytes), dtype=self.dtype).reshape(n_rows, self.n_features)


def stretches(places: np.ndarray, near: int) -> Iterator[slice]:
    """Sorted places of rows in a mapped file in groups: those that lie near each other, or that are few."""
    first = 0
    while first < len(places):
        last = max(int(np.searchsorted(places, places[first] + near)), first + SCATTERED_ROWS)
        yield slice(first, last)
        first = last


def give_back(files: Iterable[mmap.mmap]) -> None:
    """Let go of the pages of mapped files that have been copied, so that they do not stay resident."""
    for file in files:
        file.madvise(mmap.MADV_DONTNEED)


def mapped(path: Path) -> mmap.mmap:
    """A file as read-only memory; its pages are read when they are touched."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
