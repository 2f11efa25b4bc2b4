"""Thousands of classes: seconds, certificate and memory of the default, and what LogisticRegression() returns."""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from dataclasses import dataclass
from queue import Empty
from typing import Any

import numpy as np

CLASSES = (1000, 5000, 20_000)
N_ROWS, N_FEATURES, SPREAD = 100_000, 256, 0.06


@dataclass(frozen=True)
class Result:
    estimator: str
    n_classes: int
    seconds: float
    gap: float
    status: str
    errors: float
    largest_coefficient: float
    gigabytes: float
    """Most memory the process ever held, the rows included."""


def embeddings(n_classes: int, n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Unit-norm rows around unit-norm class centres, balanced classes."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, N_FEATURES), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.permutation(np.arange(n_rows) % n_classes)
    X = centres[y] + SPREAD * rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, y


def contest(estimator: str, n_classes: int, limit: float, n_rows: int = N_ROWS) -> Result | None:
    """One fit in a process of its own, which is killed some time after its limit."""
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue()
    process = context.Process(target=_fit, args=(estimator, n_classes, limit, n_rows, queue))
    process.start()
    try:
        return queue.get(timeout=2 * limit + 120)
    except Empty:
        return None
    finally:
        process.kill()
        process.join()


def _fit(estimator: str, n_classes: int, limit: float, n_rows: int, queue: Any) -> None:
    from sklearn.linear_model import LogisticRegression

    from manyclass import GLMClassifier

    X, y = embeddings(n_classes, n_rows)
    X_new, y_new = embeddings(n_classes, n_rows // 10)
    model: Any = GLMClassifier(max_time=limit) if estimator == "GLMClassifier" else LogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    sample = slice(0, 2000)
    errors = float(np.mean(model.predict(X_new[sample]) != y_new[sample]))
    gap, status = getattr(model, "duality_gap_", np.nan), getattr(model, "status_", None)
    status = f"n_iter_ = {model.n_iter_[0]}" if status is None else status.name
    queue.put(Result(estimator, n_classes, seconds, gap, status, errors, float(abs(model.coef_).max()), memory))
