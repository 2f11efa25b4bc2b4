"""What the commands write: whole files or none, JSON for machines, text for people and a live line while they wait."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyclass.cli.errors import CommandError
from manyclass.data.whole_file import replaced, try_to_write

if TYPE_CHECKING:
    from rich.console import Console


def check_writable(path: Path, force: bool) -> None:
    """Refuse a place that cannot be written before hours are spent on what would go there."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder: give the name of a file in it")
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent} to write {path.name} to: create it first")
    _check_absent(path, force)
    with _said_of_folder(path):
        try_to_write(path)


def _check_absent(path: Path, force: bool) -> None:
    if os.path.lexists(path) and not (force and path.is_file()):
        advice = "give another name, or replace it with --force" if path.is_file() else "give the name of a file"
        raise CommandError(f"{path} exists already: {advice}")


@contextmanager
def whole_file(path: Path, force: bool) -> Iterator[Path]:
    """A temporary path beside `path` that takes its name once the block has succeeded."""
    with _said_of_folder(path), replaced(path) as temporary:
        yield temporary
        _check_absent(path, force)


@contextmanager
def _said_of_folder(path: Path) -> Iterator[None]:
    """Where it is the folder that keeps a file from being written, say that: there need be no such file yet."""
    try:
        yield
    except OSError as error:
        whys = {errno.ENOENT: "takes no new files, or is gone"}
        whys |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "may not be written to")
        if error.filename != str(path) or error.errno not in whys:
            raise
        why = whys[error.errno]
        raise CommandError(f"the folder {path.parent} {why}: choose another place for {path.name}") from error


def write_page(path: Path, text: str, force: bool) -> dict[str, Any]:
    """Write a page, and say so in a report."""
    with whole_file(path, force) as temporary:
        # A name that holds half a character of UTF-16 is shown as one that could not be read.
        temporary.write_text(text, encoding="utf-8", errors="xmlcharrefreplace")
    return {"html": path}


def print_json(report: dict[str, Any]) -> None:
    """One JSON object; numbers that JSON does not have become null."""
    from manyclass.data.tensors import plain

    print(json.dumps(plain(report), allow_nan=False))


def console() -> Console:
    """Where people read: as wide as the terminal, and wide enough for a table where there is none."""
    from rich.console import Console

    if hasattr(sys.stdout, "reconfigure"):
        # A terminal that has no × shows a ? in its place; predictions are data and are never written this way.
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)


def print_facts(facts: list[tuple[str, str]]) -> None:
    """A name and what is to say about it, line by line."""
    from rich.text import Text

    out = console()
    width = max(len(name) for name, _ in facts) + 2
    for name, fact in facts:
        out.print(Text.assemble((f"{name:<{width}}", "bold cyan"), fact))


class Progress:
    """Shows what is being done; to an estimator it is one of scikit-learn's callbacks."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task, self._compiling = bar, task, ExitStack()

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text, refresh=True)

    def setup(self, estimator: Any, context: Any) -> None:
        self._tol = estimator.get_params(deep=False).get("tol")
        if getattr(estimator, "_compiles", False):
            self._compiling.enter_context(_told_of_compilation(self))

    def teardown(self, estimator: Any, context: Any) -> None:
        self._compiling.close()

    def on_fit_task_begin(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        if metadata and "trying" in metadata:
            known, accuracy = "", metadata["best_accuracy"]
            if accuracy is not None:
                known = f" · best so far {100 * (1 - accuracy):.2f} % errors"
            self.say(f"trying {metadata['trying']} on {metadata['n_rows']:,} rows{known}")

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        record = None if metadata is None else metadata.get("record")
        if record is None:
            return
        gap, level = record.duality_gap, {}
        text = f"iteration {round(record.n_iter, 2)} · objective {record.objective:.6g}"
        if "n_features" in record.details:
            text += f" · {record['n_features']:,} features"
        if not math.isnan(gap):
            text += f" · duality gap {gap:.1e}"
            if self._tol is not None and 0 < self._tol < 1:
                text += f" → {self._tol:.0e}"
                # Gaps fall geometrically, so their logarithm moves evenly.
                done = math.log(gap) / math.log(self._tol) if gap > 0 else 1.0
                # Never quite full: a full bar counts as finished and would lose its spinner.
                level = {"total": 1.0, "completed": min(0.99, max(0.0, done))}
        self._bar.update(self._task, description=text, **level)


def _told_of_compilation(progress: Progress) -> AbstractContextManager[None]:
    """While it is open, Numba says when it compiles: seconds, once on a machine, that nobody should wonder about."""
    from numba.core import event

    class Compilation(event.Listener):
        def on_start(self, event: Any) -> None:
            progress.say("compiling, as this is the first fit of its kind on this machine")

        def on_end(self, event: Any) -> None:
            progress.say("fitting")

    return event.install_listener("numba:compile", Compilation())


@contextmanager
def progress_line(text: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, highlight=False)
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TextColumn("{task.elapsed:.1f} s")]
    if console.width >= 100:
        columns.append(BarColumn(bar_width=20))
    # Not a terminal: no line at all, not even the last one.
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield Progress(bar, bar.add_task(text, total=None))
