"""What the three scikit-learn solvers share: the estimator, and a wrapper that sees each iterate."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression


def estimator(X, alpha: float, solver: str) -> LogisticRegression:
    """It goes on until its time is up, since the curve shows every earlier stop."""
    return LogisticRegression(C=1 / (alpha * X.shape[0]), solver=solver, tol=1e-10, max_iter=100_000)


def fit_quietly(model: LogisticRegression, X, y) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ConvergenceWarning, line search at the limit of float32
        return model.fit(X, y)


def on_raveled(record: Callable, y) -> Callable:
    """`record` for scikit-learn's flat coefficients, classes contiguous and the intercept last."""

    n_classes = len(np.unique(y))

    def on_iterate(flat) -> None:
        both = np.reshape(flat, (n_classes if n_classes > 2 else 1, -1), order="F").T
        record(both[:-1].copy(), both[-1].copy())

    return on_iterate
