"""Claims: on the same random Fourier features of MNIST no worse than the best of LIBLINEAR, Vowpal Wabbit and Snap ML,
and at least 20 times as fast as each variant of LIBLINEAR (Fig. 2 of *Least Squares Revisited*).

``python -m benchmarks.stagewise.fig2 measure 2048 --method "-s 2"`` measures the methods of that name and keeps what it
found; ``python -m benchmarks.stagewise.fig2 table`` puts all that is kept into one table. One thread each.
"""

from __future__ import annotations

import itertools
import json
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import Table, figure, plain_ticks
from benchmarks.stagewise import mnist, peers
from benchmarks.stochastic.peers import installed
from manyclass import GLMClassifier, StagewiseClassifier

app = typer.Typer(help=__doc__)
IN_MEMORY = "manyclass softmax, in memory"
WIDTHS, SUBSET, FASTER, LIMIT = (2048, 8192), 10_000, 20, 600.0


def kept() -> Path:
    return data.cache() / "stagewise_fig2.json"


def known() -> dict[str, dict]:
    return json.loads(kept().read_text()) if kept().exists() else {}


def keep(width: int | str, name: str, **found: object) -> None:
    print(width, name, found, flush=True)
    everything = known()
    everything[f"{width} {name}"] = found
    kept().parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept().with_suffix(".tmp")
    unfinished.write_text(json.dumps(everything, indent=1))
    unfinished.replace(kept())


def softmax(X: np.ndarray, width: int) -> StagewiseClassifier:
    return mnist.stagewise(X, width, loss="softmax", block_size=512, alpha=1e-7)


def passes(X: np.ndarray, width: int, loss: str) -> StagewiseClassifier:
    return mnist.stagewise(X, width, loss=loss, max_iter=10 if width == WIDTHS[0] else 3)


OURS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "manyclass stagewise, softmax": softmax,
    "manyclass stagewise, calibrated": partial(passes, loss="calibrated"),
    "manyclass stagewise, squared": partial(passes, loss="squared"),
    # Eight iterations: on held-out rows further ones raise the error again.
    IN_MEMORY: lambda X, width: GLMClassifier(1e-7, max_iter=8),
}


def features(width: int) -> mnist.Split:
    """What our softmax model of this width generates, as a matrix for those who need one; kept as files."""
    folder = data.cache() / f"mnist-stagewise-{width}"
    names = ("X", "y", "X_test", "y_test")
    if not (folder / "y_test.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        X, y, X_test, y_test = mnist.projected(tilt=mnist.TILT)
        model = softmax(X, width).fit(X, y)
        for name, rows in (("X", X), ("X_test", X_test)):
            np.save(folder / f"{name}.npy", np.hstack([block.transform(rows) for block in model.models_[0].blocks]))
        np.save(folder / "y.npy", y)
        np.save(folder / "y_test.npy", y_test)
    X, y, X_test, y_test = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in names)
    return X, y, X_test, y_test


def measure_ours(width: int, name: str) -> None:
    split = features(width) if name == IN_MEMORY else mnist.projected(tilt=mnist.TILT)
    X, y, X_test, y_test = map(np.asarray, split)
    make = OURS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        make(X, 512).fit(X[:2000], y[:2000])
        model, started = make(X, width), time.process_time()
        model.fit(X, y)
    seconds = time.process_time() - started
    keep(width, name, seconds=seconds, error=100 * np.mean(model.predict(X_test) != y_test), setting="")


@app.command()
def measure(width: int, method: str = "", limit: float = LIMIT) -> None:
    """Measure ours (``--method manyclass``) and the peers whose names hold `method`."""
    for name in OURS:
        if method in name:
            measure_ours(width, name)
    for name, peer in peers.PEERS.items():
        if method in name:
            setting = chosen(name, peer, min(width, WIDTHS[0]))
            seconds, error = peers.measure_within(limit, peer, setting, *map(np.asarray, features(width)))
            keep(width, name, seconds=seconds, error=error, setting=" ".join(f"{k} {v}" for k, v in setting.items()))


def chosen(name: str, peer: peers.Method, width: int) -> peers.Setting:
    """Chosen once, at the smallest width: rows have the same norm at each."""
    key = f"settings{'' if width == WIDTHS[0] else f' {width}'}"
    settings = known().get(f"{key} {name}")
    if settings is None:
        X, y, *_ = features(width)
        order = np.random.default_rng(0).permutation(len(X))[: SUBSET + SUBSET // 2]
        train, held = np.split(order, [2 * len(order) // 3])
        settings = peers.chosen_setting(peer, np.asarray(X[train]), y[train], np.asarray(X[held]), y[held])
        keep(key, name, **settings)
    return settings


def compare(widths: Sequence[int] = WIDTHS, methods: Sequence[str] = ("",), limit: float = LIMIT) -> None:
    """What has not been measured yet of the methods whose names hold one of `methods`, and the table."""
    for width, name in itertools.product(widths, (*OURS, *peers.PEERS)):
        wanted = installed(name) and any(part in name for part in methods)
        if wanted and f"{width} {name}" not in known():
            measure(width, name, limit)
    publish(widths)


@app.command()
def table() -> None:
    """The table of what has been measured."""
    publish(WIDTHS)


def publish(widths: Sequence[int]) -> None:
    found = known()
    columns = [
        "method",
        *(f"{width} features: {what}" for width in widths for what in ("seconds", "times ours", "test error, %")),
    ]
    result = Table("MNIST, the same random Fourier features for everyone", columns)
    for name in (*OURS, *peers.PEERS):
        cells = []
        for width in widths:
            one, ours = (found.get(f"{width} {method}") for method in (name, next(iter(OURS))))
            if one is None or ours is None:
                cells += ["not run", "", ""]
                continue
            late = one["error"] is None
            above = "> " if late else ""
            cells += [f"{above}{one['seconds']:.1f}", f"{above}{one['seconds'] / ours['seconds']:.1f}"]
            cells.append("" if late else f"{one['error']:.2f}")
        if set(cells) != {"not run", ""}:
            result.add(name, *cells)
    result.note(
        "One thread each. Seconds of the processor for training; our stagewise models generate their features within "
        "them, the others find them in memory in their own format. Times ours: of the seconds of the first row. alpha "
        f"is relative to the mean squared norm of a row and was chosen from three values on at most {SUBSET} training "
        f"rows. A run is ended at its --limit (at most {LIMIT:g} s) and is then a lower bound. Goal: {FASTER} times as "
        "fast as each of the LIBLINEAR variants, with no more errors than the best."
    )
    result.publish("stagewise_fig2")
    draw(widths, found)


def draw(widths: Sequence[int], found: dict[str, dict]) -> None:
    """Error against seconds; a run that was ended has no error."""
    with figure("stagewise_fig2", len(widths), (6 * len(widths), 4.5)) as axes:
        for ax, width in zip(axes, widths, strict=True):
            for number, name in enumerate((*OURS, *peers.PEERS)):
                one = found.get(f"{width} {name}")
                if one is not None and one["error"] is not None:
                    style = {"marker": "os^Dv"[number % 5], "color": f"C{number % 10}"}
                    ax.plot(one["seconds"], one["error"], linestyle="", label=name, **style)
            ax.set(xscale="log", xlabel="seconds", ylabel="test error, %", title=f"MNIST, {width} features")
            plain_ticks(ax.xaxis)
            ax.legend(fontsize="small")


if __name__ == "__main__":
    app()
