"""Claim: least squares learnt in pieces, unlearnt and joined is that of one fit, up to rounding in the numbers of the
rows, for rows 1000 standard deviations from the origin too; and thousands of classes cost what their rows cost.

``python -m benchmarks.streams``
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import typer
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import Table
from manyclass import CalibratedLeastSquaresClassifier, ClassMoments, GLMClassifier, GLMClassifierCV
from manyclass.data import Moments, as_rows

MODELS: dict[str, Any] = {
    "GLMClassifier": GLMClassifier(1e-2, loss="squared", solver="majorize", tol=1e-13, max_iter=5),
    "GLMClassifierCV": GLMClassifierCV(loss="squared", cv="gcv", alphas=np.logspace(-4, 1, 21)),
    "CalibratedLeastSquaresClassifier": CalibratedLeastSquaresClassifier(1e-2, max_iter=10),
}
KINDS: dict[str, tuple[Callable[[Any], Any], float, bool]] = {
    "float64": (np.asarray, 0.0, False),
    "float64, 1000 σ away": (np.asarray, 1000.0, False),
    "float64, weights": (np.asarray, 0.0, True),
    "float32": (lambda X: X.astype(np.float32), 0.0, False),
    "float32, 1000 σ away": (lambda X: X.astype(np.float32), 1000.0, False),
    "CSR, weights": (sp.csr_array, 0.0, True),
}
N_PIECES = 10


def main(
    rows: int = 4000, features: int = 64, classes: int = 20, many_rows: int = 100_000, many_classes: int = 10_000
) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # iterations are limited to as many as are compared
    equality(rows, features, classes)
    costs(many_rows, many_classes)
    if data.found_data_dir() is not None:
        beyond()


def equality(n: int, d: int, k: int) -> None:
    title = f"n = {n}, d = {d}, k = {k}, {N_PIECES} pieces sorted by class: largest difference of scores, relative"
    table = Table(title, ["estimator", "rows", "partial_fit", "merge", "after forgetting a tenth"], live=True)
    for name, model in MODELS.items():
        for kind, (held, offset, weighted) in KINDS.items():
            rng = np.random.default_rng(0)
            X = rng.standard_normal((n, d))
            y = np.argmax(X @ rng.standard_normal((d, k)) + 4.0 * rng.standard_normal((n, k)), axis=1)
            s = rng.uniform(0.1, 3.0, n) if weighted else np.ones(n)
            X, tenth = held(X + offset), np.arange(n) % 10 == 0
            pieces = np.array_split(np.argsort(y, kind="stable"), N_PIECES)
            parts = [clone(model).partial_fit(X[part], y[part], sample_weight=s[part]) for part in pieces]
            joined = reduce(lambda one, other: one.merge(other), parts)
            stream = clone(model)
            for part in pieces[::-1]:
                stream.partial_fit(X[part], y[part], sample_weight=s[part])
            whole = clone(model).fit(X, y, s)
            errors = [apart(one, whole, X) for one in (stream, joined)]
            stream.forget(X[tenth], y[tenth], s[tenth])
            errors.append(apart(stream, clone(model).fit(X[~tenth], y[~tenth], s[~tenth]), X))
            table.add(name, kind, *(f"{error:.1e}" for error in errors))
    table.publish("streams_equality")


def apart(one: Any, other: Any, X: Any) -> float:
    found, wanted = one.decision_function(X), other.decision_function(X)
    return float(abs(found - wanted).max() / abs(wanted).max())


def costs(n: int, k: int, d: int = 512) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d), dtype=np.float32), rng.integers(0, k, n)
    table = Table(f"n = {n}, d = {d}, k = {k}, float32", ["what", "seconds"], live=True)
    Moments.of(as_rows(X[:5000]))

    def timed(what: str, act: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        made = act()
        table.add(what, f"{time.perf_counter() - started:.2f}")
        return made

    timed("second moments of the features alone", lambda: Moments.of(as_rows(X)))
    moments = timed("moments with all classes", lambda: ClassMoments.of(X, y))
    timed("a hundred more rows", lambda: moments.partial_fit(X[:100], y[:100]))
    timed("without these again", lambda: moments.forget(X[:100], y[:100]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.moments"
        timed("saved", lambda: moments.save(path))
        table.note(f"{path.stat().st_size / 1e6:.0f} MB.")
        moments = timed("loaded", lambda: ClassMoments.load(path))
    model = GLMClassifier(1e-2, loss="squared").merge(moments)
    timed("coefficients", lambda: model.coef_)
    table.publish("streams_costs")


def beyond() -> None:
    """Where calibrated least squares keeps fewer rows than there are."""
    (X, y), (X_test, y_test) = data.mnist(), data.mnist("test")
    title = "MNIST: calibrated least squares in 12 pieces"
    table = Table(title, ["rows kept", "errors, %", "of a fit to those alone, %"], live=True)
    for kept in (2_000, 5_000, 20_000, len(y)):
        model = CalibratedLeastSquaresClassifier(kept_rows=kept)
        for part in np.array_split(np.arange(len(y)), 12):
            model.partial_fit(X[part], y[part])
        alone = clone(model).fit(model._kept.X, model._kept.y)
        table.add(f"{kept:,}", *(f"{100 - 100 * one.score(X_test, y_test):.2f}" for one in (model, alone)))
    table.publish("streams_mnist")


if __name__ == "__main__":
    typer.run(main)
