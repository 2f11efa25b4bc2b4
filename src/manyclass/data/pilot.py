"""A point near the mean of the rows, where products of rows that lie far from the origin would lose digits."""

from typing import Any

FAR_FROM_ORIGIN = {4: 4.0, 8: 1e4}
"""By bytes of a number: the ratio of a column's mean to its standard deviation from which rows are shifted, as products
of uncentred columns would lose the square of it in relative accuracy."""


ROUNDING = 4.0
"""Units in the last place of its mean up to which a column, unless of whole numbers, is constant but for rounding."""
PILOT_ROWS = 1 << 10
"""First and last rows that are looked at, each."""


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
