from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from benchmarks import data, report
from benchmarks.battery import cases, speed


def main(
    quick: Annotated[bool, typer.Option(help="Small cases at one alpha, 10 s each.")] = False,
    names: Annotated[list[str], typer.Option("--data", help="Names of cases (a part will do), or files.")] = [],  # noqa: B006
    alpha: Annotated[list[float], typer.Option()] = [],  # noqa: B006
    limit: Annotated[float, typer.Option(help="Seconds of each run.")] = 60.0,
    threads: Annotated[int, typer.Option(help="With one, seconds of the processor are counted.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON for each case.")] = False,
) -> None:
    """Race the default of GLMClassifier with its peers and our own other methods on every case."""
    limit = min(limit, 10.0) if quick else limit
    alphas = alpha or ([1e-4] if quick else list(cases.ALPHAS))
    results = []
    for name in chosen(names):
        if quick and not names and size(name) > cases.LARGEST_QUICK:
            continue
        for value in alphas:
            result = speed.contest(speed.Problem(name, value), limit, threads)
            results.append(result)
            print(json.dumps(asdict(result)) if as_json else " | ".join(speed.rows_of(result)), flush=True)
    if as_json:
        return
    columns = [
        "case",
        "n×d×columns",
        "default, s",
        "method",
        "best peer, s",
        "peer/default",
        "best of ours, s",
        "lbfgs",
    ]
    table = report.Table("The battery: seconds to 1e-3, the worst first", columns)
    for result in sorted(results, key=speed.badness, reverse=True):
        table.add(*speed.rows_of(result))
    for line in speed.summary(results, limit):
        table.note(line)
    table.publish("battery" + ("_quick" if quick else "") + ("_chosen" if names else ""))


def chosen(names: list[str]) -> list[str]:
    known = list(cases.registry())
    if not names:
        return known
    found: list[str] = []
    for name in names:
        matching = cases.forms(name) if data.is_file(name) else [one for one in known if name in one]
        if not matching:
            raise SystemExit(f"There is no case and no file {name!r}; the cases are: {', '.join(known)}.")
        found += [one for one in matching if one not in found]
    return found


def size(name: str) -> float:
    X, _ = cases.arrays(name)
    return float(getattr(X, "nnz", X.shape[0] * X.shape[1])) * speed.Problem(name, 1.0).n_columns


if __name__ == "__main__":
    typer.run(main)
