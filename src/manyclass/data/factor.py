"""Factor a positive semi-definite matrix once, solve with it many times."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, is_numpy_namespace, is_torch_namespace

from manyclass.data.design import Array, add_to_diagonal


class Factor:
    """(S + ridge·I)⁻¹ for a symmetric positive semi-definite S, in float64.

    By Cholesky where that is safe, otherwise by an eigendecomposition in which eigenvalues lost in rounding count
    as zero; with ``ridge=0`` those directions are left out, which gives the solution of minimum norm.

    Parameters
    ----------
    S : array of shape (n_features, n_features)
    ridge : float
        Non-negative.
    precision : float, optional
        Relative accuracy of the entries of S, by default that of float64; give that of float32 where S was summed
        from float32 products and ``ridge`` may be 0.

    Attributes
    ----------
    rank : int
        Number of directions kept.
    """

    def __init__(self, S: Array, ridge: float, precision: float | None = None):
        self.xp = xp = array_namespace(S)
        size = int(S.shape[0])
        S = xp.astype(S, xp.float64)
        add_to_diagonal(S, ridge)
        precision = max(precision or 0.0, size * float(xp.finfo(xp.float64).eps))
        self.rank = size
        self._cholesky = _cholesky(S, xp)
        if self._cholesky is not None and size and self._smallest_eigenvalue() <= precision * _norm(S, xp):
            self._cholesky = None
        if self._cholesky is None:
            eigenvalues, self._vectors = eigh_in_place(S)
            cut = max(float(eigenvalues[-1]), 0.0) * precision
            kept = eigenvalues > max(cut, 0.0)
            if ridge > 0:
                eigenvalues = xp.maximum(eigenvalues, xp.asarray(ridge, dtype=xp.float64, device=S.device))
                kept = eigenvalues > 0
            self.rank = int(xp.sum(xp.astype(kept, xp.int64)))
            safe = xp.where(kept, eigenvalues, xp.ones_like(eigenvalues))
            self._inverse = xp.where(kept, 1.0 / safe, xp.zeros_like(eigenvalues))

    def solve(self, B: Array) -> Array:
        """(S + ridge·I)⁻¹ B for B of shape (n_features, n_outputs), in the dtype of B."""
        xp = self.xp
        wide = xp.astype(B, xp.float64, copy=False)
        if self._cholesky is None:
            solution = self._vectors @ (self._inverse[:, None] * (self._vectors.T @ wide))
        else:
            solution = self._solve_cholesky(wide)
        return xp.astype(solution, B.dtype, copy=False)

    def _solve_cholesky(self, B: Array) -> Array:
        if is_numpy_namespace(self.xp):
            return scipy.linalg.cho_solve((self._cholesky, True), B, check_finite=False)
        return self.xp.cholesky_solve(B, self._cholesky)

    def _smallest_eigenvalue(self) -> float:
        """An estimate by inverse power iteration; pivots alone can hide a small eigenvalue."""
        xp = self.xp
        assert self._cholesky is not None
        size = int(self._cholesky.shape[0])
        start = np.random.default_rng(0).standard_normal((size, 1))
        v = xp.asarray(start, dtype=xp.float64, device=self._cholesky.device)
        growth = 1.0
        for _ in range(4):
            v = self._solve_cholesky(v / _norm(v, xp))
            growth = _norm(v, xp)
            if not np.isfinite(growth):
                return 0.0
        return 1.0 / growth


def eigh_in_place(S: Array) -> tuple[Array, Array]:
    """Ascending eigenvalues and eigenvectors of a symmetric matrix, which may be overwritten.

    NumPy's own routine keeps three more matrices of that size and takes twice the time at 4096 features.
    """
    xp = array_namespace(S)
    if not is_numpy_namespace(xp):
        return xp.linalg.eigh(S)
    return scipy.linalg.eigh(S.T, driver="evd", overwrite_a=True, check_finite=False)


def _norm(A: Array, xp) -> float:
    return float(xp.sum(A * A)) ** 0.5


def _cholesky(S: Array, xp) -> Array | None:
    """The lower factor, or None where S is not positive definite or the namespace has no triangular solve."""
    if is_numpy_namespace(xp):
        try:
            return scipy.linalg.cholesky(S, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
    if is_torch_namespace(xp):
        lower, failed = xp.linalg.cholesky_ex(S)
        return None if int(failed) else lower
    return None
