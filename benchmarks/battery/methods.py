"""Ours and the peers, each as ``fit(X, y, alpha, record)`` that hands over its iterates; and one run of one."""

from __future__ import annotations

import gc
import importlib
import json
import tempfile
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.battery import cases
from benchmarks.recorder import Recorder, TimeUp, fit_watched
from manyclass import GLMClassifier
from manyclass.choice import Choice, choose
from manyclass.solvers import Solver

DEFAULT = "default"
OWN = "own:"
LAST_TOL = 1e-5
WARM_UP_ROWS = 600
SERIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Tolerances of peers that show no iterates: one fit for each."""


def peers(y: np.ndarray, n_features: int) -> list[str]:
    """Those that solve the same problem, lbfgs first."""
    if y.ndim == 2:
        return ["labels:lbfgs", "labels:liblinear"]
    k = len(np.unique(y))
    found = ["sklearn_lbfgs", "sklearn_newton_cg"]
    if (n_features + 1) * (k if k > 2 else 1) <= 4096:
        found.append("sklearn_newton_cholesky")
    return [*found, "labels:liblinear"] if k == 2 else found


def fit(method: str, X: Any, y: np.ndarray, alpha: float, record: Recorder, tol: float = LAST_TOL) -> None:
    if method.startswith("labels:"):
        _fit_labels(method.partition(":")[2], X, y, alpha, record)
    elif method == DEFAULT:
        _fit_own(X, y, alpha, record, tol)
    elif method.startswith(OWN):
        with patch("manyclass.estimators.glm.choose", partial(_forced, method.removeprefix(OWN))):
            _fit_own(X, y, alpha, record, tol)
    else:
        importlib.import_module(f"benchmarks.solvers.{method}").fit(X, y, alpha, record)


def key(method: Any) -> str:
    """A candidate of the choice, in one word."""
    return f"{method.solver}/{method.curvature}" + ("/rotated" if method.row_space else "")


def _forced(wanted: str, problem: Any, tol: float, solver: Solver | None = None) -> Choice:
    found = choose(problem, tol)
    by_name = {key(one): one for one in found.candidates}
    return replace(found, method=by_name.get(wanted, found.method))


def _fit_own(X: Any, y: np.ndarray, alpha: float, record: Recorder, tol: float) -> None:
    chosen: dict[str, Any] = {}

    def remember(problem: Any, tol: float, solver: Solver | None = None, inner: Any = None) -> Choice:
        # What the default tolerance would have taken: the run goes on only to show what comes after it.
        found = inner(problem, GLMClassifier.tol, solver)
        chosen.update(
            chosen=key(found.method), estimates={key(one): one.seconds for one in found.candidates if one.fits}
        )
        return found

    import manyclass.estimators.glm as glm

    model = GLMClassifier(alpha, tol=tol, max_iter=100_000)
    with patch.object(glm, "choose", partial(remember, inner=vars(glm)["choose"])):
        try:
            fit_watched(model, X, y, lambda state, make: record.of(make))
            record.spacing = 0.0
            record(model.coef_.T, model.intercept_)
        finally:
            (record.folder / "choice.json").write_text(json.dumps(chosen))


def _fit_labels(solver: str, X: Any, y: np.ndarray, alpha: float, record: Recorder) -> None:
    """scikit-learn for each column by itself, from nothing at each tolerance: no iterates can be seen."""
    columns = y.T if y.ndim == 2 else [(y == np.unique(y)[-1])]
    options: dict[str, Any] = {"C": 1 / (alpha * X.shape[0]), "solver": solver, "max_iter": 100_000}
    if solver == "liblinear":
        options["intercept_scaling"] = 30.0  # its intercept is penalised
    for tol in SERIES:
        record.start()
        models = []
        for column in columns:
            if len(np.unique(column)) < 2:
                models.append((np.zeros(X.shape[1]), 30.0 * np.sign(column[0] - 0.5)))
                continue
            one = LogisticRegression(tol=tol, **options).fit(X, column)
            models.append((one.coef_[0], one.intercept_[0]))
            if record.seconds() > record.limit:
                raise TimeUp
        record(np.stack([w for w, _ in models], axis=1), np.array([b for _, b in models]))


def main(method: str, case: str, alpha: float, limit: float, threads: int, folder: Path, tol: float) -> None:
    """One run; its iterates are left in the folder."""
    warnings.simplefilter("ignore")
    X, y = cases.arrays(case)
    # Compilation, lazy imports and measured rates are met on a few rows first, by every method alike.
    few = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:WARM_UP_ROWS])
    with tempfile.TemporaryDirectory() as scratch:
        try:
            fit(method, X[few], y[few], alpha, Recorder(Path(scratch), 1.0))
        except (TimeUp, ValueError):
            pass
    # A collection of all that is imported takes as long as many fits, and falls upon any of them.
    gc.collect()
    gc.freeze()
    # With one thread the processor's clock does not count what else the machine does.
    clock = time.process_time if threads == 1 else time.perf_counter
    record = Recorder(folder, limit, clock=clock, spacing=1.04)
    record.start()
    try:
        fit(method, X, y, alpha, record, tol)
    except TimeUp:
        pass
