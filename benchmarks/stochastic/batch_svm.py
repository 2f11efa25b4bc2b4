"""Claim: the more rows, the further batch solvers of the same Crammer–Singer objective fall behind (Fig. 4).

LIBLINEAR -s 4, the cutting planes of SVM-multiclass and our SDCA, each at its default tolerance, and Pegasos at their
alpha until its test error is no more than 0.2 or 0.05 points above theirs. None has an intercept: LIBLINEAR would
penalise it, and the objectives would differ.

``python -m benchmarks.stochastic.batch_svm``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import data as sets
from benchmarks.report import Table, figure, plain_ticks
from benchmarks.stochastic import cutting_planes
from benchmarks.stochastic.inverse_dependency import first
from benchmarks.stochastic.limits import LIMIT, limited
from benchmarks.stochastic.peers import Predict, absolute, installed, liblinear
from benchmarks.stochastic.trajectory import Problem, choose_alpha, geometric, load, stream, trajectory
from manyclass import SDCAClassifier

SIZES = (6_000, 20_000, 60_000, 200_000, 600_000)
POINTS = (0.2, 0.05)
PASSES = 10
MOST_STEPS = 2_400_000
SEEDS = 3
Fit = Callable[[], tuple[float, Predict]]


def with_liblinear(problem: Problem, alpha: float) -> Fit:
    method = liblinear(4, with_intercept=False)
    prepared = method.prepare(problem.X, problem.y)
    return lambda: method.fit(prepared, {"alpha": alpha}, 0.1, 0)


def timed(train: Callable[[Any, np.ndarray, float], Any], problem: Problem, alpha: float) -> Fit:
    """One that gives a model; compiled before."""
    train(problem.X[:1000], problem.y[:1000], 1.0)

    def run() -> tuple[float, Predict]:
        started = time.process_time()  # as for Pegasos
        model = train(problem.X, problem.y, absolute(alpha, problem.X))
        return time.process_time() - started, model.predict

    return run


def sdca(X: Any, y: np.ndarray, alpha: float) -> SDCAClassifier:
    return SDCAClassifier("crammer_singer", alpha=alpha, fit_intercept=False).fit(X, y)


BATCH: dict[str, Callable[[Problem, float], Fit]] = {
    "LIBLINEAR -s 4": with_liblinear,
    "cutting planes": partial(timed, cutting_planes.fit),
    "SDCA": partial(timed, sdca),
}


def batch(name: str, problem: Problem, alpha: float, limit: float) -> tuple[float, float] | None:
    """Seconds and test error of a batch solver, or None past the limit."""
    fit = BATCH[name](problem, alpha)

    def work() -> tuple[float, float]:
        seconds, predict = fit()
        return seconds, 100 * float(np.mean(predict(problem.X_test) != problem.y_test))

    return limited(work, limit)


def compare(name: str, sizes: list[int], limit: float, table: Table, ax: Any) -> None:
    """All solvers on growing parts of one data set: rows of the table and a panel."""
    whole = load(name)
    sizes = [n for n in sizes if n <= len(whole.y)] or [len(whole.y)]
    subset = Problem(whole.X[:60_000], whole.y[:60_000], whole.X_test, whole.y_test)
    alpha = choose_alpha(subset, ["crammer_singer"], min(100_000, PASSES * sizes[-1]))
    known = [peer for peer in BATCH if installed(peer)]
    spent: dict[str, list[float]] = {peer: [] for peer in [*known, "Pegasos"]}
    for n in sizes:
        part = Problem(whole.X[:n], whole.y[:n], whole.X_test, whole.y_test)
        steps = geometric(max(n // 20, 500), min(PASSES * n, MOST_STEPS), 5)
        runs = [
            trajectory(stream(part, "crammer_singer", alpha, seed, fit_intercept=False), part, steps)
            for seed in range(SEEDS)
        ]
        least, ours = np.mean([errors.min() for _, errors in runs]), np.nan
        for peer in known:
            answer = batch(peer, part, alpha, limit)
            seconds, error = (np.inf, np.nan) if answer is None else answer
            times = [np.array([first(*run, error + points) for run in runs]) for points in POINTS]
            if peer == known[0]:
                ours = times[0].mean()
            shown = [f"> {limit:.0f}", ""] if answer is None else [f"{seconds:.2f}", f"{error:.2f}"]
            ratio = f"{seconds / times[0].mean():.1f}" if answer is not None and np.isfinite(times[0].mean()) else ""
            cells = map(in_time, times) if answer is not None else [""] * len(POINTS)
            table.add(sets.title(name), f"{n:,}", peer, *shown, *cells, f"{least:.2f}", ratio)
            spent[peer].append(seconds)
        spent["Pegasos"].append(ours)
    for peer, seconds_of in spent.items():
        own, ended = peer == "Pegasos", np.isfinite(seconds_of)
        label = f"Pegasos, to {POINTS[0]:g} points more than {known[0]}" if own else peer
        style = {"linestyle": "-" if own else "--", "linewidth": 2.0 if own else 1.3}
        ax.plot(np.array(sizes)[ended], np.array(seconds_of)[ended], marker=".", label=label, **style)
    ax.set(
        xscale="log", yscale="log", xlabel="training rows", title=f"{sets.title(name)}, alpha = {alpha:g} · mean ‖x‖²"
    )
    plain_ticks(ax.xaxis)


def in_time(seconds: np.ndarray) -> str:
    """Mean of the seeds, or how many of them got there."""
    reached = np.isfinite(seconds)
    return f"{seconds.mean():.3f}" if reached.all() else f"{int(reached.sum())} of {SEEDS}"


def main(
    data: Annotated[
        list[str] | None, typer.Option(help="Data sets or files, by default rcv1-like-4, rcv1-like-53.")
    ] = None,
    size: Annotated[list[int] | None, typer.Option(help="Numbers of training rows.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds after which a batch solver is ended.")] = LIMIT,
) -> None:
    data = data or ["rcv1-like-4", "rcv1-like-53"]
    headings = [f"Pegasos: s to {points:g} more" for points in POINTS]
    columns = ["data", "rows", "solver", "s", "error %", *headings, "Pegasos: least error %", f"ratio at {POINTS[0]:g}"]
    table = Table("Crammer–Singer SVM: seconds to the test error at which a batch solver ends", columns, live=True)
    with figure("batch_svm", len(data), size=(5.5 * len(data), 4.2)) as axes:
        for ax, name in zip(axes, data, strict=True):
            compare(name, size or list(SIZES), limit, table, ax)
        axes[0].set_ylabel("seconds, one thread")
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    table.note(
        "One alpha for all, chosen for Pegasos on held-out training rows; no intercepts; one thread. Pegasos: mean of "
        f"{SEEDS} seeds, of at most {PASSES} passes and {MOST_STEPS:,} steps, r = 1, averaged, without compiling or "
        f"looking at test rows ('k of {SEEDS}': only so many seeds got there). LIBLINEAR: tolerance 0.1, without "
        f"building its problem structure. Cutting planes: one slack, in NumPy and SciPy, to {cutting_planes.TOL:g}, "
        "the default of SVM-multiclass, whose algorithm this is. SDCA: its default tolerance. Least error: the mean "
        "over seeds of the least one on the way."
    )
    table.publish("batch_svm")


if __name__ == "__main__":
    typer.run(main)
