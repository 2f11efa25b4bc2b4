from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from manyclass.curvature import Curvature
from manyclass.data.rows import Array, to_numpy
from manyclass.fit import Iterates, Status
from manyclass.model import Evaluation, Problem
from manyclass.solvers.base import NOTHING, REFRESH, Solver, iterate, refresh
from manyclass.solvers.line_search import Step, backtrack

MEMORY = 10
"""Pairs kept by L-BFGS."""
KEPT = 5
"""Pairs that are kept when the curvature changes: on 18 data sets, fits take as many passes as with all pairs."""
UNBENT = 1e-10
"""A pair counts if sᵀy is more than this share of yᵀH⁻¹y, which is in the units of the curvature H, whatever those of
the columns and of the intercept are."""


class LBFGS(Solver):
    """L-BFGS whose initial inverse Hessian is the curvature.

    Equivalent to plain L-BFGS on U = RᵀW with H = RRᵀ. Takes unit steps with backtracking. `refresh` are the iterations
    after which the curvature is estimated again.
    """

    name = "lbfgs"
    needs_majorizer = False

    def __init__(self, refresh: frozenset[int] = REFRESH):
        self.refresh = refresh

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        known: dict[str, Any] = {"n_steps": 0, "refreshed_at": None, "n_refreshed": curvature.n_refreshed}
        known |= {name: saved[name] for name in known.keys() & saved.keys()}
        curvature.n_refreshed = known["n_refreshed"]
        if known["refreshed_at"] is not None:
            refresh(problem, curvature, known["refreshed_at"])
        weighs = curvature.weighs_rows and known["n_steps"] in self.refresh
        evaluation = problem.value_and_gradient(theta, with_row_weight=weighs)
        pairs = InverseHessian(problem, curvature)
        if "pairs" in saved:
            pairs.restore(saved["pairs"], evaluation.gradient)
        n_iter += 1
        yield iterate(problem, pairs, theta, evaluation, n_iter, pairs=pairs.saved, **known)
        while True:
            if known["n_steps"] in self.refresh and known["refreshed_at"] is not theta:
                known |= {"refreshed_at": theta, "n_refreshed": curvature.n_refreshed}
                refresh(problem, curvature, theta, evaluation)
                pairs.renew()
            weighs = curvature.weighs_rows and known["n_steps"] + 1 in self.refresh
            direction = -pairs.solve(evaluation.gradient)
            apart = problem.n_independent > 1
            step = backtrack(problem, theta, evaluation, direction, apart=apart, with_row_weight=weighs)
            if step is None:
                if not pairs.forget():
                    return Status.STALLED
                continue
            pairs.add(step, evaluation)
            theta, evaluation = step.theta, step.evaluation
            n_iter, known["n_steps"] = n_iter + 1, known["n_steps"] + 1
            yield iterate(problem, pairs, theta, evaluation, n_iter, pairs=pairs.saved, **known)


@dataclass
class Look:
    """A gradient g, H⁻¹g, and S g and Z g, interleaved, of shape (n_independent, 2·MEMORY)."""

    gradient: Array
    solved: Array
    of_pairs: np.ndarray


class InverseHessian:
    """The limited-memory BFGS inverse over an initial inverse H⁻¹ (Byrd, Nocedal and Schnabel, 1994, Theorem 2.2).

    With the steps S and the changes of the gradient Y as rows, Z = Y H⁻¹, R the triangle of s_iᵀy_j, i ≤ j, and D its
    diagonal,

        direction = γ (H⁻¹g − Zᵀw) + Sᵀ R⁻ᵀ(D w + γ (Y Zᵀ w − Z g)),   w = R⁻¹ S g,

    where γ = s_mᵀy_m / y_mᵀz_m of the last pair corrects the size of the curvature. A new pair needs H⁻¹y, S y and Z y,
    which are differences of H⁻¹g, S g and Z g for two gradients (`Look`). So an iteration takes one solution with the
    curvature and two products with all pairs.

    A problem that is a sum of independent ones (`Problem.n_independent`) has a separate inverse, with pairs of its own,
    for each of these.
    """

    def __init__(self, problem: Problem, curvature: Curvature):
        self.problem, self.curvature, n = problem, curvature, problem.n_independent
        self._shape = problem.rows.n_features + problem.fit_intercept, problem.n_outputs
        size = self._shape[0] * self._shape[1] // n
        # S and Z interleaved, as they are always multiplied together; and Y.
        self._pairs, self._changes = problem.rows.zeros((n, 2 * MEMORY, size)), problem.rows.zeros((n, MEMORY, size))
        self._order: list[int] = []  # places of the pairs, oldest first
        # s_iᵀy_j and y_iᵀz_j
        self._products, self._curvatures = np.zeros((n, MEMORY, MEMORY)), np.zeros((n, MEMORY, MEMORY))
        self._look: Look | None = None

    @property
    def saved(self) -> tuple[Any, ...]:
        """The state, for `restore`."""
        look = None if self._look is None else (self._look.solved, self._look.of_pairs)
        return self._pairs, self._changes, self._order, self._products, self._curvatures, look

    def restore(self, saved: tuple[Any, ...], gradient: Array) -> None:
        """Restore a `saved` state; `gradient` is the one of its last `Look`."""
        self._pairs, self._changes, self._order, self._products, self._curvatures, look = saved
        self._look = None if look is None else Look(gradient, *look)

    def forget(self) -> bool:
        """Drop all pairs. Gives whether there were any."""
        had, self._order, self._look = bool(self._order), [], None
        return had

    def renew(self) -> None:
        """Keep only the newest pairs, after the curvature has changed: each takes a solution with the new one."""
        self._look, newest = None, self._order[-KEPT:]
        n = len(newest)
        self._order = list(range(n))
        if not n:
            return
        of_both = [2 * place + one for place in newest for one in range(2)]
        self._changes[:, :n, :] = self._taken(self._changes, newest)
        self._pairs[:, : 2 * n, :] = self._taken(self._pairs, of_both)
        self._products[:, :n, :n] = self._products[:, newest][:, :, newest]
        for place in range(n):
            self._pairs[:, 2 * place + 1, :] = self._flat(
                self.curvature.solve(self._shaped(self._changes[:, place, :]))
            )
        changes, solved = self._changes[:, :n, :], self._pairs[:, 1 : 2 * n : 2, :]
        self._curvatures[:, :n, :n] = to_numpy(changes @ self.problem.xp.permute_dims(solved, (0, 2, 1)))

    def _taken(self, held: Array, places: list[int]) -> Array:
        return self.problem.xp.take(held, self.problem.rows.asarray(places, self.problem.xp.int64), axis=1)

    def add(self, step: Step, old: Evaluation) -> None:
        """Add the pair of a step that was tried from `old`."""
        problem, inner, gradient = self.problem, self.problem.inner_of_each, step.seen.gradient
        move, change = step.move, gradient - old.gradient
        before, now = self._looked_at(old.gradient), self.curvature.solve(gradient)
        solved = now - before.solved
        curving = np.atleast_1d(inner(move, change))
        bends = curving > UNBENT * np.abs(inner(change, solved))
        if not bends.any():
            return
        if not bends.all():  # a pair of zeros has no effect
            present = problem.spread(bends)
            move, change, solved = move * present, change * present, solved * present
        place = self._order.pop(0) if len(self._order) == MEMORY else len(self._order)
        self._order.append(place)
        self._changes[:, place, :] = self._flat(change)
        self._pairs[:, 2 * place, :], self._pairs[:, 2 * place + 1, :] = self._flat(move), self._flat(solved)
        of_gradient = self._of_pairs(gradient)
        of_change = of_gradient - before.of_pairs
        of_change[:, 2 * place], of_change[:, 2 * place + 1] = bends * curving, inner(change, solved)
        self._products[:, :, place] = bends[:, None] * of_change[:, 0::2]
        self._products[:, place, place] = np.where(bends, curving, 1.0)
        self._curvatures[:, :, place] = self._curvatures[:, place, :] = bends[:, None] * of_change[:, 1::2]
        self._look = Look(gradient, now, of_gradient)
        if step.taken is not None:  # possible, as the curvature does not couple independent problems
            mask, where = problem.spread(step.taken, problem.xp.bool), step.taken[:, None]
            wide = problem.xp.where(mask[None, :], now, before.solved)
            of_both = np.where(where, of_gradient, of_gradient - of_change)
            self._look = Look(step.evaluation.gradient, wide, of_both)

    def solve(self, gradient: Array) -> Array:
        look, order = self._looked_at(gradient), np.array(self._order, dtype=np.intp)
        if not len(order):
            return look.solved
        R, YZ = (held[:, order[:, None], order] for held in (self._products, self._curvatures))
        weights = _solved(R, look.of_pairs[:, 2 * order])
        own, other = (part.diagonal(0, 1, 2) for part in (R, YZ))
        # The curvature may be off by a factor, as every majorizer is. The last pair that is not zero measures it.
        size = np.ones_like(own[:, :1])
        for place in range(len(order)) if (other[:, -1] <= 0).any() else [-1]:
            bends = other[:, place] > 0
            size[bends, 0] = own[bends, place] / other[bends, place]
        lacking = own * weights + size * ((YZ @ weights[:, :, None])[:, :, 0] - look.of_pairs[:, 2 * order + 1])
        of_both = np.empty_like(look.of_pairs[:, : 2 * len(order)])
        of_both[:, 2 * order], of_both[:, 2 * order + 1] = _solved(R, lacking, transposed=True), -size * weights
        asarray = self.problem.rows.asarray
        of_pairs = asarray(of_both)[:, None, :] @ self._pairs[:, : 2 * len(order), :]
        return look.solved * self.problem.spread(size[:, 0]) + self._shaped(of_pairs[:, 0, :])

    def _looked_at(self, gradient: Array) -> Look:
        if self._look is None or self._look.gradient is not gradient:
            self._look = Look(gradient, self.curvature.solve(gradient), self._of_pairs(gradient))
        return self._look

    def _of_pairs(self, array: Array) -> np.ndarray:
        """S a and Z a, interleaved."""
        n, found = 2 * len(self._order), np.zeros((self.problem.n_independent, 2 * MEMORY))
        if n:
            found[:, :n] = to_numpy(self._pairs[:, :n, :] @ self._flat(array)[:, :, None])[:, :, 0]
        return found

    def _flat(self, array: Array) -> Array:
        """Parameters, of shape (n_independent, parameters of each problem)."""
        xp, n = self.problem.xp, self.problem.n_independent
        if n in (1, self._shape[1]):
            return xp.reshape(array, (1, -1)) if n == 1 else array.T
        of_each = xp.reshape(array, (self._shape[0], n, -1))
        return xp.reshape(xp.permute_dims(of_each, (1, 0, 2)), (n, -1))

    def _shaped(self, flat: Array) -> Array:
        xp, n = self.problem.xp, self.problem.n_independent
        if n in (1, self._shape[1]):
            return xp.reshape(flat, self._shape) if n == 1 else flat.T
        of_each = xp.reshape(flat, (n, self._shape[0], -1))
        return xp.reshape(xp.permute_dims(of_each, (1, 0, 2)), self._shape)


def _solved(R: np.ndarray, right: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """R⁻¹ or R⁻ᵀ times a vector, for each of several upper triangular matrices, whose lower part is not read."""
    return np.stack([dtrtrs(one, vector, trans=transposed)[0] for one, vector in zip(R, right, strict=True)])
