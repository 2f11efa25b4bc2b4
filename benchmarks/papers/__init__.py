"""Every table and figure of the four papers by name: ``python -m benchmarks papers``; docs/papers.md has the outcome.

One module a paper, one `Entry` a table or figure: what the paper printed, and what makes ours from which data.
"""

from __future__ import annotations

from benchmarks.papers import bound, homotopy, inverse_time, least_squares
from benchmarks.papers.entry import Entry

ENTRIES: dict[str, Entry] = {
    entry.name: entry for paper in (least_squares, inverse_time, homotopy, bound) for entry in paper.ENTRIES
}


def named(names: list[str]) -> list[Entry]:
    """The entries of these names, or beginnings of names; all without any."""
    unknown = [name for name in names if not any(entry.startswith(name) for entry in ENTRIES)]
    if unknown:
        raise SystemExit(f"There is no {', '.join(unknown)}: python -m benchmarks papers --list shows the names.")
    return [entry for name, entry in ENTRIES.items() if not names or name.startswith(tuple(names))]
