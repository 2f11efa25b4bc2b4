"""Claim: at the same alpha, r and T the joint losses do better than one binary loss per class (Fig. 3).

``python -m benchmarks.stochastic.joint_versus_ovr``
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import data as sets
from benchmarks.report import Table, figure, plain_ticks
from benchmarks.stochastic.trajectory import (
    SETTINGS,
    VARIANTS,
    chosen_alphas,
    geometric,
    load,
    stream,
    trajectory,
)

ALGORITHMS = {"softmax": "softmax", "K-binaryLR": "logistic", "crammer_singer": "crammer_singer", "K-Pegasos": "hinge"}
DATA = ("rcv1-like-4", "rcv1-like-53", "20news-unit", "letter", "kddcup")
SEEDS = 10
MAX_STEPS = 200_000


def main(
    data: Annotated[list[str] | None, typer.Option(help=f"Data sets or files, by default {', '.join(DATA)}.")] = None,
    max_steps: Annotated[int, typer.Option(help="T of the longest run.")] = MAX_STEPS,
    seeds: int = SEEDS,
) -> None:
    data = data or list(DATA)
    steps = geometric(200, max_steps, 3)
    shown = np.unique(np.linspace(0, len(steps) - 1, 5).round().astype(int))
    columns = ["data", "algorithm", "alpha", *(f"T = {steps[i]:,}" for i in shown)]
    table = Table(f"Test error in %, mean of {seeds} seeds ± one standard deviation", columns, live=True)
    with figure("joint_versus_ovr", len(data), size=(4.5 * len(data), 7.5), n_rows=len(VARIANTS)) as axes:
        for column, name in zip(axes.T, data, strict=True):
            compare(name, steps, shown, seeds, table, column)
        for ax in axes[:, 0]:
            ax.set_ylabel("test error, %")
        axes[0, 0].legend()
    table.note(
        SETTINGS + " alpha is relative to the mean ‖x‖²: one per data set for all four algorithms, that with the least "
        "mean error of the four on held-out training rows, chosen anew for the algorithms as printed."
    )
    table.publish("joint_versus_ovr")


def compare(name: str, steps: np.ndarray, shown: np.ndarray, seeds: int, table: Table, axes: Any) -> None:
    """The four algorithms on one data set, in our variant and as printed: rows of the table and a panel each."""
    problem = load(name)
    alphas = chosen_alphas(problem, ALGORITHMS.values(), int(steps[-1]))
    for ax, (variant, options) in zip(axes, VARIANTS.items(), strict=True):
        alpha = alphas[variant]
        for label, loss in ALGORITHMS.items():
            several = [stream(problem, loss, alpha, seed, **options) for seed in range(seeds)]
            runs = [trajectory(one, problem, steps)[1] for one in several]
            mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
            cells = (f"{mean[i]:.2f} ± {spread[i]:.2f}" for i in shown)
            table.add(sets.title(name), label + variant, f"{alpha:g}", *cells)
            line = ax.plot(steps, mean, label=label, linestyle="--" if label.startswith("K-") else "-")[0]
            low = np.maximum(mean - spread, mean / 2)
            ax.fill_between(steps, low, mean + spread, alpha=0.2, color=line.get_color())
        ax.set(xscale="log", yscale="log", xlabel="T", title=sets.title(name) + variant)
        plain_ticks(ax.xaxis)
        plain_ticks(ax.yaxis)


if __name__ == "__main__":
    typer.run(main)
