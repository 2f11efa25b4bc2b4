"""The variance of columns from sums over rows, and what of it is rounding."""

from typing import Any

ROUNDING = 64.0
"""Units in the last place of its mean square that the variance of a constant column may be away from 0."""
ALIKE = 1.0 / 256.0
"""Of so many units, for each row: numbers that are all the same may all be rounded the same way when they are added."""
ADDED_AT_ONCE = 1 << 10
"""Rows whose numbers a processor adds in their own precision, where that is not float64's."""


def about_mean(mean: Any, mean_square: Any, rows: Any) -> Any:
    """The variance of each column of `Rows`, float64; 0 where it is rounding."""
    variance, xp = mean_square - mean**2, rows.xp
    is_wide = rows.moments_itemsize == 8
    precision = 2.0**-52 if is_wide else rows.precision
    n = rows.n_rows if is_wide else min(rows.n_rows, ADDED_AT_ONCE)
    rounding = ROUNDING * max(rows.moments_precision, ALIKE * n * precision)
    return xp.where(variance > rounding * mean_square, variance, xp.zeros_like(variance))
