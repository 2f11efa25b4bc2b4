"""LIBLINEAR, Vowpal Wabbit and Snap ML on the matrix that our generators give block by block."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.stochastic.limits import limited
from benchmarks.stochastic.peers import METHODS, Method, Predict, Setting, absolute, grid, liblinear

GRACE = 10.0
"""Seconds for predicting the test rows."""
ALPHAS = (1e-5, 1e-6, 1e-7)
"""Relative to the mean ‖x‖², as in `Method`."""


def snap_ml(prepared: Any, setting: Setting, budget: float, seed: int) -> tuple[float, Predict]:
    from snapml import SupportVectorMachine

    X, y = prepared
    C = 1 / (absolute(setting["alpha"], X) * X.shape[0])
    # It wants one label of ±1 a fit; one-vs-rest is its user's loop.
    model = SupportVectorMachine(loss="squared_hinge", regularizer=C, max_iter=int(budget), n_jobs=1, random_state=seed)
    started = time.process_time()
    model.fit(X, y)
    return time.process_time() - started, model.predict


def as_csr(X: Any) -> Any:
    """X without a search for its non-zeros, which takes four times its memory where there are no zeros."""
    from scipy.sparse import csr_matrix, issparse

    if issparse(X):
        return X
    n_rows, width = X.shape
    columns = np.tile(np.arange(width, dtype=np.int32), n_rows)
    ends = np.arange(0, n_rows * width + 1, width, dtype=np.int32)
    return csr_matrix((X.astype(np.float64).ravel(), columns, ends), shape=X.shape)


def dense_liblinear(solver: int) -> Method:
    method = liblinear(solver)

    def prepare(X: np.ndarray, y: np.ndarray) -> Any:
        return method.prepare(as_csr(X), y)[0], X

    return replace(method, prepare=prepare, settings=grid(alpha=ALPHAS), chosen_at=0.1)


NAMES = ("-s 0", "-s 1", "-s 2", "-s 4", "-s 5", "-s 6")
PEERS: dict[str, Method] = {
    **{f"LIBLINEAR {name}": dense_liblinear(int(name[-1])) for name in NAMES},
    "Vowpal Wabbit": replace(
        METHODS["Vowpal Wabbit --oaa"], settings=grid(loss=("hinge",), rate=(0.05, 0.2, 0.5)), chosen_at=10
    ),
    "Snap ML": Method(snap_ml, grid(alpha=ALPHAS), chosen_at=100),
}


def chosen_setting(method: Method, X: Any, y: np.ndarray, X_held: Any, y_held: np.ndarray) -> Setting:
    """The setting with the fewest errors on the held-out rows."""
    prepared = method.prepare(X, y)

    def errors(setting: Setting) -> float:
        return float(np.mean(method.fit(prepared, setting, method.chosen_at, 0)[1](X_held) != y_held))

    return min(method.settings, key=errors)


def measure(
    method: Method, setting: Setting, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray
) -> tuple[float, float]:
    """(seconds of training, test error in %)"""
    seconds, predict = method.fit(method.prepare(X, y), setting, method.chosen_at, 0)
    return seconds, 100 * float(np.mean(predict(X_test) != y_test))


def measure_within(limit: float, *arguments: Any) -> tuple[float, float | None]:
    """`measure` in a process that is ended after `limit` seconds of training: (limit, None) is then the answer."""
    method, setting, X, y, X_test, y_test = arguments
    prepared = method.prepare(X, y)  # outside of the limit
    ready = replace(method, prepare=lambda *_: prepared)
    found = limited(lambda: measure(ready, setting, X, y, X_test, y_test), limit + GRACE)
    return found if found is not None and found[0] <= limit else (limit, None)
