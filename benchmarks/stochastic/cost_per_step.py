"""Claim: a step costs the same whatever the number of rows, and not far from what memory allows.

Rows are those of the RCV1-like set of 4 classes, and these again up to a million. The bound is the time to read a
step's rows from memory once, and the pieces of V and U that they touch once for the scores and once, with writing,
for the step, at rates that plain loops over arrays of these sizes reach.

What differs with n is where the rows come from: the caches of a processor hold ten thousand of them, not a million. The
lines "reading alone" draw the same rows and add up their numbers and indices, and do nothing else.

``python -m benchmarks.stochastic.cost_per_step``
"""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer
from numba import njit
from scipy import sparse

from benchmarks import data as sets
from benchmarks.report import Table
from benchmarks.stochastic.trajectory import Problem, load, stream
from manyclass.subgradient.draws import draw
from manyclass.subgradient.schedule import Schedule

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
STEPS = 100_000
REPEATS = 3
TURNS = 15
ALPHA = 1e-4


@njit(fastmath=True)
def _sum(x):
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i]
    return total


@njit
def _subtract(x, y):
    for i in range(len(x)):
        x[i] -= y[i & 15]


def _rate(work, n_bytes: int) -> float:
    """Bytes per second at the best of a few turns of some milliseconds."""
    work()
    best = np.inf
    for _ in range(REPEATS):
        turns, start = 0, time.perf_counter()
        while time.perf_counter() - start < 0.05:
            work()
            turns += 1
        best = min(best, (time.perf_counter() - start) / turns)
    return n_bytes / best


def bound(problem: Problem, n_outputs: int, average: bool) -> float:
    """Seconds per row that memory alone would take."""
    non_zeros = problem.X.nnz / problem.X.shape[0]
    table = np.ones(problem.X.shape[1] * n_outputs * (2 if average else 1), dtype=np.float32)
    far, step = np.ones(1 << 26, dtype=np.float32), np.ones(16, dtype=np.float32)
    read_far = _rate(lambda: _sum(far), far.nbytes)
    read_near = _rate(lambda: _sum(table), table.nbytes)
    write_near = _rate(lambda: _subtract(table, step), table.nbytes)
    piece = 4 * n_outputs * non_zeros
    return 8 * non_zeros / read_far + piece / read_near + piece * (2 if average else 1) / write_near


@njit
def _read(rows, draws, first, last):
    total = 0.0
    for position in range(first, last):
        i = draw(draws, position)
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.data[p] + rows.indices[p]
    return total


def seconds_per_reading(problem: Problem) -> float:
    one = stream(problem, "hinge", ALPHA, 0)
    _read(one.rows, one.draws, 0, STEPS // 4)
    best = np.inf
    for turn in range(REPEATS):
        start = time.perf_counter()
        _read(one.rows, one.draws, turn * STEPS, (turn + 1) * STEPS)
        best = min(best, (time.perf_counter() - start) / STEPS)
    return best


def seconds_per_step(problems: list[Problem], loss: str, average: bool) -> list[float]:
    """Turn by turn, so that a busier minute of the machine slows all sizes."""
    runs = [stream(problem, loss, ALPHA, 0, Schedule(average=average, replace=True)) for problem in problems]
    for one in runs:
        one.advance(STEPS // 4)
    best = np.full(len(runs), np.inf)
    for _ in range(TURNS):
        for a, one in enumerate(runs):
            start = time.perf_counter()
            one.advance(STEPS * REPEATS // TURNS)
            best[a] = min(best[a], (time.perf_counter() - start) / (STEPS * REPEATS // TURNS))
    return best.tolist()


def main(
    data: Annotated[
        list[str] | None, typer.Option(help="Sparse sets or files, by default rcv1-like-4 and -53.")
    ] = None,
    rows: Annotated[list[int] | None, typer.Option(help="Numbers of rows.")] = None,
) -> None:
    sizes = sorted(rows or SIZES)
    columns = [
        "data",
        "loss",
        "average",
        *(f"{n:,} rows" for n in sizes),
        "largest / smallest",
        "10⁹ rows·nnz·k/s",
        "bound",
    ]
    table = Table("Nanoseconds per step of one row, by number of rows", columns, live=True)
    for name in data or ["rcv1-like-4", "rcv1-like-53"]:
        whole = load(name)
        again = -(-sizes[-1] // len(whole.y))
        X = sparse.vstack([sparse.csr_array(whole.X)] * again).tocsr()[: sizes[-1]]
        y = np.tile(whole.y, again)[: sizes[-1]]
        k = whole.n_classes
        parts = [Problem(X[:n], y[:n], whole.X_test[:1], whole.y_test[:1]) for n in sizes]
        readings = [seconds_per_reading(part) for part in parts]
        table.add(sets.title(name), "reading alone", "", *(f"{1e9 * cost:.0f}" for cost in readings), "", "", "")
        for loss, average in (("softmax", True), ("crammer_singer", True), ("crammer_singer", False)):
            costs = seconds_per_step(parts, loss, average)
            limit = bound(whole, k, average)
            rate = whole.X.nnz / whole.X.shape[0] * k / costs[-1] / 1e9
            most = whole.X.nnz / whole.X.shape[0] * k / limit / 1e9
            shown = [f"{1e9 * cost:.0f}" for cost in costs]
            table.add(
                sets.title(name), loss, average, *shown, f"{costs[-1] / costs[0]:.2f}", f"{rate:.2f}", f"{most:.2f}"
            )
    table.note(
        f"Best of {TURNS} turns of {STEPS * REPEATS // TURNS:,} steps, r = 1, drawn with replacement, one thread. The "
        "bound supposes that every row is stepped on; crammer_singer steps only on those within the margin, the fewer "
        "of them the oftener it has seen each."
    )
    table.publish("cost_per_step")


if __name__ == "__main__":
    typer.run(main)
