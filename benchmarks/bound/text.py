"""Claim (Figure 3): low-rank SBM is the fastest in seconds on sparse rows of many features.

``python -m benchmarks.bound.text newsgroups`` or ``a9a``, or a file
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from benchmarks import data
from benchmarks.bound import problems
from benchmarks.bound.baselines import best_sgd
from benchmarks.bound.figures import draw, of_each, table
from benchmarks.bound.runs import lbfgs, sbm, tuned_rank_step

RANKS = (1, 5, 20)
FULL_RANK = 1000
"""Most parameters with which the full rank is shown as well."""
LAMBDAS = tuple(10.0**e for e in range(-5, 3))


def main(name: Annotated[str, typer.Argument()] = "newsgroups", passes: int = 20) -> None:
    problem = problems.with_best_lambda(problems.of(name), LAMBDAS)
    runs = [lbfgs(problem, passes), *best_sgd(problem, passes)]
    for rank in RANKS:
        eta = tuned_rank_step(problem, rank, 5)
        runs.append(sbm(problem, passes, rank=rank, eta=eta))
    runs.append(sbm(problem, passes, rank=RANKS[-1], refresh=True))
    if np.prod(problem.shape) <= FULL_RANK:
        sbm(problem, 1)  # compiles
        runs += [sbm(problem, passes), sbm(problem, passes, refresh=True)]
    curves, settings = of_each(problem, runs)
    result = table(f"{problem.name}: low rank (Figure 3)", curves, settings, (1, 5, passes))
    result.note(
        f"{len(problem.y)} training rows, {len(problem.y_test)} test rows, {problem.X.shape[1]} features, "
        f"λ = {problem.lam:g} by 5-fold cross-validation, one thread. Gains of SGD and ASGD and η₀ of SBM on held-out "
        "training rows; choosing them is not in the times."
    )
    name = data.title(name)
    result.publish(f"bound_text_{name}")
    draw(f"bound_text_{name}", result.title, curves, -float(np.log(problem.n_classes)))


if __name__ == "__main__":
    typer.run(main)
