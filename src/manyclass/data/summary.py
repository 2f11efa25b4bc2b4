"""Summaries that read every number of X: gaps, zeros, ranges of columns, and keys that find equal rows or columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data.cells import largest
from manyclass.data.rows import Rows, to_numpy

_MIXING = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
"""Odd factors by which every bit influences all others."""
FULL = 1 / 8
"""Sparse rows that take more than this share of their bytes as dense rows count as rows of a table."""


@dataclass(frozen=True)
class Ranges:
    """Statistics of each column over all rows, and the number of numbers that are not 0.

    `sizes` compare the columns. The `measure` is "deviation", or "largest" if rows cannot be centred: the variances of
    rare words differ because of how rare they are, not because of their units.
    """

    minimum: np.ndarray
    maximum: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    n_nonzero: int
    sizes: np.ndarray
    measure: str


def is_full(rows: Rows) -> bool:
    """Whether rows have values in most columns, as tables and images do, and text does not."""
    return rows.can_be_centred or rows.row_bytes > FULL * rows.n_features * rows.itemsize


def finite_rows(rows: Rows) -> tuple[np.ndarray, int, int]:
    """A mask of rows whose numbers are finite and not too large; the counts of other numbers, and of missing ones."""
    mask, n_bad, n_missing = np.ones(rows.n_rows, dtype=bool), 0, 0
    for part, block in rows.blocks(rows.rows_per_block()):
        held: Any = block.unwrapped()
        values = held.data if sp.issparse(held) else held
        bad = ~(np.abs(values) <= largest(held.dtype))
        if not bad.any():
            continue
        n_bad, n_missing = n_bad + int(bad.sum()), n_missing + int(np.isnan(values[bad]).sum())
        where = np.nonzero(bad)[0]
        mask[part.start + (np.searchsorted(held.indptr, where, side="right") - 1 if sp.issparse(held) else where)] = (
            False
        )
    return mask, n_bad, n_missing


def ranges(rows: Rows) -> Ranges:
    """The ranges of at least one row of finite numbers."""
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
    """An integer for each row. Equal rows have the same; others differ, except with a probability of about n²/2⁶⁴."""
    factors = _factors(rows.n_features)
    return np.concatenate([_keys(block, factors) for _, block in rows.blocks(rows.rows_per_block())])


def are_in_memory(rows: Rows) -> bool:
    """Whether all rows are in memory on this machine."""
    return rows.place.is_here and rows.block_limit == float("inf")


def column_keys(rows: Rows) -> np.ndarray:
    """`row_keys` for columns."""
    factors, keys = _factors(rows.n_rows), np.zeros(rows.n_features, dtype=np.uint64)
    for part, block in rows.blocks(rows.rows_per_block()):
        held: Any = block.unwrapped()
        if sp.issparse(held):
            held = held.tocsc()
            keys += _sums(_mixed(held.data) * factors[part][held.indices], held.indptr)
        else:
            keys += np.sum(_mixed(to_numpy(held)) * factors[part, None], axis=0, dtype=np.uint64)
    return keys


def _keys(block: Rows, factors: np.ndarray) -> np.ndarray:
    held: Any = block.unwrapped()
    if sp.issparse(held):
        return _sums(_mixed(held.data) * factors[held.indices], held.indptr)
    return np.asarray(np.sum(_mixed(to_numpy(held)) * factors, axis=1, dtype=np.uint64))


def _factors(n: int) -> np.ndarray:
    """Random odd numbers: odd, so that products with them keep all bits."""
    return np.random.default_rng(0).integers(1 << 63, size=n, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Sums over consecutive stretches. Integers that wrap around are summed exactly, in any order."""
    sums = np.append(np.uint64(0), np.cumsum(values, dtype=np.uint64))[indptr]
    return np.asarray(np.diff(sums))


def _mixed(values: np.ndarray) -> np.ndarray:
    """A 64-bit integer for each number, one to one, with 0 for 0. So small numbers count as much as large ones."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # −0.0 becomes 0.0
    for factor in _MIXING:
        bits ^= bits >> np.uint64(32)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(29)
    return bits
