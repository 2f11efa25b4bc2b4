"""Rows that are read in chunks, each time they are needed, from where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data.dense import DenseRows
from manyclass.data.rows import Array, GramSum, Rows
from manyclass.data.sparse import SparseRows


class ChunkedRows(Rows):
    """Rows of a file, or of anything that can be read again and again, of which one chunk is in memory at a time.

    Parameters
    ----------
    read : callable
        Called for each pass over the rows; gives their arrays (NumPy or CSR, of one kind and dtype) in order.
    n_rows : int
    """

    def __init__(self, read: Callable[[], Iterable[Any]], n_rows: int, shift: Array | None = None, dtype: Any = None):
        self._chunks, self.shift, self._dtype = read, shift, dtype
        first = self._kind(next(iter(read())))
        self.xp, self.device, self.dtype = first.xp, first.device, first.dtype
        self.n_rows, self.n_features = n_rows, first.n_features
        self._row_bytes, self._centred = first.row_bytes, first.can_be_centred
        self._empty = first.part(slice(0, 0))

    def _kind(self, chunk: Any) -> Rows:
        held: Rows = SparseRows(sp.csr_array(chunk)) if sp.issparse(chunk) else DenseRows(chunk)
        return held if self._dtype is None else held.typed(self._dtype)

    @property
    def row_bytes(self) -> float:
        return self._row_bytes

    @property
    def can_be_centred(self) -> bool:
        return self._centred

    def blocks(self, rows_per_block: int) -> Iterator[tuple[slice, Rows]]:
        start = 0
        for chunk in self._chunks():
            held = self._kind(chunk)
            held = held if self.shift is None else held.shifted(self.shift)
            for rows, block in held.blocks(rows_per_block):
                yield slice(start + rows.start, start + rows.stop), block
            start += held.n_rows
        if start != self.n_rows:
            raise ValueError(f"{self.n_rows} rows were announced, but {start} were read; was the file changed?")

    def part(self, rows: slice) -> Rows:
        return self.take(np.arange(rows.start, rows.stop))

    def take(self, index: np.ndarray) -> Rows:
        """A copy of the rows named by an integer array, found in one pass over all rows up to the last of them."""
        index = np.asarray(index)
        order = np.argsort(index, kind="stable")
        wanted, start, found = index[order], 0, []
        for chunk in self._chunks():
            stop = start + chunk.shape[0]
            inside = wanted[(wanted >= start) & (wanted < stop)]
            if len(inside):
                found.append(chunk[inside - start])
            start = stop
            if not len(wanted) or start > wanted[-1]:
                break
        if not found:
            return self._empty
        stacked = sp.vstack(found, format="csr") if sp.issparse(found[0]) else np.concatenate(found)
        together = self._kind(stacked[np.argsort(order, kind="stable")])
        return together if self.shift is None else together.shifted(self.shift).part(slice(0, together.n_rows))

    def shifted(self, center: Array) -> ChunkedRows:
        total = center if self.shift is None else self.shift + center
        return ChunkedRows(self._chunks, self.n_rows, total, self._dtype)

    def typed(self, dtype: Any) -> ChunkedRows:
        return ChunkedRows(self._chunks, self.n_rows, self.shift, dtype)

    def matmat(self, W: Array) -> Array:
        return self.xp.concat([block.matmat(W) for _, block in self.blocks(self.rows_per_block(int(W.shape[1])))])

    def gram_sum(self) -> GramSum:
        return self._empty.gram_sum()

    def select(self, columns: np.ndarray) -> Rows:
        return ChunkedRows(
            lambda: (chunk[:, columns] for chunk in self._chunks()),
            self.n_rows,
            None if self.shift is None else self.shift[columns],
            self._dtype,
        )

    def _whole(self) -> Rows:
        raise MemoryError(
            f"This would hold all {self.n_rows} rows of a file at once ({self.n_rows * self.row_bytes / 1e9:.1f} GB); "
            "use an estimator that reads them in blocks (GLMClassifier, CalibratedLeastSquaresClassifier)."
        )
