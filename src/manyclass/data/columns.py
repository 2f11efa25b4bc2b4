"""What the columns of rows say of them: a point near their mean, and their variance, but for what of it is rounding."""

from typing import Any

FAR_FROM_ORIGIN = {4: 4.0, 8: 1e4}
"""By bytes of a number: the ratio of a column's mean to its standard deviation from which rows are shifted, as products
of uncentred columns would lose the square of it in relative accuracy."""
ROUNDING = 4.0
"""Units in the last place of its mean up to which a column, unless of whole numbers, is constant but for rounding."""
PILOT_ROWS = 1 << 10
"""First and last rows that are looked at, each."""
OF_SQUARES = 64.0
"""Units in the last place of its mean square that the variance of a constant column may be away from 0."""
ALIKE = 1.0 / 256.0
"""Of so many units, for each row: numbers that are all the same may all be rounded the same way when they are added."""
ADDED_AT_ONCE = 1 << 10
"""Rows whose numbers a processor adds in their own precision, where that is not float64's."""


def pilot(rows: Any, weight: Any, far: float | None, constant: bool, lasting: bool = False) -> Any:
    """A point near the mean of `Rows`, float64, if some column lies far from the origin; else None.

    Far is a mean of more than `far` standard deviations, by default `FAR_FROM_ORIGIN`. Taken from the first and the
    last rows, at most 1024 each and of positive weight: of fewer, what is rarely anything else would seem constant.
    Columns that are constant there count where they are as far beside the spread of all columns, whose squares would be
    lost in theirs; or as any other, where `constant` says that they may vary elsewhere. The point has their own number,
    which leaves nothing of them, however large it is. Where all are constant, a point that is `lasting` would tell
    nothing of other rows.
    """
    xp, step = rows.xp, min(rows.rows_per_block(1), PILOT_ROWS)
    parts = [slice(0, min(step, rows.n_rows))]
    if rows.n_rows > 2 * step:
        parts.append(slice(rows.n_rows - step, rows.n_rows))
    values = xp.concat([xp.astype(rows.part(part).dense(), xp.float64, copy=False) for part in parts])
    if weight is not None:
        counted = xp.concat([weight[part] for part in parts]) > 0
        values = xp.take(values, xp.nonzero(counted)[0], axis=0) if bool(xp.any(counted)) else values
    from_first = values - values[:1, :]  # whose mean has no rounding of its own where all are the same
    mean, spread = values[0, :] + xp.mean(from_first, axis=0), xp.std(from_first, axis=0)
    magnitude = abs(mean)
    is_whole = xp.all(values == xp.round(values), axis=0)  # which no rounding makes differ
    differs = xp.max(values, axis=0) > xp.min(values, axis=0)
    differs = xp.where(is_whole, differs, spread > ROUNDING * rows.precision * magnitude)
    varies = constant | differs
    limit = FAR_FROM_ORIGIN[max(rows.itemsize, 4)] if far is None else far
    of_all = xp.sqrt(xp.sum(xp.where(varies, spread, xp.zeros_like(spread)) ** 2))
    tells = not lasting or bool(xp.any(varies))
    if not (tells and bool(xp.any(magnitude > limit * xp.where(varies, spread, of_all)))):
        return None
    # A number of any dtype, so that what is taken from rows of float32 is what is added to their mean again.
    held = mean if bool(xp.any(magnitude > xp.finfo(xp.float32).max)) else xp.astype(mean, xp.float32)
    return xp.where(differs, xp.astype(held, xp.float64), values[0, :])


def about_mean(mean: Any, mean_square: Any, rows: Any) -> Any:
    """The variance of each column of `Rows`, float64; 0 where it is rounding."""
    variance, xp = mean_square - mean**2, rows.xp
    is_wide = rows.moments_itemsize == 8
    precision = 2.0**-52 if is_wide else rows.precision
    n = rows.n_rows if is_wide else min(rows.n_rows, ADDED_AT_ONCE)
    rounding = OF_SQUARES * max(rows.moments_precision, ALIKE * n * precision)
    return xp.where(variance > rounding * mean_square, variance, xp.zeros_like(variance))
