from __future__ import annotations

from manyclass.curvature import Curvature
from manyclass.data.design import Array
from manyclass.model.objective import Objective
from manyclass.solvers.base import Monitor, Solver, Status


class Majorize(Solver):
    """theta ← theta − H⁻¹∇F(theta): minimise a quadratic that lies above F and touches it, again and again.

    F never rises and no step size exists. The curvature decides which algorithm this is: with "second-moment", one
    d×d factor for all steps, generalized least squares (*Least Squares Revisited*, Algorithm 1), whose rate does not
    depend on the condition number of X (Theorem 1: F − F* ≤ 2L‖W*‖²_Σ/(t + 4)); with "partition-bound", refreshed at
    each step, batch bound majorization (*Stochastic Bound Majorization*, equation 2).
    """

    name = "majorize"
    needs_majorizer = True
    refreshes_majorizer = True

    def run(self, objective: Objective, curvature: Curvature, theta: Array, monitor: Monitor) -> tuple[Array, Status]:
        status: Status | None = None
        while status is None:
            evaluation = monitor.evaluate(objective, theta)
            status = monitor.stop(objective, curvature, theta, evaluation)
            if status is None:
                if curvature.local:
                    curvature.refresh(objective, theta)
                theta = theta - curvature.solve(evaluation.gradient)
        return theta, status
