"""Fewer rows than features: the same rows in as many dimensions as there are rows."""

from __future__ import annotations

from manyclass.data.dense import DenseRows
from manyclass.data.factor import eigh_in_place
from manyclass.data.rows import Array, Rows


class RowSpace:
    """X − 1cᵀ = Z Vᵀ with orthonormal columns of V, from the decomposition U S² Uᵀ of the Gram matrix of the rows.

    For a ridge penalty and an unpenalised intercept the best W lies in the span of the centred rows, whatever the loss:
    W = V B with ‖W‖ = ‖B‖, and Z B = (X − 1cᵀ) W. So every problem on X is the same problem on Z = U S, of shape
    (n_rows, rank), and V is never formed: V = (X − 1cᵀ)ᵀ U S⁻¹.

    Rows are dense or sparse, and never filled; `center` is c, None without an intercept. The attribute `rows` is Z, in
    the dtype of the rows given.
    """

    def __init__(self, rows: Rows, center: Array | None):
        self.base = rows if center is None else rows.shifted(center)
        self.center, xp = center, rows.xp
        squares, vectors = eigh_in_place(self.base.outer())
        largest = max(float(squares[-1]), 0.0)
        kept = squares > largest * max(
            (rows.n_rows * rows.precision) ** 2, rows.n_rows * float(xp.finfo(xp.float64).eps)
        )
        lengths = xp.sqrt(squares[kept]) if bool(xp.any(kept)) else xp.ones_like(squares[-1:])
        self._directions = vectors[:, kept] if bool(xp.any(kept)) else vectors[:, -1:] * 0
        self._directions = self._directions / lengths[None, :]
        self.rows = DenseRows(xp.astype(self._directions * (lengths**2)[None, :], rows.dtype))

    def project(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """B and the intercept of Z, from W of the rows given, of which only what the rows see is kept."""
        xp = self.base.xp
        scores = xp.astype(self.base.matmat(xp.astype(coef, xp.float64)), xp.float64)
        B = xp.astype(self._directions.T @ scores, coef.dtype)
        if self.center is not None:
            moved = xp.astype(intercept, xp.float64) + self.center @ xp.astype(coef, xp.float64)
            intercept = xp.astype(moved, intercept.dtype)
        return B, intercept

    def lift(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """W and the intercept of the rows given, from B and that of Z."""
        xp, dtype = self.base.xp, coef.dtype
        # In float64: along directions in which the rows hardly vary large multiples of them cancel.
        W = self.base.rmatmat(self._directions @ xp.astype(coef, xp.float64))
        if self.center is not None:
            intercept = xp.astype(xp.astype(intercept, xp.float64) - self.center @ W, intercept.dtype)
        return xp.astype(W, dtype), intercept
