"""Errors on held-out rows of every estimator as it comes, beside scikit-learn's linear classifiers as they come."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import manyclass
from benchmarks.battery import cases

TEST_SHARE = 0.3
YARDSTICK = "LogisticRegression"
LARGEST = 20_000
"""Training rows; more would only make the peers slow."""


def ours() -> dict[str, Any]:
    return {
        "GLM": manyclass.GLMClassifier(),
        "calibrated": manyclass.CalibratedLeastSquaresClassifier(random_state=0),
        "stagewise": manyclass.StagewiseClassifier(random_state=0),
        "Pegasos": manyclass.PegasosClassifier(random_state=0),
        "SDCA": manyclass.SDCAClassifier(random_state=0),
        "bound": manyclass.BoundMajorizationClassifier(random_state=0),
    }


def peers(multilabel: bool) -> dict[str, Any]:
    found = {YARDSTICK: LogisticRegression(), "RidgeClassifierCV": RidgeClassifierCV(), "LinearSVC": LinearSVC()}
    return {name: OneVsRestClassifier(one) for name, one in found.items()} if multilabel else found


@dataclass
class Result:
    """Errors (1 − accuracy; 1 − micro-F1 where rows have several labels) and seconds by estimator."""

    case: str
    shape: tuple[int, ...]
    errors: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def excess(self, name: str) -> float:
        """Points beyond what is allowed: the larger of 1.2 times and one point more than the yardstick."""
        allowed = self.errors[YARDSTICK]
        return self.errors[name] - max(1.2 * allowed, allowed + 0.01)


def contest(name: str, limit: float) -> Result:
    X, y = cases.arrays(name)
    index = np.arange(X.shape[0])
    if len(index) > LARGEST / (1 - TEST_SHARE):
        index = np.random.default_rng(0).permutation(index)[: int(LARGEST / (1 - TEST_SHARE))]
    counts = np.unique(y[index], return_counts=True)[1] if y.ndim == 1 else np.zeros(1)
    stratify = y[index] if counts.min() >= 2 else None
    train, test = train_test_split(np.sort(index), test_size=TEST_SHARE, random_state=0, stratify=stratify)
    result = Result(name, (len(train), X.shape[1], y.shape[1] if y.ndim == 2 else len(np.unique(y))))
    for title, model in (peers(y.ndim == 2) | ours()).items():
        if title == "RidgeClassifierCV" and (sparse.issparse(X) and min(X.shape) > 6000):
            continue  # it would fill a matrix of all rows or all features
        model = clone(model)
        if "max_time" in model.get_params():
            model.set_params(max_time=limit)
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[train], y[train])
                predicted = model.predict(X[test])
        except (ValueError, MemoryError) as error:
            print(f"   {title} on {name}: {error}", flush=True)
            continue
        result.seconds[title] = time.process_time() - start
        right = f1_score(y[test], predicted, average="micro") if y.ndim == 2 else np.mean(predicted == y[test])
        result.errors[title] = 1.0 - float(right)
    return result


def rows_of(result: Result) -> list[Any]:
    cells = [f"{100 * result.errors[n]:.1f}" if n in result.errors else "-" for n in (*peers(False), *ours())]
    return [result.case, "×".join(map(str, result.shape)), *cells]


def found(result: Result) -> list[str]:
    """Which of our estimators were compared."""
    return [name for name in ours() if name in result.errors] if YARDSTICK in result.errors else []


def worst(results: list[Result]) -> list[tuple[float, str, str]]:
    """(points beyond what is allowed, case, estimator), the worst first."""
    return sorted(((one.excess(name), one.case, name) for one in results for name in found(one)), reverse=True)
