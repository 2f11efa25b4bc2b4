"""How near one Newton step for each row comes to refits without that row.

python -m benchmarks.selection.left_out
python -m benchmarks.selection.left_out --data letter --refits 100
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from benchmarks import report
from benchmarks.battery import cases
from benchmarks.selection.timing import quietly
from manyclass import GLMClassifier, GLMClassifierCV

CASES = ("digits", "breast_cancer", "satimage", "letter", "banking77-tfidf-10")


def main(
    names: Annotated[list[str] | None, typer.Option("--data", help="Names of cases of the battery, or files.")] = None,
    refits: Annotated[int, typer.Option(help="Rows that are really left out.")] = 300,
    most: Annotated[int, typer.Option("--rows", help="Of each set.")] = 5000,
) -> None:
    columns = [
        "data",
        "alpha",
        "refits",
        "correlation",
        "difference of the mean log loss",
        "mean log loss",
        "of one fit",
    ]
    table = report.Table("Approximate against exact leave-one-out", columns, live=True)
    for name in names or CASES:
        X, y = (part[:most] for part in cases.arrays(name))
        for alpha in (1e-2, 1e-4):
            search: dict[str, Any] = {"alphas": [alpha], "cv": "loo", "tol": 1e-6}
            checked, _ = quietly(partial(GLMClassifierCV(**search, loo_refits=refits).fit, X, y))
            _, seconds = quietly(partial(GLMClassifierCV(**search).fit, X, y))
            _, one = quietly(partial(GLMClassifier(alpha, tol=1e-6).fit, X, y))
            check = checked.loo_check_
            figures = [f"{check['correlation']:.4f}", f"{check['mean_difference']:+.1e}", f"{-checked.loo_score_:.4f}"]
            table.add(name, f"{alpha:g}", check["rows"], *figures, f"{seconds / one:.1f}")
    table.note("The last column: the seconds of a fit with all its leave-one-out probabilities over those without.")
    table.publish("selection_left_out")


if __name__ == "__main__":
    typer.run(main)
