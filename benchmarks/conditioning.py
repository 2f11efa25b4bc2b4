"""Claim: passes over the rows of Algorithm 1 do not depend on the condition number of the features.

``python -m benchmarks.conditioning``: MNIST, 20 principal components scaled so that their condition number is 1, …,
1e8, and as they are; passes until softmax regression without a penalty is within 1e-1, …, 1e-6 of the minimum, relative
to the zero model. ``--problem`` takes a name of `benchmarks.data` or a file.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import typer
from sklearn.decomposition import PCA

from benchmarks import data
from benchmarks.report import Table, figure
from manyclass import GLMClassifier

TARGETS = tuple(10.0**-power for power in range(1, 7))
METHODS: dict[str, dict[str, str]] = {
    "gradient descent": {"solver": "gradient"},
    "Algorithm 1": {"solver": "majorize"},
    "Algorithm 1, accelerated": {"solver": "accelerated"},
    "default": {},
}
N_DIMENSIONS = 20


def squeezed(X: np.ndarray, condition: float | None) -> np.ndarray:
    """Principal components, their standard deviations spread over √condition; None leaves them as they are."""
    n_dimensions = min(N_DIMENSIONS, *X.shape)
    P = PCA(n_dimensions, random_state=0).fit_transform(np.asarray(X, np.float64))
    if condition is None:
        return P
    return P / P.std(axis=0) * np.logspace(0, -0.5 * math.log10(condition), n_dimensions)


def passes(X: np.ndarray, y: np.ndarray, limit: int, least: float, zero: float, options: dict[str, Any]) -> list[float]:
    """Passes to each target; infinite where `limit` of them are not enough."""
    model = GLMClassifier(alpha=0.0, loss="softmax", tol=1e-13, max_iter=limit, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = model.fit(X, y).history_
    found = []
    for target in TARGETS:
        reached = [record.n_passes for record in history if record.objective <= least + target * (zero - least)]
        found.append(min((one for one in reached if one <= limit), default=math.inf))
    return found


def minimum(X: np.ndarray, y: np.ndarray) -> float:
    """F*, from the best conditioned features: no invertible map of them changes it."""
    model = GLMClassifier(alpha=0.0, loss="softmax", solver="newton-cg", tol=1e-12, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return min(record.objective for record in model.fit(squeezed(X, 1.0), y).history_)


def measure(
    problem: str = "mnist", rows: int = 5000, limit: int = 2000, powers: Sequence[int] = (0, 2, 4, 6, 8)
) -> Table:
    """The table of one problem, and the figure."""
    X, y = data.rows(problem)
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    X, y = np.asarray(X[chosen]), np.unique(y[chosen], return_inverse=True)[1]
    share = np.bincount(y) / len(y)
    zero, least = float(-share @ np.log(share)), minimum(X, y)
    table = Table(
        f"{data.title(problem)}: passes over {len(y)} rows to a given distance from the minimum, softmax, no penalty",
        ["condition number", "method", *(f"{target:g}" for target in TARGETS)],
        live=True,
    )
    curves: dict[str, list[float]] = {name: [] for name in METHODS}
    conditions = [None, *(10.0**power for power in powers)]
    for condition in conditions:
        Z = squeezed(X, condition)
        shown = f"{(Z.std(axis=0).max() / Z.std(axis=0).min()) ** 2:.0f}, as it is" if condition is None else condition
        for name, options in METHODS.items():
            found = passes(Z, y, limit, least, zero, options)
            curves[name].append(found[2])
            table.add(
                shown if isinstance(shown, str) else f"{shown:g}",
                name,
                *(f"> {limit}" if math.isinf(one) else f"{one:.0f}" for one in found),
            )
    with figure("conditioning") as ax:
        for name, found in curves.items():
            ax.plot(conditions[1:], np.minimum(found[1:], limit), marker="o", label=name)
        ax.set(xscale="log", yscale="log", xlabel="condition number of Σ̂", ylabel=f"passes to {TARGETS[2]:g}")
        ax.legend(fontsize="small")
    table.note(
        f"{min(N_DIMENSIONS, X.shape[1])} principal components in float64, their standard deviations spread evenly on "
        f"a log scale. Distances are (F − F*)/(F(0) − F*), F(0) = {zero:.4f} and F* = {least:.8f}; at most {limit} "
        "passes. Gradient descent searches each step exactly (passes of the search not counted) and starts at the "
        "constant model, the others at least squares, whose length is chosen on a sample of rows. The default takes "
        "curvature estimated on samples of rows, which are not counted as passes."
    )
    return table


def main(problem: str = "mnist", rows: int = 5000, limit: int = 2000) -> None:
    table = measure(problem, rows, limit)
    table.publish("conditioning" if problem == "mnist" else f"conditioning_{data.title(problem)}")


if __name__ == "__main__":
    typer.run(main)
