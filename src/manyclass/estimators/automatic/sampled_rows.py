"""Labelled rows in each of several scalings: the sample in memory that a search compares models on, and all rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyclass.data import Rows, as_rows
from manyclass.data.labels import encode, of_present, unmistakable
from manyclass.data.memory import told
from manyclass.data.rows import GRAM_BLOCK_BYTES, present_rows, to_numpy
from manyclass.estimators.automatic.rounds import in_random_order
from manyclass.estimators.automatic.scalings import AS_GIVEN, behind, taken

SHARE = 0.25
"""What a sample may take of the memory for rows that are read as a whole, which is half of the limit: it is held as
given and scaled, and a fit copies most of it and generates features from that."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows, their labels and their weights."""

    scaled: Mapping[str, Any]  # by scaling: arrays, or `Rows` that stay in their file
    y: np.ndarray
    weight: np.ndarray | None = None  # in fits, without class weights
    memory_limit: float = np.inf  # of a fit, in bytes
    judging_weight: np.ndarray | None = None  # where rows judge, with class weights
    whole: dict[str, Any] = field(default_factory=dict)  # all rows in the scaling that was asked for last

    @property
    def n_rows(self) -> int:
        """How many rows have a weight above 0."""
        return len(self.y) if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def is_wide(self) -> bool:
        """Whether rows are fewer than columns, so that many linear models fit them exactly and differ elsewhere."""
        return min((as_rows(X).n_features for X in self.scaled.values()), default=0) > self.n_rows

    def fit(self, model: Any, scaling: str, index: np.ndarray | None = None) -> Any:
        """The model, fitted to some of the rows or to all."""
        started = time.perf_counter()
        X, y, weight = self._taken(scaling, index), self.y, self.weight
        if model.max_time is not None:
            model.set_params(max_time=max(model.max_time - (time.perf_counter() - started), 1e-3))
        if index is not None:
            y, weight = y[index], None if weight is None else weight[index]
        limit = {} if self.memory_limit == np.inf else {"memory_limit": self.memory_limit}
        y = unmistakable(y)
        return model.fit(X, y, **limit) if weight is None else model.fit(X, y, weight, **limit)

    def seconds_to_read(self, scaling: str) -> tuple[float, float]:
        """Of each row in a fit to all: whatever the number of passes, and in each pass.

        It is measured on one block. What is parsed is parsed in two passes, what scaling makes of it is made in all.
        """
        given, scaled = (_seconds_of_a_row(self._taken(name, None)) for name in (AS_GIVEN, scaling))
        return 2.0 * given, max(scaled - given, 0.0)

    def _taken(self, scaling: str, index: np.ndarray | None) -> Any:
        if index is not None:
            return taken(self.scaled[scaling], index)
        if scaling not in self.whole:  # a path of fits takes all rows again and again
            self.whole.clear()
            self.whole[scaling] = taken(self.scaled[scaling])
        return self.whole[scaling]

    def some(self, n_rows: int) -> np.ndarray:
        """Indices of so many rows, drawn at random, with one of each class if they are enough."""
        return some(np.arange(self.n_rows), self.y, n_rows, np.random.default_rng(0))


def _seconds_of_a_row(X: Any) -> float:
    rows, started = as_rows(X), time.perf_counter()
    n_rows = min(rows.rows_per_block(1, GRAM_BLOCK_BYTES), rows.n_rows)
    for _ in rows.part(slice(0, n_rows)).blocks(n_rows):
        pass
    return float(time.perf_counter() - started) / n_rows


def some(index: np.ndarray, y: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(in_random_order(index, y if y.ndim == 1 else None, rng)[:n_rows])


def rows_of_file(rows: Rows, y: Any, weight: Any, scalers: Mapping[str, Any]) -> Labelled:
    """All rows of a file, scaled as they are read; a fit may use the memory that the sample leaves."""
    scaled = {name: behind(scaler, rows) for name, scaler in scalers.items()}
    y = y if y.ndim == 1 else to_numpy(encode(y, "AutoClassifier").indicator)
    y = y if weight is None else of_present(y, weight)
    return Labelled(scaled, y, weight, 2.0 * (1.0 - SHARE) * rows.most_bytes)


def sample(
    rows: Rows, y: Any, weight: np.ndarray | None, rng: np.random.Generator, row_bytes: float
) -> tuple[Rows, np.ndarray]:
    """The rows with a weight above 0, in memory, and their indices; if not all fit, as many as do, of every class.

    `row_bytes` are those of a row in the scaling that takes most.

    Raises
    ------
    MemoryError
        Where there is no room for two rows of each class.
    """
    index = present_rows(rows.n_rows, weight)
    most = int(min(SHARE * rows.most_bytes / max(row_bytes, 1), len(index)))
    if most < len(index):
        n_classes = len(np.unique(y)) if y.ndim == 1 else 1
        if most < 2 * n_classes:
            raise MemoryError(
                f"There is room for {most} of {rows.n_rows} rows ({told(rows.n_rows * rows.row_bytes)}) in {n_classes} "
                "classes, too few to compare models by; raise memory_limit, or use GLMClassifier."
            )
        index = some(index, y, most, rng)
    if len(index) < rows.n_rows:
        return rows.take(index), index
    return rows.part(slice(0, rows.n_rows)) if rows.most_bytes < np.inf else rows, index
