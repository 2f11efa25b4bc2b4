"""Seconds of the default, of our other methods and of the peers to the same points on each case."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import tempfile
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.battery import cases
from benchmarks.battery.methods import DEFAULT, LAST_TOL, OWN, main, peers
from benchmarks.objective import objectives
from benchmarks.race import Curve

TARGETS = (1e-2, 1e-3, 1e-4)
JUDGED = TARGETS.index(1e-3)
REFERENCE_TOL = 1e-7
OTHER_METHODS = 4.0
"""Our other methods get so many times the seconds of the default, in case it is nearly as good."""


@dataclass(frozen=True)
class Problem:
    """A case with its penalty, as `benchmarks.race.Curve` wants it."""

    name: str
    alpha: float

    @cached_property
    def arrays(self) -> cases.Pair:
        return cases.arrays(self.name)

    @cached_property
    def n_columns(self) -> int:
        y = self.arrays[1]
        k = y.shape[1] if y.ndim == 2 else len(np.unique(y))
        return 1 if y.ndim == 1 and k == 2 else k

    @cached_property
    def at_zero(self) -> float:
        zero = np.zeros((self.arrays[0].shape[1], self.n_columns)), np.zeros(self.n_columns)
        return self.objectives([zero])[0]

    def objectives(self, iterates: list) -> list[float]:
        X, y = self.arrays
        with np.errstate(all="ignore"):
            return objectives(X, y, iterates, "logistic" if y.ndim == 2 else "softmax", self.alpha)

    def __str__(self) -> str:
        return f"{self.name} alpha={self.alpha:g}"


@dataclass
class Result:
    """Seconds to each of `TARGETS` (None where it was not reached) by method, and what the choice said."""

    case: str
    alpha: float
    shape: tuple[int, int, int]
    minimum: float
    seconds: dict[str, list[float | None]] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    chosen: str = ""
    estimates: dict[str, float] = field(default_factory=dict)

    def to(self, method: str, target: int = JUDGED) -> float:
        value = self.seconds.get(method, [None] * len(TARGETS))[target]
        return math.inf if value is None else value

    @property
    def best_peer(self) -> tuple[float, str]:
        return min((self.to(m), m) for m in self.seconds if m != DEFAULT and not m.startswith(OWN))

    @property
    def best_own(self) -> tuple[float, str]:
        return min((self.to(m), m) for m in self.seconds if m == DEFAULT or m.startswith(OWN))

    @property
    def loses(self) -> bool:
        """Whether a peer is ahead by more than the fifth, or tenth of a second, that is allowed."""
        return self.to(DEFAULT) > max(1.2 * self.best_peer[0], self.best_peer[0] + 0.1)


def run(method: str, problem: Problem, limit: float, threads: int, tol: float = LAST_TOL) -> tuple[Curve, dict]:
    """The curve of one method in a process of its own, and what it chose."""
    context = _server(threads)
    with tempfile.TemporaryDirectory() as scratch:
        given = (method, problem.name, problem.alpha, limit, threads, Path(scratch), tol)
        process = context.Process(target=main, args=given)
        process.start()
        # The wall may run several times as fast as the processor's clock on a busy machine.
        process.join(4 * limit + 20)
        if process.is_alive():
            process.kill()
            process.join()
        choice = Path(scratch) / "choice.json"
        chosen = json.loads(choice.read_text()) if choice.exists() else {}
        return Curve(method, problem, limit).read(Path(scratch)), chosen  # type: ignore[arg-type]


@cache
def _server(threads: int) -> Any:
    """Forks a process that has imported everything and computed nothing; its threads are set before that."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.battery.methods"])
    return context


def contest(problem: Problem, limit: float, threads: int) -> Result:
    X, _ = problem.arrays
    minimum = data.kept("battery_references", str(problem), lambda: _reference(problem, limit, threads))
    ours, choice = run(DEFAULT, problem, limit, threads)
    curves = [ours]
    span = problem.at_zero - minimum
    mark = minimum + TARGETS[JUDGED] * span
    reached = ours.seconds_to(mark)
    for name in choice.get("estimates", {}):
        if name != choice["chosen"]:
            curves.append(run(OWN + name, problem, min(limit, OTHER_METHODS * reached + 0.5), threads)[0])
    for number, name in enumerate(peers(problem.arrays[1], X.shape[1])):
        # The first is reported as a ratio; of the others only what beats the best so far matters.
        best = min(curve.seconds_to(mark) for curve in curves)
        own_limit = limit if number == 0 else min(limit, max(best, 0.3) * 1.2)
        curves.append(run(name, problem, own_limit, threads)[0])
    minimum = min(minimum, *(curve.best() for curve in curves))
    span = problem.at_zero - minimum
    result = Result(problem.name, problem.alpha, (*X.shape, problem.n_columns), minimum, **choice)
    for curve in curves:
        times = [curve.seconds_to(minimum + target * span) for target in TARGETS]
        result.seconds[curve.solver] = [None if math.isinf(t) else t for t in times]
        result.best[curve.solver] = (curve.best() - minimum) / span
    return result


def _reference(problem: Problem, limit: float, threads: int) -> float:
    """The least objective of the default run to a tiny gap, and of lbfgs run to its end."""
    methods = [DEFAULT, *peers(problem.arrays[1], problem.arrays[0].shape[1])[:1]]
    return min(run(method, problem, limit, threads, REFERENCE_TOL)[0].best() for method in methods)


def rows_of(result: Result) -> list[Any]:
    """One row of the table."""
    peer, name = result.best_peer
    own, own_name = result.best_own
    ratio = peer / result.to(DEFAULT) if math.isfinite(result.to(DEFAULT)) else 0.0
    return [
        f"{result.case} {result.alpha:g}",
        "×".join(map(str, result.shape)),
        shown(result.to(DEFAULT)),
        result.chosen,
        f"{name.removeprefix('sklearn_')} {shown(peer)}",
        "-" if math.isinf(peer) else f"{ratio:.2f}",
        f"{own_name.removeprefix(OWN)} {shown(own)}",
        shown(result.to("sklearn_lbfgs") if "sklearn_lbfgs" in result.seconds else result.to("labels:lbfgs")),
    ]


def shown(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{seconds:.3g}"


def summary(results: list[Result], limit: float) -> list[str]:
    """What the battery has to show, in sentences."""
    ours = np.array([result.to(DEFAULT) for result in results])
    lbfgs = np.array([min(r.to("sklearn_lbfgs"), r.to("labels:lbfgs"), limit) for r in results])
    ratios = lbfgs / np.minimum(np.maximum(ours, 1e-3), limit)
    dense = np.array([r.shape[1] >= 256 and r.shape[2] >= 10 and not cases.is_sparse(r.case) for r in results])
    near = np.array([r.to(DEFAULT) <= max(1.5 * r.best_own[0], r.best_own[0] + 0.05) for r in results])
    losers = [f"{r.case} {r.alpha:g}" for r in results if r.loses]
    lines = [
        f"{len(results)} cases, seconds to {TARGETS[JUDGED]:g}, a run cut off counted as the limit of {limit:g} s.",
        f"A peer is ahead by more than 1.2 times and 0.1 s in {len(losers)}: {', '.join(losers) or 'none'}.",
        f"Geometric mean of lbfgs over ours: {np.exp(np.log(ratios).mean()):.2f}.",
        "lbfgs is given the limit, every other solver 1.2 times the best before it: 'never' says that it took longer.",
        f"The default is within 1.5 times of the fastest of our own in {near.mean():.1%} (0.05 s let pass).",
    ]
    if dense.any():
        mean = np.exp(np.log(ratios[dense]).mean())
        lines.append(f"Of dense rows with d ≥ 256 and k ≥ 10: {mean:.2f} ({dense.sum()} cases).")
    return lines


def badness(result: Result) -> float:
    """How far the best peer is ahead, beyond the tenth of a second that is allowed."""
    return min(result.to(DEFAULT), 1e6) / (min(result.best_peer[0], 1e6) + 0.1)
