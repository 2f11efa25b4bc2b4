"""Labelled rows in each of several scalings: those that a search has in memory, and all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.data import Rows
from manyclass.data.labels import encode
from manyclass.data.memory import told
from manyclass.data.rows import present_rows, to_numpy
from manyclass.estimators.candidates import in_random_order

SHARE = 0.25
"""Of the memory for rows that are read as a whole, itself half of the limit, what a sample of them takes: it is held as
given and scaled, a fit learns from a copy of most of it, and generates features of that."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows, labels, and what rows weigh where they are learnt from, class weights aside."""

    scaled: Mapping[str, Any]  # by scaling: arrays, or `Rows` that stay in their file
    y: np.ndarray
    weight: np.ndarray | None = None
    memory_limit: float = np.inf  # of a fit

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def codes(self) -> np.ndarray | None:
        """Class numbers, or None for several labels per row."""
        return self.y if self.y.ndim == 1 else None

    def fit(self, model: Any, scaling: str, index: np.ndarray | None = None) -> Any:
        """The model, fitted to some of the rows or to all."""
        X, y, weight = self.scaled[scaling], self.y, self.weight
        if index is not None:
            X, y, weight = X[index], y[index], None if weight is None else weight[index]
        limit = {} if self.memory_limit == np.inf else {"memory_limit": self.memory_limit}
        return model.fit(X, y, **limit) if weight is None else model.fit(X, y, weight, **limit)

    def in_random_order(self) -> np.ndarray:
        """Numbers of the rows, with one of each class before the others."""
        return in_random_order(np.arange(self.n_rows), self.codes, np.random.default_rng(0))


def unseen(rows: Rows, y: Any, weight: Any, scalers: Mapping[str, Any]) -> Labelled:
    """All rows of a file, scaled as they are read; their fit has the memory that the sample leaves."""
    scaled = {name: rows if scaler is None else rows.transformed(scaler.transform) for name, scaler in scalers.items()}
    y = y if y.ndim == 1 else to_numpy(encode(y, "AutoClassifier").indicator)
    return Labelled(scaled, y, weight, 2.0 * (1.0 - SHARE) * rows.most_bytes)


def sample(rows: Rows, y: Any, weight: np.ndarray | None, rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
    """The rows that weigh something, in memory, and their numbers; where not all fit as many as do, of each class some.

    Raises
    ------
    MemoryError
        Where there is no room for two rows of each class.
    """
    index = present_rows(rows.n_rows, weight)
    most = int(min(SHARE * rows.most_bytes / max(rows.row_bytes, 1), len(index)))
    if most < len(index):
        codes = y if y.ndim == 1 else None
        n_classes = 1 if codes is None else len(np.unique(codes))
        if most < 2 * n_classes:
            raise MemoryError(
                f"There is room for {most} of {rows.n_rows} rows ({told(rows.n_rows * rows.row_bytes)}) in {n_classes} "
                "classes, too few to compare models by; raise memory_limit, or use GLMClassifier."
            )
        index = np.sort(in_random_order(index, codes, rng)[:most])
    if len(index) < rows.n_rows:
        return rows.take(index), index
    return rows.part(slice(0, rows.n_rows)) if rows.most_bytes < np.inf else rows, index
