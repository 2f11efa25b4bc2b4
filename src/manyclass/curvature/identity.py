from __future__ import annotations

import numpy as np

from manyclass.curvature.base import OneUnitEach
from manyclass.model import Problem


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
