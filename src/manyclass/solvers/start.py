"""Where to begin: the least-squares direction, at the best length."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from manyclass.curvature import Curvature
from manyclass.curvature.sampling import uniform_sample
from manyclass.data.rows import Array
from manyclass.model import Problem
from manyclass.model.losses import mean_loss

SAMPLE_ROWS = 4096
"""Rows on which the length is chosen."""


def least_squares_start(problem: Problem, curvature: Curvature) -> Array:
    """theta = constant model + c·(W_ls, 0), with c > 0 by a one-dimensional search on a sample of rows.

    For Gaussian rows the minimiser of any GLM is proportional to the least-squares solution (*Homotopic
    Initialization*, reference [9]), and H⁻¹ applied to the cross-covariance of X and Y is that solution up to scale.
    No pass over the rows is needed beyond the cross-covariance itself.
    """
    xp, loss, alpha = problem.xp, problem.loss, problem.alpha
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

    sample = uniform_sample(problem, SAMPLE_ROWS, np.random.default_rng(0))
    index = np.arange(problem.rows.n_rows) if sample.index is None else sample.index
    targets = problem.targets.take(index)
    pieces, start = [], 0
    (W, b), (W0, b0) = problem.unpack(direction), problem.unpack(base)
    for block, weight in sample.blocks(problem):
        part = slice(start, start + block.n_rows)
        start = part.stop
        pieces.append((part, problem.scores(block, W, b), problem.scores(block, W0, b0), weight))
    weight = xp.concat([weight for *_, weight in pieces])

    def value(log_length: float) -> float:
        length = float(np.exp(log_length))
        scores = ((part, Z0 + length * Z) for part, Z, Z0, _ in pieces)
        return mean_loss(loss, targets, weight, scores, xp) + 0.5 * alpha * length**2 * size

    found = minimize_scalar(value, bracket=(0.0, 1.0), tol=1e-2, options={"maxiter": 20})
    length = float(np.exp(min(found.x, 50.0)))
    return base + length * direction if np.isfinite(found.fun) and found.fun < value(-np.inf) else base
