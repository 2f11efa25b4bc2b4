"""A solver's iterates against its own seconds, from one run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np


class TimeUp(BaseException):
    """Raised inside a solver's callback when its time is over; not an Exception, so no solver swallows it."""


class Recorder:
    """Called by a solver with each iterate. What recording costs is taken off the solver's clock.

    Iterates go straight to files, so that they survive a solver that has to be killed.
    """

    def __init__(self, folder: Path, limit: float):
        self.folder = folder
        self.limit = limit
        self.count = 0
        self.origin = time.perf_counter()

    def start(self) -> None:
        self.origin = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self.origin

    def __call__(self, coef, intercept, **extra: float) -> None:
        """Record W of shape (d, k) and b of shape (k,) as reached now, and any further numbers."""
        now = time.perf_counter()
        seconds = now - self.origin
        unfinished = self.folder / "unfinished.npz"
        with unfinished.open("wb") as file:
            np.savez(file, **{"seconds": seconds, "coef": coef, "intercept": intercept, **extra})
        unfinished.rename(self.folder / f"{self.count:05d}.npz")
        self.count += 1
        if seconds > self.limit:
            raise TimeUp
        self.origin += time.perf_counter() - now

    def log(self, seconds, objective) -> None:
        """For a solver without a callback that keeps its own record of seconds and objective."""
        log = {"seconds": [float(s) for s in seconds], "objective": [float(f) for f in objective]}
        (self.folder / "log.json").write_text(json.dumps(log))
