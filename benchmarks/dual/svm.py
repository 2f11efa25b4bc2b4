"""Which part of the dual SVM keeps its primal value high: the intercept, the shrinking, or single epochs (Figure 5).

The paper's SVM has no intercept, and nothing says that it skips rows. ``python -m benchmarks.dual.svm w8a mnist``
"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import data
from benchmarks.dual.homotopy import ALPHA, STARTS, Test, follow, reference, split
from benchmarks.report import Table
from manyclass.data import MatrixTargets, as_rows
from manyclass.dual import DualProblem, homotopy_path
from manyclass.dual.ascent import start_state
from manyclass.model import LOSSES, Problem

SHOWN = ("from zero", "path of 6")
LATE = 10
"""Epochs whose W are averaged."""
EPOCHS = 60


def primal(X: Any, y: np.ndarray, W: np.ndarray, b: float) -> float:
    return float(np.mean(np.maximum(1 - y * (np.asarray(X @ W)[:, 0] + b), 0)) + 0.5 * ALPHA * np.sum(W**2))


def best_intercept(X: Any, y: np.ndarray, W: np.ndarray) -> float:
    """The b of least hinge loss: its slope rises by one at each y_i − z_i, from minus the number of positive rows."""
    kinks = y - np.asarray(X @ W)[:, 0]
    positive = int(np.sum(y > 0))
    return float(np.partition(kinks, positive - 1)[positive - 1])


def compare(source: str, epochs: int = EPOCHS, reference_seconds: float = 40.0) -> Table:
    X, y, X_test, y_test = split(source)
    table = Table(
        f"{data.title(source)}: parts of the dual SVM at alpha {ALPHA:g}, {X.shape[0]} training rows",
        [
            "start", "intercept", "shrinking", f"dual left after {epochs}", f"primal left after {epochs}",
            "with the best b for its W", f"least of the last {LATE} epochs", "their mean W, best b", "test error",
        ],
    )  # fmt: skip
    test = Test(X_test, y_test, LOSSES["hinge"])
    for intercept in (True, False):
        targets = MatrixTargets(y[:, None])
        problem = DualProblem(Problem(as_rows(X), targets, LOSSES["hinge"], ALPHA, fit_intercept=intercept))
        zero = start_state(problem).zero_value
        curves = {
            (start, shrinking): follow(problem, homotopy_path(problem, STARTS[start]), epochs, test, shrinking)
            for start, shrinking in product(SHOWN, (True, False))
        }
        best, dual, _ = reference(problem, reference_seconds)
        best = min(best, *(min(curve.primal) for curve in curves.values()))
        dual = max(dual, *(max(curve.dual) for curve in curves.values()))
        for (start, shrinking), curve in curves.items():
            W = curve.models[-1][0]
            mean = np.mean([W for W, _ in curve.models[-LATE:]], axis=0)
            mended = [primal(X, y, W, best_intercept(X, y, W) if intercept else 0.0) for W in (W, mean)]
            left = [curve.primal[-1], mended[0], min(curve.primal[-LATE:]), mended[1]]
            table.add(
                start, "yes" if intercept else "no", "yes" if shrinking else "no",
                f"{(dual - curve.dual[-1]) / zero:.1e}", *(f"{(value - best) / zero:.1e}" for value in left),
                f"{curve.error[-1]:.2%}",
            )  # fmt: skip
        table.note(f"{'With' if intercept else 'Without'} an intercept: best known gap {(best - dual) / zero:.0e}.")
    return table


def main(
    sources: Annotated[list[str] | None, typer.Argument()] = None, epochs: int = EPOCHS, reference_seconds: float = 40.0
) -> None:
    first, *others = [compare(source, epochs, reference_seconds) for source in sources or ("w8a", "mnist")]
    for other in others:
        first.note(other)
    first.note("Shares of the loss of the zero model, at alpha; the epochs of all phases are counted.")
    first.publish("dual_svm_parts" if epochs == EPOCHS else f"dual_svm_parts_{epochs}")


if __name__ == "__main__":
    typer.run(main)
