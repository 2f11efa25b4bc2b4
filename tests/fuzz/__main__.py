"""Damaged files in large numbers: ``python -m tests.fuzz --n 100000 [--target csv] [--seed 0] [--publish]``.

Prints for every reader and loader how many files were read, refused, and found to break a rule, with the error of each
kind of finding and the number by which it can be had again (``--first NUMBER --n 1``; models hold addresses, so that
theirs are better looked for in the folder of ``--keep``).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.report import Table
from tests.fuzz.campaign import campaign
from tests.fuzz.targets import TARGETS

_COLUMNS = ["reader or loader", "files", "read", "refused", "findings", "slowest, CPU seconds", "files a second"]


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
    parser.add_argument("--publish", action="store_true", help="keep the table as benchmarks/results/fuzz.md")
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
    table, n_findings = Table(f"Damaged files, seed {arguments.seed}", _COLUMNS, live=True), 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, found in zip(named, pool.map(run, named), strict=True):
            counts = (found.n, found.n_read, found.n_refused, found.n - found.n_read - found.n_refused)
            rate = found.n / found.seconds
            table.add(name, *(f"{count:,}" for count in counts), f"{found.slowest:.2f}", f"{rate:.0f}")
            for examples in found.findings.values():
                numbers = ", ".join(str(number) for number, _ in examples[:5])
                print(f"    {len(examples)} × {examples[0][1]!a}\n        numbers {numbers}", flush=True)
            n_findings += len(found.findings)
    table.note(
        "Each file is a valid one with one to three changes. It has to be read, its shapes, labels and names in "
        "agreement and its rows the same whole, in chunks and where they lie, or refused by the reader's own error, "
        "one sentence that names it, within ten seconds of computing and two gigabytes. All else is a finding."
    )
    if arguments.publish:
        table.publish("fuzz")
    return int(n_findings > 0)


if __name__ == "__main__":
    sys.exit(main())
