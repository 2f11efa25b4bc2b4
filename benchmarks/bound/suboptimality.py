"""How SBM approaches the optimum over many passes, as published and with refreshed statistics.

As published the gap is that of a Bessel function: F − F* = O(τ^(-1/2)) after τ passes at best; with step="refreshed" it
falls by a constant factor a pass.

``python -m benchmarks.bound.suboptimality ecoli`` or ``mnist`` or ``toy``, or a file
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import numpy as np
import typer

from benchmarks import data
from benchmarks.bound import problems
from benchmarks.bound.figures import COLOURS, NAMES
from benchmarks.bound.runs import Run, bbm, sbm
from benchmarks.report import Table, figure
from manyclass.curvature import CURVATURES
from manyclass.fit import Clock
from manyclass.fit import Run as Loop
from manyclass.solvers import SOLVERS

PROBLEMS: dict[str, Callable[[], problems.Problem]] = {
    "toy": problems.toy,
    "ecoli": lambda: replace(problems.ecoli(0), lam=0.1),
    "mnist": lambda: replace(problems.mnist_components(2000), lam=1.0),
}
FLOOR = 1e-14


def least(problem: problems.Problem) -> float:
    objective, solver = problem.objective(), SOLVERS["newton-cg"]
    curvature = CURVATURES["second-moment"](objective, np.random.default_rng(0))
    iterates = solver.iterates(objective, curvature, solver.begin(objective, curvature).theta)
    found = Loop(Clock(), tol=1e-15, max_iter=2000)(iterates, lambda: None)
    return min(record.objective for record in found.history)


def power(passes: np.ndarray, gaps: np.ndarray) -> float:
    """Exponent of τ in the envelope of a swinging gap: the line through the largest gap of each octave, log-log."""
    octave = np.floor(np.log2(passes)).astype(int)
    tops = [np.flatnonzero(octave == o)[np.argmax(gaps[octave == o])] for o in np.unique(octave) if o >= 2]
    return float(np.polyfit(np.log(passes[tops]), np.log(gaps[tops]), 1)[0])


def factor(passes: np.ndarray, gaps: np.ndarray) -> float:
    """Mean factor a pass by which a gap falls, from the fifth pass until it is lost in rounding."""
    used = (gaps > 1e-12) & (passes >= 5)
    return float(np.exp(np.polyfit(passes[used], np.log(gaps[used]), 1)[0]))


def main(name: Annotated[str, typer.Argument()] = "ecoli", passes: int = 200) -> None:
    problem = PROBLEMS[name]() if name in PROBLEMS else problems.of(name)
    name = data.title(name)
    best = least(problem)
    objective = problem.objective()
    runs: list[Run] = [sbm(problem, passes), sbm(problem, passes, refresh=True), bbm(problem, passes)]
    gaps = {r.label: np.array([objective.value_and_gradient(theta).value - best for theta in r.thetas]) for r in runs}
    at = (1, 5, 20, 50, 100, passes)
    result = Table(
        f"{problem.name}: (F − F*)/F(0) over {passes} passes",
        ["method", *(f"after {n}" for n in at), "rate from the fifth pass on", "ms a pass"],
    )
    zero = objective.zero_value
    for run in runs:
        passed, gap = np.array(run.passes), np.maximum(gaps[run.label] / zero, FLOOR)
        cells = [f"{gap[int(np.searchsorted(passed, n + 1e-9)) - 1]:.1e}" for n in at]
        keep = passed >= 1
        exponent = power(passed[keep], gap[keep])
        rate = f"τ^{exponent:.2f}" if run.label == "SBM" else f"× {factor(passed, gap):.3f} a pass"
        result.add(run.label, *cells, rate, f"{1e3 * run.seconds[-1] / run.passes[-1]:.3g}")
        gaps[run.label] = gap
    result.note(
        f"{len(problem.y)} rows, kd = {np.prod(problem.shape)}, λ = {problem.lam:g}; F* by truncated Newton. "
        "The exponent is that of the line through the largest gap in each octave of passes, since the gap swings; "
        "the theory page derives −0.50."
    )
    result.publish(f"bound_suboptimality_{name}")
    draw(name, result.title, {run.label: (np.array(run.passes), gaps[run.label]) for run in runs})


def draw(name: str, title: str, curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    with figure(f"bound_suboptimality_{name}") as ax:
        for label, (passes, gap) in curves.items():
            late = passes >= 1
            ax.plot(passes[late], gap[late], label=label, color=COLOURS.get(label, "tab:purple"))
        passes, gap = curves["SBM"]
        guide = passes[passes >= 3]
        ax.plot(
            guide, gap[passes >= 3].max() * (guide / guide[0]) ** -0.5, color="gray", linestyle=":", label="τ^(−1/2)"
        )
        ax.set(xscale="log", yscale="log", xlabel=NAMES["passes"], ylabel="(F − F*) / F(0)", title=title)
        ax.legend()
        ax.grid(alpha=0.25)


if __name__ == "__main__":
    typer.run(main)
