"""A diagonal majorizer for sparse wide data, where a d×d factor does not fit."""

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import OneUnitEach
from manyclass.data.rows import Array
from manyclass.model import Problem


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
    ones = rows.ones(rows.n_features)[:, None]
    for _, block, weight in part.blocks():
        magnitude = block.map(abs)
        size = magnitude.matmat(ones) + extra
        if weight is not None:
            size = size * weight[:, None]
        magnitude.rmatmat(size, total)
        intercept += float(xp.sum(size, dtype=xp.float64))
    return total, intercept
