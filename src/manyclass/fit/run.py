"""The one loop: solvers yield iterates; `Run` decides when to stop and which of them is the model."""

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
"""An expected gain below this share of ``tol`` ends a run, however bad the curvature that it is computed with."""


class OutOfTime(Exception):  # noqa: N818
    """Raised between two blocks of rows once ``max_time`` is over; caught by `Run` and nowhere else."""


class Clock:
    """The seconds since the start of a fit, and their limit, less those set aside for work after the run."""

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
        """Seconds until the deadline."""
        return self.deadline - time.perf_counter()

    def check(self, ahead: float = 0.0) -> None:
        """Raise `OutOfTime` once the limit has passed; solvers call this wherever they could stop.

        Before a step that cannot be interrupted, `ahead` is the seconds that it is expected to take.
        """
        if ahead >= self.left:
            raise OutOfTime


@dataclass(frozen=True)
class Iterate:
    """What a solver yields after an iteration.

    Attributes
    ----------
    model : callable
        Gives the model at this iteration, which must not change afterwards. It is called while the solver waits; if
        `lasting`, it may be called at any later time.
    objective : float
    n_iter : float
        Iterations so far, in the unit of ``max_iter``: a whole number unless rows are drawn one by one.
    n_passes : float
    n_looks : int
        How often the metric of the steps has been made. That takes longer than its passes do.
    duality_gap : float
        Relative to the zero model; nan where no bound is known.
    strictness : float
        The gap is compared with ``tol`` times this.
    measure : float
        Compared with ``tol`` if no bound is known: an estimate of what the next iteration gains.
    looks_back : int
        To stop by `measure`, the last so many iterations must also have gained no more than ``tol`` together.
    unit : float
        The difference of objectives that counts as a gain of 1.
    reached : Status
        The status of a run that stops by `measure`.
    rank : float, optional
        Replaces the objective in the choice of the best iterate; the least is the best. An iterate with an infinite
        rank is only kept while there is no other.
    held_out_loss : float, optional
        The mean loss of the held-out rows, if the solver knows it.
    details : dict
        Those of the `Record`.
    lasting : bool
        Whether `model` gives the same model at any later time.
    doubts : float
        How strongly this iterate speaks against the method that made it; 0 if not at all.
    state : callable, optional
        Gives what a solver needs, besides its problem, to go on after this iterate as if there had been no pause: plain
        values, arrays and objects of this package (see `stored`). It is called while the solver waits.
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
"""Below this share of the zero model's objective, ``tol`` is relative to the objective; and the least factor that this
puts on it. All models that separate the rows have next to no loss, and a large gap would allow any of them."""


def strictness(share: float) -> float:
    """The factor on ``tol`` when the objective is `share` of that of the zero model.

    The gap bounds (alpha/2) ‖W − W*‖². If it is as large as the objective itself, W may be anywhere.
    """
    return min(max(share / ALL_BUT_FITTED, STRICTEST), 1.0)


Iterates = Generator[Iterate, None, Status | None]
"""What a solver gives. If it ends by itself, it returns the reason; None stands for FINISHED."""


class InOrder:
    """Iterates for a ``for`` loop. After the loop, `reason` is what the generator has returned."""

    reason: Status | None = None

    def __init__(self, iterates: Iterates):
        self.iterates = iterates

    def __iter__(self) -> Generator[Iterate, None, None]:
        self.reason = yield from self.iterates

    def close(self) -> None:
        self.iterates.close()


def changed(iterates: Iterates, change: Callable[[Iterate], Iterate]) -> Iterates:
    """The iterates of a solver with each one changed, and its reason to end."""
    given = InOrder(iterates)
    for iterate in given:
        yield change(iterate)
    return given.reason


FAR, LARGE = 10.0, 1e-3
"""A run that ended by rounding is fine if its gap is below so many times tol, or that share of the first objective."""


@dataclass(frozen=True)
class Outcome:
    """The model of a run, and how it was found."""

    model: Any
    status: Status
    history: list[Record]
    n_iter: float
    n_passes: float
    duality_gap: float

    def told(self, tol: float) -> Status:
        """The status; NOT_CONVERGED if rounding has ended the run at a large gap.

        If tol only asks for more than rounding allows, the gap is small beside the first objective.
        """
        if self.status is not Status.STALLED or not self.history:
            return self.status
        least = max(FAR * tol, LARGE * abs(self.history[0].objective))
        return Status.NOT_CONVERGED if self.duality_gap > least else Status.STALLED


@dataclass
class Run:
    """Time, iterations, held-out rows, callbacks and Ctrl-C, alike for every solver."""

    clock: Clock
    tol: float = 0.0  # duality gap, or `Iterate.measure`, at which to stop; 0 for never
    max_iter: float | None = None
    held_out_loss: Callable[[Any], float] | None = None  # of a model; the best model has the least
    patience: int = 5  # iterates without a smaller held-out loss after which to stop
    on_iterate: Callable[[Record, Iterate], Any] | None = None  # a true value ends the run
    n_threads: int | None = None  # of BLAS during the run; None leaves them alone
    checkpoint: Checkpoint | None = None  # written every few seconds and at the end
    saved: dict[str, Any] | None = None  # from the checkpoint of an earlier run; the solver gets its part elsewhere
    history: list[Record] = field(default_factory=list, init=False)
    _best: list[tuple[float, Callable[[], Any], Record]] = field(default_factory=list, init=False, repr=False)
    _since_best: int = field(default=0, init=False, repr=False)

    def __call__(self, iterates: Iterates, fallback: Callable[[], Any]) -> Outcome:
        """Take iterates until there is a reason to stop.

        `fallback` gives the model if there was no time for a single iterate.
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
        # After a stop from outside, the fit goes on from its last checkpoint when it is called again.
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
        """Record the iterate, keep it if it is the best, and return the reason to stop, if there is one."""
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
        is_first = not self._best or not self._best[0][0] < math.inf
        is_better = is_first or (self._is_lower(record) if by_objective else rank < self._best[0][0])
        self._since_best = 0 if is_better else self._since_best + 1
        # Of iterates with equal held-out losses the later one is kept.
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
        """Whether the objective is lower than the best, or the gap, if the objectives differ only by rounding."""
        best = self._best[0][2]
        differ = abs(record.objective - best.objective) > 4.0 * sys.float_info.epsilon * abs(best.objective)
        if differ or math.isnan(record.duality_gap):
            return record.objective < best.objective
        return record.duality_gap < best.duality_gap

    def _reached(self, iterate: Iterate) -> Status | None:
        """The status if tol is reached, by the gap or by the measure."""
        if iterate.duality_gap <= self.tol * iterate.strictness:
            return Status.CONVERGED
        before = self.history[max(len(self.history) - 1 - iterate.looks_back, 0)]
        gained = (before.objective - iterate.objective) / iterate.unit
        # With too few iterations to look back on, the measure alone has to be far below tol.
        tol = self.tol if len(self.history) > iterate.looks_back else BEYOND_DOUBT * self.tol
        return iterate.reached if self.tol > 0 and iterate.measure <= tol and gained <= self.tol else None
