"""What each objective is worth: test errors of the optima themselves, whatever solver finds them.

Optima by `SDCAClassifier` to a duality gap of 1e-3; the squared joint hinge, which it has not, by 100 passes of
`PegasosClassifier`. Where no penalty makes a joint optimum as good as a one-vs-rest one, no solver of the joint
objective can be in time.

``python -m benchmarks.stochastic.optima``
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.data import title
from benchmarks.report import Table
from benchmarks.stochastic.peers import absolute
from benchmarks.text import load
from manyclass import PegasosClassifier, SDCAClassifier
from manyclass.estimators.vocabulary import LOSSES_OF

ALPHAS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
TOL, MAX_TIME = 1e-3, 120.0
PASSES = 100
LOSSES = ("crammer_singer", "hinge", "squared_hinge", "softmax", "logistic", "squared_crammer_singer")


def main(
    data: Annotated[
        list[str] | None, typer.Option(help="Data sets or files, by default 20news-unit, 20news-log.")
    ] = None,
    max_time: Annotated[float, typer.Option(help="Seconds for each fit.")] = MAX_TIME,
) -> None:
    table = Table(
        "Test error in % of the optimum", ["data", "loss", *(f"alpha {alpha:g}" for alpha in ALPHAS)], live=True
    )
    for name in data or ["20news-unit", "20news-log"]:
        X, y, X_test, y_test = load(name)
        for loss in LOSSES:
            cells = []
            for alpha in ALPHAS:
                penalty = absolute(alpha, X)
                model: Any = (
                    SDCAClassifier(loss, alpha=penalty, tol=TOL, max_iter=10_000, max_time=max_time)
                    if loss in LOSSES_OF["SDCAClassifier"]
                    else PegasosClassifier(penalty, loss=loss, max_iter=PASSES, max_time=max_time, tol=0)
                )
                model.fit(X, y)
                gap = getattr(model, "duality_gap_", None) or model.history_[-1]["estimated_gap"]
                cells.append(
                    f"{100 * np.mean(model.predict(X_test) != y_test):.2f}{f' ({gap:.0e})' if gap > TOL else ''}"
                )
            table.add(title(name), loss, *cells)
    table.note(
        f"alpha is relative to the mean ‖x‖². Duality gaps (over the objective at zero) are at most {TOL:g} or "
        "stand in brackets; those of squared_crammer_singer are estimates, from above."
    )
    table.publish("optima")


if __name__ == "__main__":
    typer.run(main)
