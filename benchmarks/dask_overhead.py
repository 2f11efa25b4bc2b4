"""Claim: ten iterations of softmax regression on the workers of a local Dask cluster take at most 1.3 times as long as
without Dask, what travels in a pass does not depend on the rows, and no rows travel.

Rows are Gaussian, float32, d = 1024, k = 100, in a file that every process maps, so that they are in memory once. What
M workers are compared with is M processes without Dask at once, each of which fits its own Mth of the rows on one
thread, until the last has ended: they use as many processors, and tell each other nothing. Runs are taken in turns, and
of each kind the fastest counts. Processes have imported what they need before the clock starts, and partitions lie
evenly on the workers.

``python -m benchmarks.dask_overhead``
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib import import_module
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import report

N_FEATURES, N_CLASSES, ITERATIONS, PARTS = 1024, 100, 10, 8


def make(folder: Path, n_rows: int) -> None:
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n_rows, N_FEATURES))
    y = np.random.default_rng(1).integers(0, N_CLASSES, n_rows)
    centers = 0.1 * np.random.default_rng(12345).standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, 4096):
        codes = y[start : start + 4096]
        X[start : start + 4096] = rng.standard_normal((len(codes), N_FEATURES), dtype=np.float32) + centers[codes]
    np.save(folder / "y.npy", y)


def mapped(folder: str, part: slice) -> np.ndarray:
    return np.load(Path(folder) / "X.npy", mmap_mode="r")[part]


def labels(folder: str, part: slice) -> np.ndarray:
    return np.load(Path(folder) / "y.npy")[part]


def divided(n_rows: int, n_parts: int) -> list[slice]:
    edges = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def processor_seconds() -> float:
    """Of this process, all threads."""
    return time.process_time()


def received(dask_worker: Any) -> int:
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def imported() -> None:
    """On a worker, before the clock runs."""
    import_module("manyclass.data.parted")


def fit(X: Any, y: Any) -> dict[str, float]:
    """Once this process, which says that it is ready, is told to begin: those that are compared begin at once."""
    from manyclass import GLMClassifier

    model = GLMClassifier(solver="quasi-newton", curvature="kronecker", tol=0.0, max_iter=ITERATIONS)
    print("ready", flush=True)
    sys.stdin.readline()
    started, used = time.perf_counter(), processor_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds, used = time.perf_counter() - started, processor_seconds() - used
    first, last = model.history_[4], model.history_[-1]  # between refreshes of the curvature
    passes = last.n_passes - first.n_passes
    found = {"seconds": seconds, "processor": used, "pass": (last.seconds - first.seconds) / passes}
    found["passes"] = last.n_passes
    if last.details:
        found["bytes"] = (last["bytes"] - first["bytes"]) / passes
    return found | {"objective": last.objective}


def plain(folder: str, part: slice) -> dict[str, float]:
    return fit(mapped(folder, part), labels(folder, part))


def on_workers(folder: str, n_rows: int, n_workers: int) -> dict[str, float]:
    from dask import delayed
    from distributed import Client, LocalCluster, wait

    options: dict[str, Any] = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options, memory_limit=0) as cluster, Client(cluster) as client:
        names = sorted(client.run(imported))
        pairs = []
        for number, part in enumerate(divided(n_rows, PARTS)):
            made = [delayed(mapped)(folder, part), delayed(labels)(folder, part)]
            pairs.append(client.persist(made, workers=[names[number * n_workers // PARTS]]))
        wait(pairs)
        before, used = client.run(received), client.run(processor_seconds)
        found = fit([X for X, _ in pairs], [y for _, y in pairs])
        found["processor"] += sum(client.run(processor_seconds).values()) - sum(used.values())
        return found | {"between": float(sum(client.run(received).values()) - sum(before.values()))}


def main(
    gigabytes: float = 4.0,
    workers: Annotated[
        list[int] | None, typer.Option(help="Numbers of workers, each with one thread; 1 and 2 by default.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each kind, of which the fastest counts.")] = 2,
    one: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    if one:
        folder, how, first, second = json.loads(one)
        print(json.dumps(plain(folder, slice(first, second)) if how == "plain" else on_workers(folder, first, second)))
        return
    n_rows = int(gigabytes * 1e9 / (4 * N_FEATURES))
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), n_rows)
        kinds: dict[tuple[str, int], list[dict[str, float]]] = {}
        for _ in range(repeats):
            for count in workers or (1, 2):
                parts = [[folder, "plain", part.start, part.stop] for part in divided(n_rows, count)]
                for kind, processes in {"plain": parts, "dask": [[folder, "dask", n_rows, count]]}.items():
                    kinds.setdefault((kind, count), []).append(run(processes))
                    print(kind, count, kinds[kind, count][-1], flush=True)
    size = f"n = {n_rows}, d = {N_FEATURES}, k = {N_CLASSES}, float32 ({gigabytes:g} GB), {PARTS} partitions"
    publish(f"Dask on one machine: {size}, {ITERATIONS} iterations, the fastest of {repeats}", kinds)


def publish(title: str, kinds: dict[tuple[str, int], list[dict[str, float]]]) -> None:
    columns = ["", "fit, s", "passes", "a pass, s", "processor, s", "cores had", "of that without: fit", "pass"]
    table = report.Table(title, [*columns, "processor", "MB a pass", "MB between workers", "objective"])
    for (kind, count), runs in kinds.items():
        first, found = (min(some, key=itemgetter("seconds")) for some in (kinds["plain", count], runs))
        table.add(
            f"Dask, {count}" if kind == "dask" else f"without, {count}",
            *(f"{found['seconds']:.1f}", f"{found['passes']:g}", f"{found['pass']:.2f}", f"{found['processor']:.1f}"),
            f"{found['processor'] / found['seconds']:.2f}",
            *(f"{found[name] / first[name]:.2f}" for name in ("seconds", "pass", "processor")),
            f"{found['bytes'] / 1e6:.2f}" if "bytes" in found else "",
            f"{found['between'] / 1e6:.1f}" if "between" in found else "",
            "" if kind == "plain" and count > 1 else f"{found['objective']:.6f}",
        )
    table.note(
        "Workers of Dask, and processes without it, each of which fits its share of the rows, all at once. Passes may "
        "differ, as the rows that curvature is estimated from are drawn part by part; a pass: the mean of the later "
        "ones. Processor: of all threads of all processes, head and scheduler among them; cores had: these by the "
        "seconds, less than there are where others had them. MB a pass: coefficients to "
        "every worker and sums from every worker, as history_ counts them. MB between workers: of the whole fit, as "
        "Dask counts them (the head is not among them)."
    )
    table.publish("dask_overhead")


def run(processes: list[list[Any]]) -> dict[str, float]:
    """What processes that begin at the same time find: how long until the last has ended, and what they use in all."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, "1")
    command = [sys.executable, "-m", "benchmarks.dask_overhead", "--one"]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([*command, json.dumps(each)], stdin=pipe, stdout=pipe, text=True, env=environment)
        for each in processes
    ]
    for process in started:
        assert process.stdout is not None
        if not any(line == "ready\n" for line in iter(process.stdout.readline, "")):
            raise RuntimeError("A process ended before it began to fit.")
    for process in started:
        assert process.stdin is not None
        process.stdin.write("begin\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]
    total = {name: max(one[name] for one in found) for name in found[0]}
    return total | {"processor": sum(one["processor"] for one in found)}


if __name__ == "__main__":
    typer.run(main)
