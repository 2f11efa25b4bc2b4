"""The default on shapes drawn at random: does it end at a certificate, and is that where the optimum is?"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.battery.cases import Pair
from benchmarks.objective import objectives
from manyclass import GLMClassifier
from manyclass.fit import Status

TOL, SHARPER = 1e-3, 1e-7
ALPHAS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)
LARGEST = 2e6
"""Numbers in X."""


@dataclass
class Result:
    """How the default ended, and how far from the least objective that anything found, in units of F(0)."""

    seed: int
    told: str
    status: str
    behind: float
    seconds: float
    n_passes: float

    @property
    def is_bad(self) -> bool:
        return self.behind > TOL or self.status not in (Status.CONVERGED.name, Status.STATIONARY.name)


def drawn(seed: int) -> tuple[Pair, float, str]:
    """Rows, labels and a penalty, and what they are in words.

    Wide or tall, dense or sparse, of any number of classes up to 200, one perhaps rare; columns perhaps of very
    different size, far from the origin, constant, duplicated; in float32 or float64.
    """
    rng = np.random.default_rng(seed)
    n = int(10 ** rng.uniform(1.0, 4.0))
    d = int(min(10 ** rng.uniform(0.3, 3.7), LARGEST / n)) + 1
    k = int(np.clip(10 ** rng.uniform(0.3, 2.3), 2, max(2, n // 3)))
    told = [f"{n}×{d}×{k}"]

    def perhaps(share: float, name: str) -> bool:
        if rng.random() >= share:
            return False
        told.append(name)
        return True

    y = rng.integers(0, k, n)
    if perhaps(0.25, "rare class"):
        y[y == 0] = 1
        y[rng.choice(n, max(1, n // 1000), replace=False)] = 0
    spread = 10.0 ** rng.uniform(-1.0, 1.0)
    X = spread * rng.standard_normal((k, d))[y] / math.sqrt(d) + rng.standard_normal((n, d)) / math.sqrt(d)
    is_sparse = perhaps(0.3, "sparse")
    if is_sparse:
        X = np.where(rng.random((n, d)) < 10.0 ** rng.uniform(-3.0, -0.3), X, 0.0)
    if perhaps(0.4, "decaying spectrum"):
        X = X * np.arange(1, d + 1) ** -rng.uniform(0.3, 1.5)
    if perhaps(0.3, "columns of different size"):
        X = X * 10.0 ** rng.uniform(-3.0, 3.0, d)
    if perhaps(0.3, "constant and duplicated columns"):
        X[:, 0], X[:, -1] = 7.0 * (not is_sparse), X[:, d // 2]
    if not is_sparse and perhaps(0.3, "far from the origin"):
        X = X + 10.0 ** rng.uniform(0.0, 3.0) * X.std(axis=0)
    alpha = float(rng.choice(ALPHAS))
    told += [f"alpha {alpha:g}", "float32" if rng.random() < 0.5 else "float64"]
    X = X.astype(told[-1])
    return (sparse.csr_array(X) if is_sparse else X, y), alpha, ", ".join(told)


def contest(seed: int, limit: float) -> Result:
    """The default; and the same loss and penalty in float64 to a sharper end by two methods, or as far as they come."""
    (X, y), alpha, told = drawn(seed)
    wide = X.astype(np.float64)
    start = time.process_time()
    model = _fitted(X, y, alpha, limit)
    seconds = time.process_time() - start
    others = [
        _fitted(wide, y, alpha, limit, tol=SHARPER, solver=solver, max_iter=10_000) for solver in ("auto", "newton-cg")
    ]
    iterates = [(one.coef_.T, one.intercept_) for one in (model, *others)]
    zero = (np.zeros_like(iterates[0][0]), np.zeros_like(iterates[0][1]))
    found, *_, at_zero = values = objectives(wide, y, [*iterates, zero], model.loss_, alpha)
    behind = (found - min(values)) / at_zero
    return Result(seed, told, model.status_.name, behind, seconds, float(model.n_passes_))


def _fitted(X: Any, y: np.ndarray, alpha: float, limit: float, **options: Any) -> GLMClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GLMClassifier(alpha, max_time=limit, **options).fit(X, y)


def rows_of(result: Result) -> list[str]:
    cells = [result.status.lower(), f"{result.behind:.1e}", f"{result.n_passes:.0f}", f"{result.seconds:.2g}"]
    return [str(result.seed), result.told, *cells]
