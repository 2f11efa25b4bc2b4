"""The start of a solver: the least-squares solution, scaled by the best factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from manyclass.curvature import Curvature
from manyclass.curvature.sampling import uniform_sample
from manyclass.data import Targets
from manyclass.data.rows import Array
from manyclass.model import Problem
from manyclass.model.losses import loss_sums

FEWEST_ROWS, MOST_ROWS, SHARE = 512, 4096, 8
"""The factor is chosen on one of `SHARE` rows, within these bounds. They are evaluated a few tens of times."""
SCORES = 1 << 19
"""Scores per evaluation: with many outputs the sample is smaller, down to `FEWEST_ROWS`."""
LONGEST = 50.0
"""Logarithm of the largest factor: if a direction hardly changes the scores, every factor is as good."""


class Start(NamedTuple):
    """The parameters to begin at, and how strongly they speak against the metric."""

    theta: Array
    doubts: float = 0.0
    """0 if theta lies in the direction of the metric. Else it is better than the best point there: by this factor less
    1, in how far the objective falls, or in how much of it is left, whichever is more."""


def least_squares_start(problem: Problem, curvature: Curvature) -> Start:
    """theta = constant model + c·(W_ls, 0), with c > 0 by a one-dimensional search on a sample of rows.

    For Gaussian rows the minimiser of any GLM is proportional to the least-squares solution (*Homotopic
    Initialization*, reference [9]), and H⁻¹ applied to the cross-covariance of X and Y is that solution up to scale.
    No pass over the rows is needed beyond the cross-covariance itself.

    If a class is rare, or a column zero except in a few rows, the curvature at the constant model is far from that on
    the way to the minimum. So the cross-covariance divided by the variances of the columns is tried as a direction,
    too. If it leads further down than that of the metric, by more than the error of the sample, it is taken, and the
    metric is in doubt. (Not without a penalty, where the path must not depend on the units of X.)
    """
    xp = problem.xp
    base = problem.constant_model()
    cross = xp.astype(problem.cross_covariance, problem.rows.dtype)
    if problem.fit_intercept:
        cross = xp.concat([cross, base[-1:, :] * 0], axis=0)
    own, progress, left = _lowest_along(problem, base, curvature.solve(cross))
    if curvature.is_diagonal or problem.loss.quadratic or not problem.alpha > 0:
        return Start(own)
    unit = xp.astype(problem.loss.lipschitz * problem.feature_variance + problem.alpha, cross.dtype)[:, None]
    plain = xp.concat([cross[:-1, :] / unit, cross[-1:, :]]) if problem.fit_intercept else cross / unit
    other, further, less = _lowest_along(problem, base, plain)
    noise = 3.0 / _n_looked_at(problem, problem.rows.n_rows) ** 0.5
    # Both are on the same rows, so where little is left, as of classes that are nearly separated, the error is less.
    if further <= progress + noise * min(progress, max(left, 0.0)):
        return Start(own)
    return Start(other, max(further / max(progress, 1e-300), left / less if less > 0 else 1.0) - 1.0)


def _lowest_along(problem: Problem, base: Array, direction: Array) -> tuple[Array, float, float]:
    """The lowest point along a direction on a sample of rows, how far the objective falls to it, and its value there.

    The intercept stays as in `base`."""
    xp, alpha = problem.xp, problem.alpha
    if problem.fit_intercept:  # that of the constant model stays
        direction = xp.concat([direction[:-1, :], base[-1:, :] * 0], axis=0)
    size = float(xp.sum(problem.penalised(direction) ** 2, dtype=xp.float64))
    if not 0 < size < float("inf"):
        return base, 0.0, float("inf")

    scored = problem.map(_scored, np.random.default_rng(0), problem.unpack(direction), problem.unpack(base))

    def value(log_length: float) -> float:
        length = float(np.exp(min(log_length, LONGEST)))
        total, mass = problem.sum(_losses_at, scored, length)
        return total / mass + 0.5 * alpha * length**2 * size if mass > 0 else float("nan")

    found = minimize_scalar(value, bracket=(0.0, 1.0), tol=1e-2, options={"maxiter": 20})
    length = float(np.exp(min(found.x, LONGEST)))
    at_base, left = value(-np.inf), float(found.fun)
    return (base + length * direction, at_base - left, left) if left < at_base else (base, 0.0, at_base)


def _n_looked_at(problem: Problem, n_rows: float) -> int:
    enough = min(n_rows / SHARE, MOST_ROWS, SCORES / problem.n_outputs)
    return int(min(max(enough, FEWEST_ROWS), n_rows))


Scored = tuple[Targets, Array, list[tuple[slice, Array, Array]]]
"""Targets and weights of a sample of rows, and their scores along the direction and at the base, block by block."""


def _scored(
    part: Problem, rng: np.random.Generator, direction: tuple[Array, Array], base: tuple[Array, Array]
) -> Scored:
    sample = uniform_sample(part, _n_looked_at(part, part.rows.n_rows / part.share), rng)
    index = np.arange(part.rows.n_rows) if sample.index is None else sample.index
    pieces, weights = [], []
    for where, block, weight in sample.blocks(part):
        pieces.append((where, part.scores(block, *direction), part.scores(block, *base)))
        weights.append(weight)
    return part.targets.take(index), part.xp.concat(weights), pieces


def _losses_at(part: Problem, scored: Scored, length: float) -> tuple[float, float]:
    targets, weight, pieces = scored
    scores = ((where, Z0 + length * Z) for where, Z, Z0 in pieces)
    return loss_sums(part.loss, targets, weight, scores, part.xp)
