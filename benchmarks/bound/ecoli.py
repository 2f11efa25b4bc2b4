"""Claim (Figure 2): SBM is level with L-BFGS, SGD, ASGD and BBM on ecoli per pass, and its steps lose no ground.

``python -m benchmarks.bound.ecoli``; other rows with ``--data FILE``.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import typer

from benchmarks.bound import problems
from benchmarks.bound.baselines import Gain, sgd, tuned
from benchmarks.bound.figures import Curve, draw, mean_curve, measured, table
from benchmarks.bound.runs import Run, bbm, lbfgs, sbm
from benchmarks.report import Table, figure

PASSES = 20
STARTS = 10
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
    from benchmarks.bound.figures import COLOURS, NAMES

    with figure(f"bound_{name}_updates", size=(7, 4)) as ax:
        for label, (passes, values) in curves.items():
            ax.plot(passes, values, label=label, color=COLOURS[label], linewidth=1.8 if label == "SBM" else 0.8)
        ax.set(xlabel=NAMES["passes"], ylabel=NAMES["objective"], title=f"{name}: after every single update")
        ax.legend()


def main(splits: int = 10, starts: int = STARTS, data: str = "ecoli") -> None:
    curves: dict[str, list[Curve]] = defaultdict(list)
    settings: dict[str, list[str]] = defaultdict(list)
    lambdas = []
    for split in range(splits):
        problem = problems.with_best_lambda(problems.ecoli(split, data), LAMBDAS)
        lambdas.append(problem.lam)
        gains = [tuned(problem, schedules, (1, 10)) for schedules in ("SGD", "ASGD")]
        rng = np.random.default_rng(split)
        for number in range(starts):
            start = 0.01 * rng.standard_normal(problem.shape)
            runs: list[Run] = [lbfgs(problem, PASSES, start)]
            runs += [sgd(problem, gain, PASSES, start, seed=number) for gain in gains]
            runs += [bbm(problem, PASSES, start), sbm(problem, PASSES, start, seed=number)]
            runs.append(sbm(problem, PASSES, start, refresh=True, seed=number))
            for run in runs:
                curves[run.label].append(measured(problem, run))
                settings[run.label].append(run.settings)
        if split == 0:
            steps, step_curves = single_steps(problem, gains, start)
    means = {label: mean_curve(several, PASSES) for label, several in curves.items()}
    usual = {label: Counter(several).most_common(1)[0][0] for label, several in settings.items()}
    result = table(f"{problem.name} (Figure 2)", means, usual, (1, 2, 5, PASSES))
    result.note(
        f"Mean over {splits} splits (90 % training rows), each from {starts} starts near the origin; λ by 5-fold "
        f"cross-validation ({min(lambdas):g} to {max(lambdas):g}), gains on held-out training rows, anew for each "
        "split: the most frequent are shown. Columns standardised."
    )
    result.note(steps)
    result.publish(f"bound_{problem.name}")
    panels = [("passes", "objective"), ("passes", "likelihood"), ("passes", "error")]
    draw(f"bound_{problem.name}", result.title, means, panels, zero=-float(np.log(problem.n_classes)))
    draw_single_steps(problem.name, step_curves)


if __name__ == "__main__":
    typer.run(main)
