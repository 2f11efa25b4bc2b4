"""One d×d factor for every class: the majorizer of *Least Squares Revisited*, Algorithm 1."""

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.data.design import GRAM_BLOCK_BYTES, Array
from manyclass.data.factor import Factor
from manyclass.data.gram import GramSum
from manyclass.model.objective import Objective


class SecondMoment(Curvature):
    """H = L·Σ̂ + alpha·I for every output, Σ̂ the covariance of the rows, and L for the intercept.

    L is the Lipschitz constant of the link, so H dominates the Hessian everywhere; it is factored once.
    """

    name = "second-moment"
    majorizes = True

    def __init__(self, factor: Factor, lipschitz: float, fit_intercept: bool):
        self.factor, self.lipschitz, self.fit_intercept = factor, lipschitz, fit_intercept

    @classmethod
    def build(cls, objective: Objective, rng: np.random.Generator) -> SecondMoment:
        lipschitz = objective.link.lipschitz
        covariance = covariance_of(objective)
        covariance *= lipschitz
        precision = float(objective.xp.finfo(objective.design.dtype).eps)
        return cls(Factor(covariance, objective.alpha, precision), lipschitz, objective.fit_intercept)

    def solve(self, gradient: Array) -> Array:
        if not self.fit_intercept:
            return self.factor.solve(gradient)
        xp = self.factor.xp
        return self.with_intercept(self.factor.solve(gradient[:-1, :]), gradient[-1, :] / self.lipschitz, xp)


def covariance_of(objective: Objective) -> Array:
    """Σ s (x − c)(x − c)ᵀ / S in float64, in one pass; sparse rows are never filled."""
    design, sums = objective.design, GramSum(objective.design)
    for rows, block in design.blocks(design.rows_per_block(1, GRAM_BLOCK_BYTES)):
        sums.add(block, None if objective.sample_weight is None else objective.sample_weight[rows])
    total = sums.result()
    total /= objective.total_weight
    mean, center = objective.feature_mean, objective.center
    total -= center[:, None] * mean[None, :]
    total -= (mean - center)[:, None] * center[None, :]
    return total
