"""Claim: fitting a 60 000 × 4096 float32 matrix takes at most 600 MB beyond the matrix.

Each fit runs in a process of its own; reported is the peak of its resident memory during `fit` less what was
resident just before, when X (983 MB) and the libraries were already loaded.

``python -m benchmarks.memory``
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer

from benchmarks import report

N_ROWS, N_FEATURES = 60_000, 4096
LIMIT_MB = 600
CLASSES = [10, 100]


def measured_alone(module: str, *options: str) -> dict[str, Any] | str:
    """What a benchmark prints as JSON in a process of its own, or the last line of what it complains about."""
    command = [sys.executable, "-m", module, *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, Any] | str = run.stderr.strip().splitlines()[-1] if run.returncode else json.loads(run.stdout)
    return found


def make_matrix(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes, filled in place so that nothing but X is left behind."""
    rng = np.random.default_rng(0)
    X = np.empty((N_ROWS, N_FEATURES), dtype=np.float32)
    y = rng.integers(0, n_classes, N_ROWS)
    centers = 0.1 * rng.standard_normal((n_classes, N_FEATURES), dtype=np.float32)
    for start in range(0, N_ROWS, 1000):
        block = X[start : start + 1000]
        rng.standard_normal(dtype=np.float32, out=block)
        block += centers[y[start : start + 1000]]
    return X, y


def reset_peak() -> None:
    """Linux forgets the peak so far; elsewhere it is the whole process's, which can only count against us."""
    control = Path("/proc/self/clear_refs")
    if control.exists():
        control.write_text("5")


def peak_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) << 10
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def estimator(name: str):
    alpha = 1e-4
    if name.startswith("manyclass"):
        from manyclass import GLMClassifier

        return GLMClassifier(alpha=alpha)
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1 / (alpha * N_ROWS), max_iter=10, solver=name.removeprefix("sklearn "))


def measure(name: str, n_classes: int) -> None:
    """Runs in its own process and prints one number: bytes beyond what was resident before `fit`."""
    X, y = make_matrix(n_classes)
    model = estimator(name)
    warnings.simplefilter("ignore")
    model.fit(X[:500, :50].copy(), y[:500])  # imports, compilation and thread pools are not the fit's memory
    reset_peak()
    before = psutil.Process().memory_info().rss
    model.fit(X, y)
    print(peak_bytes() - before)


def main(
    n_classes: Annotated[list[int], typer.Option()] = CLASSES,
    measure_: Annotated[str, typer.Option("--measure", hidden=True)] = "",
) -> None:
    if measure_:
        measure(measure_, n_classes[0])
        return
    table = report.Table(
        f"Peak memory of fit beyond X, {N_ROWS} × {N_FEATURES} float32 ({4e-6 * N_ROWS * N_FEATURES:.0f} MB)",
        ["estimator", *(f"k = {k}" for k in n_classes)],
    )
    for name in ("manyclass", "sklearn lbfgs", "sklearn newton-cg"):
        cells = []
        for k in n_classes:
            command = [sys.executable, "-m", "benchmarks.memory", "--measure", name, "--n-classes", str(k)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            megabytes = int(out) / 1e6
            verdict = "" if not name.startswith("manyclass") else (" ✓" if megabytes <= LIMIT_MB else " ✗")
            cells.append(f"{megabytes:.0f} MB{verdict}")
        table.add(name, *cells)
    table.note(f"The goal for manyclass is {LIMIT_MB} MB. scikit-learn was stopped after 10 iterations.")
    table.publish("memory")


if __name__ == "__main__":
    typer.run(main)
