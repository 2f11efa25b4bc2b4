"""Claim: on sparse text no solver is sooner within 0.2 points of the best test error that any of them finds.

Each method's settings are those of its grid with the least error on held-out training rows: the last fifth of each
class, as the posts of a newsgroup come by date in training and test set (of the first 60 000 training rows at most, and
mostly so few that rows × classes is 0.8 million), at the better of two budgets. It is then fitted on all training rows
with more and more passes, or smaller and smaller tolerances; its time is that of the cheapest fit within reach of the
best. One thread.

``python -m benchmarks.stochastic.time_to_error --data 20news-unit``
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.utils import shuffle

from benchmarks.data import CACHE, title
from benchmarks.report import Table, figure
from benchmarks.stochastic.limits import LIMIT, limited
from benchmarks.stochastic.peers import Method, chosen, warm_up
from benchmarks.text import PROBLEMS, load

POINTS = 0.2
ROWS_TO_CHOOSE = 60_000
SEEDS = 3
QUICK = 2.0
FLAT = 0.05
COLUMNS = ["method", "setting", "s to reach", "with", "least error %", "s", "with"]


def choose(method: Method, X: Any, y: np.ndarray, limit: float) -> dict[str, Any]:
    """The setting with the least error on the last fifth of each class, of those whose fits end within the limit."""
    n_rows = min(ROWS_TO_CHOOSE, method.cells_to_choose // len(np.unique(y)))
    X, y = X[:n_rows], y[:n_rows]
    late = np.zeros(len(y), dtype=bool)
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        late[rows[len(rows) - len(rows) // 5 :]] = True
    X_fit, y_fit = shuffle(X[~late], y[~late], random_state=0)
    X_out, y_out = X[late], y[late]
    prepared = method.prepare(X_fit, y_fit)

    def error(setting: dict[str, Any]) -> float:
        def work() -> float:
            fits = (method.fit(prepared, setting, budget, 0)[1] for budget in method.compared_at)
            return min(float(np.mean(predict(X_out) != y_out)) for predict in fits)

        found = limited(work, limit)
        return np.inf if found is None else found

    return min(method.settings, key=error)


def curve(method: Method, setting: dict[str, Any], problem: tuple, limit: float) -> list[dict[str, Any]]:
    """Seconds and error in % (medians and means of several seeds for quick fits) for budget after budget."""
    X, y, X_test, y_test = problem
    prepared = method.prepare(X, y)
    points: list[dict[str, Any]] = []
    for budget in method.budgets:
        seconds: list[float] = []
        errors: list[float] = []
        while len(seconds) < SEEDS and (not seconds or seconds[-1] < QUICK):
            seed = len(seconds)

            def one(budget: float = budget, seed: int = seed) -> tuple[float, float]:
                spent, predict = method.fit(prepared, setting, budget, seed)
                return spent, 100 * float(np.mean(predict(X_test) != y_test))

            answer = limited(one, limit)
            if answer is None:
                return [*points, {"budget": budget, "seconds": None, "error": None}]
            seconds.append(answer[0])
            errors.append(answer[1])
        points.append({"budget": budget, "seconds": float(np.median(seconds)), "error": float(np.mean(errors))})
        print(f"  {budget:g} {method.unit}: {points[-1]['seconds']:.2f} s {points[-1]['error']:.2f} %", flush=True)
        if len(points) > 2 and points[-1]["error"] > points[-3]["error"] - FLAT:
            break
    return points


def described(setting: dict[str, Any]) -> str:
    return ", ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in setting.items()
    )


def publish(source: str, runs: dict[str, dict[str, Any]], compile_seconds: float, limit: float) -> None:
    data = title(source)
    done = [point for run in runs.values() for point in run["points"] if point["error"] is not None]
    best = min(point["error"] for point in done)
    table = Table(f"Seconds to within {POINTS} points of the best test error on {data} ({best:.2f} %)", COLUMNS)
    rows = []
    for name, run in runs.items():
        points = [point for point in run["points"] if point["error"] is not None]
        least = min(points, key=lambda point: point["error"], default=None)
        reached = [point for point in points if point["error"] <= best + POINTS]
        first = min(reached, key=lambda point: point["seconds"], default=None)
        spent = f"> {limit:.0f}" if len(points) < len(run["points"]) else "never"
        cells = [spent, ""] if first is None else [f"{first['seconds']:.2f}", f"{first['budget']:g} {run['unit']}"]
        cells += ["", "", ""] if least is None else [
            f"{least['error']:.2f}", f"{least['seconds']:.2f}", f"{least['budget']:g} {run['unit']}"
        ]  # fmt: skip
        order = (first is None, first["seconds"] if first else least["error"] if least else np.inf)
        rows.append((order, [name, described(run["setting"]), *cells]))
    for _, row in sorted(rows, key=lambda pair: pair[0]):
        table.add(*row)
    table.note(
        "One thread. alpha is relative to the mean ‖x‖², C = 1/(alpha n); settings were chosen on held-out training "
        f"rows (a fifth of at most {ROWS_TO_CHOOSE:,}, and for all but Vowpal Wabbit of 800,000 / classes), each at "
        f"the better of two budgets. Means of {SEEDS} seeds where a fit took less than {QUICK:g} s. A run that took "
        f"more than {limit:g} s was ended; no more work was tried after two increases gained less than {FLAT:g} points."
    )
    alone = [name for name, run in runs.items() if run["alone"]]
    if alone:
        table.note(f"Run at other times than the rest: {', '.join(alone)}.")
    table.note(
        "Not timed: building LIBLINEAR's and Vowpal Wabbit's own formats, and compiling or loading our loops, which "
        f"took {compile_seconds:.1f} s in this process (they are compiled once on a machine)."
    )
    options = f"--data {source}" if limit == LIMIT else f"--data {source} --limit {limit:g}"
    table.publish(f"time_to_error_{data}", f"python -m benchmarks.stochastic.time_to_error {options}")
    plot(data, runs, best)


def plot(data: str, runs: dict[str, dict[str, Any]], best: float) -> None:
    from matplotlib import colormaps

    peers = [name for name in runs if "manyclass" not in name]
    own = [name for name in runs if "manyclass" in name]
    worst = max(point["error"] for run in runs.values() for point in run["points"] if point["error"] is not None)
    runs = {name: run for name, run in runs.items() if run["points"][0]["error"] is not None}
    with figure(f"time_to_error_{data}", size=(9, 5)) as ax:
        for name, run in runs.items():
            points = [point for point in run["points"] if point["error"] is not None]
            style: dict[str, Any] = {"color": f"C{peers.index(name)}", "linewidth": 1.0, "linestyle": "--"} if (
                name in peers
            ) else {"color": colormaps["viridis"](own.index(name) / len(own)), "linewidth": 2.2}  # fmt: skip
            ax.plot([p["seconds"] for p in points], [p["error"] for p in points], marker=".", label=name, **style)
        ax.axhline(best + POINTS, color="gray", linewidth=0.8)
        ax.set(
            xscale="log",
            xlabel="seconds, one thread",
            ylabel="test error, %",
            title=data,
            ylim=(best - 0.3, min(best + 6, worst + 0.3)),
        )
        ax.annotate(f"best + {POINTS}", (0.01, best + POINTS), xycoords=("axes fraction", "data"), va="top")
        ax.figure.legend(loc="outside right upper", fontsize="small")


def main(
    data: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}, or a file.")] = "20news-unit",
    method: Annotated[list[str] | None, typer.Option(help="Part of a method's name; other runs are kept.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds after which a run is ended.")] = LIMIT,
    only_publish: Annotated[bool, typer.Option(help="Run nothing: write the table of the runs kept.")] = False,
) -> None:
    store = CACHE / f"time_to_error_{title(data)}.json"
    runs: dict[str, dict[str, Any]] = json.loads(store.read_text()) if store.exists() else {}
    compile_seconds = runs.pop("compile", {"seconds": 0.0})["seconds"]
    if not only_publish:
        X, y, X_test, y_test = load(data)
        # Vowpal Wabbit takes rows in the order of the file, and some are sorted by class.
        problem = (*shuffle(X, y, random_state=0), X_test, y_test)
        compile_seconds = max(compile_seconds, warm_up(X, y))
        for name, one in chosen(method or []):
            setting = choose(one, X, y, limit)
            print(f"{name}: {described(setting)}", flush=True)
            points = curve(one, setting, problem, limit)
            runs[name] = {"setting": setting, "points": points, "unit": one.unit, "alone": bool(method)}
            CACHE.mkdir(exist_ok=True)
            store.write_text(json.dumps(runs | {"compile": {"seconds": compile_seconds}}))
    publish(data, runs, compile_seconds, limit)


if __name__ == "__main__":
    typer.run(main)
