"""What every estimator says of its fit, and what pickle, joblib, skops and copy see of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from manyclass.solvers.base import Record, Status


class PortableEstimator(BaseEstimator):
    """Has ``status_``, ``history_``, ``certificate_`` and ``n_iter_``.

    ``status_`` and ``history_`` are written as strings and numbers: a model file then needs no trust in their types.
    """

    n_iter_: int
    status_: Status
    certificate_: float
    history_: list[Any]

    def _store_run(self, status: Status, history: Sequence[Record], n_iter: int) -> None:
        """What every fit says of itself; to be called by ``fit``, so that a warning names the caller's line."""
        self.n_iter_, self.status_ = n_iter, status
        self.history_, self.certificate_ = list(history), history[-1].certificate
        if status.is_failure:
            warnings.warn(
                f"{type(self).__name__}: {status} (certificate {self.certificate_:.2g})",
                ConvergenceWarning,
                stacklevel=3,
            )

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
