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

    def __init__(self, problem: Problem, rng: np.random.Generator):
        self.lipschitz, self.fit_intercept = problem.loss.lipschitz, problem.fit_intercept
        self.scale = self.lipschitz * float(problem.xp.sum(problem.feature_variance)) + problem.alpha or 1.0

    def solve(self, gradient: Array) -> Array:
        solved = gradient / self.scale
        if self.fit_intercept:
            solved[-1, :] = gradient[-1, :] / self.lipschitz
        return solved
