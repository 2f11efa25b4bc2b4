"""One d×d factor for every class: the majorizer of *Least Squares Revisited*, Algorithm 1."""

import numpy as np

from manyclass.curvature.base import MATRICES, Curvature
from manyclass.data.factor import Factor
from manyclass.data.rows import Array
from manyclass.model import Problem


class SecondMoment(Curvature):
    """H = L·Σ̂ + alpha·I for every output, Σ̂ the covariance of the rows, and L for the intercept.

    L is the Lipschitz constant of the loss, so H dominates the Hessian everywhere; it is factored once.
    """

    name = "second-moment"
    majorizes = True
    is_exact = True

    def __init__(self, problem: Problem, rng: np.random.Generator):
        self.alpha, self.lipschitz, self.fit_intercept = problem.alpha, problem.loss.lipschitz, problem.fit_intercept
        covariance = problem.sum(_sandwich, problem.center if problem.fit_intercept else None)
        covariance *= self.lipschitz / problem.total_weight
        self.factor = Factor(covariance, problem.rows.precision)

    @classmethod
    def memory(cls, problem: Problem) -> float:
        return MATRICES * 8.0 * problem.rows.n_features**2

    def solve(self, gradient: Array) -> Array:
        if not self.fit_intercept:
            return self.factor.solve(gradient, self.alpha)
        coef = self.factor.solve(gradient[:-1, :], self.alpha)
        return self.factor.xp.concat([coef, gradient[-1:, :] / self.lipschitz], axis=0)


def _sandwich(part: Problem, center: Array | None) -> Array:
    return part.rows.sandwich(part.weight, center)
