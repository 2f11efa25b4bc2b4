from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from manyclass.curvature import Curvature
from manyclass.data.rows import Array
from manyclass.fit import InOrder, Iterate, Iterates, Status
from manyclass.model import Problem
from manyclass.solvers.base import NOTHING, REFRESH, Solver, refresh
from manyclass.solvers.lbfgs import LBFGS
from manyclass.solvers.newton_cg import NewtonCG

BEFORE_NEWTON = 100
"""Passes of the first turn of L-BFGS, which is the fastest at first, and slow near most optima."""
SLOW = 0.5
"""If the rate falls below this share of the one before, it is the turn of the other method."""

_ENDING = NewtonCG()


class QuasiNewton(Solver):
    """L-BFGS in the metric of the curvature, alternating with Newton-CG that is preconditioned by it.

    It starts from scaled least squares with L-BFGS. If the requested gap is not reached in a hundred passes, `NewtonCG`
    takes over, which is faster near most optima. It is not if few rows hold most of a column: then the logarithm of the
    gap soon falls less than half as fast as before, and L-BFGS goes on for twice as many passes. From then on, an
    iteration counts as many passes as one of Newton-CG took, so that `max_iter` allows for as many passes.

    `refresh` are the iterations of L-BFGS after which the curvature is estimated again. `ending` is what takes over
    from L-BFGS; with None the fit has stalled there.
    """

    name = "quasi-newton"
    needs_majorizer = False

    def __init__(self, refresh: frozenset[int] = REFRESH, ending: NewtonCG | None = _ENDING):
        self.first, self.ending = LBFGS(refresh), ending
        self._refreshes = ending is not None and ending.refreshes
        self.again = LBFGS(refresh | {0}) if self._refreshes else self.first

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        turn: Turn = saved.get("turn", Turn(Pace(BEFORE_NEWTON / 2, problem.n_passes)))
        if turn.refreshed_at is not None and self._refreshes:
            # L-BFGS goes on in that metric, of which it changes only the part between the classes.
            there = problem.value_and_gradient(turn.refreshed_at, with_row_weight=True)
            refresh(problem, curvature, turn.refreshed_at, there)
        while True:
            iterates = InOrder(self._solver(turn).iterates(problem, curvature, theta, n_iter, saved))
            for one in iterates:
                before, theta = theta, _state(one)["theta"]
                if saved is NOTHING:  # otherwise this iterate was yielded before
                    turn = turn.after(one, before)
                    if not turn.is_iteration(one):
                        continue
                    turn = replace(turn, counted=one.n_passes)
                saved, n_iter = NOTHING, n_iter + 1
                yield replace(one, n_iter=n_iter, state=partial(_state, one, turn=turn, n_iter=n_iter))
                if turn.is_over:
                    break
            else:
                if iterates.reason is not Status.STALLED or not turn.is_descent:
                    return iterates.reason
                turn = replace(turn, pace=replace(turn.pace, rate=0.0))
            iterates.close()
            if self.ending is None:
                return Status.STALLED
            turn = turn.next(problem.n_passes, n_iter)

    def _solver(self, turn: Turn) -> Solver:
        if not turn.is_descent:
            assert self.ending is not None
            return self.ending
        return self.again if turn.each else self.first


def _state(one: Iterate, **more: Any) -> dict[str, Any]:
    assert one.state is not None
    return one.state() | more


@dataclass(frozen=True)
class Pace:
    """How fast the logarithm of the error falls, measured every `width` passes.

    The error is the duality gap, or `Iterate.measure` if there is none.
    """

    width: float
    passes: float  # at the last look
    left: float = math.inf  # the least logarithm until then
    least: float = math.inf  # and until now
    rate: float = 0.0  # per pass, at the last look
    before: float = 0.0  # at the look before that
    n_looks: int = 0

    def after(self, one: Iterate) -> Pace:
        left = one.measure if math.isnan(one.duality_gap) else one.duality_gap
        least = min(self.least, math.log(max(left, 1e-300)))
        if not self.n_looks and self.left == math.inf:
            return replace(self, left=least, least=least)
        passes = one.n_passes - self.passes
        if passes < self.width:
            return replace(self, least=least)
        rate = (self.left - least) / passes
        return Pace(self.width, one.n_passes, least, least, rate, self.rate, self.n_looks + 1)


@dataclass(frozen=True)
class Turn:
    """The turn of one of the two methods: when it has begun, and how fast it is."""

    pace: Pace
    is_descent: bool = True  # L-BFGS; else Newton-CG
    first: tuple[float, int] = (0.0, 0)  # passes and iterations before it
    each: float = 0.0  # passes that make an iteration of several of L-BFGS
    counted: float = 0.0  # passes at the last iteration
    refreshed_at: Array = None  # where Newton-CG has refreshed the curvature last

    def after(self, one: Iterate, before: Array = None) -> Turn:
        """The turn after an iterate. Newton-CG has refreshed the curvature at the point `before`."""
        refreshed_at = self.refreshed_at if self.is_descent else before
        return replace(self, pace=self.pace.after(one), refreshed_at=refreshed_at)

    def is_iteration(self, one: Iterate) -> bool:
        return self.is_over or one.n_passes - self.counted >= self.each

    @property
    def is_over(self) -> bool:
        """Whether the other method takes over: after two rates of L-BFGS, or if the rate of Newton-CG has dropped."""
        return self.pace.n_looks == 2 if self.is_descent else self.pace.rate < SLOW * self.pace.before

    def next(self, n_passes: float, n_iter: int) -> Turn:
        pace, first = self.pace, (n_passes, n_iter)
        if self.is_descent:
            return Turn(Pace(pace.width, n_passes, pace.least, pace.least, pace.rate), False, first)
        each = (n_passes - self.first[0]) / max(n_iter - self.first[1], 1)
        pace = Pace(2 * pace.width, n_passes, pace.least, pace.least)
        return Turn(pace, True, first, each, n_passes, self.refreshed_at)
