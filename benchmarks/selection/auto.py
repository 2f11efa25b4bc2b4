"""Claim: `AutoClassifier` is within half a point of the best linear classifier of scikit-learn, tuned, on every set.

    python -m benchmarks.selection.auto                             # every real set, 60 s for us, 300 s for a peer
    python -m benchmarks.selection.auto --data letter --limit 10
    python -m benchmarks.selection.auto --json > FILE; python -m benchmarks.selection.auto --known FILE [--ours-again]

Columns as they are, text as TF-IDF. Linear peers get columns of one size where X is dense, and choose their penalty
from a grid by three folds; gradient boosting on trees is there for orientation. Each model is in a process of its own
and is ended at its limit. Errors of rows with several labels are 1 − micro-F1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifierCV, SGDClassifier
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks import report
from benchmarks.battery import cases
from benchmarks.battery.errors import splits_of
from benchmarks.report import lines_of, shown
from benchmarks.selection.timing import GRACE, in_process
from manyclass import AutoClassifier

OURS, TREES = "AutoClassifier", "HistGradientBoosting"
MOST_SPLITS = 5
NEAR = 0.005
"""Of the error: as good as the best."""


@dataclass
class Result:
    """Errors, log losses and seconds of the processor by model; none of a model that took too long."""

    case: str
    shape: tuple[int, ...]
    errors: dict[str, float] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def linear(self) -> dict[str, float]:
        return {name: error for name, error in self.errors.items() if name not in (OURS, TREES)}

    @property
    def behind(self) -> float:
        """The error of ours less that of the best linear peer."""
        return self.errors.get(OURS, 1.0) - min(self.linear().values(), default=1.0)

    @property
    def sooner(self) -> bool:
        """Whether every linear peer that comes near ours takes longer."""
        near = [name for name, error in self.linear().items() if error <= self.errors[OURS] + NEAR]
        return all(self.seconds[name] > self.seconds[OURS] for name in near)


def peers(multilabel: bool, dense: bool) -> dict[str, Any]:
    grid = np.logspace(-3, 3, 7)
    options = {"cv": 3, "scoring": "f1_micro" if multilabel else None}
    logistic = (
        GridSearchCV(OneVsRestClassifier(LogisticRegression(max_iter=1000)), {"estimator__C": grid}, **options)
        if multilabel
        else LogisticRegressionCV(Cs=grid, cv=3, max_iter=1000, l1_ratios=(0,), use_legacy_attributes=False)
    )
    machines = {
        "LinearSVC": (LinearSVC(), {"C": grid}),
        "SGDClassifier": (SGDClassifier(loss="log_loss", random_state=0), {"alpha": np.logspace(-7, -1, 7)}),
    }
    found: dict[str, Any] = {
        "LogisticRegressionCV": logistic,
        "RidgeClassifierCV": RidgeClassifierCV(np.logspace(-3, 5, 9)),
    }
    for name, (model, values) in machines.items():
        prefix = "estimator__" if multilabel else ""
        model = OneVsRestClassifier(model) if multilabel else model
        found[name] = GridSearchCV(model, {prefix + key: value for key, value in values.items()}, **options)
    found = {name: make_pipeline(StandardScaler(), model) if dense else model for name, model in found.items()}
    trees = HistGradientBoostingClassifier(random_state=0)
    return found | ({TREES: OneVsRestClassifier(trees) if multilabel else trees} if dense else {})


def contest(name: str, limit: float, peer_limit: float, most: int, before: Result | None = None) -> Result:
    """Ours and its peers; where there is a result from before, ours alone beside the peers of that."""
    X, y = cases.arrays(name)
    return compared(name, X, y, peers(y.ndim == 2, not sparse.issparse(X)), limit, peer_limit, most, before)


def compared(
    name: str,
    X: Any,
    y: np.ndarray,
    others: dict[str, Any],
    limit: float,
    peer_limit: float,
    most: int,
    before: Result | None = None,
) -> Result:
    """Means over as many splits as small sets need."""
    splits = splits_of(y, most, MOST_SPLITS)
    n_splits = len(splits)
    dense = not sparse.issparse(X)
    n_classes = y.shape[1] if y.ndim == 2 else len(np.unique(y))
    result = before or Result(name, (len(splits[0][0]), X.shape[1], n_classes))
    others = {} if before else others
    for title, model in ({OURS: AutoClassifier(max_time=limit)} | others).items():
        if title == "RidgeClassifierCV" and not dense and min(result.shape[:2]) > 6000:
            continue  # it would fill a matrix of all rows or all features
        most_seconds = (1 + GRACE) * limit + 10 if title == OURS else peer_limit
        found = [in_process(partial(_judged, model, X, y, *split), most_seconds) for split in splits]
        ended = [one for one in found if one is not None]
        if len(ended) == n_splits:
            errors, losses = zip(*(judged for judged, _ in ended), strict=True)
            result.errors[title] = float(np.mean(errors))
            result.seconds[title] = float(np.mean([seconds for _, seconds in ended]))
            if np.all(np.isfinite(losses)):
                result.losses[title] = float(np.mean(losses))
    return result


def _judged(model: Any, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """The error and the log loss, where there are probabilities, on the rows of a test."""
    learned, judged = (X.iloc[rows] if hasattr(X, "iloc") else X[rows] for rows in (train, test))
    predicted = model.fit(learned, y[train]).predict(judged)
    if y.ndim == 2:
        return 1.0 - float(f1_score(y[test], predicted, average="micro")), np.nan
    loss = np.nan
    if hasattr(model, "predict_proba") and np.isin(y[test], y[train]).all():
        loss = float(log_loss(y[test], model.predict_proba(judged), labels=model.classes_))
    return 1.0 - float(np.mean(predicted == y[test])), loss


def rows_of(result: Result) -> list[str]:
    def cell(name: str) -> str:
        if name not in result.errors:
            return "-"
        loss = f" ({result.losses[name]:.3f})" if name in result.losses else ""
        return f"{100 * result.errors[name]:.2f}{loss}, {result.seconds[name]:.2g} s"

    names = (OURS, *peers(False, True))
    return [result.case, "×".join(map(str, result.shape)), *map(cell, names), f"{100 * result.behind:+.2f}"]


def summary(results: list[Result]) -> list[str]:
    compared = [one for one in results if OURS in one.errors and one.linear()]
    near = [one for one in compared if one.behind <= NEAR]
    return [
        "% errors (log loss), seconds; '-': more than its limit, or not run; the last column: points behind the best "
        "linear peer.",
        f"Within {100 * NEAR:g} points of the best linear peer or better on {len(near)} of {len(compared)} sets; at "
        f"least a point better than all of them on {sum(one.behind <= -0.01 for one in compared)}; sooner than every "
        f"one that comes within {100 * NEAR:g} points of it, if one does, on {sum(one.sooner for one in compared)}.",
    ]


def main(
    names: Annotated[list[str] | None, typer.Option("--data", help="Names of cases of the battery, or files.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds for AutoClassifier.")] = 60.0,
    peer_limit: Annotated[float, typer.Option(help="Seconds for a peer.")] = 300.0,
    most: Annotated[int, typer.Option("--rows", help="Training rows at most.")] = 20_000,
    known: Annotated[Path | None, typer.Option(help="Sets run before, as --json printed them.")] = None,
    ours_again: Annotated[bool, typer.Option(help="Run ours on sets that are known, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each set, and no table.")] = False,
) -> None:
    before = {one["case"]: Result(**one) for one in lines_of(known)}
    results = []
    for name in names or real_sets():
        result = before.get(name)
        if result is None or ours_again:
            result = shown(contest(name, limit, peer_limit, most, result), rows_of, as_json)
        results.append(result)
    if as_json:
        return
    columns = ["data", "n×d×k", OURS, *peers(False, True), "behind"]
    title = f"AutoClassifier, {limit:g} s at most, and tuned peers, {peer_limit:g} s: the furthest behind first"
    table = report.Table(title, columns)
    for result in sorted(results, key=lambda one: one.behind, reverse=True):
        table.add(*rows_of(result))
    for line in summary(results):
        table.note(line)
    table.publish("selection_auto" + ("_chosen" if names else ""))


def real_sets() -> list[str]:
    """Columns as they are."""
    found = [name for name in cases.registry() if not name.startswith(("gauss", "sparse"))]
    return [name for name in found if f"{name}-raw" not in found]


if __name__ == "__main__":
    typer.run(main)
