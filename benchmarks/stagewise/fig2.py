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
WIDTHS, SUBSET, FASTER, LIMIT = (2048, 8192, 16_384, 32_768, 65_536), 10_000, 20, 600.0
PASSES = {2048: 10, 8192: 3}
"""Over the features, of the models with a calibrated or squared loss; one over more."""
HELD = {IN_MEMORY: 8, "LIBLINEAR": 28, "Vowpal Wabbit": 40, "Snap ML": 12}
"""Bytes of a number of X, at their peak, for those who need all features at once: LIBLINEAR's nodes beside CSR; the
text that Vowpal Wabbit reads; a copy."""
ROWS, MOST_HELD = 60_000, 18e9
"""Of MNIST, and bytes from which a method is not run."""


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
    return mnist.stagewise(X, width, loss=loss, max_iter=PASSES.get(width, 1))


OURS: dict[str, Callable[[np.ndarray, int], Any]] = {
    "manyclass stagewise, softmax": softmax,
    "manyclass stagewise, calibrated": partial(passes, loss="calibrated"),
    "manyclass stagewise, squared": partial(passes, loss="squared"),
    # Eight iterations: on held-out rows further ones raise the error again, with up to 8192 features.
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


def held(name: str, width: int) -> float:
    """Bytes that a method needs for the features of all rows."""
    return ROWS * width * next((each for part, each in HELD.items() if part in name), 0)


@app.command()
def measure(width: int, method: str = "", limit: float = LIMIT) -> None:
    """Measure ours (``--method manyclass``) and the peers whose names hold `method`."""
    for name in OURS:
        if method in name and held(name, width) <= MOST_HELD:
            measure_ours(width, name)
    for name, peer in peers.PEERS.items():
        if method in name and held(name, width) <= MOST_HELD:
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
    columns = ["method", *(f"{width} features" for width in widths)]
    result = Table("MNIST, the same random Fourier features for everyone", columns)
    for name in (*OURS, *peers.PEERS):
        cells = [cell(found, name, width) for width in widths]
        if any(text[-1:] in "%)" for text in cells):
            result.add(name, *cells)
    result.note(
        "One thread each. Seconds of the processor for training (times those of the first row) and test errors; our "
        "stagewise models generate their features within them, the others find them in memory in their own format, and "
        f"what takes more than {MOST_HELD / 1e9:g} GB then is not run. alpha is relative to the mean squared norm of a "
        f"row and was chosen from three values on at most {SUBSET} training rows. A run is ended at its --limit (at "
        f"most {LIMIT:g} s) and is then a lower bound. Goal: {FASTER} times as fast as each of the LIBLINEAR variants, "
        "with no more errors than the best."
    )
    result.publish("stagewise_fig2")
    draw(widths, found)


def cell(found: dict[str, dict], name: str, width: int) -> str:
    one, ours = (found.get(f"{width} {method}") for method in (name, next(iter(OURS))))
    if held(name, width) > MOST_HELD:
        return f"{held(name, width) / 1e9:.0f} GB"
    if one is None or ours is None:
        return "not run"
    above, ratio = "> " if one["error"] is None else "", one["seconds"] / ours["seconds"]
    error = "" if one["error"] is None else f", {one['error']:.2f} %"
    return f"{above}{one['seconds']:.1f} s ({above}{ratio:.1f}){error}"


def draw(widths: Sequence[int], found: dict[str, dict]) -> None:
    """Error against seconds, a line for each method through its widths; a run that was ended has no error."""
    with figure("stagewise_fig2", 1, (9, 5.5)) as axes:
        ax = np.atleast_1d(axes)[0]
        for number, name in enumerate((*OURS, *peers.PEERS)):
            ended = [found.get(f"{width} {name}") for width in widths if held(name, width) <= MOST_HELD]
            points = [(one["seconds"], one["error"]) for one in ended if one is not None and one["error"] is not None]
            if points:
                style = {"marker": "os^Dv<>P*"[number % 9], "color": f"C{number % 10}"}
                ax.plot(*zip(*points, strict=True), linestyle="-" if name in OURS else ":", label=name, **style)
        told = ", ".join(map(str, widths))
        ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="test error, %", title=f"MNIST, {told} features")
        plain_ticks(ax.xaxis)
        plain_ticks(ax.yaxis)
        ax.legend(fontsize="small")


if __name__ == "__main__":
    app()
