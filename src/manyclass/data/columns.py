"""Columns far from the origin: a point to shift the rows to, and variances without the part that is rounding."""

import math
from typing import Any

import numpy as np

FAR_FROM_ORIGIN = {4: 4.0, 8: 1e4}
"""By bytes per number: the ratio of mean to standard deviation of a column above which the rows are shifted. Products
of uncentred columns lose the square of this ratio in relative accuracy."""
ROUNDING = 4.0
"""A column of fractions counts as constant if its spread is below so many units in the last place of its mean."""
PILOT_ROWS = 1 << 10
"""So many of the first and of the last rows are read."""
OF_SQUARES = 64.0
"""A variance counts as 0 if it is below so many units in the last place of the mean square."""
ALIKE = 1.0 / 256.0
"""The same, per row: the roundings of a sum of equal numbers may all go the same way."""
ADDED_AT_ONCE = 1 << 10
"""Rows that are summed in their own precision, if that is below float64."""


def pilot(rows: Any, weight: Any, far: float | None, constant: bool, lasting: bool = False) -> Any:
    """A point near the mean of `Rows`, float64, if some column lies far from the origin; else None.

    Far is a mean of more than `far` standard deviations, by default `FAR_FROM_ORIGIN`. The mean is that of the first
    and the last `PILOT_ROWS` rows of positive weight; with fewer rows, columns that rarely change would seem constant.

    A column that is constant in these rows is far if its mean is that large beside the spread of all columns together,
    whose products would be lost beside its own. With `constant` it may vary in other rows, and is compared with its own
    spread. The point has exactly the number of such a column, so that nothing is left of it. If all columns are
    constant, there is no point that is `lasting`, that is, of use for other rows.
    """
    from manyclass.data.rows import present_rows

    xp, step = rows.xp, min(rows.rows_per_block(1), PILOT_ROWS)
    parts = [slice(0, min(step, rows.n_rows))]
    if rows.n_rows > 2 * step:
        parts.append(slice(rows.n_rows - step, rows.n_rows))
    if weight is None or bool(xp.all(xp.concat([weight[part] for part in parts]) > 0)):
        read = [rows.part(part) for part in parts]
    else:
        present = present_rows(rows.n_rows, weight)
        if not len(present):
            return None
        read = [rows.take(np.concatenate([present[:step], present[step:][-step:]]))]
    values = xp.concat([xp.astype(block.dense(), xp.float64, copy=False) for block in read])
    from_first = values - values[:1, :]  # exactly 0, and so is the mean, where all are equal
    mean, spread = values[0, :] + xp.mean(from_first, axis=0), xp.std(from_first, axis=0)
    magnitude = abs(mean)
    is_whole = xp.all(values == xp.round(values), axis=0)  # whole numbers that differ do not by rounding
    differs = xp.max(values, axis=0) > xp.min(values, axis=0)
    differs = xp.where(is_whole, differs, spread > ROUNDING * rows.precision * magnitude)
    varies = constant | differs
    limit = FAR_FROM_ORIGIN[max(rows.itemsize, 4)] if far is None else far
    of_all = xp.sqrt(xp.sum(xp.where(varies, spread, xp.zeros_like(spread)) ** 2))
    tells = not lasting or bool(xp.any(varies))
    if not (tells and bool(xp.any(magnitude > limit * xp.where(varies, spread, of_all)))):
        return None
    # Rounded to float32, so that rows of any dtype can be shifted by exactly this point.
    held = mean if bool(xp.any(magnitude > xp.finfo(xp.float32).max)) else xp.astype(mean, xp.float32)
    return xp.where(differs, xp.astype(held, xp.float64), values[0, :])


def about_mean(mean: Any, mean_square: Any, rows: Any) -> Any:
    """The variance of each column of `Rows` from its mean and mean square, float64; 0 where it is rounding."""
    variance, xp = mean_square - mean**2, rows.xp
    is_wide = rows.moments_itemsize == 8
    precision = 2.0**-52 if is_wide else rows.precision
    n = rows.n_rows if is_wide else min(rows.n_rows, ADDED_AT_ONCE)
    rounding = OF_SQUARES * max(rows.moments_precision, ALIKE * n * precision)
    return xp.where(variance > rounding * mean_square, variance, xp.zeros_like(variance))


def variance(rows: Any, weight: Any = None) -> Any:
    """The variance of each column of `Rows`, float64; 0 where it is rounding, and nan where squares overflow."""
    square = rows.mean_square(weight)
    return rows.xp.where(rows.xp.isfinite(square), about_mean(rows.mean(weight), square, rows), math.nan)
