"""Claim: on MNIST with 2048 random Fourier features, softmax regression comes to within 1e-3 and 1e-4 of the
minimum (relative to the zero model) at least 6 times sooner than with the best of scikit-learn and cyanure.

``python -m benchmarks.softmax_path --alpha 1e-6 --alpha 1e-4``
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import typer

from benchmarks import data, report
from benchmarks.race import TARGETS, Curve, Problem, race

OURS, OWN = "manyclass_default", "mnist-fourier"
# The best two first: the others then need not run longer than these took.
PEERS = [
    "cyanure_catalyst_miso",
    "cyanure_qning_miso",
    "sklearn_lbfgs",
    "sklearn_newton_cg",
    "cyanure_acc_svrg",
    "sklearn_newton_cholesky",
]


def shown(seconds: float, limit: float) -> str:
    return f"> {limit:.0f}" if math.isinf(seconds) else f"{seconds:.2f}"


def times(curves: list[Curve], minimum: float) -> np.ndarray:
    """Seconds to each target, one row per curve."""
    span = curves[0].problem.at_zero - minimum
    return np.array([[curve.seconds_to(minimum + target * span) for target in TARGETS] for curve in curves])


def tabulate(title: str, minimum: float, curves: list[Curve]) -> report.Table:
    """One row per solver; the last row is the best peer's time over the median of ours."""
    table = report.Table(title, ["solver", *(f"s to {t:g}" for t in TARGETS), "last gap", "last s"])
    span = curves[0].problem.at_zero - minimum
    ours = [curve for curve in curves if curve.solver.startswith("manyclass")]
    peers = [curve for curve in curves if curve not in ours]
    own, others = times(ours, minimum), times(peers, minimum)
    for curve, row in zip([*ours, *peers], [*own, *others], strict=True):
        last_gap = f"{(curve.best() - minimum) / span:.1e}"
        last_second = f"{curve.seconds[-1]:.1f}" if len(curve.seconds) else "-"
        table.add(curve.solver, *(shown(s, curve.limit) for s in row), last_gap, last_second)
    bounds = np.array([[curve.limit] * len(TARGETS) for curve in peers])
    lower = np.where(np.isinf(others), bounds, others).min(axis=0)
    exact = ~np.isinf(others).all(axis=0)
    ratios = lower / np.median(own, axis=0)
    marks = [f"{'' if known else '> '}{r:.1f}×" for known, r in zip(exact, ratios, strict=True)]
    table.add("best peer / median of ours", *marks, "", "")
    table.note(f"F* = {minimum:.8f}, F(0) = {curves[0].problem.at_zero:.4f}. Seconds include set-up.")
    return table


def plot(name: str, title: str, minimum: float, curves: list[Curve]) -> None:
    lines = {}
    for curve in curves:
        seconds, objectives = curve.points()
        label = (
            curve.solver.replace("_default", ", GLMClassifier()")
            .replace("sklearn_", "scikit-learn, ")
            .replace("_", "-")
        )
        lines[label] = (seconds, (objectives - minimum) / (curve.problem.at_zero - minimum))
    report.plot_gaps(name, title, lines, TARGETS)


def main(
    alpha: Annotated[list[float] | None, typer.Option(help="1e-6 and 1e-4 by default.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds for each peer.")] = 60.0,
    own_limit: Annotated[float, typer.Option(help="Seconds for each run of ours.")] = 30.0,
    peer: Annotated[list[str], typer.Option(help="Modules of benchmarks.solvers.")] = PEERS,
    problem: Annotated[str, typer.Option(help="A name of benchmarks.data, or a file.")] = OWN,
) -> None:
    for value in alpha or (1e-6, 1e-4):
        shown = "MNIST, 2048 random Fourier features" if problem == OWN else data.title(problem)
        title = f"{shown}, softmax, alpha = {value:g}"
        minimum, curves = race(OURS, peer, Problem(problem, value), limit, own_limit)
        name = f"softmax_path_{value:g}" if problem == OWN else f"softmax_path_{data.title(problem)}_{value:g}"
        tabulate(title, minimum, curves).publish(name)
        plot(name, title, minimum, curves)


if __name__ == "__main__":
    typer.run(main)
