from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from manyclass.curvature import Curvature
from manyclass.data.rows import Array
from manyclass.fit import Iterate, Iterates
from manyclass.model import Evaluation, Problem
from manyclass.solvers.base import NOTHING, Solver, inner, iterate
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
    backtracking, and hands over to `NewtonCG` when the gap asked for is not reached in a few tens of passes.
    """

    name = "quasi-newton"
    needs_majorizer = False

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        if "forcing" in saved:  # it had been handed over
            return (yield from NewtonCG().iterates(problem, curvature, theta, n_iter, saved))
        known: dict[str, Any] = {"first_pass": problem.n_passes, "n_steps": 0, "refreshed_at": None}
        known |= {name: saved[name] for name in known.keys() & saved.keys()}
        if known["refreshed_at"] is not None:
            _refresh(problem, curvature, known["refreshed_at"])
        evaluation = problem.value_and_gradient(theta)
        pairs = InverseHessian(problem, curvature)
        pairs.pairs.extend(saved.get("pairs", ()))
        n_iter += 1
        yield self._iterate(pairs, theta, evaluation, n_iter, known)
        while problem.n_passes - known["first_pass"] < BEFORE_NEWTON:
            if known["n_steps"] in REFRESH and known["refreshed_at"] is not theta:
                _refresh(problem, curvature, theta, evaluation)
                known["refreshed_at"] = theta
            weighs = curvature.weighs_rows and known["n_steps"] + 1 in REFRESH
            direction = -pairs.product(evaluation.gradient)
            step = backtrack(problem, theta, evaluation, direction, with_row_weight=weighs)
            if step is None:
                if pairs.is_empty:
                    break
                pairs.forget()
                continue
            pairs.add(step.theta - theta, step.evaluation, evaluation)
            theta, evaluation = step.theta, step.evaluation
            n_iter, known["n_steps"] = n_iter + 1, known["n_steps"] + 1
            yield self._iterate(pairs, theta, evaluation, n_iter, known)
        return (yield from NewtonCG().iterates(problem, curvature, theta, n_iter))

    @staticmethod
    def _iterate(
        pairs: InverseHessian, theta: Array, evaluation: Evaluation, n_iter: int, known: dict[str, Any]
    ) -> Iterate:
        return iterate(pairs.problem, pairs.curvature, theta, evaluation, n_iter, **{**known, "pairs": pairs.pairs})


def _refresh(problem: Problem, curvature: Curvature, theta: Array, evaluation: Evaluation | None = None) -> None:
    if evaluation is None and curvature.weighs_rows:
        evaluation = problem.value_and_gradient(theta, with_row_weight=True)
    curvature.refresh(problem, theta, None if evaluation is None else evaluation.row_weight)


class InverseHessian:
    """The limited-memory BFGS inverse over an initial inverse H⁻¹ (Nocedal and Wright, Algorithm 7.4)."""

    def __init__(self, problem: Problem, curvature: Curvature):
        self.problem, self.curvature = problem, curvature
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    @property
    def is_empty(self) -> bool:
        return not self.pairs

    def forget(self) -> None:
        self.pairs.clear()

    def add(self, step: Array, new: Evaluation, old: Evaluation) -> None:
        change = new.gradient - old.gradient
        curving = inner(self.problem, step, change)
        if curving > 1e-10 * inner(self.problem, step, step) ** 0.5 * inner(self.problem, change, change) ** 0.5:
            self.pairs.append((step, change, 1.0 / curving))

    def product(self, gradient: Array) -> Array:
        q, weights = gradient, []
        for step, change, rho in reversed(self.pairs):
            weight = rho * inner(self.problem, step, q)
            q = q - weight * change
            weights.append(weight)
        q = self.curvature.solve(q)
        if self.pairs:
            # The curvature may be off by a factor, as every majorizer is; the last pair measures it.
            _, change, rho = self.pairs[-1]
            q = q * (1.0 / (rho * inner(self.problem, change, self.curvature.solve(change))))
        for (step, change, rho), weight in zip(self.pairs, reversed(weights), strict=True):
            q = q + (weight - rho * inner(self.problem, change, q)) * step
        return q
