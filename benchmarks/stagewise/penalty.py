"""The penalty that ``alpha="auto"`` of `StagewiseClassifier` takes on generated features, beside others.

``python -m benchmarks.stagewise.penalty [NAME…]``: errors and log loss on test rows at the penalty of the first block
alone (leave-one-out, times the number of blocks), at the chosen one, and along a grid of penalties over n. Names of
`benchmarks.data`, files, or ``mnist-50``, the first 50 principal components of MNIST. The grid is looked at on test
rows to say how far the choice is from the best; nothing is chosen by it.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.decomposition import PCA
from sklearn.metrics import log_loss

from benchmarks import data
from benchmarks.report import Table
from manyclass import StagewiseClassifier
from manyclass.estimators.stagewise import GeneratedBlocks
from manyclass.features import RandomFourierFeatures

NAMES = ("digits", "satimage", "letter", "pendigits", "mnist-50")
GRID = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
LEAST = 1e-6
"""Probabilities are no smaller, so that a single row does not decide the mean."""


class FirstBlock(StagewiseClassifier):
    """Takes what the first block chooses."""

    def _trials(self, *_: Any) -> None:
        """None."""


def rows(name: str) -> data.Split:
    if name != "mnist-50":
        return data.split(name)
    X, y, X_test, y_test = data.split("mnist")
    axes = PCA(50, random_state=0).fit(X)
    return axes.transform(X), y, axes.transform(X_test), y_test


def measured(model: GeneratedBlocks, split: data.Split) -> tuple[str, float]:
    """Errors and log loss on the test rows, and seconds of the fit."""
    X, y, X_test, y_test = split
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    P = np.maximum(model.predict_proba(X_test), LEAST)
    loss = log_loss(y_test, P / P.sum(axis=1, keepdims=True), labels=model.classes_)
    return f"{100 * (1 - model.score(X_test, y_test)):.2f} / {loss:.3f}", seconds


def main(names: Annotated[list[str] | None, typer.Argument()] = None, n_components: int = 8192) -> None:
    table = Table(
        f"Errors in % and log loss on test rows, {n_components} Fourier features",
        ["data", "loss", "first block", "n·alpha", "auto", "n·alpha ", "seconds (auto / given)", *map(str, GRID)],
        live=True,
    )
    for name in names or NAMES:
        split = rows(name)
        for loss in ("squared", "softmax"):
            n, given = len(split[1]), dict[str, Any](loss=loss, n_components=n_components, random_state=0)
            first = FirstBlock(RandomFourierFeatures(), **given)
            auto = StagewiseClassifier(RandomFourierFeatures(), **given)
            grid = [StagewiseClassifier(RandomFourierFeatures(), alpha=share / n, **given) for share in GRID]
            (of_first, _), (of_auto, seconds) = measured(first, split), measured(auto, split)
            found = [measured(one, split) for one in grid]
            given_seconds = float(np.median([taken for _, taken in found]))
            table.add(
                data.title(name),
                loss,
                of_first,
                f"{n * first.alpha_:.2g}",
                of_auto,
                f"{n * auto.alpha_:.2g}",
                f"{seconds:.1f} / {given_seconds:.1f}",
                *(told for told, _ in found),
            )
    table.note(
        f"Columns of numbers are penalties times the number of rows. Probabilities below {LEAST:g} count as that. One "
        "visit of all blocks of 1024, median bandwidth."
    )
    table.publish("stagewise_penalty")


if __name__ == "__main__":
    typer.run(main)
