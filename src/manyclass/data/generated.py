"""Rows whose features are made when they are read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyclass.data.dense import DenseRows
from manyclass.data.gram import GramSum
from manyclass.data.rows import Array, Rows, slices


@dataclass(frozen=True)
class InUnits:
    """Columns divided by a number each."""

    unit: Array

    @property
    def n_features_out(self) -> int:
        return int(self.unit.shape[0])

    def generate(self, rows: Rows) -> Array:
        return rows.dense() / rows.asarray(self.unit)


def in_units(rows: Rows, unit: Array) -> Rows:
    """Rows with columns divided by a number each: when they are read, or a copy of what is stored of sparse ones."""
    divided = rows.divided(unit)
    return GeneratedRows(rows, InUnits(unit)) if divided is None else divided


class GeneratedRows(Rows):
    """φ(x) for every row, of shape (n_rows, n_features_out): a block is made when it is asked for, and never held in
    full unless the transformer asks for it (``keep``): then in float16, once all blocks have been read.

    The transformer is a drawn generator of features, or what has its ``n_features_out`` and ``generate``. Where it has
    ``times``, products with features are made by that. `seconds` is the time spent on making features.
    """

    def __init__(self, base: Rows, transformer: Any, shift: Array | None = None):
        self.base, self.transformer, self.shift = base, transformer, shift
        self.xp, self.device, self.dtype = base.xp, base.device, base.dtype
        self.n_rows, self.n_features = base.n_rows, int(transformer.n_features_out)
        self.seconds, self.block_limit, self.place = 0.0, base.block_limit, base.place
        self._keeps = base.is_numpy and getattr(transformer, "keep", False)
        self._kept: np.ndarray | None = None

    @property
    def row_bytes(self) -> float:
        return self.n_features * self.itemsize

    def recipe(self) -> GeneratedRows:
        """How the features of a part are made, to be sent there."""
        return GeneratedRows(self.base.recipe(), self.transformer, self.shift)

    def held(self, X: Any) -> GeneratedRows:
        """The features of a part, there."""
        return GeneratedRows(self.base.held(X), self.transformer, self.shift)

    def part(self, rows: slice) -> DenseRows:
        return self._made(self.base.part(rows))

    def blocks(self, rows_per_block: int) -> Iterator[tuple[Any, Rows]]:
        if self._keeps:
            return self._kept_blocks(rows_per_block)
        return ((rows, self._made(block)) for rows, block in self.base.blocks(rows_per_block))

    def _kept_blocks(self, rows_per_block: int) -> Iterator[tuple[Any, Rows]]:
        if self._kept is None:
            kept = np.empty((self.n_rows, self.n_features), np.float16)
            for rows, block in self.base.blocks(rows_per_block):
                kept[rows] = self._made(block).dense()
                yield rows, self._read(kept[rows])
            self._kept = kept
            return
        for rows in slices(self.n_rows, rows_per_block):
            yield rows, self._read(self._kept[rows])

    def _read(self, kept: np.ndarray) -> DenseRows:
        return DenseRows(kept.astype(self.dtype))

    def take(self, index: np.ndarray) -> DenseRows:
        return self._made(self.base.take(index)) if self._kept is None else self._read(self._kept[index])

    def _made(self, block: Rows) -> DenseRows:
        return _Unmade(self, block) if hasattr(self.transformer, "times") else DenseRows(self.made(block))

    def made(self, block: Rows) -> Array:
        """The features of some rows."""
        started = time.perf_counter()
        made = self.transformer.generate(block)
        self.seconds += time.perf_counter() - started
        return made if self.shift is None else made - self.shift

    def typed(self, dtype: Any) -> GeneratedRows:
        shift = None if self.shift is None else self.xp.astype(self.shift, dtype)
        return GeneratedRows(self.base.typed(dtype), self.transformer, shift)

    def _with_shift(self, shift: Array) -> GeneratedRows:
        return GeneratedRows(self.base, self.transformer, self.asarray(shift))

    def gram_sum(self) -> GramSum:
        return DenseRows(self.zeros((0, self.n_features))).gram_sum()


class _Unmade(DenseRows):
    """Features that are made once something but a product with them is asked for."""

    def __init__(self, owner: GeneratedRows, base: Rows):
        self.owner, self.base, self.shift = owner, base, None
        self.xp, self.device, self.dtype = base.xp, base.device, base.dtype
        self.n_rows, self.n_features = base.n_rows, owner.n_features

    def _make(self) -> Array:
        return self.owner.made(self.base)

    X = cached_property(_make)

    def matmat(self, W: Array) -> Array:
        if "X" in vars(self):
            return super().matmat(W)
        product, shift = self.owner.transformer.times(self.base, W), self.owner.shift
        return product if shift is None else product - shift @ W
