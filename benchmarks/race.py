"""Runs solvers side by side on one problem and says how long each took to come how close to the minimum."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.objective import objectives, zero_objective

TARGETS = (1e-3, 1e-4)
GRACE_SECONDS = 30.0
AT_ONCE = 16
LOG_TOLERANCE = 1e-3
REFERENCE_TOL = 1e-6  # a hundredth of the last target


@dataclass(frozen=True)
class Problem:
    """A named data set, or a file, with its penalty; X stays on disk here, as every solver has a process of its own."""

    name: str
    alpha: float

    @cached_property
    def arrays(self) -> data.Rows:
        return data.load(self.name, mmap=True)

    @cached_property
    def at_zero(self) -> float:
        return zero_objective(self.arrays[1])

    def objectives(self, iterates: list) -> list[float]:
        return objectives(*self.arrays, iterates, "softmax", self.alpha)

    def __str__(self) -> str:
        return f"{self.name} alpha={self.alpha:g}"


class Curve:
    """Objective against seconds of one run. The yardstick is laid only where the question needs it.

    Attributes
    ----------
    seconds : ndarray of shape (n_iterates,)
    known : dict of int to float
        Objectives by index of the iterate.
    extras : list of dict
        Whatever else the solver recorded with each iterate, such as its passes over the data.
    """

    def __init__(self, solver: str, problem: Problem, limit: float):
        self.solver = solver
        self.problem = problem
        self.limit = limit
        self.seconds = np.empty(0)
        self.known: dict[int, float] = {}
        self.extras: list[dict] = []
        self._iterates: list = []

    def read(self, folder: Path) -> Curve:
        seconds = []
        for path in sorted(folder.glob("[0-9]*.npz")):
            with np.load(path) as saved:
                seconds.append(float(saved["seconds"]))
                self._iterates.append((saved["coef"], saved["intercept"]))
                self.extras.append({key: saved[key].item() for key in saved.files if saved[key].ndim == 0})
        self.seconds = np.array(seconds)
        log_path = folder / "log.json"
        if log_path.exists():
            self._take_log(json.loads(log_path.read_text()))
        elif seconds:
            marks = np.searchsorted(self.seconds, np.geomspace(seconds[0], seconds[-1], AT_ONCE))
            self.objectives(np.minimum(marks, len(seconds) - 1))  # rounding may pass the last
        return self

    def _take_log(self, log: dict) -> None:
        (measured,) = self.problem.objectives(self._iterates[-1:])
        claimed = log["objective"][-1]
        if abs(measured - claimed) > LOG_TOLERANCE * measured:
            raise RuntimeError(f"{self.solver} reports the objective {claimed:.6g}, not {measured:.6g}")
        self.seconds = np.array(log["seconds"])
        self.known = dict(enumerate(np.minimum.accumulate(log["objective"]).tolist()))

    def objectives(self, indices: Iterable[int]) -> np.ndarray:
        wanted = [int(i) for i in indices]
        missing = sorted({*wanted} - self.known.keys())
        if missing:
            found = self.problem.objectives([self._iterates[i] for i in missing])
            self.known.update(zip(missing, found, strict=True))
        return np.array([self.known[i] for i in wanted])

    def first_below(self, value: float) -> int | None:
        """The first iterate with F <= value, by repeated subdivision: no solver here lets F rise for long."""
        if not len(self.seconds) or self.best() > value:
            return None
        high = min(i for i, objective in self.known.items() if objective <= value)
        low = max((i for i in self.known if i < high), default=-1)
        while high - low > 1:
            marks = np.unique(np.linspace(low + 1, high, AT_ONCE).astype(int))
            reached = int(np.argmax([*(self.objectives(marks) <= value)[:-1], True]))
            low, high = (int(marks[reached - 1]) if reached else low), int(marks[reached])
        return high

    def seconds_to(self, value: float) -> float:
        """Infinite where the run ended above that value."""
        index = self.first_below(value)
        return np.inf if index is None else float(self.seconds[index])

    def best(self) -> float:
        if not len(self.seconds):
            return np.inf
        self.objectives([len(self.seconds) - 1])
        return min(self.known.values())

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Seconds and objectives wherever the yardstick was laid."""
        chosen = sorted(self.known)
        return self.seconds[chosen], np.array([self.known[i] for i in chosen])


def run(solver: str, problem: Problem, limit: float) -> Curve:
    """One run in a process of its own, killed when it is past its limit and does not stop by itself."""
    _ = problem.arrays  # made before any clock runs
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "benchmarks.worker"]
        arguments = [solver, problem.name, repr(problem.alpha), repr(limit), scratch]
        try:
            subprocess.run([*command, *arguments], check=True, timeout=1.05 * limit + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        return Curve(solver, problem, limit).read(Path(scratch))


def race(
    ours: str, peers: list[str], problem: Problem, limit: float, own_limit: float | None = None
) -> tuple[float, list[Curve]]:
    """F* and the curves of a race: our solver before each peer and once more at the end.

    A peer's time ends with `limit`, or when it has taken as long as the quickest peer before it took to the
    last target: it can then no longer be the best. Our runs end after `own_limit`, default `limit`: nothing is read
    off them once they are below the last target.
    """
    own_limit = own_limit or limit
    minimum = reference(problem)
    last_target = minimum + TARGETS[-1] * (problem.at_zero - minimum)
    curves = []
    for peer in peers:
        curves.append(run(ours, problem, own_limit))
        curves.append(run(peer, problem, limit))
        limit = min(limit, curves[-1].seconds_to(last_target))
    curves.append(run(ours, problem, min(own_limit, limit)))
    return min(minimum, *(curve.best() for curve in curves)), curves


def reference(problem: Problem) -> float:
    """F*: the objective of a fit in float64 to a tiny duality gap, kept in the cache."""

    def work() -> float:
        from manyclass import GLMClassifier

        X, y = problem.arrays
        model = GLMClassifier(alpha=problem.alpha, tol=REFERENCE_TOL, max_iter=100_000)
        model.fit(X.astype(np.float64), y)
        if model.duality_gap_ > REFERENCE_TOL:
            raise RuntimeError(f"{problem}: the reference ended at a duality gap of {model.duality_gap_:.1e}")
        return problem.objectives([(model.coef_.T, model.intercept_)])[0]

    return data.kept("references", str(problem), work)
