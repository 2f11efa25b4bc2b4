from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar

from manyclass.curvature import Curvature
from manyclass.data.rows import Array
from manyclass.fit import Iterates, Status
from manyclass.model import Problem
from manyclass.solvers.base import NOTHING, Solver, iterate
from manyclass.solvers.line_search import backtrack, stretched


class Newton(Solver):
    """theta ← theta − γ H⁻¹∇F with the curvature refreshed at every step; with "hessian", its default, Newton's method.

    For few parameters in all: a step costs n·(d·k)² multiplications, and a handful of them is enough whatever the
    scaling of the columns.
    """

    name = "newton"
    needs_majorizer = False
    default_curvature: ClassVar[str | None] = "hessian"
    begins_constant = True

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        evaluation = problem.value_and_gradient(theta)
        for number in count(n_iter + 1):
            yield iterate(problem, curvature, theta, evaluation, number, looks_back=1)
            if not curvature.is_of(problem, theta):
                curvature.refresh(problem, theta)
            direction = -curvature.solve(evaluation.gradient)
            step = backtrack(problem, theta, evaluation, direction)
            if step is None:
                return Status.STALLED
            step = stretched(problem, theta, evaluation, direction, step)
            theta, evaluation = step.theta, step.evaluation
        return None
