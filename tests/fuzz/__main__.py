"""Damaged files in large numbers: ``python -m tests.fuzz --n 100000 [--target csv] [--seed 0] [--first 0]``.

Prints for every reader and loader how many files were read, refused, and found to break a rule, with the error of each
kind of finding and the number by which it can be had again (``--first NUMBER --n 1``).
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.campaign import campaign
from tests.fuzz.targets import TARGETS


def main() -> int:
    names = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="files of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for each kind")
    parser.add_argument("--target", action="append", choices=names, help="default: all")
    arguments = parser.parse_args()
    n_findings = 0
    for name in arguments.target or names:
        found = campaign(name, arguments.seed, arguments.first, arguments.n, arguments.seconds)
        print(f"{name:16} {found.n_read:>8,} read {found.n_refused:>8,} refused {found.seconds:8.1f} s", flush=True)
        for examples in found.findings.values():
            numbers = ", ".join(str(number) for number, _ in examples[:5])
            print(f"    {len(examples)} × {examples[0][1]!a}\n        numbers {numbers}", flush=True)
        n_findings += len(found.findings)
    return int(n_findings > 0)


if __name__ == "__main__":
    sys.exit(main())
