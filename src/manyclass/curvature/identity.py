from __future__ import annotations

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.data.rows import Array
from manyclass.model import Problem


class Identity(Curvature):
    """H = (L·tr Σ̂ + alpha)·I, and L for the intercept: no curvature at all, in the units of the problem.

    The trace of the covariance Σ̂ is at least its largest eigenvalue, so H dominates the Hessian, by far; it is here for
    solvers that search along their steps or learn the curvature from them, and costs one look at the columns.
    """

    name = "identity"
    is_diagonal = True
    majorizes = False

    def __init__(self, scale: float, lipschitz: float, fit_intercept: bool):
        self.scale, self.lipschitz, self.fit_intercept = scale, lipschitz, fit_intercept

    @classmethod
    def build(cls, problem: Problem, rng: np.random.Generator) -> Identity:
        xp, lipschitz = problem.xp, problem.loss.lipschitz
        trace = float(xp.sum(problem.feature_variance))
        return cls(lipschitz * trace + problem.alpha or 1.0, lipschitz, problem.fit_intercept)

    def solve(self, gradient: Array) -> Array:
        solved = gradient / self.scale
        if self.fit_intercept:
            solved[-1, :] = gradient[-1, :] / self.lipschitz
        return solved
