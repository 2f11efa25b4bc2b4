"""The one loop: solvers yield iterates, and this decides when it is enough and which of them is the model."""

import math
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from manyclass.data.threads import blas_threads
from manyclass.execution.base import itself
from manyclass.fit.checkpoint import Checkpoint
from manyclass.fit.history import NAN, Record
from manyclass.fit.status import Status

BEYOND_DOUBT = 1e-3
"""Of ``tol``: less than this of an expected gain is none, whatever the curvature that tells it is worth."""


class OutOfTime(Exception):  # noqa: N818
    """Raised between two blocks of rows once ``max_time`` is over; caught by `Run` and nowhere else."""


class Clock:
    """Seconds since the start of a fit, its limit, and how many of them are for what follows the run."""

    def __init__(self, max_time: float | None = None):
        self.max_time, self.started, self.set_aside = max_time, time.perf_counter(), 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    @property
    def deadline(self) -> float:
        """By ``time.perf_counter``; infinite without a limit."""
        return float("inf") if self.max_time is None else self.started + self.max_time - self.set_aside

    @property
    def left(self) -> float:
        """Seconds until then."""
        return self.deadline - time.perf_counter()

    def check(self, ahead: float = 0.0) -> None:
        """Raise `OutOfTime` where the limit is passed; solvers call this wherever they could stop.

        `ahead` are the seconds that the next step is expected to take, for one that cannot be interrupted.
        """
        if ahead >= self.left:
            raise OutOfTime


@dataclass(frozen=True)
class Iterate:
    """What a solver yields after an iteration.

    Attributes
    ----------
    model : callable
        The model at this moment, which must not change afterwards; called while the solver waits, or, where it is
        `lasting`, only if it is wanted.
    objective : float
    n_iter : float
        Iterations so far, in the units of ``max_iter``: a whole number unless rows are drawn one by one.
    n_passes : float
    n_looks : int
        How often the metric of the steps has been adapted, which costs more than the passes it takes.
    duality_gap : float
        Relative to the zero model; nan where no bound is known.
    strictness : float
        The share of ``tol`` that it is compared with.
    measure : float
        Where no bound is known: what is compared with ``tol``.
    looks_back : int
        So many iterations together must not have lowered the objective by more than ``tol`` either.
    unit : float
        What a gain in the objective is measured by for that.
    reached : Status
        What it means that `measure` is at or below ``tol``.
    rank : float, optional
        By which iterates are compared, the least being the best, any better than infinity; the objective by default.
    held_out_loss : float, optional
        Where the solver knows it: the mean loss of the held-out rows.
    details : dict
        For the record.
    lasting : bool
        Whether `model` gives the same model at any later time.
    doubts : float
        How strongly it speaks against the method that it comes from; 0 if not at all.
    state : callable, optional
        All that a solver has to be given, beside its problem, to go on right after this iterate as if there had been no
        pause: plain values, arrays and objects of this package, to be stored while the solver waits (see `stored`).
    """

    model: Callable[[], Any]
    objective: float
    n_iter: float
    n_passes: float
    duality_gap: float = NAN
    strictness: float = 1.0
    measure: float = NAN
    looks_back: int = 0
    unit: float = 1.0
    reached: Status = Status.SETTLED
    rank: float | None = None
    held_out_loss: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    lasting: bool = False
    doubts: float = 0.0
    n_looks: int = 0
    state: Callable[[], dict[str, Any]] | None = None


ALL_BUT_FITTED, STRICTEST = 1e-2, 1e-2
"""Share of the zero model's objective below which ``tol`` is one of what is left, down to so much of it: of the models
that separate the rows nothing but the minimum tells the right one, and all have next to no loss."""


def strictness(share: float) -> float:
    """Of ``tol``, where so much of the zero model's objective is left.

    A part of the gap is (alpha/2) ‖W − W*‖², so that W may be anywhere where a gap is as large as the objective itself.
    """
    return min(max(share / ALL_BUT_FITTED, STRICTEST), 1.0)


Iterates = Generator[Iterate, None, Status | None]
"""What a solver is: it returns the reason where it ends by itself, FINISHED where it says none."""


class InOrder:
    """Iterates for a loop, which has their `reason` to end when it is through."""

    reason: Status | None = None

    def __init__(self, iterates: Iterates):
        self.iterates = iterates

    def __iter__(self) -> Generator[Iterate, None, None]:
        self.reason = yield from self.iterates

    def close(self) -> None:
        self.iterates.close()


def changed(iterates: Iterates, change: Callable[[Iterate], Iterate]) -> Iterates:
    """The iterates of a solver as its caller wants them seen, with its own reason to end."""
    given = InOrder(iterates)
    for iterate in given:
        yield change(iterate)
    return given.reason


FAR, LARGE = 10.0, 1e-3
"""Times tol, and the share of the first objective, up to which a gap that rounding leaves is no failure."""


@dataclass(frozen=True)
class Outcome:
    """The model of a run, and how it came about."""

    model: Any
    status: Status
    history: list[Record]
    n_iter: float
    n_passes: float
    duality_gap: float

    def told(self, tol: float) -> Status:
        """The status, or where rounding has ended the run at a gap that bounds nothing that this is a failure.

        Where tol asks for more than rounding allows, the gap is small beside the loss that the run began with.
        """
        if self.status is not Status.STALLED or not self.history:
            return self.status
        least = max(FAR * tol, LARGE * abs(self.history[0].objective))
        return Status.NOT_CONVERGED if self.duality_gap > least else Status.STALLED


@dataclass
class Run:
    """Time, iterations, held-out rows, callbacks and Ctrl-C, alike for every solver."""

    clock: Clock
    tol: float = 0.0  # duality gap, or measure, at which to stop; 0 for never
    max_iter: float | None = None
    held_out_loss: Callable[[Any], float] | None = None  # of a model on rows kept aside: the best has the smallest
    patience: int = 5  # iterates without a smaller held-out loss after which to stop
    on_iterate: Callable[[Record, Iterate], Any] | None = None  # what is true ends the run
    n_threads: int | None = None  # of BLAS during the run; None leaves them alone
    checkpoint: Checkpoint | None = None  # where to store, every few seconds and in the end, what is known
    saved: dict[str, Any] | None = None  # what a run before this one stored, to go on from; the solver has its part
    history: list[Record] = field(default_factory=list, init=False)
    _best: list[tuple[float, Callable[[], Any], Record]] = field(default_factory=list, init=False, repr=False)
    _since_best: int = field(default=0, init=False, repr=False)

    def __call__(self, iterates: Iterates, fallback: Callable[[], Any]) -> Outcome:
        """Take iterates until there is a reason to stop.

        `fallback` gives the model for the case that there was no time for a single iterate.
        """
        self._best, self._since_best = [], 0
        if self.saved is not None:
            rank, model, record = self.saved["best"]
            self._best, self.history = [(rank, partial(itself, model), record)], self.saved["history"]
            self._since_best = self.saved["since_best"]
            self.clock.started -= self.saved["seconds"]
            if self.saved["status"] is not None:
                iterates.close()
                return self._outcome(Status[self.saved["status"]])
        with blas_threads(self.n_threads):
            try:
                status = self._take(iterates)
            except OutOfTime:
                status = Status.MAX_TIME
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
            finally:
                iterates.close()
        if not self._best:
            return Outcome(fallback(), status, self.history, 0, 0, NAN)
        # What was stopped from outside goes on from the checkpoint, and is not at its end.
        if self.checkpoint is not None and status not in (Status.INTERRUPTED, Status.STOPPED_BY_CALLBACK):
            self.checkpoint.write(self._stored(status=status))
        return self._outcome(status)

    def _outcome(self, status: Status) -> Outcome:
        _, model, record = self._best[0]
        last = self.history[-1]
        return Outcome(model(), status, self.history, last.n_iter, last.n_passes, record.duality_gap)

    # -- what a checkpoint holds ------------------------------------------------------------------------------------

    def _stored(self, iterate: Iterate | None = None, status: Status | None = None) -> dict[str, Any]:
        rank, model, record = self._best[0]
        state = iterate.state if iterate is not None and status is None else None
        return {
            "status": None if status is None else status.name,
            "seconds": self.clock.seconds,
            "history": self.history,
            "best": (rank, model(), record),
            "since_best": self._since_best,
            "solver": None if state is None else state(),
        }

    def _take(self, iterates: Iterates) -> Status:
        given = InOrder(iterates)
        for iterate in given:
            status = self._judge(iterate)
            if self.on_iterate is not None and self.on_iterate(self.history[-1], iterate):
                if self.checkpoint is not None and (iterate.state is not None or status is not None):
                    self.checkpoint.write(self._stored(iterate, status))
                return Status.STOPPED_BY_CALLBACK
            if status is not None:
                return status
            if self.checkpoint is not None and iterate.state is not None:
                self.checkpoint.offer(partial(self._stored, iterate))
        return given.reason or Status.FINISHED

    def _judge(self, iterate: Iterate) -> Status | None:
        """Record the iterate, keep it if it is the best; the reason to stop, if there is one."""
        record = Record(
            iterate.n_iter,
            iterate.n_passes,
            self.clock.seconds,
            iterate.objective,
            iterate.duality_gap,
            details=iterate.details,
        )
        loss, model = iterate.held_out_loss, iterate.model
        if loss is None and self.held_out_loss is not None:
            model = partial(itself, iterate.model())
            loss = self.held_out_loss(model())
        if loss is not None:
            record = replace(record, validation_score=-loss)
        self.history.append(record)
        reached = self._reached(iterate)
        rank = loss if loss is not None else (iterate.objective if iterate.rank is None else iterate.rank)
        by_objective = loss is None and iterate.rank is None
        is_first = not self._best or self._best[0][0] == math.inf
        is_better = is_first or (self._is_lower(record) if by_objective else rank < self._best[0][0])
        self._since_best = 0 if is_better else self._since_best + 1
        # Of equal held-out losses it is the later.
        if is_better or (rank == self._best[0][0] if loss is not None else reached is not None):
            kept = model if iterate.lasting or model is not iterate.model else partial(itself, model())
            self._best = [(rank, kept, record)]
        if reached is not None:
            return reached
        if loss is not None and self._since_best >= self.patience:
            return Status.EARLY_STOPPED
        if self.max_iter is not None and iterate.n_iter >= self.max_iter:
            return Status.MAX_ITER if self.tol > 0 else Status.FINISHED
        return Status.MAX_TIME if time.perf_counter() >= self.clock.deadline else None

    def _is_lower(self, record: Record) -> bool:
        """Than the best so far; in the last digits of the objective the gap is the better judge."""
        best = self._best[0][2]
        differ = abs(record.objective - best.objective) > 4.0 * sys.float_info.epsilon * abs(best.objective)
        if differ or math.isnan(record.duality_gap):
            return record.objective < best.objective
        return record.duality_gap < best.duality_gap

    def _reached(self, iterate: Iterate) -> Status | None:
        if iterate.duality_gap <= self.tol * iterate.strictness:
            return Status.CONVERGED
        before = self.history[max(len(self.history) - 1 - iterate.looks_back, 0)]
        gained = (before.objective - iterate.objective) / iterate.unit
        # Where there are fewer iterations to look back on, the measure alone has to leave no doubt.
        tol = self.tol if len(self.history) > iterate.looks_back else BEYOND_DOUBT * self.tol
        return iterate.reached if self.tol > 0 and iterate.measure <= tol and gained <= self.tol else None
