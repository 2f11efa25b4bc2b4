"""Tables to the screen and to benchmarks/results/*.md; curves to PNG beside them."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from benchmarks import data

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass
class Gathered:
    """Tables that were published and pictures that were drawn, in place of a file in results/ each."""

    pictures: Path
    """A folder and the beginning of a name for the pictures."""
    tables: list[Table] = field(default_factory=list)
    drawn: list[Path] = field(default_factory=list)

    def picture(self) -> Path:
        number = f"_{len(self.drawn) + 1}" if self.drawn else ""
        self.drawn.append(self.pictures.with_name(f"{self.pictures.name}{number}.png"))
        return self.drawn[-1]


_open: list[Gathered] = []


@contextmanager
def gather(pictures: Path) -> Iterator[Gathered]:
    """Everything published from here on, for somebody else to write down."""
    _open.append(Gathered(pictures))
    try:
        yield _open[-1]
    finally:
        _open.pop()


def environment() -> str:
    import numpy  # noqa: F401  (loads the BLAS that threadpoolctl reports)

    blas: dict = next((p for p in threadpool_info() if p["user_api"] == "blas"), {})
    library = f"{blas.get('internal_api', 'unknown BLAS')} ({blas.get('architecture')})"
    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")]
    machine = f"{os.cpu_count()} logical cores, {platform.machine()}, {library}"
    return ", ".join([machine, f"Python {platform.python_version()}", *packages])


def given_command() -> str:
    """The command line of this process, so that a table made with options says so."""
    spec = sys.modules["__main__"].__spec__
    name = spec.name if spec else Path(sys.argv[0]).stem
    return shlex.join(["python", "-m", name.removesuffix(".__main__"), *sys.argv[1:]])


def shown(result: Any, cells: Callable[[Any], list[str]], as_json: bool) -> Any:
    """A result that took long, printed as soon as it is there."""
    print(json.dumps(asdict(result)) if as_json else " | ".join(cells(result)), flush=True)
    return result


def lines_of(known: Path | None) -> list[dict[str, Any]]:
    """What `shown` printed as JSON, among whatever else was printed."""
    if known is None:
        return []
    return [json.loads(line[line.index("{") :]) for line in known.read_text().splitlines() if "{" in line]


class Table:
    """A Markdown table, filled row by row; a `live` one prints each row as it comes, for runs of many minutes."""

    def __init__(self, title: str, columns: list[str], live: bool = False):
        self.title, self.live = title, live
        self.rows = [columns]
        self.notes: list[str | Table] = []

    def add(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])
        if self.live:
            print(*self.rows[-1], sep=" | ", flush=True)

    def note(self, text: str | Table) -> None:
        self.notes.append(text)

    def __str__(self) -> str:
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(self.rows[0]))]
        lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in self.rows]
        lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
        return "\n".join([f"## {self.title}", "", *lines, "", *(f"{note}\n" for note in self.notes)])

    def publish(self, name: str, command: str | None = None) -> None:
        """Print, and write to results/<name>.md with the command (by default as it was given) and the environment."""
        print(self, flush=True)
        if _open:
            if not any(table is self for table in _open[-1].tables):
                _open[-1].tables.append(self)
            return
        RESULTS.mkdir(exist_ok=True)
        name = of_files(name)
        head = f"`{command or given_command()}` on {environment()}\n\n"
        unfinished = RESULTS / f"{name}.md.tmp"
        unfinished.write_text(head + str(self))
        unfinished.replace(RESULTS / f"{name}.md")


def of_files(name: str) -> str:
    """The name of a result, with those of files that the command line gives: results on the usual sets stay."""
    given = [word.rpartition("=")[2] for word in sys.argv[1:]]
    titles = [data.title(word) for word in given if data.is_file(word)]
    return "_".join([name, *(title for title in dict.fromkeys(titles) if title not in name)])


@contextmanager
def figure(
    name: str,
    n_panels: int | None = None,
    size: tuple[float, float] = (7, 4.5),
    n_rows: int | None = None,
    sharex: bool | None = None,
) -> Iterator[Any]:
    """The axes, kept as results/<name>.png at the end.

    Parameters
    ----------
    n_panels : int, optional
        Panels side by side, as an array of axes.
    n_rows : int, optional
        Rows of such panels, as an array of shape (n_rows, n_panels).
    sharex : bool, optional
        Whether all panels have the same x axis; by default where there are rows of them.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    sharex = n_rows is not None if sharex is None else sharex
    fig, axes = plt.subplots(
        n_rows or 1, n_panels or 1, figsize=size, layout="constrained", squeeze=False, sharex=sharex
    )
    yield axes if n_rows is not None else axes[0, 0] if n_panels is None else axes[0]
    for ax in fig.axes:  # on log scales matplotlib cannot draw a panel in which nothing was reached
        if not any(math.isfinite(other.dataLim.width) for other in ax.get_shared_x_axes().get_siblings(ax)):
            ax.set_xscale("linear")
        if not any(math.isfinite(other.dataLim.height) for other in ax.get_shared_y_axes().get_siblings(ax)):
            ax.set_yscale("linear")
    path = _open[-1].picture() if _open else RESULTS / f"{of_files(name)}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=120)
    plt.close(fig)


def plain_ticks(axis: Any) -> None:
    """Ticks of a log scale as numbers, and none between: 1, 2, 5, 10, 20, ..., or 1, 10, 100, ... over many decades.

    Of less than a decade that would leave a tick or two: there they are as far from each other as on a linear scale.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator

    low, high = axis.get_view_interval()
    if high > 5 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    else:
        axis.set_major_locator(MaxNLocator(6, steps=(1, 2, 5, 10)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def plot_gaps(name: str, title: str, curves: dict[str, tuple], targets: tuple[float, ...]) -> None:
    """Relative gap against seconds on log scales; `curves` maps a label to (seconds, gaps)."""
    with figure(name) as ax:
        for label, (seconds, gaps) in curves.items():
            ax.plot(seconds, gaps, marker=".", label=label, linewidth=2.5 if label.startswith("manyclass") else 1.2)
        for target in targets:
            ax.axhline(target, color="gray", linewidth=0.6)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="seconds, set-up included",
            ylabel="(F − F*) / (F(0) − F*)",
            title=title,
        )
        ax.legend(fontsize="small")
