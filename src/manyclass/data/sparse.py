"""Rows in compressed sparse rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import numpy as numpy_namespace

from manyclass.data.columns import PILOT_ROWS, pilot
from manyclass.data.dense import DenseRows
from manyclass.data.rows import BLOCK_BYTES, Array, RowArrays, Rows, present_rows

STORED_PER_FEATURE = 16
"""Numbers in a block of rows, for each feature, from which to add what it gives of each feature costs little."""
MOST_PARTS = 1024
"""Blocks of rows that are remembered: views, and pointers to their rows."""


class SparseRows(Rows):
    """Rows of a SciPy sparse matrix in CSR format with 32- or 64-bit indices, never filled and never written to.

    A shift is subtracted inside the products, which are then in float64, (X − 1cᵀ) W = XW − 1(cᵀW); that of columns
    which every row holds from a copy of the numbers.
    """

    xp = numpy_namespace
    device = None
    can_be_centred = False
    moments_itemsize = 8

    def __init__(self, X: sp.csr_array, shift: np.ndarray | None = None):
        self.X, self.shift = X, shift
        self.n_rows, self.n_features = map(int, X.shape)
        self.dtype = X.dtype
        self._parts: dict[tuple[int, int], SparseRows] = {}

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """From a matrix that may have several entries in one place, which are added up in a copy."""
        X = sp.csr_array(X) if X.format != "csr" else X
        # Of several entries in one place sums of squares would be wrong.
        return cls(X).canonical() if not X.has_canonical_format and _may_repeat(X) else cls(X)

    @property
    def row_bytes(self) -> float:
        return float((self.X.nnz / max(self.n_rows, 1)) * (self.itemsize + self.X.indices.itemsize) + 8)

    def part(self, rows: slice) -> SparseRows:
        # Solvers ask for the same blocks again and again, and making one costs as much as a product with few columns.
        known, where = self._parts, (rows.start, rows.stop)
        found = known.get(where)  # which another thread may forget meanwhile
        if found is None:
            if len(known) >= MOST_PARTS:
                known.clear()
            # Slicing a CSR matrix copies its data; three views of its arrays do not.
            pointers = self.X.indptr[rows.start : rows.stop + 1]
            first, last = int(pointers[0]), int(pointers[-1])
            block: sp.csr_array = sp.csr_array((rows.stop - rows.start, self.n_features), dtype=self.dtype)
            block.data, block.indices = self.X.data[first:last], self.X.indices[first:last]
            block.indptr = pointers - pointers[0]
            found = known[where] = SparseRows(block, self.shift)
        return found

    def take(self, index: np.ndarray) -> SparseRows:
        return SparseRows(sp.csr_array(self.X[index]), self.shift)

    def typed(self, dtype: Any) -> SparseRows:
        return SparseRows(self._with(self.X.data.astype(dtype, copy=False)), self.shift)

    def _with_shift(self, shift: np.ndarray) -> SparseRows:
        shift = np.asarray(shift, dtype=np.float64)
        moved = np.flatnonzero(shift)
        if not len(moved):
            return SparseRows(self.X)
        if len(moved) * self.n_rows <= self.X.nnz and self._is_full[moved].all():
            # What every row holds can be moved where it is stored.
            return SparseRows(self._with((self.X.data - shift[self.X.indices]).astype(self.dtype)))
        return SparseRows(self.X, shift)

    @cached_property
    def _is_full(self) -> np.ndarray:
        """Whether every row holds the column."""
        return np.asarray(np.bincount(self.X.indices, minlength=self.n_features) == self.n_rows)

    def pilot(
        self, weight: Array | None = None, far: float | None = None, *, constant: bool = False, lasting: bool = False
    ) -> Array | None:
        """Of columns that every row holds, such as a year beside words, which others may lack; 0 for all others."""
        if lasting or not self.n_rows or self.shift is not None:
            return None
        ends = [self.X.indices[slice(*self.X.indptr[row : row + 2])] for row in (0, self.n_rows - 1)]
        common = np.intersect1d(*ends)  # few, which saves counting all
        full = common[self._is_full[common]] if len(common) else common
        if not len(full):
            return None
        present = present_rows(self.n_rows, weight)
        rows = np.unique(np.r_[present[:PILOT_ROWS], present[-PILOT_ROWS:]])
        seen = DenseRows(self.X[rows][:, full].toarray())
        found = pilot(seen, None if weight is None else weight[rows], far, constant)
        if found is None:
            return None
        center = np.zeros(self.n_features)
        center[full] = found
        return center

    def map(self, function: Callable[[Array], Array]) -> SparseRows:
        self._refuse_to_fill("mapped")
        return SparseRows(self._with(function(self.X.data)))

    def scaled(self, weight: np.ndarray) -> SparseRows:
        self._refuse_to_fill("scaled one by one")
        return SparseRows(self._with(self.X.data * np.repeat(weight, np.diff(self.X.indptr))))

    def holding(self, weight: np.ndarray | None) -> np.ndarray:
        of_each = None if weight is None else np.repeat(weight, np.diff(self.X.indptr)).astype(np.float64)
        return np.bincount(self.X.indices, of_each, minlength=self.n_features).astype(np.float64)

    def divided(self, unit: np.ndarray) -> SparseRows:
        X = self._with((self.X.data / unit[self.X.indices]).astype(self.dtype, copy=False))
        return SparseRows(X, None if self.shift is None else self.shift / unit)

    def _refuse_to_fill(self, done: str) -> None:
        if self.shift is not None:
            raise ValueError(f"Sparse rows that are shifted cannot be {done} without being filled.")

    def _with(self, data: np.ndarray) -> sp.csr_array:
        return sp.csr_array((data, self.X.indices, self.X.indptr), shape=self.X.shape)

    def dense(self) -> Array:
        filled = self.X.toarray()
        return filled if self.shift is None else (filled - self.shift).astype(self.dtype)

    def canonical(self) -> SparseRows:
        if self.X.has_canonical_format:
            return self
        X = self.X.copy()
        X.sum_duplicates()
        return SparseRows(X, self.shift)

    def unwrapped(self) -> sp.csr_array | np.ndarray:
        return self.X if self.shift is None else self.dense()

    def occurring(self, fewest_empty: float = 0.0) -> tuple[SparseRows, np.ndarray | None]:
        if self.shift is not None:
            return self, None
        few = self.X.nnz < self.n_features
        if few:
            columns = np.unique(self.X.indices)
        else:
            present = np.zeros(self.n_features, dtype=bool)
            present[self.X.indices] = True
            columns = np.flatnonzero(present)
        if len(columns) > (1.0 - fewest_empty) * self.n_features:
            return self, None
        dtype = self.X.indices.dtype
        if few:
            place = np.searchsorted(columns, self.X.indices).astype(dtype)
        else:
            place = (np.cumsum(present, dtype=dtype) - 1)[self.X.indices]
        return SparseRows(sp.csr_array((self.X.data, place, self.X.indptr), shape=(self.n_rows, len(columns)))), columns

    def select(self, columns: np.ndarray) -> SparseRows:
        return SparseRows(sp.csr_array(self.X[:, columns]), None if self.shift is None else self.shift[columns])

    @cached_property
    def _transposed(self) -> sp.csc_array:
        return self.X.T

    @property
    def _wide(self) -> sp.csr_array:
        return self._with(self.X.data.astype(np.float64, copy=False))

    def rows_per_block(self, n_outputs: int = 1, block_bytes: int = BLOCK_BYTES) -> int:
        # Each block adds a matrix as large as the parameters, which its stored numbers have to be worth.
        stored = max(self.X.nnz / max(self.n_rows, 1), 1e-3)
        enough = min(STORED_PER_FEATURE * self.n_features / stored, self.block_limit / self.row_bytes, self.n_rows)
        return max(super().rows_per_block(n_outputs, block_bytes), int(enough))

    def for_moments(self) -> SparseRows:
        return SparseRows(self._wide, self.shift)

    def matmat(self, W: np.ndarray) -> Array:
        if self.shift is None:
            return self.X @ W
        wide = np.asarray(W, dtype=np.float64)
        return (self._wide @ wide - self.shift @ wide).astype(self.dtype)

    def _add_rmatmat(self, R: Any, out: np.ndarray) -> None:
        if self.shift is not None:
            R = R.astype(np.float64, copy=False)
            out -= self.shift[:, None] * R.sum(axis=0)
        product = (self._transposed if self.shift is None else self._wide.T) @ R
        if sp.issparse(product):
            product = product.tocoo()
            out[product.coords] += product.data
        else:
            out += product

    def gram(self, weight: np.ndarray | None) -> Array:
        # Digits that a mean far from the origin would cost in float32 are there in float64.
        block = self._wide
        w = np.ones(self.n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
        weighted = block if weight is None else sp.csr_array(sp.diags_array(w) @ block)
        product = (block.T @ weighted).toarray()
        if self.shift is not None:
            first = weighted.T @ np.ones(self.n_rows)
            product -= self.shift[:, None] * first + first[:, None] * self.shift
            product += w.sum() * self.shift[:, None] * self.shift
        return product

    @property
    def has_arrays(self) -> bool:
        return self.shift is None

    def outer(self) -> Array:
        product = (self._wide @ self._wide.T).toarray()
        if self.shift is not None:
            along = self._wide @ self.shift
            product += float(self.shift @ self.shift) - along[:, None] - along
        return product

    def arrays(self) -> RowArrays:
        if not self.has_arrays:
            return super().arrays()
        return RowArrays.of(self.X.data, self.X.indices, self.X.indptr)


def _may_repeat(X: sp.csr_array) -> bool:
    """Whether a place has several entries. Sorting those of each row, as SciPy would, takes as long as several passes;
    text from scikit-learn's vectorizers is not sorted and needs not be."""
    if X.nnz < X.shape[1]:
        return True  # or may have: there are more columns than entries to be sorted
    pattern = sp.csr_array((np.zeros(X.nnz, dtype=np.int8), X.indices[: X.nnz], X.indptr), shape=X.shape)
    by_column = pattern.tocsc()
    again = np.zeros(X.nnz + 1, dtype=bool)
    again[1:-1] = by_column.indices[1:] == by_column.indices[:-1]
    again[by_column.indptr] = False  # the first of a column
    return bool(again.any())
