"""Damaged files in large numbers: ``python -m tests.fuzz --n 100000 [--target csv] [--seed 0] [--publish]``.

Prints for every reader and loader how many files were read, refused, and found to break a rule, with the error of each
kind of finding and the number by which it can be had again (``--first NUMBER --n 1``; some valid files hold addresses
or metadata in any order, so that what was made of them is better looked for in the folder of ``--keep``).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from benchmarks.report import RESULTS, Table
from tests.fuzz.campaign import Findings, campaign
from tests.fuzz.targets import TARGETS

_NAME = "fuzz"
_COLUMNS = [
    "reader or loader",
    "seed",
    "files",
    "read",
    "refused",
    "findings",
    "slowest, CPU seconds",
    "files a second",
]
_WHAT = (
    "Each file is a valid one with one to three changes. It has to be read, its shapes, labels and names in agreement "
    "and its rows the same whole, in chunks and where they lie, or refused by the reader's own error, one sentence "
    "that names it, within ten seconds of computing and two gigabytes. All else is a finding. Files a second are "
    "those of the clock, and say as much of what else the machine did."
)


def main() -> int:
    names = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="files of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for each kind")
    parser.add_argument("--target", action="append", choices=names, help="default: all")
    parser.add_argument("--jobs", type=int, default=1, help="kinds at a time")
    parser.add_argument("--keep", type=Path, help="a folder for the files that break a rule")
    parser.add_argument("--publish", action="store_true", help=f"put the rows into benchmarks/results/{_NAME}.md")
    arguments = parser.parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    named = arguments.target or names
    run = partial(
        campaign,
        seed=arguments.seed,
        first=arguments.first,
        n=arguments.n,
        seconds=arguments.seconds,
        keep=arguments.keep,
    )
    rows, n_findings = _published() if arguments.publish else {}, 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(run, name): name for name in named}
        for done in as_completed(running):
            name, found = running[done], done.result()
            rows[name] = _row(name, arguments.seed, found)
            print(*rows[name], sep=" | ", flush=True)
            for examples in found.findings.values():
                numbers = ", ".join(str(number) for number, _ in examples[:5])
                print(f"    {len(examples)} × {examples[0][1]!a}\n        numbers {numbers}", flush=True)
            n_findings += len(found.findings)
            if arguments.publish:  # at once, as all kinds take the better part of an hour
                table = Table("Damaged files", _COLUMNS)
                for row in (rows[each] for each in names if each in rows):
                    table.add(*row)
                table.note(_WHAT)
                table.publish(_NAME, f"python -m tests.fuzz --n {arguments.n} --publish")
    return int(n_findings > 0)


def _row(name: str, seed: int, found: Findings) -> list[str]:
    counts = (found.n, found.n_read, found.n_refused, found.n - found.n_read - found.n_refused)
    rate = found.n / found.seconds
    return [name, str(seed), *(f"{count:,}" for count in counts), f"{found.slowest:.2f}", f"{rate:.0f}"]


def _published() -> dict[str, list[str]]:
    """Rows of the page, by name: those of kinds that are not looked at again stay."""
    path = RESULTS / f"{_NAME}.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row for row in rows[1:]}


if __name__ == "__main__":
    sys.exit(main())
