"""Whether to measure columns in units of their own, and which rows are in other units than most."""

import math

import numpy as np

from manyclass.data.penalty import OF_MEDIAN, OUTLYING
from manyclass.data.rows import Rows, to_numpy

WORTH = 0.9
"""Units of their own have to lower the passes to this share."""
MOST = 0.75
"""Share of the rows that are most of them."""


def own_units_pay(square: np.ndarray, common: float, own: float, alpha: float) -> bool:
    """Whether columns in units of their own promise clearly fewer passes than columns as they are.

    If columns do not correlate, the Hessian of the loss is at most u_j² + alpha for column j. Accelerated steps in
    units v take about (1 + max_i ‖x_i/v‖²/n · v_j²/(u_j² + alpha))^½ passes. Units of their own are right if columns
    differ in size. If they differ in how many entries are zero, such units make a few rows very long.

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
    """A mask of the rows most of whose numbers are far outside of the usual range of their column in a sample.

    Columns in which most rows have the same number, as flags and columns of sparse rows, are not considered.
    """
    if not sample.can_be_centred:
        return np.zeros(rows.n_rows, dtype=bool)
    from_all_over = np.arange(0, sample.n_rows, math.ceil(sample.n_rows / OF_MEDIAN))  # as rows may be sorted
    some = to_numpy(sample.take(from_all_over).dense()).astype(np.float64)
    center = np.median(some, axis=0)
    usual = np.quantile(abs(some - center), MOST, axis=0, method="higher")
    told = np.flatnonzero(usual)
    center, most = center[told], math.sqrt(OUTLYING) * usual[told]
    blocks = (to_numpy(block.dense())[:, told] for _, block in rows.blocks(rows.rows_per_block()))
    beyond = np.concatenate([np.count_nonzero(abs(block - center) > most, axis=1) for block in blocks])
    return np.asarray(2 * beyond > len(told))
