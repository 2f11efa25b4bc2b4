"""Rows that lie in parts elsewhere: map(function, parts) → tree sum → broadcast."""

from __future__ import annotations

from typing import Any

from manyclass.execution.base import Broadcast, Executor, Parts
from manyclass.execution.dask import Dask

ENGINES: tuple[type[Executor], ...] = (Dask,)


def engine_of(X: Any) -> type[Executor] | None:
    """The engine whose parts X lies in; None where X is here."""
    return next((engine for engine in ENGINES if engine.takes(X)), None)


__all__ = ["ENGINES", "Broadcast", "Executor", "Parts", "engine_of"]
