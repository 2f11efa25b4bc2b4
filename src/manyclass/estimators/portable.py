"""Fitted estimators as plain values: what pickle, joblib, skops and copy see of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sklearn.base import BaseEstimator

from manyclass.solvers.base import Record, Status


class PortableEstimator(BaseEstimator):
    """Writes ``status_`` and ``history_`` as strings and numbers: a model file then needs no trust in their types."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if isinstance(state.get("status_"), Status):
            state["status_"] = state["status_"].name
        history = state.get("history_")
        if history and isinstance(history[0], Record):
            names = [field.name for field in fields(history[0])]
            state["history_"] = {
                "record": type(history[0]).__name__,
                "fields": names,
                "values": [[getattr(record, name) for name in names] for record in history],
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if isinstance(state.get("status_"), str):
            state["status_"] = Status[state["status_"]]
        history = state.get("history_")
        if isinstance(history, dict):
            kind = _record_kinds()[history["record"]]
            state["history_"] = [kind(**dict(zip(history["fields"], row, strict=True))) for row in history["values"]]
        super().__setstate__(state)


def _record_kinds() -> dict[str, type[Record]]:
    found, kinds = [Record], {}
    while found:
        kind = found.pop()
        kinds[kind.__name__] = kind
        found += kind.__subclasses__()
    return kinds
