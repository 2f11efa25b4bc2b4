"""How rows are held: one class over dense arrays, memory maps and compressed sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_numpy_namespace
from array_api_compat import numpy as numpy_namespace

BLOCK_BYTES = 4 << 20
"""Memory of one block of rows or scores: small enough to stay in the last-level cache between the two products
of a pass, large enough that a matrix product runs at full speed (measured between 1 and 32 MiB)."""

GRAM_BLOCK_BYTES = 32 << 20
"""Memory of one block of rows in a Gram product: enough rows that adding a d×d block in float64 costs little
beside the product."""

Array = Any


class Design:
    """The rows of X, of shape (n_rows, n_features), read in blocks.

    Whether the rows are dense or sparse is a property of this object: every method means the same for both,
    and callers never ask.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        A floating-point array of any array-API namespace (NumPy, including ``np.memmap``, torch, ...), in C or
        Fortran order, possibly read-only; or a SciPy sparse matrix or array in CSR format with 32- or 64-bit
        indices. It is never copied and never written to.

    Attributes
    ----------
    xp : namespace
        The array-API namespace in which everything computed from X lives.
    """

    def __init__(self, X: Array):
        self.X = X
        self.is_sparse = sp.issparse(X)
        self.xp = numpy_namespace if self.is_sparse else array_namespace(X)
        self.device = None if self.is_sparse else device(X)
        self.n_rows, self.n_features = map(int, X.shape)
        self.dtype = X.dtype

    @property
    def is_numpy(self) -> bool:
        return is_numpy_namespace(self.xp)

    @property
    def itemsize(self) -> int:
        return int(self.xp.finfo(self.dtype).bits) // 8

    @property
    def row_bytes(self) -> float:
        """Memory of one row, in bytes (the mean, when sparse)."""
        if self.is_sparse:
            return (self.X.nnz / max(self.n_rows, 1)) * (self.itemsize + self.X.indices.itemsize) + 8
        return self.n_features * self.itemsize

    def rows_per_block(self, n_outputs: int, block_bytes: int = BLOCK_BYTES) -> int:
        """Rows for which neither the block of X nor its scores for `n_outputs` outputs outgrow `block_bytes`."""
        widest = max(self.row_bytes, n_outputs * self.itemsize, 1)
        return int(min(max(block_bytes // widest, 64), max(self.n_rows, 1)))

    def blocks(self, rows_per_block: int) -> Iterator[tuple[slice, Array]]:
        """Pairs (slice of rows, those rows of X), in order; dense rows are views."""
        for start in range(0, self.n_rows, rows_per_block):
            rows = slice(start, min(start + rows_per_block, self.n_rows))
            yield rows, self.rows(rows)

    def rows(self, rows: slice) -> Array:
        if not self.is_sparse:
            return self.X[rows, :]
        # Slicing a CSR matrix copies its data; three views of its arrays do not.
        pointers = self.X.indptr[rows.start : rows.stop + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        block: sp.csr_array = sp.csr_array((rows.stop - rows.start, self.n_features), dtype=self.dtype)
        block.data, block.indices = self.X.data[first:last], self.X.indices[first:last]
        block.indptr = pointers - pointers[0]
        return block

    def take(self, index: np.ndarray) -> Array:
        """A copy of the rows named by an integer array."""
        if self.is_sparse:
            return self.X[index]
        if self.is_numpy:
            return np.take(self.X, index, axis=0)
        return self.xp.take(self.X, self.asarray(index, dtype=self.xp.int64), axis=0)

    def asarray(self, values: Any, dtype: Any = None) -> Array:
        """`values` in the namespace, on the device and (by default) in the dtype of X."""
        return self.xp.asarray(values, dtype=self.dtype if dtype is None else dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...], dtype: Any = None) -> Array:
        return self.xp.zeros(shape, dtype=self.dtype if dtype is None else dtype, device=self.device)

    def matmat(self, W: Array) -> Array:
        """X @ W, of shape (n_rows, n_outputs)."""
        return self.X @ W

    def rmatmat(self, R: Array) -> Array:
        """X.T @ R, of shape (n_features, n_outputs), float64 sums over blocks of rows."""
        total = self.zeros((self.n_features, int(R.shape[1])), dtype=self.xp.float64)
        for rows, block in self.blocks(self.rows_per_block(int(R.shape[1]))):
            total += block.T @ R[rows, :]
        return total

    def mean(self, sample_weight: Array | None = None) -> Array:
        """Weighted mean row, of shape (n_features,), in float64."""
        return self._weighted_mean(lambda block: block, sample_weight)

    def mean_square(self, sample_weight: Array | None = None) -> Array:
        """Weighted mean of the squares in each column, of shape (n_features,), in float64."""
        return self._weighted_mean(lambda block: block * block, sample_weight)

    def _weighted_mean(self, of: Callable[[Array], Array], sample_weight: Array | None) -> Array:
        xp = self.xp
        if sample_weight is None:
            sample_weight = xp.ones(self.n_rows, dtype=self.dtype, device=self.device)
        weight = xp.astype(sample_weight, self.dtype, copy=False)
        total = self.zeros((self.n_features,), dtype=xp.float64)
        # Short blocks: a product over rows in float32 must not lose digits before it is added in float64.
        for rows, block in self.blocks(min(self.rows_per_block(1), 1 << 12)):
            total += of(block).T @ weight[rows]
        return total / float(xp.sum(sample_weight, dtype=xp.float64))


def scale_rows(block: Array, weight: Array) -> Array:
    """diag(weight) @ block, as a new block of the same kind."""
    if sp.issparse(block):
        return sp.csr_array(
            (block.data * np.repeat(weight, np.diff(block.indptr)), block.indices, block.indptr),
            shape=block.shape,
        )
    return block * weight[:, None]


def gram(block: Array) -> Array:
    """block.T @ block as a dense array, of shape (n_features, n_features)."""
    product = block.T @ block  # dense NumPy recognises the transpose and calls syrk: half the work of gemm
    return product.toarray() if sp.issparse(product) else product


def add_to_diagonal(matrix: Array, values: Array | float) -> None:
    """matrix += diag(values), in place and without a second matrix of that size."""
    xp = array_namespace(matrix)
    flat = xp.reshape(matrix, (-1,), copy=False)
    flat[:: int(matrix.shape[0]) + 1] += values
