"""Rows in an array of any array-API namespace."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from manyclass.data.few_columns import add_product, product
from manyclass.data.gram import GramSum
from manyclass.data.rows import BLOCK_BYTES, GRAM_BLOCK_BYTES, HALF, Array, RowArrays, Rows, slices

PANEL, TILE = 512, 256
"""Columns of a Gram matrix that are summed at a time, and rows and columns that are mirrored."""


class DenseRows(Rows):
    """Rows of an array of real numbers (NumPy, including ``np.memmap``, torch, ...), never copied or written to.

    float32 and float64 are computed with as they are. What has no products of its own, or slow and coarse ones (half
    precision, integers, truth values), is converted block by block when it is read, see `dtype_of_products`.
    """

    def __init__(self, X: Array, shift: Array | None = None, dtype: Any = None):
        self.X, self.shift = X, shift
        self.xp: Any = array_namespace(X)
        self.device = device(X)
        self.n_rows, self.n_features = map(int, X.shape)
        self.dtype = dtype_of_products(X.dtype, self.xp) if dtype is None else dtype

    @property
    def row_bytes(self) -> float:
        return self.n_features * self.itemsize

    def part(self, rows: slice) -> DenseRows:
        whole = rows.start == 0 and rows.stop >= self.n_rows and rows.step is None
        return self._read(self.X if whole else self.X[rows, :])

    def take(self, index: np.ndarray) -> DenseRows:
        if self.is_numpy:
            return self._like(np.take(self.X, index, axis=0))
        return self._like(self.xp.take(self.X, self.asarray(index, dtype=self.xp.int64), axis=0))

    def _like(self, X: Array) -> DenseRows:
        """Other rows in the dtype of X, still to be read."""
        rows = copy(self)
        rows.X = X
        rows.n_rows, rows.n_features = X.shape
        return rows

    def _read(self, block: Array) -> DenseRows:
        if self._is_ready:
            return self if block is self.X else self._like(block)
        block = self.xp.astype(block, self.dtype, copy=False)
        return DenseRows(block if self.shift is None else block - self.shift)

    @property
    def _is_ready(self) -> bool:
        """Whether X is computed with as it is."""
        return self.shift is None and self.X.dtype == self.dtype

    def typed(self, dtype: Any) -> DenseRows:
        return DenseRows(self.X, None if self.shift is None else self.xp.astype(self.shift, dtype), dtype)

    def _with_shift(self, shift: Array) -> DenseRows:
        return DenseRows(self.X, self.asarray(shift), self.dtype)

    def map(self, function: Callable[[Array], Array]) -> DenseRows:
        return DenseRows(function(self.dense()))

    def scaled(self, weight: Array) -> DenseRows:
        return DenseRows(self.dense() * weight[:, None])

    def dense(self) -> Array:
        return self.X if self._is_ready else self._read(self.X).X

    def unwrapped(self) -> Array:
        return self.X if self.shift is None else self.dense()

    def select(self, columns: np.ndarray) -> DenseRows:
        chosen = self.asarray(columns, dtype=self.xp.int64)
        part = self.X[:, columns] if self.is_numpy else self.xp.take(self.X, chosen, axis=1)
        return DenseRows(part, None if self.shift is None else self.xp.take(self.shift, chosen), self.dtype)

    def matmat(self, W: Array) -> Array:
        if self.shift is None and W.dtype == self.X.dtype:
            return product(self.X, W)
        if self.shift is None and self.rows_per_block(int(W.shape[1])) >= self.n_rows:
            # Coefficients may be wider than the rows they are applied to.
            return product(self.xp.astype(self.X, W.dtype), W)
        blocks = self.blocks(self.rows_per_block(int(W.shape[1])))
        return self.xp.concat([block.matmat(W) for _, block in blocks])

    def affine(self, W: Array, b: Array) -> Array:
        if self.n_features > int(W.shape[1]):
            return super().affine(W, b)
        # A column of ones costs less than a pass over the result.
        ones, concat = self.weights(), self.xp.concat
        return concat([self.dense(), ones[:, None]], axis=1) @ concat([W, b[None, :]], axis=0)

    def _add_rmatmat(self, R: Array, out: Array) -> None:
        # R may be wider than the rows it is multiplied with.
        add_product(self.xp.astype(self.dense(), R.dtype, copy=False), R, out)

    def outer(self) -> Array:
        # By columns, so that no second copy of X is there in float64, nor much beside the result.
        n_bytes = min(GRAM_BLOCK_BYTES, max(BLOCK_BYTES, 2 * self.n_rows**2))
        step = max(n_bytes // (8 * max(self.n_rows, 1)), 64)
        total = self.zeros((self.n_rows, self.n_rows), dtype=self.xp.float64)
        for columns in slices(self.n_features, step):
            shift = None if self.shift is None else self.shift[columns]
            some = DenseRows(self.X[:, columns], shift, self.dtype).dense()
            some = self.xp.astype(some, self.xp.float64, copy=False)
            total += some @ some.T
        return total

    def gram(self, weight: Array | None) -> Array:
        block = (self if weight is None else self.scaled(weight**0.5)).dense()
        return block.T @ block

    def gram_sum(self) -> GramSum:
        return _SymmetricSum(self) if self.is_numpy else GramSum(self)

    @property
    def has_arrays(self) -> bool:
        return self.is_numpy

    def arrays(self) -> RowArrays:
        if not self.has_arrays:
            return super().arrays()
        X = np.ascontiguousarray(self.unwrapped())
        X = X.view({"f2": HALF, "b1": np.dtype(np.uint8)}.get(X.dtype.str[1:], X.dtype))
        indptr = np.arange(self.n_rows + 1, dtype=np.uint64) * np.uint64(self.n_features)
        return RowArrays.of(np.asarray(X).reshape(-1), np.empty(0, np.uint32), indptr)


def dtype_of_products(dtype: Any, xp: Any) -> Any:
    """float32 for half precision, truth values and integers of up to 16 bits, float64 for wider integers."""
    if xp.isdtype(dtype, "real floating"):
        narrow, wide = xp.finfo(dtype).bits < 32, dtype
    elif xp.isdtype(dtype, "integral"):
        narrow, wide = xp.iinfo(dtype).bits <= 16, xp.float64
    else:
        narrow, wide = xp.isdtype(dtype, "bool"), dtype
    return xp.empty(0, dtype=xp.float32 if narrow else wide).dtype


class _SymmetricSum(GramSum):
    """The same for the lower triangle alone, in panels of columns: NumPy mirrors whole products for every block."""

    def add(self, block: Rows, weight: Array | None = None) -> None:
        values = (block if weight is None else block.scaled(weight**0.5)).dense()
        for start in range(0, block.n_features, PANEL):
            columns, below = slice(start, start + PANEL), slice(start + PANEL, None)
            panel = values[:, columns]
            self.total[columns, columns] += panel.T @ panel
            self.total[below, columns] += values[:, below].T @ panel

    def result(self) -> Array:
        """With the upper triangle, copied tile by tile: a whole transpose would miss the cache at every entry."""
        matrix, size = self.total, len(self.total)
        for start in range(0, size, TILE):
            stop = min(start + TILE, size)
            tile = matrix[start:stop, start:stop]
            tile[:] = np.tril(tile) + np.tril(tile, -1).T
            for below in range(stop, size, TILE):
                matrix[start:stop, below : below + TILE] = matrix[below : below + TILE, start:stop].T
        return matrix
