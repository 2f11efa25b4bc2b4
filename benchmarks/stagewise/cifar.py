"""CIFAR-10 from random filters, as a kernel between all images and as features of a linear model.

Goals: 80 % with about 400 filters, 85 % by averaging models on disjoint filters. Times are CPU seconds of all threads,
so that other jobs on the machine do not count.

``python -m benchmarks.stagewise.cifar exact`` solves ridge regression with a Gaussian kernel between all 50 000
training images (about 8 GB of memory); ``averages`` compares averages of models with one kernel of all their filters
(Fig. 3 of the paper), ``choose`` parameters on held-out training images, and ``linear`` fits `StagewiseClassifier` to
responses. ``--source`` takes the folder of the original binaries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import data
from benchmarks.report import Table, figure, plain_ticks
from benchmarks.stagewise import cifar_images, exact_kernel
from benchmarks.stagewise.cifar_features import SHAPE, UNIT, Bank, quantised
from benchmarks.stagewise.exact_kernel import MeanKernel, MirrorKernel
from manyclass import StagewiseClassifier
from manyclass.features import ImagePatches

app = typer.Typer(help=__doc__)
FILTERS, EACH, BANDWIDTH, RIDGE = 1024, 256, 1.5, 0.08
"""Filters without their mirror images, and those of a model; units are features (of variance 1), the kernel matrix."""
CURVE, PATCH_SIZES = "256,512,1024,2048", "6,8"
PAPER_AVERAGED = 85.0
GOALS = f"Goals of the paper: 80 % with about 400 filters, {PAPER_AVERAGED:g} % by averaging."
N_CHOICE, N_HELD_OUT = 10_000, 5000
SOURCE = Annotated[str, typer.Option("--source", help="Folder of the original binaries, or TRAIN,TEST files.")]
SIZES = Annotated[str, typer.Option("--patch-sizes", help="Of each bank of filters in turn.")]


class Stopwatch:
    """Says what has been done, and counts CPU seconds."""

    def __init__(self) -> None:
        self.began = time.process_time()
        self.seconds: dict[str, float] = {}

    def __call__(self, what: str) -> None:
        self.seconds[what], self.began = time.process_time() - self.began, time.process_time()
        print(f"{what}: {self.seconds[what]:.0f} CPU s", flush=True)


def banks(filters: int, patch_sizes: str, each: int = EACH, **options: Any) -> list[Bank]:
    """Disjoint filters, so many in each bank."""
    sizes = [int(size) for size in patch_sizes.split(",")]
    starts = enumerate(range(0, filters, each))
    return [Bank(min(each, filters - at), sizes[i % len(sizes)], seed=i, **options) for i, at in starts]


@app.command()
def exact(
    filters: Annotated[str, typer.Option(help="Of each model in turn.")] = CURVE,
    patch_sizes: SIZES = PATCH_SIZES,
    rows: int = 0,
    bandwidth: float = BANDWIDTH,
    ridge: float = RIDGE,
    source: SOURCE = "",
) -> None:
    """Kernel ridge regression on all training images (or on so many rows); what was measured before is kept."""
    images, y, n, origin = cifar_images.shuffled(source)
    n_rows = rows or n
    table = Table(
        "CIFAR-10: exact kernel, accuracy on the test images, %",
        ["filters", "features", "training images", "accuracy", "CPU s: features", "kernel", "the rest", "GB"],
        live=True,
    )
    curve = []
    for count in map(int, filters.split(",")):
        here = banks(count, patch_sizes)

        def run(here: list[Bank] = here) -> tuple[float, ...]:
            halves, to_make = _features(here, images, n)
            watch = Stopwatch()
            scores = kernel_scores(MirrorKernel(halves, UNIT, bandwidth), y, n_rows, slice(n, len(y)), ridge, watch)
            kernel = watch.seconds["kernel matrix"]
            return _accuracy(scores, y[n:]), to_make, kernel, sum(watch.seconds.values()) - kernel

        name = f"{source} {count} filters, {patch_sizes}, {n_rows} of {len(y)} images, {bandwidth:g}, {ridge:g}"
        accuracy, *seconds = data.kept("stagewise_cifar", name, run)
        n_features = sum(bank.n_features for bank in here)
        gigabytes = [size / 1e9 for size in (exact_kernel.memory(n_rows), n_rows * n_features)]
        cells = f"{accuracy:.2f}", *(f"{part:.0f}" for part in seconds)
        table.add(count, n_features, n_rows, *cells, " + ".join(f"{size:.1f}" for size in gigabytes))
        curve.append((count, sum(seconds), accuracy))
    table.note(
        f"{_described(origin, patch_sizes, bandwidth, ridge)} GB: what is held, and the features, which are read from "
        f"a file and need not stay. {GOALS}"
    )
    table.publish("stagewise_cifar")
    if len(curve) > 1:
        draw(curve, n_rows)


def draw(curve: list[tuple[int, float, float]], n_rows: int) -> None:
    """Accuracy against filters and against time."""
    counts, seconds, accuracies = zip(*curve, strict=True)
    with figure("stagewise_cifar", n_panels=2, size=(9, 4)) as (by_count, by_time):
        for ax, places in ((by_count, counts), (by_time, seconds)):
            ax.plot(places, accuracies, marker="s", label="exact kernel")
            ax.axhline(PAPER_AVERAGED, color="gray", linewidth=0.8, label="the paper's averages: more than this")
            ax.set(xscale="log")
        by_count.set(xlabel=f"filters, {n_rows} training images", ylabel="test accuracy, %", xticks=counts)
        by_count.set_xticks([], minor=True)
        by_count.xaxis.set_major_formatter("{x:g}")
        plain_ticks(by_time.xaxis)
        by_time.set(xlabel="CPU seconds, features included")
        by_count.legend(loc="center left", bbox_to_anchor=(0.0, 0.75))


@app.command()
def averages(
    models: int = FILTERS // EACH,
    filters: Annotated[int, typer.Option(help="Of each model.")] = EACH,
    patch_sizes: SIZES = PATCH_SIZES,
    rows: int = 20_000,
    bandwidth: float = BANDWIDTH,
    ridge: float = RIDGE,
    source: SOURCE = "",
) -> None:
    """Fig. 3: averages of models on disjoint filters, and one kernel of all their filters."""
    images, y, n, origin = cifar_images.shuffled(source)
    n_rows, test, labels = min(rows or n, n), slice(n, len(y)), y[n:]
    table = Table(
        f"CIFAR-10: models of {filters} filters each on {n_rows} training images, accuracy on the test images, %",
        ["models", "patches", "the last alone", "average", "CPU s", "one kernel of all filters", "CPU s of it"],
        live=True,
    )
    total, spent, to_make = np.zeros((len(labels), 10)), 0.0, 0.0
    halves: list[np.ndarray] = []
    curves: dict[str, list[tuple[float, float]]] = {"average of models": [], "one kernel of all their filters": []}
    for number, bank in enumerate(banks(models * filters, patch_sizes, filters), 1):
        made, seconds = _features([bank], images, n)
        halves, to_make, watch = [*halves, *made], to_make + seconds, Stopwatch()
        alone = kernel_scores(MirrorKernel(made, UNIT, bandwidth), y, n_rows, test, ridge, watch)
        total, spent = total + alone, spent + seconds + sum(watch.seconds.values())
        watch = Stopwatch()
        all_filters = MirrorKernel(halves, UNIT, bandwidth)
        joint = kernel_scores(all_filters, y, n_rows, test, ridge, watch) if number > 1 else alone
        times = spent, to_make + sum(watch.seconds.values()) if number > 1 else spent
        found = [_accuracy(scores, labels) for scores in (alone, total, joint)]
        cells = (f"{found[1]:.2f}", f"{times[0]:.0f}", f"{found[2]:.2f}", f"{times[1]:.0f}")
        table.add(number, bank.patch_size, f"{found[0]:.2f}", *cells)
        for curve, time_of, accuracy in zip(curves.values(), times, found[1:], strict=True):
            curve.append((time_of, accuracy))
    table.note(f"CPU s with those of the features. {_described(origin, patch_sizes, bandwidth, ridge)} {GOALS}")
    table.publish("stagewise_cifar_averages")
    with figure("stagewise_cifar_averages", n_panels=2, size=(9, 4)) as (by_count, by_time):
        for label, curve in curves.items():
            seconds_of, accuracies = zip(*curve, strict=True)
            by_count.plot(range(1, len(curve) + 1), accuracies, marker="s", label=label)
            by_time.plot(seconds_of, accuracies, marker="s", label=label)
        by_count.set(xlabel=f"models, {filters} filters each", ylabel="test accuracy, %", xticks=range(1, models + 1))
        by_time.set(xlabel="CPU seconds")
        by_count.legend()


@app.command()
def choose(
    filters: int = 256,
    patch_sizes: SIZES = "6",
    pools: Annotated[str, typer.Option(help="Cells along a side, of each bank of filters in turn.")] = "3",
    overlap: int = 0,
    threshold: float = 0.15,
    whitening: float = 0.1,
    bandwidths: str = "1.5,3",
    ridges: str = "0.03,0.08",
    average: Annotated[bool, typer.Option(help="A kernel of each bank, and their mean.")] = False,
    source: SOURCE = "",
) -> None:
    """Accuracy on held-out training images, for parameters of the kernel and of the filters."""
    images, y, _, origin = cifar_images.shuffled(source)
    images, y = images[: N_CHOICE + N_HELD_OUT], y[: N_CHOICE + N_HELD_OUT]
    options: dict[str, Any] = {"overlap": overlap, "threshold": threshold, "whitening": whitening}
    here, cells = banks(filters, patch_sizes, **options), [int(pool) for pool in pools.split(",")]
    here = [replace(bank, pool=cells[i % len(cells)]) for i, bank in enumerate(here)]
    folder, held_out = data.cache() / "cifar10", slice(N_CHOICE, N_CHOICE + N_HELD_OUT)
    halves = [quantised(bank, images, folder, N_CHOICE)[0] for bank in here]
    print(f"{origin}: {filters} filters of {patch_sizes}, pools {pools}, {options}, average: {average}")
    for bandwidth in map(float, bandwidths.split(",")):
        for ridge in map(float, ridges.split(",")):
            kernel = mean_kernel(halves, bandwidth) if average else MirrorKernel(halves, UNIT, bandwidth)
            scores = kernel_scores(kernel, y, N_CHOICE, held_out, ridge, lambda what: None)
            print(f"bandwidth {bandwidth:g}, ridge {ridge:g}: {_accuracy(scores, y[held_out]):.2f} %", flush=True)


def mean_kernel(halves: list[np.ndarray], bandwidth: float) -> MeanKernel:
    return MeanKernel([MirrorKernel([half], UNIT, bandwidth) for half in halves])


@app.command()
def linear(
    filters: int = 400, block: int = 50, visits: int = 3, rows: int = 0, source: SOURCE = "", seed: int = 0
) -> None:
    """`StagewiseClassifier` on the even responses: the same for an image and its mirror image."""
    images, y, n, origin = cifar_images.shuffled(source)
    n_rows, per_filter = rows or n, 18
    features = ImagePatches(
        image_shape=SHAPE, pool=3, contrast=False, mirror="even", threshold=0.75, keep=True, random_state=seed
    )
    model = StagewiseClassifier(
        features, n_components=per_filter * filters, block_size=per_filter * block, max_iter=visits, random_state=seed
    )
    watch = Stopwatch()
    model.fit(images[:n_rows].astype(np.float32) / 255, y[:n_rows])
    watch("fit")
    accuracy = 100 * model.score(images[n:].astype(np.float32) / 255, y[n:])
    table = Table(
        "CIFAR-10: linear in the even responses, accuracy on the test images, %",
        ["filters", "features", "visits", "training images", "accuracy", "CPU s to fit"],
    )
    table.add(filters, per_filter * filters, visits, n_rows, f"{accuracy:.2f}", f"{watch.seconds['fit']:.0f}")
    table.note(
        f"Images: {origin}. Blocks of {per_filter * block} features; alpha = {model.alpha_:.2g}, chosen by itself."
    )
    table.publish("stagewise_cifar_linear")


def kernel_scores(
    kernel: exact_kernel.Kernel,
    y: np.ndarray,
    n_rows: int,
    rows: slice,
    ridge: float,
    watch: Callable[[str], Any],
) -> np.ndarray:
    """Scores of some rows, from ridge regression on the first ones."""
    Y = 2.0 * np.eye(10)[y[:n_rows]] - 1.0
    mean = Y.mean(axis=0)
    coef = exact_kernel.fit(kernel, n_rows, Y - mean, ridge, say=watch)
    scores = exact_kernel.predict(kernel, rows, coef) + mean
    watch("prediction")
    return scores


def _features(here: list[Bank], images: np.ndarray, n_learn: int) -> tuple[list[np.ndarray], float]:
    made = [quantised(bank, images, data.cache() / "cifar10", n_learn) for bank in here]
    return [half for half, _ in made], sum(seconds for _, seconds in made)


def _accuracy(scores: np.ndarray, y: np.ndarray) -> float:
    return 100 * float(np.mean(scores.argmax(axis=1) == y))


def _described(origin: str, patch_sizes: str, bandwidth: float, ridge: float) -> str:
    return (
        f"Images: {origin}. Filters are random patches, {patch_sizes} pixels wide in turn, mean "
        "removed, whitened (ZCA with 0.1 × the mean eigenvalue), at unit norm; as many mirror images of them come on "
        "top. r is the cosine of a filter and a whitened patch (its norm raised by a tenth of the usual one); "
        "max(±r − 0.15, 0) averaged over 3 × 3 cells, square roots, standardised with statistics common to an image "
        f"and its mirror image, kept in eight bits. Kernel exp(−‖x − x'‖²/({bandwidth:g}·features)), summed over x' "
        f"and its mirror image; ridge {ridge:g}; all chosen on held-out training images."
    )


if __name__ == "__main__":
    app()
