"""What to do about the first steps, of length 1/(alpha t): a warm start of t, or nothing but averaging.

Error on held-out training rows after 1, 3 and 10 passes; "last" is the last iterate, "average" the average with weights
t². The default of `Schedule.offset` is the row "warm".

``python -m benchmarks.stochastic.first_steps``
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from benchmarks import data as sets
from benchmarks.report import Table
from benchmarks.stochastic.trajectory import load, stream, trajectory
from manyclass.subgradient.schedule import Schedule

VARIANTS = {"paper": 0.0, "warm / 4": 0.25, "warm": 1.0, "warm × 4": 4.0}
"""The first steps: by what the offset that is derived from the data is multiplied."""
MODELS = {"last": False, "average": True}
PASSES = (1, 3, 10)
SEEDS = 3
LOSSES = ("softmax", "crammer_singer")


def main(
    data: Annotated[list[str] | None, typer.Option(help="Data sets or files, by default 20news-unit, letter.")] = None,
) -> None:
    columns = ["data", "loss", "alpha", "first steps", *(f"{model}, {n}" for model in MODELS for n in PASSES)]
    table = Table("Held-out error in % by what is done about the first steps, after so many passes", columns, live=True)
    for name in data or ["20news-unit", "letter"]:
        problem = load(name).validation()
        steps = np.array(PASSES) * len(problem.y)
        for loss in LOSSES:
            for alpha in (1e-4, 1e-5):
                warm = [stream(problem, loss, alpha, seed).state.offset for seed in range(SEEDS)]
                for label, factor in VARIANTS.items():
                    cells = []
                    for average in MODELS.values():
                        plans = [Schedule(factor * offset, average, replace=True) for offset in warm]
                        runs = [stream(problem, loss, alpha, seed, plan) for seed, plan in enumerate(plans)]
                        errors = [trajectory(run, problem, steps)[1] for run in runs]
                        cells += [f"{value:.2f}" for value in np.mean(errors, axis=0)]
                    table.add(sets.title(name), loss, f"{alpha:g}", label, *cells)
    table.note(f"Joint losses, r = 1, means of {SEEDS} seeds, alpha relative to the mean ‖x‖².")
    table.publish("first_steps")


if __name__ == "__main__":
    typer.run(main)
