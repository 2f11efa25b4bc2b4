"""One live line on stderr while a model is fitted; nothing where stderr is not a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Shows what is being done; to an estimator it is one of scikit-learn's callbacks."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text, refresh=True)

    def setup(self, estimator: Any, context: Any) -> None:
        self._tol = estimator.get_params(deep=False).get("tol")

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    on_fit_task_begin = teardown

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:
        record = (metadata or {}).get("record")
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
