"""The plot of the documentation's first page: objective against seconds, ours and peers.

``OMP_NUM_THREADS=1 python -m benchmarks.landing`` measures and keeps the numbers in ``results/landing.json``;
``--draw FILE.svg`` draws them.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks import data, report
from benchmarks.race import Curve, Problem, reference
from benchmarks.recorder import Recorder
from benchmarks.worker import WARM_UP_ROWS, attempt

NUMBERS = report.RESULTS / "landing.json"
PROBLEMS = {
    "mnist": ("MNIST: 60 000 × 784, 10 classes", 1e-4),
    "gaussian-classes": ("synthetic: 40 000 × 512, 1000 classes", 1e-5),
}
SOLVERS = {
    "manyclass_default": "GLMClassifier()",
    "cyanure_qning_miso": "cyanure, QNing-MISO",
    "sklearn_newton_cg": "LogisticRegression, newton-cg",
    "sklearn_lbfgs": "LogisticRegression, lbfgs",
}
SPACING = 0.1
"""Iterates closer than this share of the seconds so far are left out."""


def arrays_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    return data.load(name) if name in data.PROBLEMS else data.rows(name)


class Timed(Problem):
    """A problem that is known by its name wherever `data` finds it."""

    @property
    def arrays(self) -> data.Rows:  # type: ignore[override]
        return arrays_of(self.name)


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

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, (name, panel) in zip(figure.subplots(1, len(found["problems"])), found["problems"].items(), strict=True):
        for solver, label in SOLVERS.items():
            if solver not in panel["curves"]:
                continue
            seconds, values = map(np.array, panel["curves"][solver])
            above = np.maximum((values - panel["minimum"]) / (panel["at_zero"] - panel["minimum"]), 1e-6)
            ours = solver.startswith("manyclass")
            axes.plot(seconds, above, label=label, linewidth=2.4 if ours else 1.4, zorder=3 if ours else 2)
        axes.set(xscale="log", yscale="log", ylim=(1e-5, 1.2), title=PROBLEMS[name][0])
        axes.set_xlabel("seconds of one core, set-up included")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("objective above the minimum\n(zero model = 1)")
    figure.axes[0].legend(fontsize="small", loc="lower left")
    figure.savefig(path)


def main(
    limit: Annotated[float, typer.Option(help="Seconds of each run.")] = 40.0,
    drawn: Annotated[Path | None, typer.Option("--draw", help="Draw what was measured, and measure nothing.")] = None,
) -> None:
    if drawn is not None:
        return draw(json.loads(NUMBERS.read_text()), drawn)
    found: dict = {"environment": report.environment(), "problems": {}}
    for name, (_, alpha) in PROBLEMS.items():
        problem = Timed(name, alpha)
        curves = {}
        for solver in SOLVERS:
            curve = measured(solver, problem, limit)
            curves[solver] = [np.round(part, 6).tolist() for part in curve.points()]
            print(name, solver, curve.seconds[-1], curve.best(), flush=True)
        minimum = min(reference(problem), *(min(values) for _, values in curves.values()))
        found["problems"][name] = {"minimum": minimum, "at_zero": problem.at_zero, "curves": curves}
        NUMBERS.write_text(json.dumps(found))
    return None


if __name__ == "__main__":
    typer.run(main)
