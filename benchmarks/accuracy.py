"""Claim: the same answers as scikit-learn at the same alpha, on real data.

Test error of softmax regression at manyclass's default tolerance beside scikit-learn's LogisticRegression run
to convergence in float64, within 0.3 points; for multi-label data the log loss beside one LogisticRegression
per label. No alpha is chosen by the test set: all are listed.

``python -m benchmarks.accuracy``
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks import data, report
from manyclass import GLMClassifier
from manyclass.data.readers import read

WITHIN_POINTS = 0.3


@dataclass(frozen=True)
class Task:
    """Training and test rows, and what stands before the classifier in the pipeline."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    transformer: BaseEstimator | None = None

    def pipeline(self, classifier: BaseEstimator) -> BaseEstimator:
        return classifier if self.transformer is None else make_pipeline(clone(self.transformer), classifier)


def _mnist() -> Task:
    return Task(*data.split("mnist"))


def _table(name: str) -> Callable[[], Task]:
    """Standardised, or scaled where sparse: a set of the folder, or a file."""

    def load() -> Task:
        split = data.split(name, test_size=0.25, stratify=True)
        return Task(*split, MaxAbsScaler() if sparse.issparse(split[0]) else StandardScaler())

    return load


def _banking77() -> Task:
    import pandas as pd

    train, test = (pd.read_csv(data.data_dir() / "banking77" / f"{part}.csv") for part in ("train", "test"))
    texts, labels = ([part[column].tolist() for part in (train, test)] for column in ("text", "category"))
    return Task(texts[0], np.array(labels[0]), texts[1], np.array(labels[1]), TfidfVectorizer(sublinear_tf=True))


def _multilabel(name: str) -> Callable[[], Task]:
    def load() -> Task:
        folder = data.data_dir() / "multilabel" / name
        paths = [folder / f"{name}-{part}.arff.gz" for part in ("train", "test")]
        train, test = (read(path, labels=folder / f"{name}.xml") for path in paths)
        # scikit-learn 1.9 numbers the columns in the dtype of Y: in int8 it mixes them up beyond 128 labels.
        return Task(train.X, np.asarray(train.y, dtype=np.int64), test.X, np.asarray(test.y, dtype=np.int64))

    return load


ALPHAS = (1e-3, 1e-5)
SINGLE_LABEL: dict[str, tuple[Callable[[], Task], tuple[float, ...]]] = {
    "MNIST pixels": (_mnist, (1e-4,)),
    **{name: (_table(name), ALPHAS) for name in ("letter", "satimage", "pendigits")},
    "banking77 TF-IDF": (_banking77, (1e-4, 1e-6)),
}
MULTI_LABEL = {name: (_multilabel(name), (1e-2, 1e-3)) for name in ("yeast", "scene", "bibtex")}
ALL = [*SINGLE_LABEL, *MULTI_LABEL]


def converged(alpha: float, n_rows: int, n_parameters: int = 0) -> LogisticRegression:
    """scikit-learn at its best: newton-cholesky while the Hessian over all features and classes stays small."""
    solver = "newton-cholesky" if 0 < n_parameters <= 1000 else "lbfgs"
    return LogisticRegression(C=1 / (alpha * n_rows), tol=1e-5, max_iter=100_000, solver=solver)


def fit(task: Task, classifier: BaseEstimator, dtype=None) -> tuple[BaseEstimator, float]:
    X = task.X_train if dtype is None or not hasattr(task.X_train, "astype") else task.X_train.astype(dtype)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = task.pipeline(classifier).fit(X, task.y_train)
    return model, time.perf_counter() - start


def error(model: BaseEstimator, task: Task) -> float:
    """Percent of the test rows."""
    return 100 * float(np.mean(model.predict(task.X_test) != task.y_test))


def label_log_loss(model: BaseEstimator, X, Y) -> float:
    """Mean over rows of the sum over labels."""
    P = np.clip(model.predict_proba(X), 1e-15, 1 - 1e-15)
    Y = Y.toarray() if sparse.issparse(Y) else Y
    return float(-np.mean(np.sum(Y * np.log(P) + (1 - Y) * np.log1p(-P), axis=1)))


def single_label(names: list[str]) -> report.Table:
    columns = [
        "data",
        "alpha",
        "error %",
        "s",
        "duality gap",
        "scikit-learn error %",
        "s",
        f"within {WITHIN_POINTS}",
    ]
    table = report.Table("Softmax regression: test error", columns)
    for name in names:
        load, alphas = SINGLE_LABEL[name]
        task = load()
        for alpha in alphas:
            ours, own = fit(task, GLMClassifier(alpha=alpha))
            n_features = task.X_train.shape[1] if np.ndim(task.X_train) == 2 else 0
            n_parameters = n_features * len(np.unique(task.y_train))
            theirs, other = fit(task, converged(alpha, len(task.y_train), n_parameters), np.float64)
            errors = error(ours, task), error(theirs, task)
            verdict = "✓" if errors[0] <= errors[1] + WITHIN_POINTS else "✗"
            gap = f"{final(ours).duality_gap_:.1e}"
            mine, his = (f"{e:.2f}" for e in errors)
            table.add(name, f"{alpha:g}", mine, f"{own:.1f}", gap, his, f"{other:.1f}", verdict)
    if "MNIST pixels" in names:
        task = _mnist()
        model, seconds = fit(task, GLMClassifier(alpha=1e-4, loss="squared"))
        table.add("MNIST, loss=squared", "0.0001", f"{error(model, task):.2f}", f"{seconds:.1f}", "", "", "", "")
    table.note("manyclass at its default tol; scikit-learn in float64 with tol=1e-5 and as long as it takes.")
    return table


def multi_label(names: list[str]) -> report.Table:
    columns = ["data", "alpha", "objective − scikit-learn's", "log loss, test", "s", "scikit-learn's", "s"]
    table = report.Table("Multi-label logistic regression: log loss per row, summed over labels", columns)
    for name in names:
        load, alphas = MULTI_LABEL[name]
        task = load()
        for alpha in alphas:
            ours, own = fit(task, GLMClassifier(alpha=alpha, tol=1e-7, max_iter=10_000), np.float64)
            theirs, other = fit(task, OneVsRestClassifier(converged(alpha, task.y_train.shape[0])), np.float64)
            losses = [label_log_loss(model, task.X_test, task.y_test) for model in (ours, theirs)]
            excess = penalised(ours, task, alpha) - penalised(theirs, task, alpha)
            cells = f"{losses[0]:.5f}", f"{own:.1f}", f"{losses[1]:.5f}", f"{other:.1f}"
            table.add(name, f"{alpha:g}", f"{excess:+.1e}", *cells)
    table.note("Both converged in float64: manyclass to tol=1e-7, scikit-learn's lbfgs per label, to tol=1e-5.")
    return table


def final(model: BaseEstimator) -> Any:
    return model[-1] if hasattr(model, "steps") else model


def penalised(model: BaseEstimator, task: Task, alpha: float) -> float:
    """The objective on the training rows, from the fitted coefficients."""
    fitted = getattr(model, "estimators_", [model])
    squares = sum(float(np.sum(np.square(e.coef_))) for e in fitted if hasattr(e, "coef_"))
    return label_log_loss(model, task.X_train, task.y_train) + 0.5 * alpha * squares


def main(
    names: Annotated[list[str], typer.Option("--data", help="Names of data sets, as in the tables, or files.")] = ALL,
) -> None:
    for name in names:
        if data.is_file(name):
            one = _table(name)
            (MULTI_LABEL if data.rows(name)[1].ndim == 2 else SINGLE_LABEL)[name] = one, ALPHAS
    for kind, known, name in (
        (single_label, SINGLE_LABEL, "accuracy"),
        (multi_label, MULTI_LABEL, "accuracy_multilabel"),
    ):
        if chosen := [entry for entry in names if entry in known]:
            kind(chosen).publish(name, "python -m benchmarks.accuracy")


if __name__ == "__main__":
    typer.run(main)
