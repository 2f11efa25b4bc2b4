"""Where to begin: the least-squares direction, at the best length."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from manyclass.curvature import Curvature
from manyclass.curvature.sampling import uniform_sample
from manyclass.data import Targets
from manyclass.data.rows import Array
from manyclass.model import Problem
from manyclass.model.losses import loss_sums

SAMPLE_ROWS = 4096
"""Rows on which the length is chosen."""


def least_squares_start(problem: Problem, curvature: Curvature) -> Array:
    """theta = constant model + c·(W_ls, 0), with c > 0 by a one-dimensional search on a sample of rows.

    For Gaussian rows the minimiser of any GLM is proportional to the least-squares solution (*Homotopic
    Initialization*, reference [9]), and H⁻¹ applied to the cross-covariance of X and Y is that solution up to scale.
    No pass over the rows is needed beyond the cross-covariance itself.
    """
    xp, alpha = problem.xp, problem.alpha
    base = problem.constant_model()
    cross = xp.astype(problem.cross_covariance, problem.rows.dtype)
    if problem.fit_intercept:
        cross = xp.concat([cross, base[-1:, :] * 0], axis=0)
    direction = curvature.solve(cross)
    if problem.fit_intercept:  # any pull on the intercept belongs to the constant model
        direction = xp.concat([direction[:-1, :], base[-1:, :] * 0], axis=0)
    size = float(xp.sum(problem.penalised(direction) ** 2, dtype=xp.float64))
    if not 0 < size < float("inf"):
        return base

    scored = problem.map(_scored, np.random.default_rng(0), problem.unpack(direction), problem.unpack(base))

    def value(log_length: float) -> float:
        length = float(np.exp(log_length))
        total, mass = problem.sum(_losses_at, scored, length)
        return total / mass + 0.5 * alpha * length**2 * size if mass > 0 else float("nan")

    found = minimize_scalar(value, bracket=(0.0, 1.0), tol=1e-2, options={"maxiter": 20})
    length = float(np.exp(min(found.x, 50.0)))
    return base + length * direction if np.isfinite(found.fun) and found.fun < value(-np.inf) else base


Scored = tuple[Targets, Array, list[tuple[slice, Array, Array]]]
"""Targets and weights of a sample of rows, and their scores along the direction and at the base, block by block."""


def _scored(
    part: Problem, rng: np.random.Generator, direction: tuple[Array, Array], base: tuple[Array, Array]
) -> Scored:
    sample = uniform_sample(part, SAMPLE_ROWS, rng)
    index = np.arange(part.rows.n_rows) if sample.index is None else sample.index
    pieces, weights, start = [], [], 0
    for block, weight in sample.blocks(part):
        where = slice(start, start + block.n_rows)
        start = where.stop
        pieces.append((where, part.scores(block, *direction), part.scores(block, *base)))
        weights.append(weight)
    return part.targets.take(index), part.xp.concat(weights), pieces


def _losses_at(part: Problem, scored: Scored, length: float) -> tuple[float, float]:
    targets, weight, pieces = scored
    scores = ((where, Z0 + length * Z) for where, Z, Z0 in pieces)
    return loss_sums(part.loss, targets, weight, scores, part.xp)
