"""``python -m benchmarks papers``: every table and figure of the papers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help=__doc__)


@app.callback()
def benchmarks() -> None:
    """What the benchmarks can make by name; each of them is a command of its own as well."""


@app.command()
def papers(
    names: Annotated[list[str] | None, typer.Argument(help="Names, or beginnings of names; all without any.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the names, and what data each wants.")] = False,
    quick: Annotated[bool, typer.Option(help="Sizes at which all of them take ten minutes.")] = False,
    data: Annotated[
        str | None,
        typer.Option(help="The folder with the data sets, or a file TRAIN or TRAIN,TEST in place of an entry's own."),
    ] = None,
) -> None:
    """Make tables and figures of the papers again, each as a page in results/papers with ours beside the paper's."""
    folder = data is not None and Path(data).is_dir()
    if folder:
        os.environ["MANYCLASS_DATA"] = str(data)
    elif data is not None and not Path(data.partition(",")[0]).is_file():
        raise SystemExit(f"There is no folder and no file {data!r}.")

    from benchmarks.papers import named, sources
    from benchmarks.papers.page import run_all

    chosen = named(names or [])
    if show:
        for entry in chosen:
            typer.echo(f"{entry.name}: {entry.what}")
            for name in entry.names(quick):
                typer.echo(f"    {sources.described(name, quick)}")
        return
    if run_all(chosen, quick, None if folder else data):
        raise SystemExit(1)


if __name__ == "__main__":
    app()
