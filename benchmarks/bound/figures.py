"""Curves per pass and per second, and the table beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.bound.problems import Problem
from benchmarks.bound.runs import Run
from benchmarks.report import Table, figure, plain_ticks

NAMES = {
    "passes": "passes over the rows",
    "seconds": "seconds",
    "objective": "training: log-likelihood less penalty, a row",
    "likelihood": "test log-likelihood a row",
    "error": "test error, %",
}
COLOURS = {
    "L-BFGS": "black",
    "SGD": "tab:orange",
    "ASGD": "tab:red",
    "SGD as printed": "gold",
    "ASGD as printed": "salmon",
    "BBM": "tab:green",
    "SBM": "tab:blue",
    "SBM, classes shuffled": "navy",
    "SBM rank 1": "lightskyblue",
    "SBM rank 5": "tab:cyan",
    "SBM rank 20": "steelblue",
    "SBM rank 20 refreshed": "plum",
}
"""The refreshed variant of full rank is purple everywhere."""
PER_PASS = (("passes", "objective"), ("passes", "likelihood"), ("passes", "error"))
AND_SECONDS = (("passes", "likelihood"), ("passes", "error"), ("seconds", "likelihood"), ("seconds", "error"))
Curve = dict[str, np.ndarray]


def measured(problem: Problem, run: Run) -> Curve:
    objective = problem.objective()
    with np.errstate(all="ignore"):
        values = [-objective.value_and_gradient(theta).value for theta in run.thetas]
    likelihood, error = np.transpose([problem.log_likelihood_and_error(theta) for theta in run.thetas])
    columns = {"objective": np.array(values), "likelihood": likelihood, "error": 100 * error}
    return {"passes": np.array(run.passes), "seconds": np.array(run.seconds), **columns}


def mean_curve(curves: Iterable[Curve], passes: int) -> Curve:
    """Mean over runs at whole passes; a run that ended keeps its last values."""
    at = np.arange(passes + 1)
    taken = []
    for curve in curves:
        index = np.searchsorted(curve["passes"], at + 1e-9, side="right") - 1
        taken.append({name: values[index] for name, values in curve.items()})
    mean = {name: np.mean([curve[name] for curve in taken], axis=0) for name in taken[0]}
    return {**mean, "passes": at}


def draw(
    name: str,
    title: str,
    curves: dict[str, Curve],
    zero: float,
    panels: Sequence[tuple[str, str]] = AND_SECONDS,
    depth: float = 0.4,
) -> None:
    """`panels` are pairs (x, y) of `NAMES`, each showing where every curve ends that ends above the zero model.

    Log-likelihoods show at least `depth` of the way from the zero model to the best.
    """
    with figure(name, len(panels), (4.3 * len(panels), 4.4)) as axes:
        for ax, (x, y) in zip(axes, panels, strict=True):
            for label, curve in curves.items():
                ours = label.startswith(("SBM", "BBM"))
                colour = COLOURS.get(label, "tab:purple")
                late = curve[x] > 0 if x == "seconds" else slice(None)
                style = {"color": colour, "linewidth": 2.2 if ours else 1.3, "linestyle": "-" if ours else "--"}
                ax.plot(curve[x][late], curve[y][late], label=label, **style)
            values, ends = np.concatenate([c[y] for c in curves.values()]), [c[y][-1] for c in curves.values()]
            if y == "error":
                least = values.min()
                ax.set_ylim(0.95 * least, min(max(2.5 * least, 1.05 * max(ends)), values.max()))
            else:
                best = np.nanmax(values)
                shown = max(depth * (best - zero), best - max(zero, np.nanmin(ends)))
                ax.set_ylim(best - 1.04 * shown, best + 0.04 * shown)
            if x == "seconds":
                ax.set_xscale("log")
                plain_ticks(ax.xaxis)
            ax.set(xlabel=NAMES[x], ylabel=NAMES[y])
            ax.grid(alpha=0.25)
        handles = axes[0].get_legend_handles_labels()
        axes[0].figure.legend(*handles, loc="outside lower center", ncols=len(curves), frameon=False)
        axes[0].figure.suptitle(title)


def of_each(problem: Problem, runs: Sequence[Run]) -> tuple[dict[str, Curve], dict[str, str]]:
    """The curve of each method and its settings."""
    return {run.label: measured(problem, run) for run in runs}, {run.label: run.settings for run in runs}


class Several:
    """Runs of the same methods on several problems, or from several starts."""

    def __init__(self) -> None:
        self._curves: dict[str, list[Curve]] = defaultdict(list)
        self._settings: dict[str, list[str]] = defaultdict(list)

    def add(self, problem: Problem, runs: Iterable[Run]) -> None:
        for run in runs:
            self._curves[run.label].append(measured(problem, run))
            self._settings[run.label].append(run.settings)

    def means(self, passes: int) -> tuple[dict[str, Curve], dict[str, str]]:
        """The mean curve of each method and its most frequent settings."""
        usual = {label: Counter(several).most_common(1)[0][0] for label, several in self._settings.items()}
        return {label: mean_curve(several, passes) for label, several in self._curves.items()}, usual


def table(title: str, curves: dict[str, Curve], settings: dict[str, str], at: Sequence[int]) -> Table:
    """Test log-likelihood and error after so many passes; `at` ends with all that there were."""
    at = sorted({n for n in at if n <= at[-1]})
    columns = [f"after {n} pass{'es' if n > 1 else ''}: test log-lik., error %" for n in at]
    result = Table(title, ["method", "settings", "−F at the end", *columns, "ms a pass"])
    for label, curve in curves.items():
        cells = []
        for n in at:
            i = int(np.searchsorted(curve["passes"], n + 1e-9, side="right")) - 1
            cells.append(f"{curve['likelihood'][i]:.4f}, {curve['error'][i]:.2f}")
        pace = 1e3 * curve["seconds"][-1] / curve["passes"][-1]
        result.add(label, settings[label], f"{curve['objective'][-1]:.5f}", *cells, f"{pace:.3g}")
    return result
