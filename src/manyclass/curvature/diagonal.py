"""A unit for each column, where a d×d factor does not fit or costs too much."""

import numpy as np

from manyclass.curvature.base import Curvature, mean_and_variance, solved_about, sums_of_columns
from manyclass.curvature.kronecker import class_sums
from manyclass.curvature.sampling import CLASS_ROWS, uniform_sample
from manyclass.data.rows import Array
from manyclass.model import Problem


class OneUnitEach(Curvature):
    """H = diag(D) for every output."""

    is_diagonal = True

    _shift: Array | None = None
    """From the centre of the problem to that about which coefficients and intercept do not depend on each other."""

    def _set(self, problem: Problem, of_features: Array, of_intercept: float) -> None:
        xp, rows = problem.xp, problem.rows
        # A feature that is always 0 has no gradient either; any positive number serves.
        scale = xp.where(of_features > 0, of_features, 1.0)
        if problem.fit_intercept:
            scale = xp.concat([scale, rows.asarray([of_intercept], dtype=scale.dtype)])
        self._scale = xp.astype(scale, rows.dtype)[:, None]

    def solve(self, gradient: Array) -> Array:
        if self._shift is None:
            return gradient / self._scale
        scale = self._scale
        return solved_about(self._shift, gradient, lambda G: G / scale[:-1, :], lambda g: g / scale[-1, 0])


class Identity(OneUnitEach):
    """H = (L·tr Σ̂ + alpha)·I, and L for the intercept: no curvature at all, in the units of the problem.

    The trace of the covariance Σ̂ is at least its largest eigenvalue, so H dominates the Hessian, by far; it is here for
    solvers that search along their steps or learn the curvature from them, and costs one look at the columns.
    """

    name = "identity"
    majorizes = False

    def __init__(self, problem: Problem, rng: np.random.Generator):
        variance, L = problem.feature_variance, problem.loss.lipschitz
        trace = problem.xp.sum(variance) * problem.xp.ones_like(variance)
        self._set(problem, L * trace + problem.alpha, L)


class Jacobi(OneUnitEach):
    """H = h·diag(Σ) + alpha, h for the intercept: the mean over the outputs of the diagonal of ∇²F.

    A change of variables that gives every column the unit of its spread where the penalty does not outweigh it, with
    h = mean tr ∇²Φ(z_i) / k at the point of the last refresh, and Σ the covariance of the rows with the weights
    tr ∇²Φ(z_i), about their weighted mean: of columns with heavy tails most of the plain variance is that of rows which
    are fitted early on, and their mean is far from those that are not. It costs one look at the columns, and one more
    for each refresh. One h serves all outputs: that of a rare class changes too much on the way to the minimum.
    """

    name = "jacobi"
    majorizes = False
    weighs_rows = True

    def __init__(self, problem: Problem, rng: np.random.Generator):
        self._variance = self._of_all = problem.feature_variance
        # No point in a look at all rows for one number.
        self._sample = problem.map(uniform_sample, CLASS_ROWS, rng)
        super().__init__(problem, rng)

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        if row_weight is None:
            trace = float(problem.xp.sum(problem.sum(class_sums, self._sample, *problem.unpack(theta))))
        else:
            # The units and their centre by these weights, too.
            xp, sums = problem.xp, problem.sum(_weighted_columns, row_weight)
            mean, variance = mean_and_variance(sums, problem)
            self._variance, trace = xp.where(variance > 0, variance, self._of_all), float(sums[0, 0])
            if problem.fit_intercept:
                self._shift = xp.astype(xp.where(variance > 0, mean - problem.center, 0.0), problem.rows.dtype)
        least = problem.rows.precision * problem.loss.lipschitz
        h = max(trace / problem.total_weight / problem.n_outputs, least)
        self._set(problem, h * self._variance + problem.alpha, h)


def _weighted_columns(part: Problem, row_weight: Array) -> Array:
    return sums_of_columns(part.rows, part.rows.asarray(row_weight, dtype=part.xp.float64))


class Diagonal(OneUnitEach):
    """H = L·diag(D) + alpha·I with D_j = (1/S) Σ_i s_i |x_ij| (Σ_l |x_il| + 1), the 1 for the intercept.

    By Cauchy's inequality (wᵀx)² ≤ Σ_l |x_l| · Σ_j |x_j| w_j², so diag(D) dominates the second moment; it takes one
    pass and O(d) memory. The objective must not be centred: centring would couple all features.
    """

    name = "diagonal"
    majorizes = True
    center = False

    def __init__(self, problem: Problem, rng: np.random.Generator):
        total, intercept = problem.sum(_magnitudes)
        L, S = problem.loss.lipschitz, problem.total_weight
        self._set(problem, L * total[:, 0] / S + problem.alpha, L * intercept / S)


def _magnitudes(part: Problem) -> tuple[Array, float]:
    """Σ s |x| (Σ_l |x_l| + 1) as a column, and the same for the intercept."""
    xp, rows = part.xp, part.rows
    extra = 1.0 if part.fit_intercept else 0.0
    total = rows.zeros((rows.n_features, 1), dtype=xp.float64)
    intercept = 0.0
    ones = rows.zeros((rows.n_features, 1)) + 1.0
    for _, block, weight in part.blocks():
        magnitude = block.map(abs)
        size = magnitude.matmat(ones) + extra
        if weight is not None:
            size = size * weight[:, None]
        magnitude.rmatmat(size, total)
        intercept += float(xp.sum(size, dtype=xp.float64))
    return total, intercept
