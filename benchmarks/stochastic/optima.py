"""What each objective is worth: test errors of the optima themselves, whatever solver finds them.

Optima by `SDCAClassifier` to a certificate of 1e-3; the squared joint hinge, which it has not, by 100 passes of
`PegasosClassifier`. Where no penalty makes a joint optimum as good as a one-vs-rest one, no solver of the joint
objective can be in time.

``python -m benchmarks.stochastic.optima``
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.report import Table
from benchmarks.stochastic.peers import absolute
from benchmarks.text import load
from manyclass import PegasosClassifier, SDCAClassifier

ALPHAS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
TOL, MAX_TIME = 1e-3, 120.0
PASSES = 100
# SDCAClassifier alone does not halve the squared hinge: there it wants twice the alpha.
OBJECTIVES: dict[str, tuple[dict[str, Any], float]] = {
    "hinge, joint": ({"loss": "hinge", "multi_class": "crammer_singer"}, 1.0),
    "hinge, one-vs-rest": ({"loss": "hinge"}, 1.0),
    "squared hinge, one-vs-rest": ({"loss": "squared_hinge"}, 2.0),
    "log loss, joint": ({"loss": "log_loss", "multi_class": "multinomial"}, 1.0),
    "log loss, one-vs-rest": ({"loss": "log_loss"}, 1.0),
}


def main(
    data: Annotated[list[str] | None, typer.Option(help="Data sets, by default 20news-unit, 20news-log.")] = None,
) -> None:
    table = Table(
        "Test error in % of the optimum", ["data", "objective", *(f"alpha {alpha:g}" for alpha in ALPHAS)], live=True
    )
    for name in data or ["20news-unit", "20news-log"]:
        X, y, X_test, y_test = load(name)
        for objective, (options, factor) in {**OBJECTIVES, "squared hinge, joint": ({}, 1.0)}.items():
            cells = []
            for alpha in ALPHAS:
                penalty = factor * absolute(alpha, X)
                model: Any = (
                    SDCAClassifier(alpha=penalty, tol=TOL, max_iter=10_000, max_time=MAX_TIME, **options)
                    if options
                    else PegasosClassifier(penalty, loss="squared_hinge", max_iter=PASSES, tol=0)
                )
                model.fit(X, y)
                mark = f" ({model.certificate_:.0e})" if model.certificate_ > TOL else ""
                cells.append(f"{100 * np.mean(model.predict(X_test) != y_test):.2f}{mark}")
            table.add(name, objective, *cells)
    table.note(
        f"alpha is relative to the mean ‖x‖². Certificates (gap over the objective at zero) are at most {TOL:g} or "
        "stand in brackets; those of the squared joint hinge are estimates, from above."
    )
    table.publish("optima")


if __name__ == "__main__":
    typer.run(main)
