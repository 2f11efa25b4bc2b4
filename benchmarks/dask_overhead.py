"""Claim: ten iterations of softmax regression on the workers of a local Dask cluster take at most 1.3 times as long as
in one process with as many threads, and what travels in a pass does not depend on the rows.

Rows are Gaussian, float32, d = 1024, k = 100, made where they stay, from the same seeds; each fit has processes of its
own.

``python -m benchmarks.dask_overhead``
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import report

N_FEATURES, N_CLASSES, ITERATIONS, PARTS = 1024, 100, 10, 8


def make_part(seed: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centers = 0.1 * np.random.default_rng(12345).standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    y = rng.integers(0, N_CLASSES, n_rows)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    for start in range(0, n_rows, 4096):
        X[start : start + 4096] += centers[y[start : start + 4096]]
    return X, y


def fit(X: Any, y: Any) -> dict[str, float]:
    from manyclass import GLMClassifier

    model = GLMClassifier(solver="quasi-newton", curvature="kronecker", tol=0.0, max_iter=ITERATIONS)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.perf_counter() - started
    first, last = model.history_[4], model.history_[-1]  # between refreshes of the curvature
    passes = last.n_passes - first.n_passes
    found = {"seconds": seconds, "pass": (last.seconds - first.seconds) / passes, "objective": last.objective}
    if last.details:
        found["bytes"] = (last["bytes"] - first["bytes"]) / passes
    return found


def plain(n_rows: int) -> dict[str, float]:
    X, y = np.empty((n_rows * PARTS, N_FEATURES), np.float32), np.empty(n_rows * PARTS, np.int64)
    for seed in range(PARTS):
        part = slice(seed * n_rows, (seed + 1) * n_rows)
        X[part], y[part] = make_part(seed, n_rows)
    return fit(X, y)


def on_workers(n_rows: int, n_workers: int) -> dict[str, float]:
    from dask import delayed
    from distributed import Client, LocalCluster, wait

    options: dict[str, Any] = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options, memory_limit=0) as cluster, Client(cluster) as client:
        made = client.persist([delayed(make_part, nout=2)(seed, n_rows) for seed in range(PARTS)])
        pairs = [(pair[0], pair[1]) for pair in made]
        wait(client.futures.values())
        before = client.run(received)
        found = fit([X for X, _ in pairs], [y for _, y in pairs])
        after = client.run(received)
        return found | {"between": float(sum(after.values()) - sum(before.values()))}


def received(dask_worker: Any) -> int:
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def main(
    gigabytes: float = 4.0,
    workers: Annotated[list[int], typer.Option(help="Numbers of workers, each with one thread.")] = [1, 2],  # noqa: B006
    one: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    n_rows = int(gigabytes * 1e9 / (4 * N_FEATURES * PARTS))
    if one:
        how, number = one.split()
        print(json.dumps(plain(n_rows) if how == "plain" else on_workers(n_rows, int(number))))
        return
    size = f"n = {n_rows * PARTS}, d = {N_FEATURES}, k = {N_CLASSES}, float32 ({gigabytes:g} GB), {PARTS} partitions"
    columns = ["", "fit, s", "a pass, s", "of plain: fit", "pass", "MB a pass", "MB between workers", "objective"]
    table = report.Table(f"Dask on one machine: {size}, {ITERATIONS} iterations", columns, live=True)
    for count in workers:
        reference, found = run(gigabytes, f"plain {count}", count), run(gigabytes, f"dask {count}", count)
        add(table, f"one process, {count} threads", reference, reference)
        add(table, f"Dask, {count} workers", found, reference)
    table.note(
        "MB a pass: coefficients to every worker and sums from every worker, as history_ counts them. MB between "
        "workers: of the whole fit, as Dask counts them (the head is not among them)."
    )
    table.publish("dask_overhead")


def run(gigabytes: float, what: str, n_threads: int) -> dict[str, float]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(n_threads))
    command = [sys.executable, "-m", "benchmarks.dask_overhead", "--gigabytes", str(gigabytes), "--one", what]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def add(table: report.Table, name: str, found: dict[str, float], reference: dict[str, float]) -> None:
    table.add(
        name,
        f"{found['seconds']:.1f}",
        f"{found['pass']:.2f}",
        f"{found['seconds'] / reference['seconds']:.2f}",
        f"{found['pass'] / reference['pass']:.2f}",
        f"{found['bytes'] / 1e6:.2f}" if "bytes" in found else "",
        f"{found['between'] / 1e6:.1f}" if "between" in found else "",
        f"{found['objective']:.6f}",
    )


if __name__ == "__main__":
    typer.run(main)
