"""Claim: a file of 8 GB is fitted with 1 GB of resident memory beside the libraries, by every kind of estimator.

Each fit runs in a process of its own and reads a file of float32 embeddings that is kept out of the page cache: what
has been read is dropped from it, so that each pass comes from the disk. Beside it stands the same estimator fitted in
memory to the first twentieth of the rows; both are judged on rows of their own.

``python -m benchmarks.out_of_memory [--gigabytes 8] [--limit 1GB] [--max-time 900] [--folder FOLDER]``
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer

from benchmarks import report
from benchmarks.memory import measured_alone, peak_bytes, reset_peak

N_FEATURES, N_CLASSES, N_TEST = 2048, 10, 20_000
SHARE_IN_MEMORY = 20
EVICTION_SECONDS = 0.5
MODELS = ["GLM, softmax", "calibrated", "stagewise", "Pegasos", "SDCA", "AutoClassifier"]


def estimator(name: str, max_time: float):
    import manyclass

    found: dict[str, Any] = {
        "GLM, softmax": manyclass.GLMClassifier(),
        "calibrated": manyclass.CalibratedLeastSquaresClassifier(max_iter=5),
        "stagewise": manyclass.StagewiseClassifier(n_components=512, block_size=256),
        "Pegasos": manyclass.PegasosClassifier(max_iter=1),
        "SDCA": manyclass.SDCAClassifier(alpha=1e-3, tol=1e-2, max_iter=10),
        "AutoClassifier": manyclass.AutoClassifier(),
    }
    return found[name].set_params(max_time=max_time)


def blocks(n_rows: int, seed: int):
    """Embeddings of classes that overlap, with a spectrum that falls off: (rows, labels) of 10 000 at a time.

    The noise is drawn once; each block has its columns in another order and with other signs, as to draw it anew would
    take longer than the disk.
    """
    centers = np.random.default_rng(0).standard_normal((N_CLASSES, N_FEATURES), dtype=np.float32)
    scale = (1.0 / np.sqrt(1.0 + np.arange(N_FEATURES) / 32)).astype(np.float32)
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((min(10_000, n_rows), N_FEATURES), dtype=np.float32)
    centers *= 0.25 * scale
    for start in range(0, n_rows, 10_000):
        y = rng.integers(0, N_CLASSES, min(10_000, n_rows - start))
        X = np.roll(noise[: len(y)], int(rng.integers(N_FEATURES)), axis=1)
        X *= 4.0 * scale * rng.choice(np.array([-1, 1], dtype=np.float32), N_FEATURES)
        X += centers[y]
        yield X, y


def write(folder: Path, n_rows: int) -> None:
    labels = []
    with (folder / "X.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, N_FEATURES)}
        np.lib.format.write_array_header_1_0(file, header)
        for X, y in blocks(n_rows, 1):
            file.write(X.data)
            labels.append(y)
        file.flush()
        os.fsync(file.fileno())
    np.save(folder / "y.npy", np.concatenate(labels))


def drop_from_cache(path: Path, stopped: threading.Event) -> None:
    """What other work with the same file would do on a machine whose memory is full."""
    with path.open("rb") as file:
        while not stopped.wait(EVICTION_SECONDS):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(name: str, folder: Path, limit: str, max_time: float) -> None:
    """Runs in its own process and prints what it found."""
    from manyclass.data import open_rows

    warnings.simplefilter("ignore")
    path, y = folder / "X.npy", np.load(folder / "y.npy")
    model = estimator(name, max_time)
    model.fit(np.load(path, mmap_mode="r")[:500].copy(), y[:500])  # imports and compilation are not the fit's
    stopped = threading.Event()
    threading.Thread(target=drop_from_cache, args=(path, stopped), daemon=True).start()
    reset_peak()
    before, started = psutil.Process().memory_info().rss, time.perf_counter()
    rows, y = open_rows(path, folder / "y.npy", limit)
    model.fit(rows, y, memory_limit=limit)
    seconds, peak = time.perf_counter() - started, peak_bytes()
    stopped.set()
    X_test, y_test = (np.concatenate(parts) for parts in zip(*blocks(N_TEST, 2), strict=True))
    few = len(y) // SHARE_IN_MEMORY
    in_memory = estimator(name, max_time).fit(np.load(path, mmap_mode="r")[:few].copy(), y[:few])
    fitted = getattr(model, "best_estimator_", model)
    fitted = getattr(fitted, "steps", [("", fitted)])[-1][1]  # behind its scaler
    found = {
        "seconds": seconds,
        "peak": peak - before,
        "resident": peak,
        "waiting": rows.seconds_waiting / seconds,
        "n_passes": float(fitted.n_passes_),
        "status": fitted.status_.name.lower().replace("_", " "),
        "error": 1.0 - model.score(X_test, y_test),
        "error_of_few": 1.0 - in_memory.score(X_test, y_test),
    }
    print(json.dumps(found))


def main(
    gigabytes: float = 8.0,
    limit: str = "1GB",
    max_time: Annotated[float, typer.Option(help="Seconds of a fit, after which it ends with what it has.")] = 900.0,
    folder: Annotated[Path | None, typer.Option(help="Where the file is made; by default a temporary folder.")] = None,
    model: Annotated[list[str], typer.Option()] = MODELS,
    measure_: Annotated[str, typer.Option("--measure", hidden=True)] = "",
) -> None:
    if measure_:
        assert folder is not None
        measure(measure_, folder, limit, max_time)
        return
    with tempfile.TemporaryDirectory(dir=folder) as name:
        n_rows = int(gigabytes * 1e9 / (4 * N_FEATURES))
        write(Path(name), n_rows)
        title = f"{n_rows:,} × {N_FEATURES} float32 ({gigabytes:g} GB), {N_CLASSES} classes, memory_limit={limit!r}"
        table = report.Table(
            title,
            [
                "estimator",
                "seconds",
                "ended by",
                "passes",
                "waiting for rows",
                "peak beside libraries",
                "in all",
                "error",
                "of few",
            ],
            live=True,
        )
        for one in model:
            options = ["--measure", one, "--folder", name, "--limit", limit, "--max-time", str(max_time)]
            found = measured_alone("benchmarks.out_of_memory", *options)
            if isinstance(found, str):
                table.add(one, found, *[""] * 7)
                continue
            table.add(
                one,
                f"{found['seconds']:.0f}",
                found["status"],
                f"{found['n_passes']:g}",
                f"{found['waiting']:.0%}",
                f"{found['peak'] / 1e6:.0f} MB",
                f"{found['resident'] / 1e6:.0f} MB",
                f"{found['error']:.2%}",
                f"{found['error_of_few']:.2%}",
            )
    table.note(
        f"Errors are of {N_TEST:,} other rows; those of few are of the same estimator fitted in memory to a twentieth "
        "of the rows. Passes are those that solvers count, and leave out looks at the rows before the first step. What "
        f"has been read is dropped from the page cache every {EVICTION_SECONDS} s."
    )
    table.publish("out_of_memory")


if __name__ == "__main__":
    typer.run(main)
