"""A diagonal majorizer for sparse wide data, where a d×d factor does not fit."""

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.data.design import Array
from manyclass.model.objective import Objective


class Diagonal(Curvature):
    """H = L·diag(D) + alpha·I with D_j = (1/S) Σ_i s_i |x_ij| (Σ_l |x_il| + 1), the 1 for the intercept.

    By Cauchy's inequality (wᵀx)² ≤ Σ_l |x_l| · Σ_j |x_j| w_j², so diag(D) dominates the second moment; it takes one
    pass and O(d) memory. The objective must not be centred: centring would couple all features.
    """

    name = "diagonal"
    majorizes = True
    center = False

    def __init__(self, diagonal: Array, xp):
        self._diagonal, self._xp = diagonal, xp

    @classmethod
    def build(cls, objective: Objective, rng: np.random.Generator) -> Diagonal:
        xp, design = objective.xp, objective.design
        ones = 1.0 if objective.fit_intercept else 0.0
        total = design.zeros((design.n_features,), dtype=xp.float64)
        intercept = 0.0
        for _, block, weight in objective.blocks():
            magnitude = abs(block)
            size = magnitude @ xp.ones(design.n_features, dtype=design.dtype, device=design.device) + ones
            if weight is not None:
                size = size * weight
            total += magnitude.T @ size
            intercept += float(xp.sum(size, dtype=xp.float64))
        L, S = objective.link.lipschitz, objective.total_weight
        # A feature that is always 0 has no gradient either; any positive number serves.
        features = L * total / S + objective.alpha
        features = xp.where(features > 0, features, xp.ones_like(features))
        if objective.fit_intercept:
            features = xp.concat([features, design.asarray([L * intercept / S], dtype=xp.float64)])
        return cls(xp.astype(features, design.dtype), xp)

    def solve(self, gradient: Array) -> Array:
        return gradient / self._diagonal[:, None]
