"""What every solver shares: the record of a pass, the reasons to stop, and the solution."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from manyclass.curvature import Curvature
from manyclass.data.design import Array
from manyclass.model.objective import Evaluation, Objective
from manyclass.solvers.start import least_squares_start


class Status(Enum):
    """Why a solver stopped, as a sentence that says what to do."""

    CONVERGED = "Converged: the certificate is at or below tol."
    MAX_ITER = "Stopped at max_iter before reaching tol; raise max_iter or tol, or continue with warm_start=True."
    MAX_TIME = "Stopped at max_time before reaching tol; raise max_time or tol, or continue with warm_start=True."
    COMPLETED = "All steps were taken; raise max_iter or max_steps, or continue with warm_start=True, for more."
    EARLY_STOPPED = "Stopped early: the score of the held-out rows no longer improved; the best model was kept."
    TIME_UP = "Stopped for max_time: the model holds what was finished until then; raise max_time for the rest."
    FINISHED = "Finished: all the work that was asked for is done."
    INTERRUPTED = (
        "Interrupted: the model holds what was finished before, and can be used; fit again for the whole of it."
    )
    STALLED = (
        "No further progress is possible in this floating-point precision; the model is as good as rounding allows: "
        "pass float64 data or raise tol if a tighter certificate is needed."
    )

    def __str__(self) -> str:
        return self.value

    @property
    def is_failure(self) -> bool:
        """Whether a user should be warned."""
        return self in (Status.MAX_ITER, Status.MAX_TIME, Status.TIME_UP, Status.INTERRUPTED)


@dataclass(frozen=True)
class Record:
    """The state after one iteration.

    Attributes
    ----------
    n_passes : float
        Passes over the rows so far, a whole number unless rows are drawn one by one; curvature estimates on samples
        of rows are left out.
    objective : float
    certificate : float
        See `Solution`.
    seconds : float
        Since the start of the fit, curvature included.
    """

    n_passes: float
    objective: float
    certificate: float
    seconds: float


@dataclass(frozen=True)
class LiveRecord(Record):
    """What a callback is given: a `Record` and, while the callback runs, the model at that moment.

    Attributes
    ----------
    parameters : callable
        ``coef, intercept = record.parameters()``, of shapes (n_features, n_outputs) and (n_outputs,).
    """

    parameters: Callable[[], tuple[Array, Array]] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Solution:
    """What a solver returns.

    Attributes
    ----------
    coef : array of shape (n_features, n_outputs)
    intercept : array of shape (n_outputs,)
    status : Status
    history : list of Record
    certificate : float
        For alpha > 0 the relative duality gap, (F − D)/F(zero model), a bound on (F − F*)/F(zero model). For
        alpha = 0 ⟨∇F, H⁻¹∇F⟩ / ⟨∇F₀, H⁻¹∇F₀⟩, the squared gradient in the metric of the curvature relative to the
        zero model. Neither changes with the units of X, with n or with k.
    n_passes : int
    """

    coef: Array
    intercept: Array
    status: Status
    history: list[Record]
    certificate: float
    n_passes: int


class HeldOut:
    """Rows kept aside to stop by.

    Parameters
    ----------
    objective : Objective
        On the held-out rows, usually with alpha = 0.
    patience : int
        Passes without a smaller loss after which to stop.

    Attributes
    ----------
    losses : list of float
        One per pass.
    best : tuple of (coef, intercept)
        The model with the smallest loss.
    """

    def __init__(self, objective: Objective, patience: int = 5):
        self.objective, self.patience = objective, patience
        self.losses: list[float] = []
        self.best: tuple[Array, Array] | None = None

    def is_done(self, coef: Array, intercept: Array) -> bool:
        loss = self.objective.value_and_gradient(self.objective.pack(coef, intercept)).value
        if not self.losses or loss < min(self.losses):
            self.best = coef, intercept
        self.losses.append(loss)
        return len(self.losses) - 1 - self.losses.index(min(self.losses)) >= self.patience


class Monitor:
    """Counts passes, keeps the history, and says when to stop.

    Parameters
    ----------
    tol : float
        Certificate at which a solver stops.
    max_iter : int
        Passes over the rows.
    max_time : float, optional
        Seconds, checked after each pass.
    callback : callable, optional
        Called with a `LiveRecord` after each iteration.
    held_out : HeldOut, optional
        Rows kept aside; the solver stops when their loss no longer falls, and the solution is the best model seen.
    """

    def __init__(
        self,
        tol: float = 1e-3,
        max_iter: int = 200,
        max_time: float | None = None,
        callback: Callable[[LiveRecord], Any] | None = None,
        started: float | None = None,
        held_out: HeldOut | None = None,
    ):
        self.held_out = held_out
        self.tol, self.max_iter, self.max_time, self.callback = tol, max_iter, max_time, callback
        self.history: list[Record] = []
        self.n_passes = 0
        self._start = time.perf_counter() if started is None else started

    def evaluate(self, objective: Objective, theta: Array, **options: bool) -> Evaluation:
        """Value and gradient, counted as a pass."""
        self.n_passes += 1
        return objective.value_and_gradient(theta, **options)

    def stop(self, objective: Objective, curvature: Curvature, theta: Array, evaluation: Evaluation) -> Status | None:
        """Record the state; the reason to stop, if there is one."""
        certificate = self._certificate(objective, curvature, theta, evaluation)
        record = Record(self.n_passes, evaluation.value, certificate, self.seconds)
        return self.add(record, LiveRecord(**vars(record), parameters=lambda: objective.unpack(theta)))

    def add(self, record: Record, live: LiveRecord) -> Status | None:
        """Keep a record and show its live form to the callback; the reason to stop, if there is one."""
        # The history outlives the solver; it must not keep every iterate alive.
        self.history.append(record)
        if self.callback is not None:
            self.callback(live)
        if record.certificate <= self.tol:
            return Status.CONVERGED
        if self.held_out is not None and self.held_out.is_done(*live.parameters()):
            return Status.EARLY_STOPPED
        return self.exhausted()

    def exhausted(self) -> Status | None:
        if self.n_passes >= self.max_iter:
            return Status.MAX_ITER
        if self.max_time is not None and self.seconds >= self.max_time:
            return Status.MAX_TIME
        return None

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def solution(self, objective: Objective, theta: Array, status: Status) -> Solution:
        coef, intercept = objective.unpack(theta)
        if self.held_out is not None and self.held_out.best is not None and status is not Status.CONVERGED:
            coef, intercept = self.held_out.best
        certificate = self.history[-1].certificate if self.history else float("inf")
        return Solution(coef, intercept, status, self.history, certificate, self.n_passes)

    @staticmethod
    def _certificate(objective: Objective, curvature: Curvature, theta: Array, evaluation: Evaluation) -> float:
        if objective.alpha > 0:
            return objective.duality_gap(theta, evaluation) / max(objective.zero_value, 1e-300)
        zero, now = objective.zero_gradient, evaluation.gradient
        scale = inner(objective, zero, curvature.solve(zero))
        size = inner(objective, now, curvature.solve(now))
        return size / scale if scale > 0 else size


class Solver(ABC):
    """Minimises an objective in the metric of a curvature.

    A new solver is one file with a subclass and one line in ``SOLVERS``: `run`, and `begin` where it should not start
    from least squares.

    Attributes
    ----------
    needs_majorizer : bool
        Whether only a curvature with ``majorizes`` will do.
    refreshes_majorizer : bool
        Whether one that is ``local`` will do too.
    default_curvature : str, optional
        The curvature that belongs to it, where that is not a matter of the data.
    """

    name: ClassVar[str]
    needs_majorizer: ClassVar[bool]
    refreshes_majorizer: ClassVar[bool] = False
    default_curvature: ClassVar[str | None] = None

    def solve(
        self,
        objective: Objective,
        curvature: Curvature,
        start: Array | None = None,
        monitor: Monitor | None = None,
    ) -> Solution:
        """Minimise from `start` (default `begin`) until `monitor` says stop."""
        monitor = monitor or Monitor()
        theta = self.begin(objective, curvature) if start is None else start
        theta, status = self.run(objective, curvature, theta, monitor)
        return monitor.solution(objective, theta, status)

    def begin(self, objective: Objective, curvature: Curvature) -> Array:
        """theta to start from where none is given."""
        return least_squares_start(objective, curvature)

    @abstractmethod
    def run(self, objective: Objective, curvature: Curvature, theta: Array, monitor: Monitor) -> tuple[Array, Status]:
        """theta at the end, and why it is the end."""


def inner(objective: Objective, a: Array, b: Array) -> float:
    """⟨a, b⟩ over all entries."""
    xp = objective.xp
    return float(xp.vecdot(xp.reshape(a, (-1,)), xp.reshape(b, (-1,))))
