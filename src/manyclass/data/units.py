"""In which units a method should look at columns."""

import math

import numpy as np

from manyclass.data.penalty import OF_MEDIAN, OUTLYING
from manyclass.data.rows import Rows

WORTH = 0.9
"""Share of the passes that units of their own have to come down to."""
MOST = 0.9
"""Share of the rows beside which others are few."""


def own_units_pay(square: np.ndarray, common: float, own: float, alpha: float) -> bool:
    """Whether steps of one length in units of each column promise fewer passes than those of one length in all.

    Of columns that do not correlate the Hessian of the loss is at most u_j² + alpha. Accelerated steps in units v take
    about (1 + max_i ‖x_i/v‖²/n · v_j²/(u_j² + alpha))^½ passes for column j. Units of their own are right where columns
    differ in size; where they differ in how many of their entries are zero, these units make a few rows very long.

    `square` is u_j², the mean square of each column, 0 for those that do not count; `common` and `own` are the largest
    ‖x_i‖²/n and ‖x_i/u‖²/n.
    """
    counts = square > 0
    if not counts.any():
        return False
    in_common, in_own = (
        np.mean(np.sqrt(1.0 + longest * unit / (square + alpha)), where=counts)
        for longest, unit in ((common, 1.0), (own, square))
    )
    return bool(in_own < WORTH * in_common)


def in_other_units(rows: Rows, sample: Rows) -> np.ndarray:
    """Whether of each row most numbers are far beyond those that most rows of a sample have in the same columns.

    Columns in which most rows have the same number, as flags and those of sparse rows, do not tell.
    """
    if not sample.can_be_centred:
        return np.zeros(rows.n_rows, dtype=bool)
    some = sample.part(slice(0, min(OF_MEDIAN, sample.n_rows))).dense().astype(np.float64)
    center = np.median(some, axis=0)
    usual = np.quantile(abs(some - center), MOST, axis=0, method="higher")
    told = np.flatnonzero(usual)
    center, most = center[told], math.sqrt(OUTLYING) * usual[told]
    blocks = (block.dense()[:, told] for _, block in rows.blocks(rows.rows_per_block()))
    beyond = np.concatenate([np.count_nonzero(abs(block - center) > most, axis=1) for block in blocks])
    return np.asarray(2 * beyond > len(told))
