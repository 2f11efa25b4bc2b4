"""What a look at every number of X says: gaps, zeros and ranges of columns, and rows or columns that are equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data.cells import largest
from manyclass.data.rows import Rows, to_numpy

_SPARE_BITS = 18
"""Of the 53 of a float64, how many may differ in two sums of the same numbers in another order."""


@dataclass(frozen=True)
class Ranges:
    """Of each column, from all rows; and how many numbers are not 0.

    Columns are compared by their `sizes`, of the `measure` "deviation"; or "largest" where rows cannot be centred:
    columns of rare words differ in variance by how rare they are, which is no matter of their units.
    """

    minimum: np.ndarray
    maximum: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    n_nonzero: int
    sizes: np.ndarray
    measure: str


def finite_rows(rows: Rows) -> tuple[np.ndarray, int]:
    """A mask of the rows without numbers that are missing, infinite or too large, and how many of these there are."""
    mask, n_bad = np.ones(rows.n_rows, dtype=bool), 0
    for part, block in rows.blocks(rows.rows_per_block()):
        held: Any = block.unwrapped()
        bad = ~(np.abs(held.data if sp.issparse(held) else held) <= largest(held.dtype))
        if not bad.any():
            continue
        n_bad += int(bad.sum())
        where = np.nonzero(bad)[0]
        mask[part.start + (np.searchsorted(held.indptr, where, side="right") - 1 if sp.issparse(held) else where)] = (
            False
        )
    return mask, n_bad


def ranges(rows: Rows) -> Ranges:
    """Of finite rows, of which there is at least one."""
    low, high, n_nonzero = np.full(rows.n_features, np.inf), np.full(rows.n_features, -np.inf), 0
    for _, block in rows.blocks(rows.rows_per_block()):
        held: Any = block.unwrapped()
        if sp.issparse(held):
            smallest, largest = held.min(axis=0).toarray().ravel(), held.max(axis=0).toarray().ravel()
            n_nonzero += int(np.count_nonzero(held.data))
        else:
            smallest, largest = held.min(axis=0), held.max(axis=0)
            n_nonzero += int(np.count_nonzero(held))
        low, high = np.minimum(low, smallest), np.maximum(high, largest)
    mean = to_numpy(rows.mean())
    if rows.can_be_centred:
        variance, measure = to_numpy(rows.shifted(mean).mean_square()), "deviation"
    else:
        variance, measure = np.maximum(to_numpy(rows.mean_square()) - mean**2, 0.0), "largest"
    deviation = np.where(high > low, np.sqrt(variance), 0.0)
    sizes = deviation if rows.can_be_centred else np.maximum(abs(low), abs(high))
    return Ranges(low, high, mean, deviation, n_nonzero, sizes, measure)


def row_keys(rows: Rows) -> np.ndarray:
    """An integer for each row, the same for equal rows and, but for chance of about n²/2⁶⁴, for no others."""
    return keys_and_places(rows)[0]


def are_in_memory(rows: Rows) -> bool:
    """Whether all are here, and need not be read in chunks."""
    return rows.place.is_here and rows.block_limit == float("inf")


def keys_and_places(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """`row_keys`, and where rows are along some direction."""
    directions = np.random.default_rng(0).random((rows.n_features, 3)) + 0.5
    projections = to_numpy(rows.matmat(rows.asarray(directions, dtype=rows.xp.float64)))
    return _keys(projections), projections[:, 0] - projections[:, 1]


def column_keys(rows: Rows) -> np.ndarray:
    """The same for columns."""
    directions = np.random.default_rng(0).random((rows.n_rows, 3)) + 0.5
    return _keys(to_numpy(rows.rmatmat(rows.asarray(directions, dtype=rows.xp.float64))))


def _keys(projections: np.ndarray) -> np.ndarray:
    """Sums of the same numbers in another order differ in the last bits, which are rounded away."""
    bits = np.ascontiguousarray(projections + 0.0, dtype=np.float64).view(np.int64)
    bits = (bits + (1 << (_SPARE_BITS - 1))) >> _SPARE_BITS
    factors = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = bits.view(np.uint64) * factors
        mixed ^= mixed >> np.uint64(29)
        return np.asarray((mixed * factors[::-1]).sum(axis=1))
