"""Where the time of one fit goes, and what share of it the machine's ceilings explain.

``python -m benchmarks.profile mnist-fourier --alpha 1e-6``
"""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from typing import Annotated

import numpy as np
import typer

from benchmarks import ceilings, data, report
from manyclass import GLMClassifier


def floor_seconds(n: int, d: int, k: int, passes: float) -> float:
    """Passes at the speed of sgemm or of one read of X, whichever is slower; one d×d second moment (syrk)."""
    sgemm, read = ceilings.matmul_rate(np.float32), ceilings.read_rate()
    one_pass = max(4.0 * n * d * k / sgemm, 4.0 * n * d / read)
    return passes * one_pass + 1.0 * n * d * d / sgemm


def main(
    problem: Annotated[str, typer.Argument(help=f"One of {', '.join(data.PROBLEMS)}, or a file.")] = "mnist-fourier",
    alpha: float = 1e-6,
    tol: float = 1e-4,
    lines: int = 25,
) -> None:
    X, y = data.load(problem)
    GLMClassifier(alpha=alpha, max_iter=2).fit(X[:2000], y[:2000])
    profiler = cProfile.Profile()
    start = time.perf_counter()
    model = profiler.runcall(GLMClassifier(alpha=alpha, tol=tol, max_iter=1000).fit, X, y)
    seconds = time.perf_counter() - start
    stream = io.StringIO()
    pstats.Stats(profiler, stream=stream).strip_dirs().sort_stats("tottime").print_stats(lines)
    print(stream.getvalue())
    history = model.history_
    passes, (n, d), k = history[-1].n_passes, X.shape, len(model.classes_)
    floor = floor_seconds(n, d, k, passes)
    table = report.Table(f"One fit: {problem}, alpha = {alpha:g}, tol = {tol:g}", ["what", "value"])
    table.add("seconds (profiled)", f"{seconds:.2f}")
    table.add("seconds before the first record", f"{history[0].seconds:.2f}")
    table.add("passes", f"{passes:g}")
    table.add("seconds a pass, after the first", f"{(history[-1].seconds - history[0].seconds) / (passes - 1):.3f}")
    table.add("floor: passes and one second moment at the ceilings", f"{floor:.2f}")
    table.add("floor / seconds", f"{floor / seconds:.2f}")
    print(table)
    for record in history:
        state = f"{record.objective:.7f}  {record.duality_gap:.2e}"
        print(f"{record.n_passes:6g} passes {record.seconds:8.2f} s  {state}")


if __name__ == "__main__":
    typer.run(main)
