"""Errors on held-out rows of every estimator as it comes, beside scikit-learn's linear classifiers as they come."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from functools import cache
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
TESTED, MOST_SPLITS = 1000, 10
"""Test rows of all splits together that small sets are given, and how many splits at most."""
LARGEST = 20_000
"""Training rows; more would only make the peers slow."""
ROUNDED = 0.0005
"""Of published errors."""


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
    n_judged: int = 0  # rows, of all splits

    def excess(self, name: str) -> float:
        """Points beyond what is allowed: the larger of 1.2 times and one point more than the yardstick."""
        allowed = self.errors[YARDSTICK]
        return self.errors[name] - max(1.2 * allowed, allowed + 0.01)


def contest(name: str, limit: float, with_peers: bool = True) -> Result:
    """Means over as many splits as small sets need; compiled code is compiled before."""
    X, y = cases.arrays(name)
    splits = splits_of(y, LARGEST, MOST_SPLITS)
    n_splits = len(splits)
    n_classes = y.shape[1] if y.ndim == 2 else len(np.unique(y))
    n_judged = sum(len(judging) for _, judging in splits)
    result = Result(name, (len(splits[0][0]), X.shape[1], n_classes), n_judged=n_judged)
    for title, model in ((peers(y.ndim == 2) if with_peers else {}) | ours()).items():
        if title == "RidgeClassifierCV" and (sparse.issparse(X) and min(X.shape) > 6000):
            continue  # it would fill a matrix of all rows or all features
        if "max_time" in model.get_params():
            _compiled(title, str(X.dtype), sparse.issparse(X))
            model.set_params(max_time=limit)
        start = time.process_time()
        try:
            found = [_errors(clone(model), X, y, *split) for split in splits]
        except (ValueError, MemoryError) as error:
            print(f"   {title} on {name}: {error}", flush=True)
            continue
        result.seconds[title] = (time.process_time() - start) / n_splits
        result.errors[title] = float(np.mean(found))
    return result


def splits_of(y: np.ndarray, most_rows: int, most_splits: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from, so many at most, and rows to judge by; as many times as small sets need, so many at most."""
    index = np.arange(len(y))
    if len(index) > most_rows / (1 - TEST_SHARE):
        index = np.random.default_rng(0).permutation(index)[: int(most_rows / (1 - TEST_SHARE))]
    counts = np.unique(y[index], return_counts=True)[1] if y.ndim == 1 else np.zeros(1)
    options = {"test_size": TEST_SHARE, "stratify": y[index] if counts.min() >= 2 else None}
    n_splits = int(np.clip(TESTED / (TEST_SHARE * len(index)), 1, most_splits))
    return [tuple(train_test_split(np.sort(index), random_state=seed, **options)) for seed in range(n_splits)]


@cache
def _compiled(title: str, dtype: str, is_sparse: bool) -> None:
    """Fits a few rows of a kind, once."""
    X = np.random.default_rng(0).standard_normal((60, 4)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours()[title].set_params(max_iter=2).fit(sparse.csr_matrix(X) if is_sparse else X, np.arange(60) % 3)


def _errors(model: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.fit(X[train], y[train]).predict(X[test])
    right = f1_score(y[test], predicted, average="micro") if y.ndim == 2 else np.mean(predicted == y[test])
    return 1.0 - float(right)


def rows_of(result: Result) -> list[Any]:
    cells = [f"{100 * result.errors[n]:.1f}" if n in result.errors else "-" for n in (*peers(False), *ours())]
    return [result.case, "×".join(map(str, result.shape)), *cells]


def found(result: Result) -> list[str]:
    """Which of our estimators were compared."""
    return [name for name in ours() if name in result.errors] if YARDSTICK in result.errors else []


def furthest(results: list[Result]) -> list[tuple[float, str, str]]:
    """(points behind the best linear classifier of scikit-learn, case, estimator), the furthest first."""
    return sorted(
        (
            (one.errors[name] - min(one.errors[peer] for peer in peers(False) if peer in one.errors), one.case, name)
            for one in results
            for name in found(one)
        ),
        reverse=True,
    )


def worst(results: list[Result]) -> list[tuple[float, str, str]]:
    """(points beyond what is allowed, case, estimator), the worst first."""
    return sorted(((one.excess(name), one.case, name) for one in results for name in found(one)), reverse=True)


def published(table: str) -> dict[str, dict[str, float]]:
    """The errors of a published table, by case and estimator."""
    columns, *lines = [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines() if line.startswith("| ")
    ]
    rows = (dict(zip(columns, cells, strict=True)) for cells in lines)
    names = [*peers(False), *ours()]
    return {row["case"]: {name: float(row[name]) / 100 for name in names if row[name] != "-"} for row in rows}


def worse(results: list[Result], before: dict[str, dict[str, float]]) -> list[str]:
    """Whose errors are more than those before, by more than a standard error of two counts that are independent, which
    those of the same rows are not."""
    found = []
    for one in results:
        for name, error in one.errors.items():
            known = before.get(one.case, {}).get(name, 1.0)
            if error - known > ROUNDED + math.sqrt((error + known) / one.n_judged):
                found.append(f"{name} on {one.case}: {100 * error:.1f} %, published {100 * known:.1f} %")
    return found
