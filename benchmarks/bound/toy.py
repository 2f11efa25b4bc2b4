"""Claim (Figure 1): where symmetric rows make gradients point anywhere, SGD and ASGD stall, and SBM does not.

``python -m benchmarks.bound.toy``
"""

from __future__ import annotations

import numpy as np
import typer

from benchmarks.bound import problems
from benchmarks.bound.baselines import best_sgd
from benchmarks.bound.figures import PER_PASS, draw, of_each, table
from benchmarks.bound.runs import lbfgs, sbm

PASSES = 20


def main(passes: int = PASSES) -> None:
    problem = problems.toy()
    runs = [lbfgs(problem, passes), *best_sgd(problem, passes)]
    sbm(problem, 1)  # compiles
    runs += [sbm(problem, passes), sbm(problem, passes, refresh=True)]
    curves, settings = of_each(problem, runs)
    result = table("Two symmetric, overlapping classes (Figure 1)", curves, settings, (1, 2, 5, passes))
    result.note(
        f"{len(problem.y)} training rows, two features with a ratio of scales of 300 along turned axes, "
        f"λ = {problem.lam:g}; gains of SGD and ASGD chosen on held-out training rows over η₀ = 100 to 1e-12, "
        "τ = 1 to 1e5, m = 1 or 10."
    )
    result.publish("bound_toy")
    draw("bound_toy", result.title, curves, -float(np.log(2)), PER_PASS, depth=1.15)


if __name__ == "__main__":
    typer.run(main)
