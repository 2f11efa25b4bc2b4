"""Gradient descent, plain and in the plane that also holds the cross-covariance of X and Y."""

from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar

from manyclass.curvature import Curvature
from manyclass.data.rows import Array
from manyclass.fit import Iterates, Status
from manyclass.model import Evaluation, Problem
from manyclass.solvers.base import NOTHING, Solver, iterate
from manyclass.solvers.plane import PlaneSearch


class Gradient(Solver):
    """theta ← theta − γ H⁻¹∇F with γ by an exact search; plain gradient descent for curvature="identity", its default.

    Starts at the constant model, not at least squares: it is here to be compared with, and to show what the spectrum
    of the data does to a method that knows nothing of it (*Homotopic Initialization*, equation 4).
    """

    name = "gradient"
    needs_majorizer = False
    default_curvature: ClassVar[str | None] = "identity"
    begins_constant = True

    def directions(self, problem: Problem, curvature: Curvature, evaluation: Evaluation) -> list[Array]:
        return [-curvature.solve(evaluation.gradient)]

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        for number in count(n_iter + 1):
            evaluation = problem.value_and_gradient(theta)
            yield iterate(problem, curvature, theta, evaluation, number)
            directions = self.directions(problem, curvature, evaluation)
            lengths = PlaneSearch(problem, theta, directions).lowest()
            if lengths is None:
                return Status.STALLED
            for length, direction in zip(lengths, directions, strict=True):
                theta = theta + float(length) * direction
        return None


class BiasedGradient(Gradient):
    """theta ← theta − γ H⁻¹∇F − η H⁻¹E[xyᵀ], γ and η by a search in the plane.

    *Homotopic Initialization*, equation 23: for Gaussian rows there are γ and η for which each step is one of
    gradient descent for least squares (Lemma 14), so that data of bounded response correlation are fitted as quickly
    by any generalized linear model as by that. The paper leaves γ and η to a line search; here both are exact, and as
    (γ, 0) is a point of the plane a step is never worse than that of `Gradient` from the same theta.
    """

    name = "biased-gradient"

    def directions(self, problem: Problem, curvature: Curvature, evaluation: Evaluation) -> list[Array]:
        xp = problem.xp
        bias = xp.astype(problem.cross_covariance, problem.rows.dtype)
        if problem.fit_intercept:
            bias = xp.concat([bias, evaluation.gradient[-1:, :] * 0], axis=0)
        return [*super().directions(problem, curvature, evaluation), curvature.solve(bias)]
