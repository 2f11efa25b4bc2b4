"""The algorithm: epochs of exact dual coordinate steps along a path of penalties, until the duality gap is closed."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from manyclass.data.cells import OVERFLOW
from manyclass.dual.gap import BestPoint, DualModel
from manyclass.dual.losses import JointLoss
from manyclass.dual.problem import DualProblem
from manyclass.dual.proximal import ProximalPoints
from manyclass.fit import Clock, Iterate, Iterates, OutOfTime, Status, restore, strictness

if TYPE_CHECKING:
    from manyclass.dual.state import DualState

CHECK_AT_LEAST = 10
"""The gap is first measured after so many epochs, even if it seems open; then after another quarter of all so far."""
PHASE_SHARE = 0.5
"""Share of max_iter and max_time that the phases before the last may use together."""
ROUNDING = 1e-12
"""Relative gap below which the rounding of float64 sums may leave nothing to gain."""
LOSS, A_SECOND = 200.0, 3e9
"""Cost of the first measurement of a gap: multiplications per loss, besides two per number of a row, and those that are
done in a second."""
LATE = 1.05, 0.1
"""A gap is measured at the end if that keeps the fit within this factor of max_time, plus so many seconds."""
COPIES = 40.0
"""Cost of handing the dual variables over, in multiplications per variable."""
PASSES_OF_A_GAP = 2
"""Passes over the rows to measure a gap: from the dual variables to W, and from W to the losses."""


class Limits(NamedTuple):
    """The limits of a run. The ascent divides them between its phases, and measures the gap before they are used up.

    A run ends after `max_iter` epochs, but not before it has done `work`, in epochs that visit all rows: epochs of
    hinges soon visit few of them. `idle` is the share of an epoch that does not depend on the number of visited rows.
    """

    tol: float
    max_iter: float
    clock: Clock
    work: float = 0.0
    idle: float = 0.0


class DualStart(NamedTuple):
    """Dual variables of shape (n_rows, n_outputs), intercepts of the centred rows, of shape (n_outputs,), and W."""

    dual: np.ndarray
    intercept: np.ndarray
    coef: np.ndarray


def start_state(problem: DualProblem, start: DualStart | None = None, seed: int = 0) -> DualState:
    """The state for the kind of loss of `problem`; imports the compiled code."""
    from manyclass.dual.joint_state import JointState
    from manyclass.dual.state import ColumnState

    return (JointState if isinstance(problem.loss, JointLoss) else ColumnState)(problem, start, seed)


def ascend(
    problem: DualProblem,
    path: list[float],
    limits: Limits,
    *,
    proximal: bool = False,
    start: DualStart | None = None,
    seed: int = 0,
    measure_every: int | None = None,
    saved: dict[str, Any] | None = None,
) -> Iterates:
    """Stochastic dual coordinate ascent at each penalty of `path` in turn, each from the dual point of the last.

    A phase ends when its own relative gap, estimated for free from the steps of its last epoch, is at most ``tol``. An
    earlier end would be costly: errors in directions that X barely sees shrink more slowly at the next penalty, by the
    ratio of the penalties. The last phase ends by the gap itself, measured over all rows.

    With `proximal` the minimum is approached by `ProximalPoints`, and `path` is alpha alone. Dual variables of `start`
    are moved to the nearest feasible point. `seed` is that of the permutations. The gap is measured every
    `measure_every` epochs; by default when the running estimate says that it is closed, and seldom before. `saved` is
    the state of an iterate of another run; the iterates that followed it are given.

    There is an iterate for each measured gap: the best model so far (a `DualModel`), its objective and its gap to the
    best dual point; in ``details`` F and D of the present point (``primal``, ``dual``), the penalty of the phase
    (``alpha``), the epochs of each phase (``phase_epochs``), the number of proximal points (``proximal_points``) and
    the seconds spent on measuring (``gap_seconds``).
    """
    limits.clock.check(ahead=seconds_of_handing_over(problem))
    run = _Ascent(problem, start_state(problem, start, seed), limits, measure_every)
    if proximal:
        run.points = ProximalPoints(
            run.state, limits.tol * run.best.zero, None if start is None else (start.coef, start.intercept)
        )
    if saved is not None:
        restore(run, saved["run"])
    run.state.compile()
    try:
        for point, alpha in enumerate(path, start=1):
            if point < len(run.phase_epochs):
                continue
            # If tol is out of reach, the phases before the last share half of the limits evenly.
            share = math.inf if point == len(path) else PHASE_SHARE * point / (len(path) - 1)
            if point > len(run.phase_epochs):
                run.begin_phase(alpha)
            status = yield from run.phase(share)
            if status is not None:
                return status
    except (OutOfTime, KeyboardInterrupt) as end:
        if run.model is not None:
            raise
        is_late = isinstance(end, OutOfTime)
        yield run.measure() if not is_late or run.can_measure() else run.unmeasured()
        return Status.MAX_TIME if is_late else Status.INTERRUPTED
    return None


def seconds_of_handing_over(problem: DualProblem) -> float:
    """Seconds of copying the dual variables, which cannot be interrupted and for which time has to be left."""
    return COPIES * problem.n_rows * problem.n_outputs / A_SECOND


class _Ascent:
    """A run: its state, its best point so far, and when to measure again."""

    _given = ("problem", "limits", "measure_every")

    def __init__(self, problem: DualProblem, state: DualState, limits: Limits, measure_every: int | None):
        self.problem, self.state, self.limits, self.measure_every = problem, state, limits, measure_every
        self.best = BestPoint(state.zero_value)
        self.model: DualModel | None = None
        self.phase_epochs: list[int] = []
        self.n_epochs, self.epoch_seconds, self.work = 0, 0.0, 0.0
        self.n_rows = int(np.count_nonzero(problem.share))
        self.trust, self.next_measure = 1.0, CHECK_AT_LEAST
        self.n_gaps, self.gap_seconds, self.last_gap_seconds, self.idle = 0, 0.0, 0.0, 0
        self.phase_is_over = False
        self.points: ProximalPoints | None = None

    def begin_phase(self, alpha: float) -> None:
        self.state.set_alpha(alpha)
        self.phase_epochs.append(0)
        self.phase_is_over = False

    def phase(self, share: float) -> Generator[Iterate, None, Status | None]:
        """Epochs at one penalty, until it is solved or its share of the limits is spent."""
        is_last = share == math.inf
        while not self.phase_is_over:
            if self.idle >= 5:
                return Status.STALLED
            estimate, tol = self._epoch(), self.limits.tol * self._strictness
            promising, broken, out_of_time = estimate <= self.trust * tol, not math.isfinite(estimate), self._is_late()
            used_up = self._has_used(1.0)
            # Set before the iterate is yielded, as another run may go on from there.
            self.phase_is_over = not is_last and (estimate <= tol or self._has_spent(share))
            if (promising and is_last) or broken or out_of_time or used_up or self._is_due():
                if out_of_time and not self.can_measure():
                    if self.model is None:
                        yield self.unmeasured()
                    return Status.MAX_TIME
                measured = self.measure()
                if promising:
                    self.trust *= 0.7
                yield measured
                if broken:
                    return Status.STALLED
                if out_of_time:
                    return Status.MAX_TIME
                if used_up:
                    return Status.MAX_ITER if tol > 0 else Status.FINISHED
        return None

    @property
    def _strictness(self) -> float:
        """At the best point that is known."""
        return strictness(self.best.primal / self.best.zero) * self.state.usual

    def _epoch(self) -> float:
        """One step in each active coordinate; the estimated relative gap."""
        started = time.perf_counter()
        self.n_epochs += 1
        self.phase_epochs[-1] += 1
        idle = self.limits.idle
        self.work += idle + (1.0 - idle) * self.state.n_active / self.n_rows
        try:
            estimate = self.state.epoch(self._on_slice)
        finally:
            self.epoch_seconds = time.perf_counter() - started
        if self.points is not None:
            estimate = self.points.follow(self.state, estimate)
        estimate /= self.best.zero
        self.epoch_seconds = time.perf_counter() - started
        return estimate

    def _on_slice(self) -> None:
        """Called between the slices of an epoch, which can end there."""
        self.problem.problem.on_block()
        self.limits.clock.check(ahead=seconds_of_handing_over(self.problem))

    def _is_due(self) -> bool:
        return self.n_epochs % self.measure_every == 0 if self.measure_every else self.n_epochs >= self.next_measure

    def _is_late(self) -> bool:
        """Whether another epoch could not be measured within max_time."""
        return time.perf_counter() + self.epoch_seconds + self._seconds_of_gap >= self.limits.clock.deadline

    def _has_spent(self, share: float) -> bool:
        """Whether this share of max_iter or max_time is used up."""
        clock = self.limits.clock
        return self._has_used(share) or (clock.max_time is not None and clock.seconds >= share * clock.max_time)

    def _has_used(self, share: float) -> bool:
        """Whether this share of the epochs and the work is used up."""
        return self.n_epochs >= share * self.limits.max_iter and self.work >= share * self.limits.work

    def can_measure(self) -> bool:
        """Whether measuring keeps max_time, about (`LATE`)."""
        clock = self.limits.clock
        allowed = math.inf if clock.max_time is None else LATE[0] * clock.max_time + LATE[1]
        return clock.seconds + self._seconds_of_gap <= allowed

    @property
    def _seconds_of_gap(self) -> float:
        """Expected seconds of measuring: those of the last time."""
        rows, k = self.problem.problem.rows, self.problem.n_outputs
        first = rows.n_rows * k * (2.0 * rows.row_bytes / rows.itemsize + LOSS) / A_SECOND
        return (self.last_gap_seconds or first) + seconds_of_handing_over(self.problem)

    def unmeasured(self) -> Iterate:
        """An iterate for the present point without a measured gap."""
        self._take_model()
        return self._iterate(math.nan, math.nan)

    def _take_model(self) -> None:
        W, b = self.state.parameters()
        self.model = DualModel(W, self.problem.problem.unshifted(W, b), self.state.duals(), self.state.alpha)

    def measure(self) -> Iterate:
        """The gap at the present point, by a pass of its own over all rows."""
        started = time.perf_counter()
        state, best, alpha, previous = self.state, self.best, self.problem.alpha, self.best.gap
        terms = state.gap_terms()
        primal, dual = terms.primal(alpha), terms.dual(alpha)
        improves = best.improves(primal, dual, terms.own_gap if state.alpha == alpha else math.inf)
        # Taking the first model may have been interrupted.
        if improves or (self.model is None and math.isfinite(primal)):
            self._take_model()
        if self.model is None:
            raise FloatingPointError(OVERFLOW)
        self.last_gap_seconds = time.perf_counter() - started
        self.n_gaps, self.gap_seconds = self.n_gaps + 1, self.gap_seconds + self.last_gap_seconds
        self.next_measure = self.n_epochs + max(CHECK_AT_LEAST, self.n_epochs // 4)
        self.idle = self.idle + 1 if best.gap < ROUNDING and best.gap >= previous else 0
        return self._iterate(primal, dual)

    def _iterate(self, primal: float, dual: float) -> Iterate:
        model, best, state = self.model, self.best, self.state
        return Iterate(
            lambda: model,
            best.primal,
            self.n_epochs,
            self.n_epochs + PASSES_OF_A_GAP * self.n_gaps,
            duality_gap=best.gap,
            strictness=self._strictness,
            rank=best.gap,
            details={
                "primal": primal,
                "dual": dual,
                "alpha": state.alpha,
                "phase_epochs": list(self.phase_epochs),
                "proximal_points": 0 if self.points is None else self.points.n_points,
                "gap_seconds": self.gap_seconds,
            },
            state=lambda: {"run": self},
        )
