from __future__ import annotations

from manyclass.curvature import Curvature
from manyclass.data.design import Array
from manyclass.model.objective import Objective
from manyclass.solvers.base import Monitor, Solution, Solver, Status
from manyclass.solvers.start import least_squares_start


class Majorize(Solver):
    """theta ← theta − H⁻¹∇F(theta): generalized least squares (*Least Squares Revisited*, Algorithm 1).

    Each step minimises a quadratic that lies above F and touches it, so F never rises and no step size exists. The
    rate does not depend on the condition number of X (Theorem 1: F − F* ≤ 2L‖W*‖²_Σ/(t + 4)).
    """

    name = "majorize"
    needs_majorizer = True

    def solve(
        self,
        objective: Objective,
        curvature: Curvature,
        start: Array | None = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        monitor = monitor or Monitor()
        theta = least_squares_start(objective, curvature) if start is None else start
        status: Status | None = None
        while status is None:
            evaluation = monitor.evaluate(objective, theta)
            status = monitor.stop(objective, curvature, theta, evaluation)
            if status is None:
                theta = theta - curvature.solve(evaluation.gradient)
        return monitor.solution(objective, theta, status)
