from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import data, report
from benchmarks.battery import cases, certificates, classes, errors, limits, odd, shapes, speed, threads
from benchmarks.report import lines_of, shown

LIMITED = ("gauss-50000x256-k50", "gauss-20000x256-k2000-unit", "sparse-100000x1000-k3")
"""Cases whose fits take longer than short limits."""
THREADED = ("digits", "letter", "banking77-tfidf-10", "gauss-3000x1000-k20-decay-noise", "gauss-50000x256-k50", "scene")
"""Cases of every kind on which all estimators are done within a minute."""

GUARDED = (
    *("digits-raw", "wine-raw", "iris-raw", "breast_cancer-raw", "ecoli-raw", "optdigits-raw", "letter-raw", "scene"),
    *("yeast", "banking77-few-5", "mnist-few-20", "sparse-2000x20000-k8", "gauss-3000x20-k4-scales"),
)
"""Cases of every kind on which the defaults are fitted within three minutes."""


class Part(StrEnum):
    """What is measured: seconds to the same points; our methods to certificates; the default on shapes drawn at random;
    every estimator on such shapes with odd weights and labels; errors of defaults, and on sets drawn at random; how
    limits are kept; all threads against one; thousands of classes."""

    SPEED = "speed"
    CERTIFICATES = "certificates"
    SHAPES = "shapes"
    ODD = "odd"
    ERRORS = "errors"
    DRAWN = "drawn"
    LIMITS = "limits"
    THREADS = "threads"
    CLASSES = "classes"


DRAWN = (Part.SHAPES, Part.ODD, Part.DRAWN, Part.CLASSES)
"""Parts that draw their own cases."""


def main(
    more: Annotated[list[str] | None, typer.Argument(help="More names or files, after --data.")] = None,
    quick: Annotated[bool, typer.Option(help="Small cases at one alpha, 10 s each.")] = False,
    names: Annotated[
        list[str] | None, typer.Option("--data", help="Names of cases (a part will do), or files.")
    ] = None,
    part: Annotated[
        list[Part] | None, typer.Option(help="All by default; of cases that are named, those that are about them.")
    ] = None,
    alpha: Annotated[list[float] | None, typer.Option()] = None,
    seeds: Annotated[tuple[int, int], typer.Option(help="Of the shapes: from, and up to but without.")] = (0, 300),
    limit: Annotated[float, typer.Option(help="Seconds of each run.")] = 60.0,
    n_threads: Annotated[
        int, typer.Option("--threads", help="Of a race; with one, seconds of the processor are counted.")
    ] = 1,
    known: Annotated[Path | None, typer.Option(help="Races run before, as --json printed them.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="A published table of errors: ends with status 1 where ours are clearly worse.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each result, and no tables.")] = False,
) -> None:
    """Race the default of GLMClassifier with its peers and our own other methods, and look at every default."""
    names = [*(names or []), *(more or [])] or None
    limit = min(limit, 10.0) if quick else limit
    suffix = ("_quick" if quick else "") + ("_chosen" if names else "")
    if against is not None:
        compare_errors(chosen(names) if names else list(GUARDED), against, limit)
        return
    found = [name for name in chosen(names or []) if names or not quick or size(name) <= cases.LARGEST_QUICK]
    alphas = alpha or ([1e-4] if quick else list(cases.ALPHAS))
    for one in part or [one for one in Part if not (names and one in DRAWN)]:
        print("" if as_json else f"== {one}", end="" if as_json else "\n", flush=True)
        if one is Part.SPEED:
            publish_speed(list(raced(found, alphas, limit, n_threads, known, as_json)), limit, suffix, as_json)
        elif one is Part.CERTIFICATES:
            publish_certificates(list(certified(found, alphas, limit, known, as_json)), limit, suffix, as_json)
        elif one is Part.SHAPES:
            publish_shapes(range(*seeds)[: 50 if quick else None], limit, suffix, as_json)
        elif one is Part.ODD:
            publish_odd(range(*seeds)[: 20 if quick else None], limit, suffix, as_json)
        elif one in (Part.ERRORS, Part.DRAWN):
            before = {line["case"]: errors.Result(**line) for line in lines_of(known) if "errors" in line}
            drawn_names = [f"{cases.DRAWN}{seed}" for seed in range(*seeds)[: 20 if quick else None]]
            compared_names = found if one is Part.ERRORS else drawn_names
            contests = (before.get(name) or compared(name, limit, as_json) for name in compared_names)
            publish_errors(list(contests), limit, ("_drawn" if one is Part.DRAWN else "") + suffix, as_json)
        elif one is Part.LIMITS:
            grid = limits.LIMITS[:2] if quick else limits.LIMITS
            publish_limits(
                [one for name in (found if names else LIMITED) for one in limits.contest(name, grid)], suffix, as_json
            )
        elif one is Part.THREADS:
            some = found if names else THREADED[:2] if quick else THREADED
            raced_threads = (one for name in some for one in threads.contest(name, limit))
            publish_threads([shown(one, threads.rows_of, as_json) for one in raced_threads], suffix, as_json)
        else:
            counts, n_rows = ([1000], 10_000) if quick else (list(classes.CLASSES), classes.N_ROWS)
            publish_classes(counts, n_rows, limit, suffix, as_json)


def compare_errors(names: list[str], published: Path, limit: float) -> None:
    before, known = errors.published(published.read_text()), cases.registry()
    print(f"Without data for: {', '.join(name for name in names if name not in known) or 'none'}.")
    contests = (errors.contest(name, limit, with_peers=False) for name in names if name in known)
    results = [shown(one, errors.rows_of, False) for one in contests]
    worse = errors.worse(results, before)
    print(
        f"{len(worse)} of {sum(len(one.errors) for one in results)} errors are worse than published", *worse, sep="\n"
    )
    if worse:
        raise typer.Exit(1)


def compared(name: str, limit: float, as_json: bool) -> errors.Result:
    return shown(errors.contest(name, limit), errors.rows_of, as_json)


def raced(
    names: list[str], alphas: list[float], limit: float, threads: int, known: Path | None, as_json: bool
) -> Iterator[speed.Result]:
    before = {(line["case"], line["alpha"]): speed.Result(**line) for line in lines_of(known) if "minimum" in line}
    for name in names:
        for value in alphas:
            if (name, value) in before:
                yield before[name, value]
            else:
                yield shown(speed.contest(speed.Problem(name, value), limit, threads), speed.rows_of, as_json)


def certified(
    names: list[str], alphas: list[float], limit: float, known: Path | None, as_json: bool
) -> Iterator[certificates.Result]:
    lines = (line for line in lines_of(known) if "expected" in line)
    before = {(line["case"], line["alpha"]): certificates.Result(**line) for line in lines}
    for name, value in ((name, value) for name in names for value in alphas):
        yield before.get((name, value)) or shown(
            certificates.contest(name, value, limit), certificates.rows_of, as_json
        )


def publish_certificates(results: list[certificates.Result], limit: float, suffix: str, as_json: bool) -> None:
    columns = ["case", "n×d", "chosen: s, passes of those expected", "the others", "chosen/fastest"]
    table = report.Table(
        f"Our methods to a certified gap of 1e-3, {limit:g} s at most, the worst choice first", columns
    )
    for result in sorted(results, key=lambda one: one.loss if one.loss == one.loss else 0.0, reverse=True):
        table.add(*certificates.rows_of(result))
    for line in certificates.summary(results):
        table.note(line)
    if not as_json:
        table.publish("battery_certificates" + suffix)


def publish_shapes(seeds: range, limit: float, suffix: str, as_json: bool) -> None:
    title = f"The default on {len(seeds)} shapes drawn at random: those it did not solve, the furthest first"
    table = report.Table(title, ["seed", "n×d×k and what is odd", "status", "F behind the least / F(0)", "passes", "s"])
    results = [shown(shapes.contest(seed, limit), shapes.rows_of, as_json) for seed in seeds]
    bad = sorted((one for one in results if one.is_bad), key=lambda one: one.behind, reverse=True)
    for result in bad:
        table.add(*shapes.rows_of(result))
    table.note(
        f"{len(bad)} of {len(results)} with seeds from {seeds.start}: no certificate, or more than {shapes.TOL:g} of "
        f"F(0) above the least objective found in float64 to {shapes.SHARPER:g}. {limit:g} s for each fit."
    )
    if not as_json:
        table.publish("battery_shapes" + suffix)


def publish_odd(seeds: range, limit: float, suffix: str, as_json: bool) -> None:
    title = f"Every estimator on {len(seeds)} shapes drawn at random, with odd weights and labels: what went wrong"
    columns = ["seed", "n×d×k and what is odd", "estimator", "status", "gap", "F behind", "s", "wrong"]
    table = report.Table(title, columns)
    results = [shown(one, odd.rows_of, as_json) for seed in seeds for one in odd.contest(seed, limit)]
    bad = [one for one in results if one.wrong]
    for result in sorted(bad, key=lambda one: (one.wrong, one.estimator)):
        table.add(*odd.rows_of(result))
    table.note(f"{len(bad)} of {len(results)} fits with seeds from {seeds.start}, {limit:g} s for each.")
    table.note(odd.MEANING)
    if not as_json:
        table.publish("battery_odd" + suffix)


def publish_speed(results: list[speed.Result], limit: float, suffix: str, as_json: bool) -> None:
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
    if not as_json:
        table.publish("battery" + suffix)


def publish_errors(results: list[errors.Result], limit: float, suffix: str, as_json: bool) -> None:
    columns = ["case", "n×d×k", *errors.peers(False), *errors.ours()]
    table = report.Table("Errors of every default on held-out rows, in %", columns)
    for result in sorted(results, key=lambda one: max(map(one.excess, errors.found(one)), default=0.0), reverse=True):
        table.add(*errors.rows_of(result))
    beyond = [f"{name} on {case} by {100 * points:.1f}" for points, case, name in errors.worst(results) if points > 0]
    table.note(
        "Points beyond 1.2 times or one point more than LogisticRegression(): " + (", ".join(beyond) or "none") + "."
    )
    behind = [f"{name} on {case} by {100 * points:.1f}" for points, case, name in errors.furthest(results)[:10]]
    table.note(f"Points behind the best of scikit-learn's three, the furthest: {', '.join(behind)}.")
    table.note(f"Ours were given {limit:g} seconds.")
    if not as_json:
        table.publish("battery_errors" + suffix)


def publish_limits(results: list[limits.Result], suffix: str, as_json: bool) -> None:
    table = report.Table("How max_time is kept", ["case", "estimator", "max_time, s", "took, s", "beyond, s", "status"])
    for one in sorted(results, key=lambda one: one.over, reverse=True):
        table.add(one.case, one.estimator, one.limit, f"{one.seconds:.2f}", f"{max(one.over, 0):.2f}", one.status)
    table.note("Beyond is what a fit took past 1.1 times its limit and 0.2 s.")
    if as_json:
        print(json.dumps([asdict(one) for one in results]))
    else:
        table.publish("battery_limits" + suffix)


def publish_threads(results: list[threads.Result], suffix: str, as_json: bool) -> None:
    columns = ["case", "n×d", "estimator", "all threads, s", "one, s", "slower by"]
    table = report.Table("All threads against one, seconds of the wall", columns)
    for one in sorted(results, key=lambda one: one.slower, reverse=True):
        table.add(*threads.rows_of(one))
    table.note(f"The least of {threads.REPEATS} fits each, taken in turn; {threads.NOISE:g} s are let pass.")
    if not as_json:
        table.publish("battery_threads" + suffix)


def publish_classes(counts: list[int], n_rows: int, limit: float, suffix: str, as_json: bool) -> None:
    columns = ["classes", "estimator", "s", "gap", "status", "errors, %", "largest coefficient", "memory, GB"]
    table = report.Table(f"{n_rows} unit-norm rows of {classes.N_FEATURES} features, balanced classes", columns)
    for n_classes in counts:
        for name in ("GLMClassifier", "LogisticRegression"):
            found = classes.contest(name, n_classes, limit, n_rows)
            if found is None:
                table.add(n_classes, name, f"> {2 * limit:.0f}", *["-"] * 5)
                continue
            cells = [f"{found.seconds:.1f}", f"{found.gap:.1e}", found.status, f"{100 * found.errors:.1f}"]
            table.add(n_classes, name, *cells, f"{found.largest_coefficient:.2g}", f"{found.gigabytes:.1f}")
            print(json.dumps(asdict(found)) if as_json else table.rows[-1], flush=True)
    if not as_json:
        table.publish("battery_classes" + suffix)


def chosen(names: list[str]) -> list[str]:
    known = list(cases.registry())
    if not names:
        return known
    found: list[str] = []
    for name in names:
        matching = cases.forms(name) if data.is_file(name) else [one for one in known if name in one]
        matching = [name] if name.startswith(cases.DRAWN) else matching
        if not matching:
            raise SystemExit(f"There is no case and no file {name!r}; the cases are: {', '.join(known)}.")
        found += [one for one in matching if one not in found]
    return found


def size(name: str) -> float:
    X, _ = cases.arrays(name)
    return float(getattr(X, "nnz", X.shape[0] * X.shape[1])) * speed.Problem(name, 1.0).n_columns


if __name__ == "__main__":
    typer.run(main)
