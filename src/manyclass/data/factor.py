"""Decomposes a positive semi-definite matrix once, and solves with it for any ridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, is_numpy_namespace, is_torch_namespace
from scipy.linalg import get_blas_funcs

from manyclass.data.cells import OVERFLOW
from manyclass.data.rows import Array, add_to_diagonal, to_numpy
from manyclass.data.threads import factor_threads

if TYPE_CHECKING:
    from manyclass.data.moments import Moments

UNCORRELATED = 1e-8
"""Correlations below this are rounding."""
CONSTANT = 100.0
"""A variance below so many times the squared mean, times the precision of the rows, is rounding."""


class Factor:
    """(S + ridge·I)⁻¹ for a symmetric positive semi-definite S and any ridge ≥ 0, in float64.

    The first ridge is served by Cholesky where that is safe: n³/3 flops. A second ridge, or a matrix too near to
    singular, brings the eigendecomposition S = QΛQᵀ, which then serves every other ridge at the cost of a product.
    Eigenvalues lost in rounding count as zero; with ridge 0 those directions are left out, which gives the solution of
    minimum norm.

    `precision` is the relative accuracy of the entries of S, by default that of float64; give that of float32 where S
    was summed from float32 products and a ridge may be 0.
    """

    def __init__(self, S: Array, precision: float | None = None):
        xp = array_namespace(S)
        self.S = xp.astype(S, xp.float64, copy=False)
        size = int(S.shape[0])
        self.precision = max(precision or 0.0, size * float(self.xp.finfo(self.xp.float64).eps))
        self._ridge: float | None = None
        self._cholesky: Array | None = None
        self._spectrum: tuple[Array, Array] | None = None

    @property
    def xp(self) -> Any:
        return array_namespace(self.S)

    def solve(self, B: Array, ridge: float | Array) -> Array:
        """(S + ridge·I)⁻¹ B for B of shape (n_features, n_outputs), in the dtype of B.

        The ridge is one number for all columns of B, or one for each. Then each distinct one has a Cholesky factor.
        """
        xp = self.xp
        wide = xp.astype(B, xp.float64, copy=False)
        if not isinstance(ridge, (int, float)):
            return xp.astype(self._solve_each(wide, to_numpy(ridge)), B.dtype, copy=False)
        lower = self._lower(float(ridge))
        if lower is not None:
            return xp.astype(_solve_cholesky(lower, wide, xp), B.dtype, copy=False)
        _, vectors = self.spectrum
        inverse = self._inverse(float(ridge))
        return xp.astype(vectors @ (inverse[:, None] * (vectors.T @ wide)), B.dtype, copy=False)

    def _solve_each(self, wide: Array, ridges: np.ndarray) -> Array:
        xp, factor, found, order = self.xp, self, [], []
        for ridge in np.unique(ridges):
            order.append(np.flatnonzero(ridges == ridge))
            factor = factor.anew()
            places = xp.asarray(order[-1], device=wide.device)
            found.append(factor.solve(xp.take(wide, places, axis=1), float(ridge)))
        back = xp.asarray(np.argsort(np.concatenate(order)), device=wide.device)
        return xp.take(xp.concat(found, axis=1), back, axis=1)

    def anew(self) -> Factor:
        """A factor of the same matrix for another first ridge; itself if it is decomposed for all ridges already."""
        return self if self._spectrum is not None else Factor(self.S, self.precision)

    @property
    def spectrum(self) -> tuple[Array, Array]:
        """Ascending eigenvalues and eigenvectors of S."""
        if self._spectrum is None:
            self._spectrum = _of_axes(self.S) or eigh_in_place(self.S + 0.0)
            self._cholesky = None
        return self._spectrum

    def _lower(self, ridge: float) -> Array | None:
        """The Cholesky factor for the first ridge, if that is safe; None for other ridges."""
        if self._spectrum is None and self._ridge is None:
            self._ridge, xp = ridge, self.xp
            _check_finite(self.S)
            shifted = self.S + 0.0
            add_to_diagonal(shifted, ridge)
            # The trace bounds the norm, and costs no pass over the matrix.
            size = float(xp.sum(xp.linalg.diagonal(shifted)))
            size = norm(shifted, xp) if ridge <= 2.0 * self.precision * size else 0.0
            lower = _cholesky(shifted, xp)
            # The pivots can hide a small eigenvalue, if the ridge is small enough to allow one.
            doubtful = lower is not None and len(lower) and ridge <= 2.0 * self.precision * size
            if doubtful and _least(lower, xp) <= self.precision * size:
                lower = None
            self._cholesky = lower
        return self._cholesky if ridge == self._ridge else None

    def _inverse(self, ridge: float) -> Array:
        """1/(λ + ridge), and 0 for directions that are rounding."""
        xp, (eigenvalues, _) = self.xp, self.spectrum
        shifted = eigenvalues + ridge
        if ridge > 0:
            shifted = xp.maximum(shifted, xp.asarray(ridge, dtype=xp.float64, device=shifted.device))
            kept = shifted > 0
        else:
            kept = shifted > max(float(eigenvalues[-1]) if int(eigenvalues.shape[0]) else 0.0, 0.0) * self.precision
        return 1.0 / xp.where(kept, shifted, xp.inf)


class Metric:
    """H⁻¹ for a positive semi-definite H of which not every digit matters: Cholesky in float64, d³/3 flops.

    H is scaled to a diagonal of 1, so that columns of very different size cost no digits, and kept away from singular
    by a multiple of the rounding of its entries. If the diagonal is 0, so is the solution. H, in float64, is
    overwritten; the factor is kept in `dtype`.
    """

    def __init__(self, H: Array, precision: float, dtype: Any = None):
        xp = array_namespace(H)
        diagonal = xp.linalg.diagonal(H)
        diagonal = xp.where(diagonal > 0, diagonal, 0.0)
        least = precision * (float(xp.max(diagonal)) if int(diagonal.shape[0]) else 0.0) ** 0.5 or 1.0
        unit = 1.0 / xp.maximum(xp.sqrt(diagonal), least * xp.ones_like(diagonal))
        self._unit = xp.where(diagonal > 0, unit, xp.zeros_like(unit))
        H *= self._unit[:, None]
        H *= self._unit[None, :]
        add_to_diagonal(H, 4.0 * precision**0.75)
        lower = _cholesky(H + 0.0, xp)
        kept = eigh_in_place(H) if lower is None else (lower,)
        self._kept = tuple(xp.astype(part, dtype or H.dtype, copy=False) for part in kept)
        self._unit = xp.astype(self._unit, dtype or H.dtype, copy=False)[:, None]

    def solve(self, B: Array) -> Array:
        """H⁻¹ B for B of shape (n_features, n_outputs), in its dtype."""
        xp, (*values, factor) = array_namespace(B), self._kept
        scaled = xp.astype(B, factor.dtype, copy=False) * self._unit
        if values:
            solved = factor @ ((factor.T @ scaled) / values[0][:, None])
        else:
            solved = _solve_cholesky(factor, scaled, xp)
        return xp.astype(solved * self._unit, B.dtype, copy=False)


def is_positive(S: Array, slack: float) -> bool:
    """Whether a symmetric matrix has no eigenvalue below −slack."""
    xp = array_namespace(S)
    if not (is_numpy_namespace(xp) or is_torch_namespace(xp)):
        return not float(xp.linalg.eigvalsh(S)[0]) < -slack
    shifted = S + 0.0
    # A little more than the slack: the factor of a matrix of zeros needs a positive diagonal.
    add_to_diagonal(shifted, slack + float(xp.finfo(xp.float64).tiny))
    return _cholesky(shifted, xp) is not None


def _of_axes(S: Array) -> tuple[Array, Array] | None:
    """The spectrum of a matrix that is diagonal up to rounding, as of rows in the space that they span; else None. Most
    other matrices are recognised by their first row."""
    xp, n = array_namespace(S), int(S.shape[0])
    diagonal = xp.linalg.diagonal(S)
    if n < 2 or not bool(xp.all(diagonal > 0)):
        return None
    length, eye = xp.sqrt(diagonal), xp.eye(n, dtype=S.dtype, device=S.device)
    for first, last in ((0, 1), (1, n)):
        correlation = S[first:last, :] / length[None, :] / length[first:last, None]
        if not float(xp.max(xp.abs(correlation - eye[first:last, :]))) <= UNCORRELATED:
            return None
    order = xp.argsort(diagonal)
    return xp.take(diagonal, order, axis=0), xp.take(eye, order, axis=1)


def eigh_in_place(S: Array) -> tuple[Array, Array]:
    """Ascending eigenvalues and eigenvectors of a symmetric matrix, which may be overwritten.

    NumPy's own routine keeps three more matrices of that size and takes twice the time at 4096 features.
    """
    xp = array_namespace(S)
    _check_finite(S)
    if is_numpy_namespace(xp):
        with factor_threads(4.0 * len(S) ** 3):
            values, vectors = scipy.linalg.eigh(S.T, driver="evd", overwrite_a=True, check_finite=False)
    else:
        values, vectors = xp.linalg.eigh(S)
    return values, vectors


def _check_finite(S: Array) -> None:
    xp = array_namespace(S)
    if not bool(xp.isfinite(xp.sum(S))):
        raise ValueError(OVERFLOW)


def _solve_cholesky(lower: Array, B: Array, xp: Any) -> Array:
    if not is_numpy_namespace(xp):
        return xp.cholesky_solve(B, lower)
    # BLAS needs Fortran order, which Bᵀ has without a transposed copy: Xᵀ LLᵀ = Bᵀ.
    trsm = get_blas_funcs("trsm", (lower,))
    with factor_threads(float(len(lower)) * B.size):
        X = trsm(1.0, lower, np.array(B, order="C").T, side=1, lower=1, trans_a=1, overwrite_b=1)
        return trsm(1.0, lower, X, side=1, lower=1, overwrite_b=1).T


def _least(lower: Array, xp: Any) -> float:
    """The smallest eigenvalue of LLᵀ, estimated by inverse power iteration."""
    start = np.random.default_rng(0).standard_normal((len(lower), 1))
    v = xp.asarray(start, dtype=xp.float64, device=lower.device)
    growth = 1.0
    for _ in range(4):
        v = _solve_cholesky(lower, v / norm(v, xp), xp)
        growth = norm(v, xp)
        if not np.isfinite(growth):
            return 0.0
    return 1.0 / growth


def norm(A: Array, xp: Any) -> float:
    return float(xp.sum(A * A) ** 0.5)


def _cholesky(S: Array, xp: Any) -> Array | None:
    """The lower factor, or None where S is not positive definite or the namespace has no triangular solve.

    S may be overwritten.
    """
    if is_numpy_namespace(xp):
        try:
            with factor_threads(len(S) ** 3 / 6.0):
                return scipy.linalg.cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
    if is_torch_namespace(xp):
        lower, failed = xp.linalg.cholesky_ex(S)
        return None if int(failed) else lower
    return None


def varying(covariance: Array, moments: Moments, precision: float) -> Array:
    """The variance of each feature, or its mean square; 0 where it is rounding."""
    xp, mean = array_namespace(covariance), moments.x / moments.weight
    variance = xp.linalg.diagonal(covariance)
    return xp.where(variance > CONSTANT * precision * mean**2, variance, xp.zeros_like(variance))
