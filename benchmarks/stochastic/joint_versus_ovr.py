"""Claim: at the same alpha, r and T the joint losses do better than one binary loss per class (Fig. 3).

``python -m benchmarks.stochastic.joint_versus_ovr``
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import data as sets
from benchmarks.report import Table, figure
from benchmarks.stochastic.trajectory import choose_alpha, geometric, load, stream, trajectory

ALGORITHMS = {"softmax": "softmax", "K-binaryLR": "logistic", "crammer_singer": "crammer_singer", "K-Pegasos": "hinge"}
SEEDS = 10
MAX_STEPS = 200_000


def main(
    data: Annotated[
        list[str] | None, typer.Option(help="Data sets or files, by default 20news-unit, letter, kddcup.")
    ] = None,
    max_steps: Annotated[int, typer.Option(help="T of the longest run.")] = MAX_STEPS,
) -> None:
    data = data or ["20news-unit", "letter", "kddcup"]
    steps = geometric(200, max_steps, 3)
    shown = np.linspace(0, len(steps) - 1, 5).round().astype(int)
    columns = ["data", "algorithm", *(f"T = {steps[i]:,}" for i in shown)]
    table = Table(f"Test error in %, mean of {SEEDS} seeds ± one standard deviation", columns)
    with figure("joint_versus_ovr", len(data), size=(5 * len(data), 4.2)) as axes:
        for ax, name in zip(axes, data, strict=True):
            compare(name, steps, shown, table, ax)
            print(table, flush=True)
        axes[0].set_ylabel("test error, %")
        axes[0].legend()
    table.note(
        "r = 1, averaged iterates, rows drawn with replacement; one alpha per data set for all four algorithms, that "
        "with the least mean error of the four on held-out training rows."
    )
    table.publish("joint_versus_ovr")


def compare(name: str, steps: np.ndarray, shown: np.ndarray, table: Table, ax: Any) -> None:
    """The four algorithms on one data set: rows of the table and a panel."""
    problem = load(name)
    alpha = choose_alpha(problem, list(ALGORITHMS.values()), int(steps[-1]))
    for label, loss in ALGORITHMS.items():
        runs = [trajectory(stream(problem, loss, alpha, seed), problem, steps)[1] for seed in range(SEEDS)]
        mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0)
        table.add(sets.title(name), label, *(f"{mean[i]:.2f} ± {spread[i]:.2f}" for i in shown))
        line = ax.plot(steps, mean, label=label, linestyle="--" if label.startswith("K-") else "-")[0]
        ax.fill_between(steps, np.maximum(mean - spread, mean / 2), mean + spread, alpha=0.2, color=line.get_color())
    ax.set(xscale="log", yscale="log", xlabel="T", title=f"{sets.title(name)}, alpha = {alpha:g} · mean ‖x‖²")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")


if __name__ == "__main__":
    typer.run(main)
