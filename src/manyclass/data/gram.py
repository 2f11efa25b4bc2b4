"""Sums of Gram matrices over blocks of rows."""

from __future__ import annotations

import numpy as np
from array_api_compat import is_numpy_namespace
from scipy.linalg import get_blas_funcs

from manyclass.data.design import Array, Design, gram, scale_rows


class GramSum:
    """Σ w x xᵀ over blocks of rows: products in the dtype of X, sums in float64.

    Dense NumPy blocks go through ``syrk``, which fills one triangle of one buffer; NumPy's own ``X.T @ X`` allocates a
    product and mirrors it for every block.

    Parameters
    ----------
    design : Design
        Where the rows come from; says in which namespace, dtype and on which device they are.
    """

    def __init__(self, design: Design):
        size = design.n_features
        self._numpy = is_numpy_namespace(design.xp) and not design.is_sparse
        self.total = design.zeros((size, size), dtype=design.xp.float64)
        if self._numpy:
            self._product = np.zeros((size, size), dtype=design.dtype, order="F")
            self._syrk = get_blas_funcs("syrk", dtype=design.dtype)

    def add(self, block: Array, weight: Array | None = None) -> None:
        """Add the rows of a block, with non-negative weights."""
        if weight is not None:
            block = scale_rows(block, weight**0.5)
        if not self._numpy:
            self.total += gram(block)
        elif len(block) and block.shape[1]:
            # A C-ordered block is its transpose in Fortran's order, which is what syrk reads without a copy.
            by_row = block.flags.c_contiguous
            self._product = self._syrk(
                1.0, block.T if by_row else block, trans=not by_row, c=self._product, overwrite_c=True
            )
            self.total += self._product.T  # both in C order; the upper triangle of one is the lower of the other

    def result(self) -> Array:
        """The sum so far, of shape (n_features, n_features), in float64; nothing can be added after it."""
        if self._numpy:
            _mirror_lower(self.total)
        return self.total


def _mirror_lower(matrix: np.ndarray, step: int = 256) -> None:
    """Copy the lower triangle to the upper, tile by tile: a whole transpose would miss the cache at every entry."""
    size = len(matrix)
    for start in range(0, size, step):
        stop = min(start + step, size)
        tile = matrix[start:stop, start:stop]
        tile[:] = np.tril(tile) + np.tril(tile, -1).T
        for below in range(stop, size, step):
            matrix[start:stop, below : below + step] = matrix[below : below + step, start:stop].T
