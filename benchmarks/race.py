"""Runs solvers side by side on one problem and says how long each took to come how close to the minimum."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.objective import softmax_objective, zero_objective

TARGETS = (1e-3, 1e-4)
GRACE_SECONDS = 45.0
CURVE_POINTS = 16
TRACE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Problem:
    """A named data set with its penalty; X stays on disk here, as every solver has a process of its own."""

    name: str
    alpha: float

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return data.load(self.name, mmap=True)

    @cached_property
    def at_zero(self) -> float:
        return zero_objective(self.arrays[1])

    def objective(self, coef, intercept) -> float:
        return softmax_objective(*self.arrays, coef, intercept, self.alpha)


@dataclass
class Curve:
    """Objective against seconds of one run; the objective is computed only where it is asked for."""

    solver: str
    problem: Problem
    limit: float
    seconds: np.ndarray
    extras: list[dict] = field(default_factory=list)
    _iterates: list = field(default_factory=list, repr=False)
    _known: dict[int, float] = field(default_factory=dict, repr=False)

    def objective(self, index: int) -> float:
        if index not in self._known:
            self._known[index] = self.problem.objective(*self._iterates[index])
        return self._known[index]

    def first_below(self, value: float) -> int | None:
        """The first iterate with F <= value, by bisection: every solver here keeps F from rising."""
        low, high = 0, len(self.seconds) - 1
        if high < 0 or self.objective(high) > value:
            return None
        while low < high:
            middle = (low + high) // 2
            if self.objective(middle) <= value:
                high = middle
            else:
                low = middle + 1
        return low

    def best(self) -> float:
        last = [self.objective(len(self.seconds) - 1)] if len(self.seconds) else []
        return min([*last, *self._known.values()], default=np.inf)

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Seconds and objectives at a few iterates, evenly spread in log time, for a plot."""
        if not len(self.seconds):
            return np.empty(0), np.empty(0)
        marks = np.geomspace(self.seconds[0], self.seconds[-1], CURVE_POINTS)
        nearest = np.searchsorted(self.seconds, marks).clip(max=len(self.seconds) - 1)
        chosen = sorted({*nearest.tolist(), *self._known})
        return self.seconds[chosen], np.array([self.objective(i) for i in chosen])


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
        return _read(solver, problem, limit, Path(scratch))


def _read(solver: str, problem: Problem, limit: float, folder: Path) -> Curve:
    seconds, iterates, extras = [], [], []
    for path in sorted(folder.glob("[0-9]*.npz")):
        with np.load(path) as saved:
            seconds.append(float(saved["seconds"]))
            iterates.append((saved["coef"], saved["intercept"]))
            extras.append({k: saved[k].item() for k in saved.files if saved[k].ndim == 0})
    curve = Curve(solver, problem, limit, np.array(seconds), extras, iterates)
    trace = folder / "trace.json"
    if trace.exists():
        _check_trace(curve, log := json.loads(trace.read_text()))
        values = np.minimum.accumulate(log["objective"])
        curve.seconds, curve._known = np.array(log["seconds"]), dict(enumerate(values.tolist()))
    return curve


def _check_trace(curve: Curve, log: dict) -> None:
    ours, theirs = curve.objective(len(curve.seconds) - 1), log["objective"][-1]
    if abs(ours - theirs) > TRACE_TOLERANCE * ours:
        raise RuntimeError(
            f"{curve.solver} reports an objective of {theirs:.6g} where the yardstick says {ours:.6g}."
        )


def reference(problem: Problem) -> float:
    """F*: the objective after a long run in float64 with a certificate of 1e-7, kept in the cache."""
    path = data.CACHE / "references.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    key = f"{problem.name} alpha={problem.alpha:g}"
    if key not in known:
        known[key] = _minimum(problem)
        path.write_text(json.dumps(known, indent=1))
    return known[key]


def _minimum(problem: Problem) -> float:
    from manyclass import GLMClassifier

    X, y = problem.arrays
    model = GLMClassifier(alpha=problem.alpha, tol=1e-7, max_iter=100_000)
    model.fit(np.asarray(X, dtype=np.float64), y)
    if model.certificate_ > 1e-6:
        raise RuntimeError(
            f"the reference run for {problem} ended at a certificate of {model.certificate_:.1e}."
        )
    return problem.objective(model.coef_.T, model.intercept_)
