"""Theorem 3's penalty: λ = c · √(a/T + 1/n) for n rows and T steps, measured and fitted.

For every n and T the penalty with the least test error on a grid, what the theorem's rule gives with the c and a that
do best, and what one penalty for all of them costs.

``python -m benchmarks.stochastic.lambda_of_rows``
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.data import title
from benchmarks.report import Table, figure, plain_ticks
from benchmarks.stochastic.trajectory import SETTINGS, VARIANTS, Problem, load, stream, trajectory

ALPHAS = np.geomspace(1e-2, 1e-7, 11)
STEPS = np.array([1_000, 4_000, 16_000, 64_000])
SIZES = (2_000, 8_000, 32_000, 128_000)
RATIOS = np.geomspace(1e-2, 1e4, 61)
"""Candidates for a: how many steps tell as much as a row."""
LOSS = "crammer_singer"
Errors = np.ndarray
"""Of shape (sizes, steps, alphas): mean over seeds, %."""


def measure(problem: Problem, sizes: list[int], steps: np.ndarray, seeds: int, options: dict[str, Any]) -> Errors:
    errors = np.zeros((len(sizes), len(steps), len(ALPHAS)))
    for (i, size), (j, alpha), seed in itertools.product(enumerate(sizes), enumerate(ALPHAS), range(seeds)):
        index = np.sort(np.random.default_rng([seed, size]).choice(len(problem.y), size, replace=False))
        one = stream(problem, LOSS, alpha, seed, index=index, **options)
        errors[i, :, j] += trajectory(one, problem, steps)[1] / seeds
    return errors


def at(errors: Errors, alphas: np.ndarray) -> np.ndarray:
    """Errors of shape (sizes, steps) at such penalties, on the line between those measured (in log alpha)."""
    x = -np.log(ALPHAS)
    inner = np.clip(-np.log(alphas), x[0], x[-1])
    return np.array([[np.interp(inner[i, j], x, cell) for j, cell in enumerate(row)] for i, row in enumerate(errors)])


def rule(errors: Errors, sizes: list[int], steps: np.ndarray) -> tuple[float, float, np.ndarray]:
    """c, a and the penalties of the rule c·√(a/T + 1/n) that has the least mean error."""
    candidates = []
    for ratio, c in itertools.product(RATIOS, np.geomspace(1e-5, 1.0, 51)):
        alphas = c * np.sqrt(ratio / steps[None, :] + 1.0 / np.array(sizes)[:, None])
        candidates.append((float(at(errors, alphas).mean()), c, ratio, alphas))
    _, c, ratio, alphas = min(candidates, key=lambda found: found[0])
    return c, ratio, alphas


def main(
    data: Annotated[str, typer.Option(help="A data set or file.")] = "rcv1-like-4",
    max_steps: Annotated[int, typer.Option(help="T of the longest run.")] = int(STEPS[-1]),
    size: Annotated[list[int] | None, typer.Option(help="Numbers of training rows.")] = None,
    seeds: int = 3,
) -> None:
    problem = load(data)
    steps, sizes = STEPS[max_steps >= STEPS], [n for n in size or SIZES if n <= len(problem.y)]
    columns = ["algorithm", "n", "T", "best alpha", "error %", "alpha of the rule", "error %", "error %, one alpha"]
    table = Table(f"{title(data)}: the best penalty by rows and steps", columns)
    with figure("lambda_of_rows", len(VARIANTS), size=(5.5 * len(VARIANTS), 4.5)) as axes:
        for ax, (variant, options) in zip(axes, VARIANTS.items(), strict=True):
            errors = measure(problem, sizes, steps, seeds, options)
            c, ratio, alphas = rule(errors, sizes, steps)
            one = int(errors.mean(axis=(0, 1)).argmin())
            ruled, best = at(errors, alphas), errors.argmin(axis=2)
            for (i, n), (j, t) in itertools.product(enumerate(sizes), enumerate(steps)):
                cells = f"{ALPHAS[best[i, j]]:.1g}", f"{errors[i, j].min():.2f}", f"{alphas[i, j]:.1g}"
                table.add(LOSS + variant, f"{n:,}", f"{t:,}", *cells, f"{ruled[i, j]:.2f}", f"{errors[i, j, one]:.2f}")
            losses = (errors.min(axis=2).mean(), ruled.mean(), errors[:, :, one].mean())
            table.note(
                f"{LOSS}{variant}: c = {c:.2g}, a = {ratio:.2g}; mean error {losses[0]:.2f} % at the best alpha of "
                f"each n and T, {losses[1]:.2f} % by the rule, {losses[2]:.2f} % at {ALPHAS[one]:.1g} throughout."
            )
            for i, n in enumerate(sizes):
                (line,) = ax.plot(steps, ALPHAS[best[i]], "o", label=f"{n:,} rows")
                ax.plot(steps, alphas[i], color=line.get_color())
            ax.set(xscale="log", yscale="log", xlabel="T", title=f"{LOSS}{variant}: best alpha, and the rule")
            plain_ticks(ax.xaxis)
            plain_ticks(ax.yaxis)
            ax.legend(fontsize="small")
        axes[0].set_ylabel("alpha over mean ‖x‖²")
    table.note(
        f"{SETTINGS} Means of {seeds} seeds, each with rows of its own; test errors. The rule: alpha = c·√(a/T + 1/n), "
        "Theorem 3's λ with its hidden constants c and a fitted, on these same errors, to the least mean error; alpha "
        "is relative to the mean ‖x‖², from a grid of half decades, and errors between its points are interpolated."
    )
    table.publish("lambda_of_rows")


if __name__ == "__main__":
    typer.run(main)
