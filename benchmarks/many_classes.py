"""Claim: for n = 40 000 rows, d = 512 features and k = 1000 Gaussian classes, softmax regression comes to
within 1e-3 and 1e-4 of the minimum at least 5 times sooner than with scikit-learn's lbfgs, and the matrix
products of its passes (4·n·d·k flop each) alone would take no less than 0.6 of its time.

``python -m benchmarks.many_classes``
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from benchmarks import ceilings, data
from benchmarks.race import TARGETS, Problem, race
from benchmarks.softmax_path import OURS, plot, tabulate

PEERS = ["sklearn_lbfgs"]
PROBLEMS = ["gaussian-classes", "gaussian-classes-unit"]


def main(
    problem_name: Annotated[
        list[str], typer.Option("--problem", help="Names of benchmarks.data, or files.")
    ] = PROBLEMS,
    alpha: float = 1e-5,
    limit: Annotated[float, typer.Option(help="Seconds for each peer.")] = 120.0,
    own_limit: Annotated[float, typer.Option(help="Seconds for each run of ours.")] = 30.0,
    peer: Annotated[list[str], typer.Option(help="Modules of benchmarks.solvers.")] = PEERS,
) -> None:
    for name in problem_name:
        compare(Problem(name, alpha), peer, limit, own_limit)


def compare(problem: Problem, peers: list[str], limit: float, own_limit: float) -> None:
    rates = [ceilings.matmul_rate(np.float32)]
    minimum, curves = race(OURS, peers, problem, limit, own_limit)
    rates.append(ceilings.matmul_rate(np.float32))
    sgemm = max(rates)
    n, d = problem.arrays[0].shape
    k = len(np.unique(problem.arrays[1]))
    name = data.title(problem.name)
    title = f"{name}: n = {n}, d = {d}, k = {k}, softmax, alpha = {problem.alpha:g}"
    table = tabulate(title, minimum, curves)
    table.note(f"sgemm runs at {sgemm / 1e9:.0f} Gflop/s here (the better of before and after the race).")
    target = minimum + TARGETS[-1] * (problem.at_zero - minimum)
    for curve in curves:
        reached = curve.first_below(target)
        if curve.solver == OURS and reached is not None:
            passes, seconds = curve.extras[reached]["n_passes"], curve.seconds[reached]
            share = passes * 4.0 * n * d * k / (seconds * sgemm)
            table.note(
                f"{curve.solver}: {passes:.0f} passes in {seconds:.2f} s to {TARGETS[-1]:g}; "
                f"passes × 4ndk / (time × sgemm rate) = {share:.2f}."
            )
    table.publish(f"many_classes_{name}")
    plot(f"many_classes_{name}", title, minimum, curves)


if __name__ == "__main__":
    typer.run(main)
