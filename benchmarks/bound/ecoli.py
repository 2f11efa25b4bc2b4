"""Claim (Figure 2): SBM is level with L-BFGS, SGD, ASGD and BBM on ecoli per pass, and its steps lose no ground.

``python -m benchmarks.bound.ecoli``; other rows with ``--data FILE``.
"""

from __future__ import annotations

import numpy as np
import typer

from benchmarks.bound import problems
from benchmarks.bound.baselines import Gain, full_rank, sgd, tuned
from benchmarks.bound.figures import COLOURS, NAMES, PER_PASS, Curve, Several, draw, table
from benchmarks.bound.runs import sbm
from benchmarks.data import title
from benchmarks.report import Table, figure

PASSES = 20
STARTS = 10
PRINTED = (Gain(0.01, 10), Gain.searching(0.1, 10, 500))
LAMBDAS = tuple(10.0**e for e in range(-3, 3))


def single_steps(
    problem: problems.Problem, gains: list[Gain], start: np.ndarray
) -> tuple[Table, dict[str, np.ndarray]]:
    """−F after each update of three passes."""
    runs = [sbm(problem, 3, start, each_row=True)]
    runs += [sgd(problem, gain, 3, start, rows_a_record=gain.batch) for gain in gains]
    result = Table("Single updates over three passes", ["method", "updates", "that lose ground", "most lost in one"])
    objective, curves = problem.objective(), {}
    for run in runs:
        values = np.array([-objective.value_and_gradient(theta).value for theta in run.thetas])
        curves[run.label] = np.array([run.passes, values])
        gained = np.diff(values)
        lost = gained < -1e-12 * np.abs(values[:-1])
        result.add(run.label, len(gained), f"{100 * lost.mean():.1f} %", f"{max(-gained.min(), 0):.2g}")
    return result, curves


def draw_single_steps(name: str, curves: dict[str, np.ndarray]) -> None:
    with figure(f"bound_{name}_updates", size=(7, 4)) as ax:
        for label, (passes, values) in curves.items():
            ax.plot(passes, values, label=label, color=COLOURS[label], linewidth=1.8 if label == "SBM" else 0.8)
        ax.set(xlabel=NAMES["passes"], ylabel=NAMES["objective"], title=f"{name}: after every single update")
        ax.legend()


def compare(name: str, standardise: bool, splits: int, starts: int) -> tuple[Table, dict[str, Curve], tuple]:
    """The table and the mean curves of one scaling of the columns; of its first split every update as well."""
    several = Several()
    lambdas: list[float] = []
    gains: list[Gain] = []
    for split in range(splits):
        problem = problems.with_best_lambda(problems.ecoli(split, name, standardise), LAMBDAS)
        lambdas.append(problem.lam)
        gains = gains or [tuned(problem, schedules, (1, 10)) for schedules in ("SGD", "ASGD")]
        sbm(problem, 2, refresh=True)  # compiles
        rng = np.random.default_rng(split)
        for number in range(starts):
            start = 0.01 * rng.standard_normal(problem.shape)
            several.add(problem, full_rank(problem, gains, PRINTED, PASSES, start, number))
        if split == 0:
            steps = single_steps(problem, gains, start)
    mean, usual = several.means(PASSES)
    columns = "standardised columns" if standardise else "columns as they are"
    result = table(f"{problem.name}, {columns} (Figure 2)", mean, usual, (1, 2, 5, PASSES))
    result.note(
        f"Mean over {splits} splits (90 % training rows) with {starts} starts near the origin each; λ by 5-fold "
        f"cross-validation ({min(lambdas):g} to {max(lambdas):g}); gains on held-out training rows of the first split, "
        "and those that the paper prints."
    )
    return result, mean, steps


def main(splits: int = 10, starts: int = STARTS, data: str = "ecoli") -> None:
    name, classes = title(data), problems.ecoli(0, data).n_classes
    raw, mean, _ = compare(data, False, splits, starts)
    draw(f"bound_{name}_raw", raw.title, mean, -float(np.log(classes)), PER_PASS)
    result, mean, (steps, step_curves) = compare(data, True, splits, starts)
    draw(f"bound_{name}", result.title, mean, -float(np.log(classes)), PER_PASS)
    draw_single_steps(name, step_curves)
    result.note(raw)
    result.note(steps)
    result.publish(f"bound_{name}")


if __name__ == "__main__":
    typer.run(main)
