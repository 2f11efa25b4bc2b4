"""Where to begin: the least-squares direction, at the best length."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from manyclass.curvature import Curvature
from manyclass.curvature.sampling import uniform_sample
from manyclass.data.design import Array
from manyclass.model.objective import Objective

SAMPLE_ROWS = 4096
"""Rows on which the length is chosen."""


def least_squares_start(objective: Objective, curvature: Curvature) -> Array:
    """theta = constant model + c·(W_ls, 0), with c > 0 by a one-dimensional search on a sample of rows.

    For Gaussian rows the minimiser of any GLM is proportional to the least-squares solution (*Homotopic
    Initialization*, reference [9]), and H⁻¹ applied to the cross-covariance of X and Y is that solution up to scale.
    No pass over the rows is needed beyond the cross-covariance itself.
    """
    xp, link, alpha = objective.xp, objective.link, objective.alpha
    base = objective.constant_model()
    cross = xp.astype(objective.cross_covariance, objective.design.dtype)
    if objective.fit_intercept:
        cross = xp.concat([cross, base[-1:, :] * 0], axis=0)
    direction = curvature.solve(cross)
    if objective.fit_intercept:  # any pull on the intercept belongs to the constant model
        direction = xp.concat([direction[:-1, :], base[-1:, :] * 0], axis=0)
    size = float(xp.sum(objective.penalised(direction) ** 2, dtype=xp.float64))
    if not 0 < size < float("inf"):
        return base

    sample = uniform_sample(objective, SAMPLE_ROWS, np.random.default_rng(0))
    index = np.arange(objective.design.n_rows) if sample.index is None else sample.index
    targets = objective.targets.take(index)
    pieces, row = [], 0
    W, b = objective.unpack(direction)
    W0, b0 = objective.unpack(base)
    for block, weight in sample.blocks(objective):
        rows = slice(row, row + int(block.shape[0]))
        row = rows.stop
        pieces.append((rows, objective.scores(block, W, b), objective.scores(block, W0, b0), weight))
    total = sum(float(xp.sum(weight, dtype=xp.float64)) for *_, weight in pieces)

    def value(log_length: float) -> float:
        length, loss = float(np.exp(log_length)), 0.0
        for rows, Z, Z0, weight in pieces:
            scores = link.normalise(Z0 + length * Z, xp)
            matched = targets.dot(rows, scores, xp)
            losses = (link.potential_and_mean(scores, xp)[0] - matched) * weight
            loss += float(xp.sum(losses, dtype=xp.float64))
        return loss / total + 0.5 * alpha * length**2 * size

    found = minimize_scalar(value, bracket=(0.0, 1.0), tol=1e-2, options={"maxiter": 20})
    length = float(np.exp(min(found.x, 50.0)))
    return base + length * direction if np.isfinite(found.fun) and found.fun < value(-np.inf) else base
