"""One live line on stderr while a model is fitted; nothing where stderr is not a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Shows what is being done; `callback` takes a solver's record after each pass."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task
        self._tol: float | None = None

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text, refresh=True)

    def goal(self, tol: float | None) -> None:
        self._tol = tol

    def callback(self, record: Any) -> None:
        certificate = float(record.certificate)
        text = f"pass {record.n_passes} · objective {record.objective:.6g} · certificate {certificate:.1e}"
        if self._tol is not None and 0 < self._tol < 1:
            text += f" → {self._tol:.0e}"
        self._bar.update(self._task, description=text, total=1.0, completed=self._fraction(certificate))

    def _fraction(self, certificate: float) -> float:
        # Certificates fall geometrically, so their logarithm moves evenly.
        if self._tol is None or not 0 < self._tol < 1 or not certificate > 0:
            return 0.0
        # Never quite full: a full bar counts as finished and would lose its spinner.
        return min(0.99, max(0.0, math.log(certificate) / math.log(self._tol)))


@contextmanager
def progress_line(text: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, highlight=False)
    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.elapsed:.1f} s"),
    ]
    if console.width >= 100:
        columns.append(BarColumn(bar_width=20))
    # Not a terminal: no line at all, not even the last one.
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield Progress(bar, bar.add_task(text, total=None))
