"""Every estimator on shapes drawn at random, with odd weights and labels: is what it says of itself true?"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from benchmarks.battery.errors import ours
from benchmarks.battery.shapes import drawn
from benchmarks.objective import objectives
from manyclass import GLMClassifier

SHARPER = 1e-7
ROUNDING = 1e-5
"""Of F(0): what a gap may be wrong by, as models of float32 rows are rounded to float32."""
LATE = 1.1, 0.5
"""A fit may take so many times its limit, and so many seconds more."""
FAILED, NOT_FINITE, FALSE_GAP, OVERTIME, NO_END = "failed", "not finite", "false gap", "late", "no end"
MEANING = (
    f"{FAILED!r}: an exception; {NOT_FINITE!r}: coefficients or probabilities; {FALSE_GAP!r}: the objective lies above "
    "the least one found in float64 by more than the gap says; "
    f"{OVERTIME!r}: beyond {LATE[0]:g} times the limit and {LATE[1]:g} s; {NO_END!r}: of smooth problems, neither at "
    "tol nor out of time."
)


@dataclass
class Result:
    """How one fit ended; `behind` is the distance from the least objective known, in units of F(0)."""

    seed: int
    told: str
    estimator: str
    status: str = "-"
    gap: float = np.nan
    behind: float = np.nan
    seconds: float = np.nan
    wrong: str = ""


@dataclass
class Odd:
    """A problem with weights; `balanced` is whether classes are to be weighted, too."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    balanced: bool
    alpha: float
    told: str

    @classmethod
    def drawn(cls, seed: int) -> Odd:
        """What `shapes.drawn` draws, with weights of any size, many of them zero, and perhaps several labels a row."""
        (X, y), alpha, told = drawn(seed)
        rng, n, weight, balanced = np.random.default_rng([seed, 1]), X.shape[0], None, False
        kind = rng.choice(["", "weights", "weights over six orders", "rows without weight", "balanced classes"])
        if rng.random() < 0.25:
            Y = np.eye(y.max() + 1, dtype=int)[y]
            y, told = np.maximum(Y, rng.random(Y.shape) < 0.5 / Y.shape[1]), f"{told}, several labels"
        if kind == "weights":
            weight = rng.uniform(0.5, 2.0, n)
        elif kind == "weights over six orders":
            weight = 10.0 ** rng.uniform(-3.0, 3.0, n)
        elif kind == "rows without weight":
            weight = (rng.random(n) < 0.5).astype(float)
            if y.ndim == 1:
                weight[y == y.max()] = 0.0
            weight[:2] = 1.0
        elif kind and y.ndim == 1:
            balanced = True
        is_odd = weight is not None or balanced
        return cls(X, y, weight, balanced, alpha, f"{told}, {kind}" if is_odd else told)

    @property
    def total_weight(self) -> np.ndarray:
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return weight * compute_sample_weight("balanced", self.y) if self.balanced else weight

    def fitted(self, model: Any, limit: float) -> Any:
        options: dict[str, Any] = {"alpha": self.alpha} if self.alpha > 0 else {}
        if self.balanced:
            options["class_weight"] = "balanced"
        model = clone(model).set_params(**options, max_time=limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            return model.fit(self.X, self.y, sample_weight=self.weight)

    def least(self, loss: str, alpha: float, limit: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The minimum of a smooth loss, as far as float64 and the limit let it be found."""
        wide = Odd(self.X.astype(np.float64), self.y, self.weight, self.balanced, self.alpha, self.told)
        sharper = GLMClassifier(alpha, loss=loss, tol=SHARPER, max_iter=10_000)
        try:
            model = wide.fitted(sharper, limit)
        except (ValueError, RuntimeWarning):
            return None
        return model.coef_.T, model.intercept_


def contest(seed: int, limit: float) -> list[Result]:
    odd = Odd.drawn(seed)
    least: dict[tuple[str, float], tuple[np.ndarray, np.ndarray] | None] = {}
    results = []
    for name, model in ours().items():
        result = Result(seed, odd.told, name)
        results.append(result)
        start = time.perf_counter()
        try:
            fitted = odd.fitted(model, limit)
        except (ValueError, RuntimeWarning, ArithmeticError, LookupError, TypeError, MemoryError) as error:
            result.wrong = f"{FAILED}: {type(error).__name__}: {error}"
            continue
        result.seconds, result.status = time.perf_counter() - start, fitted.status_.name
        result.gap = float(getattr(fitted, "duality_gap_", np.nan))
        loss = getattr(fitted, "loss_", None)
        # Where the penalty was chosen it may be on coefficients of columns in other units.
        if np.isfinite(result.gap) and loss in ("softmax", "logistic", "squared") and not hasattr(fitted, "alpha_"):
            if (loss, fitted.alpha) not in least:
                least[loss, fitted.alpha] = odd.least(loss, fitted.alpha, limit)
            result.behind = _behind(odd, fitted, loss, least[loss, fitted.alpha])
        result.wrong = _wrong(odd, fitted, result, limit)
    return results


def _behind(odd: Odd, fitted: Any, loss: str, least: tuple[np.ndarray, np.ndarray] | None) -> float:
    iterates = [(fitted.coef_.T, fitted.intercept_)]
    iterates += [] if least is None else [least]
    iterates.append((np.zeros_like(iterates[0][0]), np.zeros_like(iterates[0][1])))
    wide = odd.X.astype(np.float64)
    found, *_, zero = values = objectives(wide, odd.y, iterates, loss, fitted.alpha, weight=odd.total_weight)
    return (found - min(values)) / zero


def _wrong(odd: Odd, fitted: Any, result: Result, limit: float) -> str:
    arrays = [getattr(fitted, name) for name in ("coef_", "intercept_") if hasattr(fitted, name)]
    arrays.append(fitted.predict_proba(odd.X) if hasattr(fitted, "predict_proba") else fitted.decision_function(odd.X))
    if not all(np.isfinite(array).all() for array in arrays):
        return NOT_FINITE
    if result.behind > result.gap + ROUNDING:
        return FALSE_GAP
    if result.seconds > LATE[0] * limit + LATE[1]:
        return OVERTIME
    ended = result.estimator != "GLM" or result.status in ("CONVERGED", "STATIONARY", "MAX_TIME")
    return "" if ended else NO_END


def rows_of(result: Result) -> list[str]:
    cells = [result.status.lower(), f"{result.gap:.1e}", f"{result.behind:.1e}", f"{result.seconds:.2g}", result.wrong]
    return [str(result.seed), result.told, result.estimator, *cells]
