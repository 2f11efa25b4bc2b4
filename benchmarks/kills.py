"""Claim: a fit that is killed at any moment, again and again, ends with the model of one that never was.

Fits of every family run in processes of their own, with a checkpoint after nearly every iterate. They are killed by
SIGKILL at random times, some while they write, and started again until they end; what they end with is compared, digit
for digit, with what a fit without any checkpoint gives.

``python -m benchmarks.kills``
"""

from __future__ import annotations

import json
import multiprocessing
import random
import tempfile
import time
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from benchmarks import report

N_ROWS, N_FEATURES, N_CLASSES = 6000, 64, 12
LATEST = 0.95
"""Share of the time of a whole fit after which a process is killed at the latest."""

BLOCKS = {"alpha": 1e-3, "n_components": 1000, "block_size": 100, "max_iter": 3}
FITS: dict[str, tuple[str, dict[str, Any]]] = {
    "quasi-newton, Newton-CG": ("GLMClassifier", {"alpha": 1e-7, "tol": 1e-10}),
    "newton": ("GLMClassifier", {"solver": "newton", "tol": 1e-12, "alpha": 1e-6}),
    "accelerated": ("GLMClassifier", {"solver": "accelerated", "tol": 0, "max_iter": 300}),
    "majorize": ("GLMClassifier", {"solver": "majorize", "tol": 0, "max_iter": 300}),
    "gradient": ("GLMClassifier", {"solver": "gradient", "tol": 0, "max_iter": 40}),
    "biased-gradient": ("GLMClassifier", {"solver": "biased-gradient", "tol": 0, "max_iter": 30}),
    "path of penalties": ("GLMClassifierCV", {"alphas": 8, "cv": 3}),
    "calibrated": ("CalibratedLeastSquaresClassifier", {"n_iter_no_change": 40, "tol": 0, "max_iter": 20}),
    "stagewise": (
        "StagewiseClassifier",
        {"loss": "calibrated", **BLOCKS, "n_iter_no_change": 30, "early_stopping": True},
    ),
    "stagewise, Newton": ("StagewiseClassifier", {"loss": "softmax", **BLOCKS}),
    "stagewise regression": ("StagewiseRegressor", BLOCKS),
    "Pegasos": ("PegasosClassifier", {"tol": 0, "max_iter": 100}),
    "SDCA": ("SDCAClassifier", {"loss": "crammer_singer", "alpha": 1e-6, "tol": 1e-8, "max_iter": 400}),
    "SDCA regression": ("SDCARegressor", {"loss": "huber", "alpha": 1e-7, "tol": 1e-10}),
    "bound majorization": ("BoundMajorizationClassifier", {"rank": 4, "tol": 0, "max_iter": 15}),
}
QUICK = ("accelerated", "Pegasos", "calibrated")


class Ended(NamedTuple):
    """What a fit ended with."""

    scores: list[Any]
    objectives: list[float]
    status: str


def data(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes in ill-conditioned columns; `scale` is the share of the rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLASSES, int(scale * N_ROWS))
    centers = 0.35 * rng.standard_normal((N_CLASSES, N_FEATURES))
    return (centers[y] + rng.standard_normal((len(y), N_FEATURES))) * np.logspace(0, -2, N_FEATURES), y


def fit(name: str, scale: float, path: Path | None, result: Path) -> None:
    """In a process of its own: the fit, and what it ended with as a file, written whole."""
    import manyclass
    from manyclass.fit import checkpoint

    checkpoint.EVERY, checkpoint.SHARE = 0.02, 0.5  # so that kills find many states, and some a file half written
    warnings.simplefilter("ignore")
    kind, options = FITS[name]
    X, y = data(scale)
    model = getattr(manyclass, kind)(**options)
    model.fit(X, y, checkpoint=path)
    scores = getattr(model, "decision_function", model.predict)(X[:200]).tolist()
    ended = Ended(scores, [record.objective for record in model.history_], model.status_.name)
    part = result.with_suffix(".part")
    part.write_text(json.dumps(ended))
    part.replace(result)


class Processes:
    """Fits in processes that have imported everything beforehand, and share nothing else."""

    def __init__(self, folder: Path, scale: float):
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(
            ["manyclass.estimators.auto", "sklearn.linear_model", "numba", "benchmarks.report", "typer"]
        )
        self.folder, self.scale = folder, scale

    def run(self, name: str, path: Path | None, kill_after: float | None = None) -> Ended | None:
        """What a fit ends with, or None where it was killed before."""
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        process = self.context.Process(target=fit, args=(name, self.scale, path, result))
        process.start()
        process.join(kill_after)
        if process.is_alive():
            process.kill()
            process.join()
            return None
        if process.exitcode != 0:
            raise RuntimeError(f"{name} failed")
        return Ended(*json.loads(result.read_text()))


def survive(
    processes: Processes, name: str, n_kills: int, rng: random.Random
) -> tuple[Ended, list[Ended], int, int, float]:
    """The uninterrupted fit, those that were killed, kills of all, kills that left a checkpoint, and seconds in all."""
    whole = processes.run(name, None)
    started = time.perf_counter()
    processes.run(name, None)  # with all that is compiled in place
    seconds = time.perf_counter() - started
    assert whole is not None
    shortest = seconds
    ended: list[Ended] = []
    killed = resumed = 0
    while killed < n_kills or not ended:
        path = processes.folder / f"{len(ended)}.checkpoint"
        while True:
            began = time.perf_counter()
            found = processes.run(name, path, rng.uniform(0.05, LATEST) * shortest if killed < n_kills else None)
            if found is not None:
                shortest = min(shortest, time.perf_counter() - began)  # or few would be killed
                break
            killed, resumed = killed + 1, resumed + path.exists()
        ended.append(found)
        for stray in processes.folder.glob("*.checkpoint*"):
            stray.unlink()
    return whole, ended, killed, resumed, seconds


def largest_difference(whole: Ended, other: Ended) -> float:
    """Of scores and objectives; infinite where the fits took other ways."""
    if whole.status != other.status or len(whole.objectives) != len(other.objectives):
        return float("inf")
    pairs = [(whole.scores, other.scores), (whole.objectives, other.objectives)]
    return max(float(np.nanmax(np.abs(np.asarray(a) - np.asarray(b)), initial=0.0)) for a, b in pairs)


def main(
    n: Annotated[int, typer.Option(help="Kills, of all families together.")] = 56,
    scale: Annotated[float, typer.Option(help="Share of the rows.")] = 1.0,
    quick: Annotated[bool, typer.Option(help="Three families, and no file.")] = False,
    only: Annotated[str, typer.Option(help="One family, and no file.")] = "",
    seed: int = 0,
) -> None:
    names = (only,) if only else QUICK if quick else tuple(FITS)
    columns = ["fit", "seconds", "kills", "of which resumed", "fits ended", "equal to the digit", "largest difference"]
    title = f"Killed and started again: {int(scale * N_ROWS)} × {N_FEATURES}, {N_CLASSES} classes"
    table, rng, total, lost = report.Table(title, columns, live=True), random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder), scale)
        for place, name in enumerate(names):
            share = n * (place + 1) // len(names) - n * place // len(names)
            whole, ended, killed, resumed, seconds = survive(processes, name, share, rng)
            differences = [largest_difference(whole, one) for one in ended]
            equal = sum(difference == 0.0 for difference in differences)
            total, lost = total + killed, lost + sum(not difference < 1e-6 for difference in differences)
            table.add(name, f"{seconds:.1f}", killed, resumed, len(ended), equal, f"{max(differences):.1g}")
    table.note(f"{total} kills; {lost} of the fits ended otherwise than the one that was left alone.")
    if quick or only:
        print(table)
    else:
        table.publish("kills")
    if lost:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
