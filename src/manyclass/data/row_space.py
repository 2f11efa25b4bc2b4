"""Fewer rows than features: the same rows in as many dimensions as there are rows."""

import numpy as np
import scipy.linalg

from manyclass.data.dense import DenseRows
from manyclass.data.factor import eigh_in_place
from manyclass.data.rows import Array, Rows

EXACT = 1e4
"""Times their rounding, above which eigenvalues of a Gram matrix are known well enough."""
FILLED_BYTES = 1 << 26
"""Of rows that are decomposed themselves where theirs are not."""


class RowSpace:
    """X − 1cᵀ = Z Vᵀ with orthonormal columns of V, from the decomposition U S² Uᵀ of the Gram matrix of the rows.

    For a ridge penalty and an unpenalised intercept the best W lies in the span of the centred rows, whatever the loss:
    W = V B with ‖W‖ = ‖B‖, and Z B = (X − 1cᵀ) W. So every problem on X is the same problem on Z = U S, of shape
    (n_rows, rank), and V = (X − 1cᵀ)ᵀ U S⁻¹ is not formed, but where the Gram matrix hides a part of it.

    Rows are dense or sparse, and never filled; `center` is c, None without an intercept. The attribute `rows` is Z, in
    the dtype of the rows given.
    """

    def __init__(self, rows: Rows, center: Array | None):
        self.base = rows if center is None else rows.shifted(center)
        self.center, xp = center, rows.xp
        squares, vectors, right, least = self._decomposed(rows.precision)
        kept = squares > max(float(squares[-1]), 0.0) * least
        self._right = right[:, kept] if right is not None and bool(xp.any(kept)) else None
        lengths = xp.sqrt(squares[kept]) if bool(xp.any(kept)) else xp.ones_like(squares[-1:])
        self._directions = vectors[:, kept] if bool(xp.any(kept)) else vectors[:, -1:] * 0
        self._directions = self._directions / lengths[None, :]
        self.rows = DenseRows(xp.astype(self._directions * (lengths**2)[None, :], rows.dtype))

    @staticmethod
    def memory(rows: Rows) -> float:
        """Bytes that making one takes: the Gram matrix, its eigenvectors, and what these are made from."""
        return 3 * 8.0 * rows.n_rows**2

    def _decomposed(self, precision: float) -> tuple[Array, Array, Array | None, float]:
        """S² ascending, U, V where it is known, and the share of the largest S² below which others are rounding."""
        base, xp = self.base, self.base.xp
        n, d = base.n_rows, base.n_features
        rounding = n * float(xp.finfo(xp.float64).eps)
        squares, vectors = eigh_in_place(base.outer())
        # A column in large units hides in the squares what all others say; centred rows have one direction less.
        seen = squares[min(1 if self.center is None else 2, n) - 1 :]
        is_hidden = bool(xp.min(seen) < EXACT * rounding * xp.max(seen))
        if not (is_hidden and base.is_numpy and 8.0 * n * d <= FILLED_BYTES):
            return squares, vectors, None, max((n * precision) ** 2, rounding)
        filled = np.array(base.typed(xp.float64).dense())
        Q, R = scipy.linalg.qr(filled.T, mode="economic", overwrite_a=True, check_finite=False)
        U, lengths, of_q = scipy.linalg.svd(R.T, full_matrices=False, overwrite_a=True, check_finite=False)
        squares = lengths[::-1] ** 2
        if self.center is not None and n <= d:
            squares[0] = 0.0
        return squares, U[:, ::-1], Q @ of_q[::-1].T, rounding**2

    def project(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """B and the intercept of Z, from W of the rows given, of which only what the rows see is kept."""
        xp = self.base.xp
        wide = xp.astype(coef, xp.float64)
        if self._right is not None:
            B = xp.astype(self._right.T @ wide, coef.dtype)
        else:
            B = xp.astype(self._directions.T @ xp.astype(self.base.matmat(wide), xp.float64), coef.dtype)
        if self.center is not None:
            moved = xp.astype(intercept, xp.float64) + self.center @ xp.astype(coef, xp.float64)
            intercept = xp.astype(moved, intercept.dtype)
        return B, intercept

    def lift(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """W and the intercept of the rows given, from B and that of Z."""
        xp, dtype = self.base.xp, coef.dtype
        # In float64: along directions in which the rows hardly vary large multiples of them cancel.
        wide = xp.astype(coef, xp.float64)
        W = self.base.rmatmat(self._directions @ wide) if self._right is None else self._right @ wide
        if self.center is not None:
            intercept = xp.astype(xp.astype(intercept, xp.float64) - self.center @ W, intercept.dtype)
        return xp.astype(W, dtype), intercept
