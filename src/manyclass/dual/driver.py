"""Epochs along a path of penalties until the duality gap is closed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from manyclass.solvers.base import LiveRecord, Monitor, Record, Solution, Status
from manyclass.solvers.dual.problem import DualProblem

CHECK_AT_LEAST = 10
"""Epochs after which the gap is measured even if it seems open: later, every quarter of the epochs so far."""
PHASE_SHARE = 0.5
"""Share of max_iter and max_time that the phases before the last may use together."""
NEAR = 1e-9
"""Relative gap below which F − D is mostly rounding, and is summed row by row instead."""
ROUNDING = 1e-12
"""Relative gap below which float64 sums may leave nothing to gain."""


@dataclass(frozen=True)
class DualRecord(Record):
    """A `Record` of a dual ascent: ``objective`` and ``certificate`` are those of the best model so far.

    Attributes
    ----------
    primal, dual : float
        F and D at this very point, both at the alpha asked for.
    alpha : float
        Penalty of the present phase.
    gap_seconds : float
        Spent in measuring gaps so far.
    """

    primal: float
    dual: float
    alpha: float
    gap_seconds: float


@dataclass(frozen=True)
class LiveDualRecord(DualRecord, LiveRecord):
    """What a callback is given: a `DualRecord` with ``parameters()``."""


@dataclass(frozen=True)
class DualSolution(Solution):
    """A `Solution` with its dual point.

    Attributes
    ----------
    dual : array of shape (n_rows, n_outputs)
        a_i, the negative derivative of the loss of each row.
    dual_alpha : float
        Penalty of the phase that `coef` and `dual` come from: coef = Σ_i s_i x_i a_iᵀ/(dual_alpha·S).
    phase_epochs : list of int
        Epochs spent at each point of the path.
    n_gap_passes : int
        Passes over the rows spent on gaps; not counted in `n_passes`.
    gap_seconds : float
    """

    dual: np.ndarray
    dual_alpha: float
    phase_epochs: list[int]
    n_gap_passes: int
    gap_seconds: float


class State(Protocol):
    """What `ascend` needs of `Ascent` and `JointAscent`."""

    alpha: float

    def set_alpha(self, alpha: float) -> None: ...
    def epoch(self) -> float: ...
    def judge(self) -> Any: ...
    def duals(self) -> np.ndarray: ...
    def parameters(self) -> tuple[np.ndarray, np.ndarray]: ...
    def zero_value(self) -> float: ...


Start = tuple[np.ndarray, np.ndarray]
"""Dual variables of shape (n_rows, n_outputs) and intercepts of shape (n_outputs,)."""


def start_ascent(problem: DualProblem, start: Start | None = None, seed: int = 0, shrink: bool = True) -> State:
    """The state for the kind of loss of `problem`; imports the compiled code."""
    if problem.loss.joint:
        from manyclass.solvers.dual.joint_ascent import JointAscent

        return JointAscent(problem, start, seed, shrink)
    from manyclass.solvers.dual.ascent import Ascent

    return Ascent(problem, start, seed, shrink)


def ascend(
    problem: DualProblem,
    path: list[float],
    monitor: Monitor,
    *,
    start: Start | None = None,
    seed: int = 0,
    check_every: int | None = None,
) -> DualSolution:
    """Stochastic dual coordinate ascent at each penalty of `path` in turn, each from the dual point of the last.

    A phase ends when its own relative gap, estimated for free from the steps of its last epoch, is at most ``tol``:
    what is still wrong then in directions that X barely sees would not be mended at a smaller penalty, where steps in
    them are shorter by the ratio of the penalties. The last phase ends on the gap proper, measured over all rows.

    Parameters
    ----------
    start : pair of arrays, optional
        Dual variables and intercepts to start from; moved to the nearest feasible point.
    check_every : int, optional
        Measure the gap every so many epochs. By default when the running estimate promises that it is closed, and
        seldom before.
    """
    run = _Run(problem, start_ascent(problem, start, seed), monitor)
    phase_epochs = []
    for point, alpha in enumerate(path, start=1):
        run.state.set_alpha(alpha)
        before = monitor.n_passes
        # Where tol is out of reach the phases before the last share half of the limits evenly.
        share = math.inf if point == len(path) else PHASE_SHARE * point / (len(path) - 1)
        status = run.phase(share, check_every)
        phase_epochs.append(monitor.n_passes - before)
        if status is not None:
            break
    assert status is not None
    return run.solution(status, phase_epochs)


class _Run:
    """The best primal and dual values so far, and when to look again."""

    def __init__(self, problem: DualProblem, state: State, monitor: Monitor):
        self.problem, self.state, self.monitor = problem, state, monitor
        self.zero = max(state.zero_value(), 1e-300)
        self.own_gap = math.inf
        self.primal, self.dual = math.inf, 0.0  # a = 0 is feasible for every loss here and has D ≥ 0
        self.best: tuple[np.ndarray, np.ndarray, np.ndarray, float] | None = None
        self.trust, self.next_check = 1.0, CHECK_AT_LEAST
        self.n_gap_passes, self.gap_seconds, self.idle = 0, 0.0, 0

    def phase(self, share: float, check_every: int | None) -> Status | None:
        monitor, is_last = self.monitor, share == math.inf
        while True:
            estimate = self.state.epoch() / self.zero
            monitor.n_passes += 1
            promising = estimate <= self.trust * monitor.tol
            over = monitor.exhausted() is not None or not math.isfinite(estimate)
            regular = monitor.n_passes % check_every == 0 if check_every else monitor.n_passes >= self.next_check
            if (promising and is_last) or over or regular:
                status = self._measure()
                if status is not None:
                    return status
                if promising:
                    self.trust *= 0.7
                if not math.isfinite(estimate):
                    return Status.STALLED
            if not is_last and (estimate <= monitor.tol or self._spent(share)):
                return None

    def _spent(self, share: float) -> bool:
        """Whether this share of max_iter or max_time is used up."""
        monitor = self.monitor
        late = monitor.max_time is not None and monitor.seconds >= share * monitor.max_time
        return late or monitor.n_passes >= share * monitor.max_iter

    def _measure(self) -> Status | None:
        started = time.perf_counter()
        state, alpha, monitor = self.state, self.problem.alpha, self.monitor
        verdict = state.judge()
        primal, dual = verdict.primal(alpha), verdict.dual(alpha)
        previous = self.gap
        if math.isfinite(dual):
            self.dual = max(self.dual, dual)
        # In the last digits of F the gap is the better judge of what is best.
        closes = state.alpha == alpha and verdict.own_gap < min(self.own_gap, NEAR * self.zero)
        if closes:
            self.own_gap = verdict.own_gap
        if closes or (primal < self.primal and not self.own_gap < math.inf):
            self.primal = min(primal, self.primal)
            self.best = (*state.parameters(), state.duals(), state.alpha)
        self.n_gap_passes += 1
        self.gap_seconds += time.perf_counter() - started
        self.next_check = monitor.n_passes + max(CHECK_AT_LEAST, monitor.n_passes // 4)
        record = DualRecord(
            monitor.n_passes, self.primal, self.gap, monitor.seconds, primal, dual, state.alpha, self.gap_seconds
        )
        status = monitor.add(record, LiveDualRecord(**vars(record), parameters=state.parameters))
        self.idle = self.idle + 1 if self.gap < ROUNDING and self.gap >= previous else 0
        return Status.STALLED if status is None and self.idle >= 5 else status

    @property
    def gap(self) -> float:
        """Relative duality gap between the best model and the best dual point.

        Rounding can put D above F by some units in the last place, which is why `own_gap` takes over near 0.
        """
        if self.own_gap < math.inf:
            return self.own_gap / self.zero
        return max(self.primal - self.dual, 0.0) / self.zero

    def solution(self, status: Status, phase_epochs: list[int]) -> DualSolution:
        if self.best is None:
            raise FloatingPointError(
                "The first epochs overflowed; scale the columns of X (StandardScaler or MaxAbsScaler) or raise alpha."
            )
        coef, intercept, dual, dual_alpha = self.best
        return DualSolution(
            coef, intercept, status, self.monitor.history, self.gap, self.monitor.n_passes, dual, dual_alpha,
            phase_epochs, self.n_gap_passes, self.gap_seconds,
        )  # fmt: skip
