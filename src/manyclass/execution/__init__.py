"""Rows that lie in parts elsewhere: map(function, parts) → tree sum → broadcast."""

from typing import Any

from manyclass.execution.base import Executor, Parts
from manyclass.execution.dask import Dask

ENGINES: tuple[type[Executor], ...] = (Dask,)


def engine_of(X: Any) -> type[Executor] | None:
    """The engine whose parts X lies in; None where X is here."""
    return next((engine for engine in ENGINES if engine.takes(X)), None)


def check_here(X: Any) -> None:
    """Refuse what lies in parts, where it would be read as if it were here."""
    if engine_of(X) is not None:
        raise TypeError(
            "Rows that lie in partitions are taken by fit, by predictions and by Moments alone; pass X.compute() where "
            "they fit into memory, or add one partition after the other."
        )


__all__ = ["ENGINES", "Executor", "Parts", "check_here", "engine_of"]
