from __future__ import annotations

from collections import deque

from manyclass.curvature import Curvature
from manyclass.data.design import Array
from manyclass.model.objective import Evaluation, Objective
from manyclass.solvers.base import Monitor, Solver, Status, inner
from manyclass.solvers.line_search import backtrack
from manyclass.solvers.newton_cg import NewtonCG

MEMORY = 10
"""Pairs kept by L-BFGS."""
REFRESH = frozenset({3, 8, 20})
"""Iterations after which the curvature is estimated anew: early, while it changes most."""
BEFORE_NEWTON = 60
"""Passes after which L-BFGS hands over: it is the fastest way down and slow near the optimum."""


class QuasiNewton(Solver):
    """L-BFGS whose initial inverse Hessian is the curvature, finished by preconditioned Newton-CG.

    Equivalent to plain L-BFGS on U = RᵀW with H = RRᵀ. Starts from scaled least squares, takes unit steps with
    backtracking, and hands over to `NewtonCG` when the certificate asked for is not reached in a few tens of passes.
    """

    name = "quasi-newton"
    needs_majorizer = False

    def run(self, objective: Objective, curvature: Curvature, theta: Array, monitor: Monitor) -> tuple[Array, Status]:
        evaluation = monitor.evaluate(objective, theta)
        pairs = InverseHessian(objective, curvature)
        iteration = 0
        while (status := monitor.stop(objective, curvature, theta, evaluation)) is None:
            if monitor.n_passes >= BEFORE_NEWTON:
                return NewtonCG().run(objective, curvature, theta, monitor)
            step = backtrack(objective, theta, evaluation, -pairs.product(evaluation.gradient), monitor)
            if step is None:
                if monitor.exhausted():
                    status = monitor.exhausted()
                    break
                if pairs.is_empty:
                    return NewtonCG().run(objective, curvature, theta, monitor)
                pairs.forget()
                continue
            pairs.add(step.theta - theta, step.evaluation, evaluation)
            theta, evaluation = step.theta, step.evaluation
            iteration += 1
            if iteration in REFRESH:
                curvature.refresh(objective, theta)
        assert status is not None
        return theta, status


class InverseHessian:
    """The limited-memory BFGS inverse over an initial inverse H⁻¹ (Nocedal and Wright, Algorithm 7.4)."""

    def __init__(self, objective: Objective, curvature: Curvature):
        self.objective, self.curvature = objective, curvature
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    @property
    def is_empty(self) -> bool:
        return not self.pairs

    def forget(self) -> None:
        self.pairs.clear()

    def add(self, step: Array, new: Evaluation, old: Evaluation) -> None:
        change = new.gradient - old.gradient
        curving = inner(self.objective, step, change)
        if curving > 1e-10 * inner(self.objective, step, step) ** 0.5 * inner(self.objective, change, change) ** 0.5:
            self.pairs.append((step, change, 1.0 / curving))

    def product(self, gradient: Array) -> Array:
        q, weights = gradient, []
        for step, change, rho in reversed(self.pairs):
            weight = rho * inner(self.objective, step, q)
            q = q - weight * change
            weights.append(weight)
        q = self.curvature.solve(q)
        if self.pairs:
            # The curvature may be off by a factor, as every majorizer is; the last pair measures it.
            _, change, rho = self.pairs[-1]
            q = q * (1.0 / (rho * inner(self.objective, change, self.curvature.solve(change))))
        for (step, change, rho), weight in zip(self.pairs, reversed(weights), strict=True):
            q = q + (weight - rho * inner(self.objective, change, q)) * step
        return q
