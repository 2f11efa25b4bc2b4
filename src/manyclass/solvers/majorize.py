from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from manyclass.curvature import Curvature
from manyclass.data.rows import Array
from manyclass.fit import Iterates
from manyclass.model import Problem
from manyclass.solvers.base import NOTHING, Solver, iterate


class Majorize(Solver):
    """theta ← theta − H⁻¹∇F(theta): minimise a quadratic that lies above F and touches it, again and again.

    F never rises and no step size exists. The curvature decides which algorithm this is: with "second-moment", one
    d×d factor for all steps, generalized least squares (*Least Squares Revisited*, Algorithm 1), whose rate does not
    depend on the condition number of X (Theorem 1: F − F* ≤ 2L‖W*‖²_Σ/(t + 4)); with "partition-bound", refreshed at
    each step, batch bound majorization (*Stochastic Bound Majorization*, equation 2).
    """

    name = "majorize"
    needs_majorizer = True
    default_curvature = "second-moment"
    refreshes_majorizer = True

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        for number in count(n_iter + 1):
            evaluation = problem.value_and_gradient(theta)
            yield iterate(problem, curvature, theta, evaluation, number)
            if curvature.local:
                curvature.refresh(problem, theta)
            theta = theta - curvature.solve(evaluation.gradient)
        return None
