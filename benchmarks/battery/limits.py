"""How well ``max_time`` is kept, by every estimator that has it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

from sklearn.base import clone

from benchmarks.battery import cases
from benchmarks.battery.errors import ours

LIMITS = (0.1, 0.5, 2.0, 8.0, 20.0)
ALLOWED = 1.1, 0.2
"""A fit may take so many times its limit, and so many seconds more."""


@dataclass(frozen=True)
class Result:
    case: str
    estimator: str
    limit: float
    seconds: float
    status: str

    @property
    def over(self) -> float:
        """Seconds beyond what is allowed."""
        return self.seconds - (ALLOWED[0] * self.limit + ALLOWED[1])


def contest(name: str, limits: tuple[float, ...] = LIMITS) -> list[Result]:
    """Shorter limits first; those longer than a fit takes by itself are left out."""
    X, y = cases.arrays(name)
    results = []
    for title, model in ours().items():
        if "max_time" not in model.get_params():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                clone(model).set_params(max_time=1.0).fit(X[:300], y[:300])
            except ValueError as refusal:  # too many parameters
                print(f"   {title} on {name}: {refusal}", flush=True)
                continue
            for limit in limits:
                one = clone(model).set_params(max_time=limit)
                start = time.perf_counter()
                one.fit(X, y)
                results.append(Result(name, title, limit, time.perf_counter() - start, one.status_.name))
                if one.status_.name != "MAX_TIME":
                    break
    return results
