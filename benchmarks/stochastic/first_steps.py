"""What to do about the first steps, of length 1/(alpha t): a warm start of t, projection, or nothing but averaging.

Error on held-out training rows after 1, 3 and 10 passes; "last" is the last iterate, "average" the average with weights
t², "plain" that with equal weights. The default of `step_offset` is the row "warm".

``python -m benchmarks.stochastic.first_steps``
"""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from benchmarks.report import Table
from benchmarks.stochastic.trajectory import load, stream, trajectory

VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {"offset": 0.0},
    "projected": {"offset": 0.0, "project": True},
    "warm / 4": {"factor": 0.25},
    "warm": {"factor": 1.0},
    "warm × 4": {"factor": 4.0},
}
MODELS: dict[str, dict[str, Any]] = {"last": {"average": False}, "plain": {"power": 0.0}, "average": {"power": 2.0}}
PASSES = (1, 3, 10)
SEEDS = 3
LOSSES = ("log_loss", "hinge")


def main() -> None:
    columns = ["data", "loss", "alpha", "first steps", *(f"{model}, {n}" for model in MODELS for n in PASSES)]
    table = Table("Held-out error in % by what is done about the first steps, after so many passes", columns, live=True)
    for name in ("20news-unit", "letter"):
        problem = load(name).validation()
        steps = np.array(PASSES) * len(problem.y)
        for loss in LOSSES:
            for alpha in (1e-4, 1e-5):
                for label, given in VARIANTS.items():
                    cells = []
                    for model in MODELS.values():
                        errors = []
                        for seed in range(SEEDS):
                            options: dict[str, Any] = {**given, **model}
                            factor = options.pop("factor", None)
                            one = stream(problem, loss, "joint", alpha, seed, **options)
                            if factor is not None:
                                one = stream(
                                    problem, loss, "joint", alpha, seed, **options, offset=factor * one.state.offset
                                )
                            errors.append(trajectory(one, problem, steps)[1])
                        cells += [f"{value:.2f}" for value in np.mean(errors, axis=0)]
                    table.add(name, loss, f"{alpha:g}", label, *cells)
    table.note(f"Joint losses, r = 1, means of {SEEDS} seeds, alpha relative to the mean ‖x‖².")
    table.publish("first_steps")


if __name__ == "__main__":
    typer.run(main)
