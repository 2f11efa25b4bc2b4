"""One run of one solver on one problem, in a process of its own: none inherits another's caches or threads.

``python -m benchmarks.worker SOLVER PROBLEM ALPHA LIMIT FOLDER``
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.recorder import Recorder, TimeUp

WARM_UP_ROWS = 2000


def run(solver: str, problem: str, alpha: float, limit: float, folder: Path) -> None:
    fit = importlib.import_module(f"benchmarks.solvers.{solver}").fit
    X, y = data.load(problem)
    # Compilation, lazy imports and thread pools are met on a few rows first, by every solver alike.
    _, few = np.unique(y[:WARM_UP_ROWS], return_inverse=True)
    with tempfile.TemporaryDirectory() as scratch:
        attempt(fit, X[:WARM_UP_ROWS], few, alpha, Recorder(Path(scratch), 0.0))
    attempt(fit, X, y, alpha, Recorder(folder, limit))


def attempt(fit, X, y, alpha: float, record: Recorder) -> None:
    record.start()
    try:
        fit(X, y, alpha, record)
    except TimeUp:
        pass


if __name__ == "__main__":
    solver, problem, alpha, limit, folder = sys.argv[1:]
    run(solver, problem, float(alpha), float(limit), Path(folder))
