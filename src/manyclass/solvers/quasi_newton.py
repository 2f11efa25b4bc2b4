from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyclass.curvature import Curvature
from manyclass.data.rows import Array, to_numpy
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
        if "pairs" in saved:
            pairs.restore(saved["pairs"])
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
        return iterate(pairs.problem, pairs.curvature, theta, evaluation, n_iter, pairs=pairs.saved, **known)


def _refresh(problem: Problem, curvature: Curvature, theta: Array, evaluation: Evaluation | None = None) -> None:
    if evaluation is None and curvature.weighs_rows:
        evaluation = problem.value_and_gradient(theta, with_row_weight=True)
    curvature.refresh(problem, theta, None if evaluation is None else evaluation.row_weight)


class InverseHessian:
    """The limited-memory BFGS inverse over an initial inverse H⁻¹ (Nocedal and Wright, Algorithm 7.4).

    The algorithm's two loops over the pairs (s_i, y_i) are substitutions in the triangle R of s_iᵀy_j, i ≤ j. With R at
    hand they take four products with all steps or all changes, as matrices, in place of forty with single ones.
    """

    def __init__(self, problem: Problem, curvature: Curvature):
        self.problem, self.curvature = problem, curvature
        self._steps: Array = None
        self._changes: Array = None
        self._order: list[int] = []  # the rows in use, oldest pair first
        self._products = np.zeros((MEMORY, MEMORY))

    @property
    def is_empty(self) -> bool:
        return not self._order

    @property
    def saved(self) -> tuple[Any, ...]:
        """What `restore` wants."""
        return self._steps, self._changes, self._order, self._products

    def restore(self, saved: tuple[Any, ...]) -> None:
        self._steps, self._changes, self._order, self._products = saved

    def forget(self) -> None:
        self._order = []

    def add(self, step: Array, new: Evaluation, old: Evaluation) -> None:
        change = new.gradient - old.gradient
        curving = inner(self.problem, step, change)
        if not curving > 1e-10 * inner(self.problem, step, step) ** 0.5 * inner(self.problem, change, change) ** 0.5:
            return
        xp, rows = self.problem.xp, self.problem.rows
        if self._steps is None:
            shape = (MEMORY, int(step.shape[0]) * int(step.shape[1]))
            self._steps, self._changes = rows.zeros(shape), rows.zeros(shape)
        place = self._order.pop(0) if len(self._order) == MEMORY else len(self._order)
        self._order.append(place)
        self._steps[place, :] = xp.reshape(step, (-1,))
        self._changes[place, :] = xp.reshape(change, (-1,))
        self._products[:, place] = self._with_all(self._steps, change)
        self._products[place, :] = self._with_all(self._changes, step)
        self._products[place, place] = curving

    def product(self, gradient: Array) -> Array:
        if not self._order:
            return self.curvature.solve(gradient)
        order = self._order
        R = np.triu(self._products[np.ix_(order, order)])
        weights = np.linalg.solve(R, self._with_all(self._steps, gradient)[order])
        q = self.curvature.solve(gradient - self._sum(self._changes, weights, gradient))
        # The curvature may be off by a factor, as every majorizer is; the last pair measures it.
        change = self.problem.xp.reshape(self._changes[order[-1], :], gradient.shape)
        q *= float(R[-1, -1]) / inner(self.problem, change, self.curvature.solve(change))
        lacking = np.diagonal(R) * weights - self._with_all(self._changes, q)[order]
        return q + self._sum(self._steps, np.linalg.solve(R.T, lacking), gradient)

    def _with_all(self, vectors: Array, array: Array) -> np.ndarray:
        return to_numpy(vectors @ self.problem.xp.reshape(array, (-1,))).astype(np.float64)

    def _sum(self, vectors: Array, weights: np.ndarray, like: Array) -> Array:
        """Σ_i weights_i v_i over the pairs in use, shaped as a gradient."""
        of_rows = np.zeros(MEMORY)
        of_rows[self._order] = weights
        return self.problem.xp.reshape(self.problem.rows.asarray(of_rows) @ vectors, like.shape)
