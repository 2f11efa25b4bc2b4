"""Claim: no estimator is slower with as many threads as there are cores than with one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from sklearn.base import BaseEstimator, clone
from threadpoolctl import threadpool_limits

from benchmarks.battery import cases
from benchmarks.battery.errors import ours
from manyclass import GLMClassifierCV

REPEATS = 3
NOISE = 0.02
"""Seconds by which two runs of the same may differ."""


@dataclass(frozen=True)
class Result:
    """The shortest of a few fits in seconds of the wall, with all threads and with one."""

    case: str
    shape: tuple[int, ...]
    estimator: str
    every: float
    one: float

    @property
    def slower(self) -> float:
        """How many times as long the fit takes with all threads, what may be noise taken off."""
        return max(self.every - NOISE, 1e-3) / max(self.one, 1e-3)


def contest(name: str, limit: float) -> Iterator[Result]:
    """Fits that are not done within the limit are left out: they stop by the clock, whatever they have done."""
    X, y = cases.arrays(name)
    for title, model in (ours() | {"GLM, path": GLMClassifierCV(alphas=5, cv=3)}).items():
        model.set_params(max_time=limit)
        try:
            times = [(_seconds(model, X, y, nullcontext()), _seconds(model, X, y, threadpool_limits(1)))]
        except ValueError as refusal:  # too many parameters, or a class too small for folds
            print(f"   {title} on {name}: {refusal}", flush=True)
            continue
        if max(times[0]) >= limit:
            continue
        times += [
            (_seconds(model, X, y, nullcontext()), _seconds(model, X, y, threadpool_limits(1))) for _ in range(REPEATS)
        ]
        every, one = map(min, zip(*times[1:], strict=True))
        yield Result(name, X.shape, title, every, one)


def rows_of(result: Result) -> list[str]:
    shape, slower = "×".join(map(str, result.shape)), max(result.slower, 1.0) - 1.0
    return [result.case, shape, result.estimator, f"{result.every:.3f}", f"{result.one:.3f}", f"{slower:.0%}"]


def _seconds(model: BaseEstimator, X: object, y: object, threads: AbstractContextManager[object]) -> float:
    with warnings.catch_warnings(), threads:
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        clone(model).fit(X, y)
        return time.perf_counter() - start
