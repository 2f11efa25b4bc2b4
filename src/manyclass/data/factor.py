"""Factor a positive semi-definite matrix once, solve with it many times."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, is_numpy_namespace, is_torch_namespace

from manyclass.data.design import Array


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
        S += ridge * xp.eye(size, dtype=xp.float64, device=S.device)
        precision = max(precision or 0.0, size * float(xp.finfo(xp.float64).eps))
        self.rank = size
        self._cholesky = _cholesky(S, xp, precision)
        if self._cholesky is None:
            eigenvalues, self._vectors = xp.linalg.eigh(S)
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
        elif is_numpy_namespace(xp):
            solution = scipy.linalg.cho_solve((self._cholesky, True), wide, check_finite=False)
        else:
            solution = xp.cholesky_solve(wide, self._cholesky)
        return xp.astype(solution, B.dtype, copy=False)


def _cholesky(S: Array, xp, precision: float) -> Array | None:
    """The lower factor, or None where S is (nearly) singular or the namespace has no triangular solve."""
    if is_numpy_namespace(xp):
        try:
            lower = scipy.linalg.cholesky(S, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
    elif is_torch_namespace(xp):
        lower, failed = xp.linalg.cholesky_ex(S)
        if int(failed):
            return None
    else:
        return None
    pivots = xp.linalg.diagonal(lower)
    # Squared pivots bound the smallest eigenvalue from above: below this ratio the factor is rounding noise.
    if S.shape[0] and not float(xp.min(pivots)) ** 2 > precision * float(xp.max(pivots)) ** 2:
        return None
    return lower
