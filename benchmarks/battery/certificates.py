"""Each of our methods run to the certificate that users wait for, beside the passes that the choice expected of it."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.battery import cases
from benchmarks.battery.methods import key
from manyclass import GLMClassifier
from manyclass.choice import Choice, choose
from manyclass.fit import Status
from manyclass.solvers import Solver

SLOWER = 1.5
"""Times the seconds of the fastest from which the method chosen is the wrong one."""


@dataclass
class Result:
    """Passes and seconds by method, None where the limit came first; and the passes expected of those that fit."""

    case: str
    alpha: float
    shape: tuple[int, ...]
    sparse: bool
    chosen: str = ""
    expected: dict[str, float] = field(default_factory=dict)
    passes: dict[str, float | None] = field(default_factory=dict)
    seconds: dict[str, float | None] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The seconds of the method chosen over those of the fastest; infinite where only others got there."""
        there = [seconds for seconds in self.seconds.values() if seconds is not None]
        chosen = self.seconds.get(self.chosen)
        return math.nan if not there else math.inf if chosen is None else chosen / min(there)


def contest(name: str, alpha: float, limit: float) -> Result:
    """What the default would take, and each method it weighs; with none to change to on the way."""
    X, y = cases.arrays(name)
    result = Result(name, alpha, X.shape, hasattr(X, "tocsr"))
    candidates: list[Any] = []

    def only(number: int, problem: Any, tol: float, solver: Solver | None = None) -> Choice:
        choice = choose(problem, tol, solver)
        candidates[:] = [one for one in choice.candidates if one.fits and one.seconds < limit]
        return replace(choice, method=candidates[number], candidates=(candidates[number],))

    number = 0
    while number < max(len(candidates), 1):
        with patch("manyclass.estimators.glm.choose", partial(only, number)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model, seconds = _fitted(X, y, alpha, limit)
            except IndexError:  # none is expected to end in time
                break
        method, number = candidates[number], number + 1
        result.chosen = result.chosen or key(method)
        result.expected[key(method)] = method.passes
        there = model.status_ in (Status.CONVERGED, Status.STATIONARY)
        result.passes[key(method)] = model.n_passes_ if there else None
        result.seconds[key(method)] = seconds if there else None
    return result


def _fitted(X: Any, y: np.ndarray, alpha: float, limit: float) -> tuple[Any, float]:
    """The model, and the least processor seconds of several fits where one takes little."""
    least = math.inf
    for _ in range(3):
        began = time.process_time()
        model = GLMClassifier(alpha, max_time=limit, max_iter=100_000).fit(X, y)
        least = min(least, time.process_time() - began)
        if least > 0.1:
            break
    return model, least


def rows_of(result: Result) -> list[Any]:
    def told(name: str) -> str:
        seconds, passes = result.seconds[name], result.passes[name]
        taken = "never" if seconds is None else f"{seconds:.3g} s, {passes:.0f}"
        return f"{name} {taken} of {result.expected[name]:.0f}"

    others = "; ".join(told(name) for name in result.seconds if name != result.chosen)
    shape = "×".join(map(str, result.shape))
    first = told(result.chosen) if result.chosen else "-"
    return [
        f"{result.case} {result.alpha:g}",
        shape,
        first,
        others,
        "-" if math.isnan(result.loss) else f"{result.loss:.2f}",
    ]


def summary(results: list[Result]) -> list[str]:
    """How good the choice is, and what passes are of those expected, in geometric means."""
    lost = [one.loss for one in results if math.isfinite(one.loss) and len(one.seconds) > 1]
    never = [f"{one.case} {one.alpha:g}" for one in results if math.isinf(one.loss)]
    lines = [
        f"Seconds of the method chosen over those of the fastest: {_mean(lost):.3f} in {len(lost)} cases, more than "
        f"{SLOWER:g} in {sum(one > SLOWER for one in lost)}; only others got there in {len(never)}"
        + (f" ({', '.join(never)})." if never else ".")
    ]
    for sparse in (False, True):
        found: dict[str, list[float]] = {}
        for one in results:
            for name, passes in one.passes.items() if one.sparse == sparse else ():
                if passes:
                    found.setdefault(name.removesuffix("/rotated"), []).append(passes / one.expected[name])
        told = [f"{name} {_mean(shares):.2f} ({len(shares)})" for name, shares in sorted(found.items())]
        lines.append(f"Passes over those expected, {'sparse' if sparse else 'dense'} rows (cases): {', '.join(told)}.")
    return lines


def _mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else math.nan
