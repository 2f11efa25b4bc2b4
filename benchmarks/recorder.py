"""A solver's iterates against its own seconds, from one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class TimeUp(BaseException):
    """Raised inside a solver's callback when its time is over; not an Exception, so no solver swallows it."""


class EachIteration:
    """scikit-learn's callback: calls `function` with the record of each iteration; what it returns may end the fit.

    Parameters
    ----------
    function : callable
        ``function(record)``; with `models`, ``function(record, model)``, the model as if the fit had ended there.
    models : bool
        Models are made only where they are asked for.
    """

    def __init__(self, function: Callable[..., Any], *, models: bool = False):
        self.function = function
        if models:  # scikit-learn looks at the signature to see what a callback wants
            self.on_fit_task_end = self._end_with_model  # type: ignore

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> Any:
        return self.function(metadata["record"]) if self._has_record(metadata) else None

    def _end_with_model(self, estimator: Any, context: Any, *, metadata: Any = None, fitted_estimator: Any) -> Any:
        return self.function(metadata["record"], fitted_estimator) if self._has_record(metadata) else None

    @staticmethod
    def _has_record(metadata: Any) -> bool:
        return metadata is not None and "record" in metadata  # a mapping that is empty but for the record is false


class Recorder:
    """Called by a solver with each iterate. What recording costs is taken off the solver's clock.

    Iterates go straight to files, so that they survive a solver that has to be killed.

    Parameters
    ----------
    clock : callable
        Seconds; of the processor, say, where other work goes on beside a solver with one thread.
    spacing : float
        Iterates that come before so many times the seconds of the last one kept are left out.
    """

    def __init__(
        self, folder: Path, limit: float, *, clock: Callable[[], float] = time.perf_counter, spacing: float = 0.0
    ):
        self.folder = folder
        self.limit = limit
        self.clock, self.spacing = clock, spacing
        self.count = 0
        self.last = 0.0
        self.origin = clock()

    def start(self) -> None:
        self.origin, self.last = self.clock(), 0.0

    def seconds(self) -> float:
        return self.clock() - self.origin

    def __call__(self, coef, intercept, **extra: float) -> None:
        """Record W of shape (d, k) and b of shape (k,) as reached now, and any further numbers."""
        now = self.clock()
        seconds = now - self.origin
        if seconds < self.spacing * self.last:
            return
        self.last = seconds
        unfinished = self.folder / "unfinished.npz"
        with unfinished.open("wb") as file:
            np.savez(file, **{"seconds": seconds, "coef": coef, "intercept": intercept, **extra})
        unfinished.rename(self.folder / f"{self.count:05d}.npz")
        self.count += 1
        if seconds > self.limit:
            raise TimeUp
        self.origin += self.clock() - now

    def log(self, seconds, objective) -> None:
        """For a solver without a callback that keeps its own record of seconds and objective."""
        log = {"seconds": [float(s) for s in seconds], "objective": [float(f) for f in objective]}
        (self.folder / "log.json").write_text(json.dumps(log))
