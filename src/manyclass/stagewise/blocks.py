"""The blocks of features of a model, and their coefficients so far."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from manyclass.data import Rows
from manyclass.data.rows import Array

FACTOR_BYTES = 1 << 30
"""Memory for the factors of blocks that are visited again; those of other blocks are computed again."""


class Blocks(ABC):
    """The blocks of one model, in the order in which they were first visited."""

    redraws: bool = False  # whether each visit brings new blocks
    n_components: int  # of all blocks together

    def __init__(self) -> None:
        self.drawn: list[Any] = []  # fitted transformers, or None for the original columns
        # Progress of the present visit: features drawn in a first one, blocks visited in a later one; 0 between visits.
        self.place = 0

    @abstractmethod
    def first_visit(self, gradient: Callable[[], Array]) -> Iterator[tuple[int, bool]]:
        """For each new block, drawn when its turn comes: its number, and whether it is the last of the visit."""

    def visit(self, number: int, gradient: Callable[[], Array]) -> Iterator[tuple[int, bool]]:
        """For each block that is still to be visited: its number, and whether it is the last.

        Visits are counted from 0; `gradient` gives Σ s_i x_i r_iᵀ over the original columns, with the present residuals
        r.
        """
        if number == 0 or self.redraws:
            yield from self.first_visit(gradient)
            return
        n_blocks = len(self.drawn)
        for index in range(self.place, n_blocks):
            self.place = (index + 1) % n_blocks
            yield index, not self.place


class OriginalColumns(Blocks):
    """A single block, the columns as they are. With calibration after each visit this is Algorithm 2."""

    def __init__(self, rows: Rows):
        super().__init__()
        self.n_components = rows.n_features

    def first_visit(self, gradient: Callable[[], Array]) -> Iterator[tuple[int, bool]]:
        self.drawn.append(None)
        yield 0, True


class DrawnBlocks(Blocks):
    """Blocks of up to `block_size` features from a fitted generator, until `n_components`, or all it has, are drawn."""

    def __init__(self, generator: Any, block_size: int, n_components: int | None, rng: np.random.Generator):
        super().__init__()
        self.generator, self.block_size, self.rng = generator, block_size, rng
        self.redraws = generator.redraws
        self.n_components = min(n for n in (n_components, generator.capacity) if n is not None)

    def first_visit(self, gradient: Callable[[], Array]) -> Iterator[tuple[int, bool]]:
        if not self.place:
            self.generator.begin_visit(gradient, self.rng)
        is_last = False
        while not is_last:
            block = self.generator.draw(min(self.block_size, self.n_components - self.place), self.rng)
            self.drawn.append(block)
            self.place += block.n_features_out
            is_last = self.place >= self.n_components
            self.place = 0 if is_last else self.place
            yield len(self.drawn) - 1, is_last


class Coefficients:
    """Coefficients of all features, summed over stages, as the penalty needs them. `rows` are the original ones."""

    _given = ("rows", "xp")

    def __init__(self, rows: Rows, n_outputs: int):
        self.rows, self.n_outputs, self.xp = rows, n_outputs, rows.xp
        self.square = 0.0
        self._by_block: dict[int, Array] = {}
        self._by_column: Array | None = None  # if blocks are drawn again from the same columns

    def of(self, index: int, block: Any) -> Array | None:
        """The coefficients of a block, float64; None if they are all zero."""
        columns = getattr(block, "columns", None)
        if columns is None:
            return self._by_block.get(index)
        if self._by_column is None:
            return None
        return self.xp.take(self._by_column, self.rows.asarray(columns, self.xp.int64), axis=0)

    def along(self, previous: Array | None, coef: Array) -> tuple[Array, Array]:
        """⟨previous, coef⟩ and ‖coef‖² of each output: the derivatives of ½‖previous + length·coef‖² at length 0."""
        xp, wide = self.xp, self.xp.astype(coef, self.xp.float64)
        square = xp.sum(wide * wide, axis=0)
        return (0.0 * square if previous is None else xp.sum(previous * wide, axis=0)), square

    def add(self, index: int, block: Any, previous: Array | None, coef: Array) -> None:
        """Add the coefficients of a stage."""
        wide, columns = self.xp.astype(coef, self.xp.float64), getattr(block, "columns", None)
        linear, square = self.along(previous, coef)
        self.square += float(self.xp.sum(2.0 * linear + square))
        if columns is None:
            self._by_block[index] = self._by_block[index] + wide if index in self._by_block else wide
            return
        if self._by_column is None:
            self._by_column = self.rows.zeros((block.capacity, self.n_outputs), self.xp.float64)
        places = self.rows.asarray(columns, self.xp.int64)
        self._by_column[places, :] = self.xp.take(self._by_column, places, axis=0) + wide
