"""Runs entries, and writes the page of each: the paper's numbers beside ours, our tables, and pictures."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from benchmarks.papers.entry import Entry
from benchmarks.papers.sources import MissingError, described, missing
from benchmarks.report import RESULTS, Gathered, Table, environment, figure, gather

PAPERS = {
    "least-squares": "Least Squares Revisited: Scalable Approaches for Multi-class Prediction",
    "inverse-time": "Characterizing Inverse Time Dependency in Multi-class Learning",
    "homotopy": "Accelerated Dual Learning by Homotopic Initialization",
    "bound": "Stochastic Bound Majorization",
}


def run_all(entries: Sequence[Entry], quick: bool, file: str | None) -> int:
    """Runs one after the other; how many of them failed. What they print becomes progress on stderr."""
    failed = []
    for number, entry in enumerate(entries, 1):
        print(f"[{number}/{len(entries)}] {entry.name}: {entry.what}", file=sys.stderr, flush=True)
        try:
            with redirect_stdout(sys.stderr):
                path = run(entry, quick, file)
        except MissingError as wanted:
            print(f"{entry.name} was left out: {wanted}.", flush=True)
        except ModuleNotFoundError as absent:
            print(f"{entry.name} was left out: it wants {absent.name}, which make bench-peers installs.", flush=True)
        except (Exception, SystemExit):
            traceback.print_exc()
            failed.append(entry.name)
        else:
            print(os.path.relpath(path), flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    return len(failed)


def run(entry: Entry, quick: bool, file: str | None = None) -> Path:
    """The page, in results/papers or results/papers/quick."""
    folder = RESULTS / "papers" / ("quick" if quick else "")
    stem = entry.name.replace("/", "_")
    calls = entry.made(quick)
    for call in calls:
        call.arguments(quick, file)  # says what is missing before any of them has run
    started, used = time.perf_counter(), processor()
    with gather(folder / stem) as gathered:
        for call in calls:
            call.make(quick, file)
        other = file is not None or any(missing(name) for name in entry.names(quick))
        beside = compared(entry, gathered.tables, " on other rows" if other else "")
        if not gathered.drawn:
            draw(beside, entry.name)
    seconds = time.perf_counter() - started, processor() - used
    print(f"{entry.name}: {seconds[0]:.0f} s, {seconds[1]:.0f} s of the processor")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.md"
    path.write_text(written(entry, quick, file, beside, gathered, seconds))
    return path


def processor() -> float:
    """Seconds of this process and of those that it waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def compared(entry: Entry, tables: list[Table], where: str) -> Table:
    table = Table("The paper and ours", ["what", "paper", f"ours{where}"])
    for number in entry.numbers:
        table.add(number.what, number.paper, number.ours(tables))
    return table


def written(
    entry: Entry, quick: bool, file: str | None, beside: Table, gathered: Gathered, seconds: tuple[float, float]
) -> str:
    paper, _, name = entry.name.partition("/")
    data = f"Rows of {file}." if file else ". ".join(described(name, quick) for name in entry.names(quick)) + "."
    size = f"Quick size, which shows that everything runs: {reduced(entry)}. " if quick else ""
    options = f"{' --quick' if quick else ''}{f' --data {file}' if file else ''}"
    head = [
        f"# {name.replace('-', ' ').capitalize()} of *{PAPERS[paper]}*",
        f"{entry.what}.",
        f"`python -m benchmarks papers {entry.name}{options}` on {environment()}; "
        f"{seconds[0]:.0f} s, {seconds[1]:.0f} s of the processor.",
        size + data,
    ]
    pictures = [f"![{entry.name}]({picture.name})" for picture in gathered.drawn]
    tables = [str(table).strip() for table in ([beside] if entry.numbers else []) + gathered.tables]
    return "\n\n".join([*head, *tables, *pictures]) + "\n"


def reduced(entry: Entry) -> str:
    """What is smaller than at full size."""
    most = {call.quick_rows for call in entry.made(True)} - {None}
    left_out = [call.function for call in entry.calls if call.quick is None]
    parts = ["few seeds, steps or features"]
    parts += [f"at most {rows:,} training rows of a set and as many test rows, but of text" for rows in most]
    parts += [f"without {', '.join(dict.fromkeys(left_out))} on further sets"] if left_out else []
    return "; ".join(parts)


def draw(beside: Table, name: str) -> None:
    """A dot for the paper and one for ours a row, for tables that nobody drew."""
    rows = [(what, leading(paper), leading(ours)) for what, paper, ours in beside.rows[1:]]
    rows = [row for row in rows if np.isfinite(row[1:]).all()]
    with figure(name, size=(7, 1.2 + 0.35 * len(rows))) as ax:
        for place, marker, label in ((1, "o", "paper"), (2, "D", "ours")):
            ax.plot([row[place] for row in rows], range(len(rows)), marker, label=label)
        ax.set_yticks(range(len(rows)), [row[0] for row in rows])
        ax.invert_yaxis()
        ax.set_title(name)
        if rows:
            ax.legend()


def leading(cell: str) -> float:
    """The number that a cell begins with."""
    try:
        return float(cell.lstrip(">≥ ").split()[0].rstrip("%,"))
    except (ValueError, IndexError):
        return np.nan
