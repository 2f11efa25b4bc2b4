"""The plot of the documentation's first page: objective against seconds, ours and peers.

``OMP_NUM_THREADS=1 python -m benchmarks.landing`` measures and keeps the numbers in ``results/landing.json``;
``--draw FILE.svg`` draws them.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import time
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks import data, report
from benchmarks.race import Curve, Problem
from benchmarks.recorder import Recorder
from benchmarks.worker import WARM_UP_ROWS, attempt

NUMBERS = report.RESULTS / "landing.json"
PROBLEMS = {
    "embeddings": ("embeddings: 10 000 × 256 of unit norm, 1000 classes", 1e-5),
    "mnist": ("MNIST pixels: 60 000 × 784, 10 classes", 1e-4),
}
SOLVERS = {
    "manyclass_default": "GLMClassifier()",
    "cyanure_qning_miso": "cyanure, QNing-MISO",
    "sklearn_newton_cg": "LogisticRegression, newton-cg",
    "sklearn_lbfgs": "LogisticRegression, lbfgs",
}
SPACING = 0.1
"""Iterates closer than this share of the seconds so far are left out."""


class Timed(Problem):
    """One of the two by its name; float32 rows and class codes."""

    @cached_property
    def arrays(self) -> data.Rows:
        return data.rows(self.name) if self.name == "mnist" else embeddings()


def embeddings() -> data.Rows:
    """Rows around 1000 centres, directions of unequal variance, of unit norm."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(10_000) % 1000)
    X = rng.standard_normal((1000, 256))[y] + 0.7 * rng.standard_normal((len(y), 256))
    X *= np.arange(1, 257) ** -0.4
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y


def measured(solver: str, problem: Problem, limit: float) -> Curve:
    """One run, in seconds of the processor: other work goes on beside it, and every solver has one thread."""
    fit = importlib.import_module(f"benchmarks.solvers.{solver}").fit
    X, y = problem.arrays
    few = np.unique(y[:WARM_UP_ROWS], return_inverse=True)[1]
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as folder:
        attempt(fit, X[:WARM_UP_ROWS], few, problem.alpha, Recorder(Path(scratch), 0.0))
        wall, processor = time.perf_counter(), time.process_time()
        attempt(fit, X, y, problem.alpha, Recorder(Path(folder), limit, clock=time.process_time, spacing=SPACING))
        share = (time.process_time() - processor) / (time.perf_counter() - wall)
        log = Path(folder) / "log.json"
        if log.exists():  # kept by the solver itself, in seconds of the clock on the wall
            known = json.loads(log.read_text())
            log.write_text(json.dumps(known | {"seconds": [share * s for s in known["seconds"]]}))
        curve = Curve(solver, problem, limit).read(Path(folder))
        curve.objectives(range(len(curve.seconds)))
        return curve


def draw(found: dict, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(found["problems"]) + 0.5, 3.4), layout="constrained")
    panels = figure.subplots(1, len(found["problems"]), squeeze=False)[0]
    for axes, (name, panel) in zip(panels, found["problems"].items(), strict=True):
        # Not known better than by the duality gap of our last iterate, 1e-5: nothing is drawn near that.
        minimum = min(min(values) for _, values in panel["curves"].values())
        for solver, label in SOLVERS.items():
            if solver not in panel["curves"]:
                continue
            seconds, values = map(np.array, panel["curves"][solver])
            above = (values - minimum) / (panel["at_zero"] - minimum)
            ours = solver.startswith("manyclass")
            axes.plot(seconds, above, label=label, linewidth=2.4 if ours else 1.4, zorder=3 if ours else 2)
        axes.set(xscale="log", yscale="log", ylim=(1e-4, 1.2), title=PROBLEMS[name][0])
        axes.set_xlabel("seconds of one core, set-up included")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("objective above the minimum\n(zero model = 1)")
    panels[0].legend(fontsize="small", loc="lower left")
    figure.savefig(path)


def main(
    limit: Annotated[float, typer.Option(help="Seconds of each run.")] = 40.0,
    chosen: Annotated[list[str] | None, typer.Option("--problem", help="Instead of both.")] = None,
    drawn: Annotated[Path | None, typer.Option("--draw", help="Draw what was measured, and measure nothing.")] = None,
) -> None:
    found: dict = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {"problems": {}}
    if drawn is not None:
        return draw(found, drawn)
    found["environment"] = report.environment()
    for name in chosen or PROBLEMS:
        problem = Timed(name, PROBLEMS[name][1])
        panel = found["problems"][name] = {"limit": limit, "at_zero": problem.at_zero, "curves": {}}
        for solver in SOLVERS:
            curve = measured(solver, problem, limit)
            panel["curves"][solver] = [np.round(part, 6).tolist() for part in curve.points()]
            print(name, solver, curve.seconds[-1], curve.best(), flush=True)
            NUMBERS.write_text(json.dumps(found) + "\n")
    return None


if __name__ == "__main__":
    typer.run(main)
