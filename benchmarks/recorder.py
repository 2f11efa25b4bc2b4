"""A solver's iterates against its own seconds, from one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np


class TimeUp(BaseException):
    """Raised inside a solver's callback when its time is over; not an Exception, so no solver swallows it."""


def fit_watched(model: Any, X: Any, y: Any, on_iterate: Callable[[Any, Callable[[], Any]], Any]) -> Any:
    """Fit an estimator of ours, and see its iterates as scipy shows those of a peer: before they are made a model.

    ``on_iterate(record, make)`` is called with the record of each and what makes its W, of shape (d, k), and b; what it
    returns may end the fit.
    """
    prepared = model._run

    def watched(*given: Any) -> Any:
        run = prepared(*given)
        run.on_iterate = lambda record, iterate: on_iterate(record, iterate.model)
        return run

    with patch.object(model, "_run", watched):
        return model.fit(X, y)


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

    def of(self, make: Callable[[], tuple[Any, Any]], **extra: float) -> None:
        """Record an iterate that has to be made first: it is no sooner there, and those after it no later for that."""
        begun = self.clock()
        if begun - self.origin < self.spacing * self.last:
            return
        made, now = make(), self.clock()
        self(*made, **extra)
        self.origin += now - begun

    def log(self, seconds, objective) -> None:
        """For a solver without a callback that keeps its own record of seconds and objective."""
        log = {"seconds": [float(s) for s in seconds], "objective": [float(f) for f in objective]}
        (self.folder / "log.json").write_text(json.dumps(log))
