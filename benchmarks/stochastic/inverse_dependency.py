"""Claim: with more training rows a test accuracy is reached sooner, and T steps give a better model (Fig. 1, 2).

The rows of a size are a random part of the training rows; a run draws from them with replacement, as in the paper. Our
variant of Algorithm 1 and the algorithm as printed. Means of 10 seeds, each with rows and draws of its own; bands of
one standard deviation.

``python -m benchmarks.stochastic.inverse_dependency --data rcv1-like-4``
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.data import title
from benchmarks.report import Table, figure, plain_ticks
from benchmarks.stochastic.trajectory import (
    SETTINGS,
    VARIANTS,
    chosen_alphas,
    described,
    geometric,
    load,
    stream,
    trajectory,
)

ALGORITHMS = ("softmax", "crammer_singer", "perceptron")
SEEDS = 10
TARGETS = (1.05, 1.15, 1.3, 1.6)
"""The errors to reach, as multiples of the least mean error on all rows."""
FLAT = 1.1
"""More rows help no more from the first size whose mean time is below this multiple of the largest size's."""


def first(values: np.ndarray, errors: np.ndarray, target: float) -> float:
    """The value (seconds, steps) at which the error first is at or below the target; infinity if it never is."""
    reached = np.flatnonzero(errors <= target)
    return float(values[reached[0]]) if len(reached) else np.inf


def measure(data: str, max_steps: int, seeds: int, n_sizes: int) -> dict[str, Any]:
    problem = load(data)
    n_rows = len(problem.y)
    sizes = np.unique(np.round(np.geomspace(n_rows / 100, n_rows, n_sizes)).astype(int))
    steps = geometric(max(100, max_steps // 1000), max_steps, 6)
    alphas = chosen_alphas(problem, ALGORITHMS, max_steps)
    shape = (len(sizes), seeds, len(steps))
    runs = {}
    for variant, name in itertools.product(VARIANTS, ALGORITHMS):
        seconds, errors = np.empty(shape), np.empty(shape)
        for a, size in enumerate(sizes):
            for seed in range(seeds):
                index = np.sort(np.random.default_rng([seed, size]).choice(n_rows, size, replace=False))
                one = stream(problem, name, alphas[variant], seed, index=index, **VARIANTS[variant])
                seconds[a, seed], errors[a, seed] = trajectory(one, problem, steps)
            print(f"{name}{variant}, {size} rows: {errors[a].mean(axis=0)[-1]:.2f} %", flush=True)
        runs[name + variant] = seconds, errors
    return {"sizes": sizes, "steps": steps, "alphas": alphas, "runs": runs}


def publish(data: str, found: dict[str, Any]) -> None:
    sizes, steps = found["sizes"], found["steps"]
    seeds = len(next(iter(found["runs"].values()))[0][0])
    columns = ["algorithm", "error %", *(f"{size:,} rows" for size in sizes), "flat from"]
    table = Table(f"Milliseconds to a test error on {data}, by training rows: mean of {seeds} seeds", columns)
    at_steps = Table(f"Test error in % after T steps on {data}", ["algorithm", "T", *columns[2:-1]])
    times: dict[str, list[tuple[float, np.ndarray]]] = {}
    for name, (seconds, errors) in found["runs"].items():
        best = errors[-1].mean(axis=0).min()
        per_step = np.median(seconds[:, :, -1], axis=1) / steps[-1]
        times[name] = []
        for factor in TARGETS:
            target = factor * best
            first_steps = np.array([[first(steps, one, target) for one in of_size] for of_size in errors])
            found_times = first_steps * per_step[:, None]
            times[name].append((target, found_times))
            mean = found_times.mean(axis=1)
            near = sizes[mean <= FLAT * mean[-1]] if np.isfinite(mean[-1]) else []
            shown = [_cell(row) for row in found_times]
            table.add(name, f"{target:.2f}", *shown, f"{near[0]:,}" if len(near) else "")
        for place in (len(steps) // 3, 2 * len(steps) // 3, len(steps) - 1):
            at_steps.add(name, f"{steps[place]:,}", *(f"{value:.2f}" for value in errors[:, :, place].mean(axis=1)))
    table.note(
        f"{SETTINGS} {described(found['alphas'])} times the mean ‖x‖², chosen on held-out training rows. Times are "
        "numbers of steps times the median over seeds of the processor time of a step at that size, without reading, "
        f"compiling or looking at the test rows. Errors are multiples ({', '.join(map(str, TARGETS))}) of the "
        f"algorithm's own least one on all rows. 'k of {seeds}': only so many seeds got there. 'Flat from': the first "
        f"size within {round(100 * FLAT - 100)} % of the time on all rows."
    )
    table.note(at_steps)
    table.publish(f"inverse_dependency_{data}")
    plot(data, found, times)


def _cell(row: np.ndarray) -> str:
    """Mean milliseconds over seeds, or how many of them reached the target."""
    reached = np.isfinite(row)
    return f"{1000 * row.mean():.1f}" if reached.all() else f"{int(reached.sum())} of {len(row)}"


def plot(data: str, found: dict[str, Any], times: dict[str, list[tuple[float, np.ndarray]]]) -> None:
    with figure(f"inverse_dependency_{data}", len(ALGORITHMS), size=(12, 13), n_rows=2 * len(VARIANTS)) as axes:
        draw(axes, found, times)
        axes[0, 0].figure.suptitle(f"{data}: time to a test error, and error after T steps, by training rows")


def draw(axes: np.ndarray, found: dict[str, Any], times: dict[str, list[tuple[float, np.ndarray]]]) -> None:
    sizes, steps = found["sizes"], found["steps"]
    for place, (name, (_, errors)) in enumerate(found["runs"].items()):
        row, column = divmod(place, len(ALGORITHMS))
        top, bottom = axes[2 * row : 2 * row + 2, column]
        for target, spent in times[name]:
            _band(top, sizes, 1000 * spent, f"error ≤ {target:.2f} %")
        for at in np.unique(np.linspace(len(steps) // 3, len(steps) - 1, 4).astype(int)):
            _band(bottom, sizes, errors[:, :, at], f"T = {steps[at]:,}")
        top.set(title=name, xscale="log", yscale="log")
        bottom.set(xlabel="training rows", xscale="log")
        plain_ticks(top.yaxis)
        for ax in (top, bottom):
            if ax.lines:
                ax.legend(fontsize="x-small")
    for row, ax in enumerate(axes[:, 0]):
        ax.set_ylabel(("milliseconds", "test error, %")[row % 2])


def _band(ax: Any, sizes: np.ndarray, values: np.ndarray, label: str) -> None:
    """Mean and one standard deviation over seeds, where all of them have a value."""
    whole = np.isfinite(values).all(axis=1)
    if not whole.any():
        return
    mean, spread = values[whole].mean(axis=1), values[whole].std(axis=1)
    (line,) = ax.plot(sizes[whole], mean, marker=".", label=label)
    ax.fill_between(sizes[whole], np.maximum(mean - spread, mean / 3), mean + spread, alpha=0.2, color=line.get_color())


def main(
    data: Annotated[str, typer.Option(help="rcv1-like-4, rcv1-like-53, kddcup, mnist or a file.")] = "rcv1-like-4",
    max_steps: Annotated[int, typer.Option(help="T of the longest run.")] = 100_000,
    seeds: int = SEEDS,
    sizes: Annotated[int, typer.Option(help="Numbers of training rows, from a hundredth of all to all.")] = 7,
) -> None:
    publish(title(data), measure(data, max_steps, seeds, sizes))


if __name__ == "__main__":
    typer.run(main)
