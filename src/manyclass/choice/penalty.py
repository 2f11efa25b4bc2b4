"""The default penalty, from the columns and from rows left out, and advice on one that is far too small for them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manyclass.choice.sampled_penalty import MOST_ROWS, penalty_left_out
from manyclass.data.penalty import OF_MEDIAN, OUTLYING, SEEN
from manyclass.data.rows import Array, to_numpy
from manyclass.data.summary import are_in_memory
from manyclass.model import Problem

USUAL = 1e-4
"""The default penalty on columns of unit variance where rows do not count."""
UNEXPLAINED = 1e-3
"""A penalty may leave this share of what single columns explain of the responses unexplained."""
NEXT_TO_NONE = 1e-6
"""A penalty below this share of the mean variance of the columns has no effect until the rows are nearly fitted."""


def usual_penalty(variance: Array, n_rows: float, cross: Callable[[], Array]) -> float:
    """1/n times the median variance of the columns, for up to a million rows; less if that would suppress others.

    alpha ‖W‖² has the unit of x², so alpha is in units of the variance. The variance is the median, as a few columns in
    units of their own, such as prices, must not decide for all. 1/n weighs as much as one row. It is a prior by which
    coefficients of labels are about 1 in units of the columns: few rows need it, and many rows know better. `n_rows`
    is infinite for responses in any unit, and for the first rows of a stream, where it is `USUAL` instead.

    alpha is not below the smaller of `USUAL` and 1/n if the median variance is small, as the variances of words are
    because words are rare. But it is lower if the sum of all variances is below 1/2, half of the squared length of
    texts and embeddings: beside such short rows it would suppress all columns. Of more than a million rows alpha is 1/n
    where it would suppress the median column.

    alpha is lowered further if it suppresses columns that tell more than the median column, such as flags beside
    prices. If a column explains the share r² of a response by itself, alpha leaves r² (alpha/(alpha + variance))²
    unexplained. The mean of this share, weighted by r², may exceed that of the median by `UNEXPLAINED`. So columns that
    are nearly constant, such as pixels at the edge of an image, decide nothing. `cross` gives the covariance of columns
    and responses; it is called only if needed, as rows may have to be read.
    """
    given = to_numpy(variance)
    varies = given > 0
    varying = given[varies]
    if not len(varying):
        return USUAL
    median = float(np.median(varying))
    of_one_row = 1.0 / min(n_rows, MOST_ROWS) if math.isfinite(n_rows) else USUAL
    least = min(USUAL, of_one_row) * min(1.0, 2.0 * float(varying.sum()))
    alpha = max(least, median * of_one_row)

    def unexplained(variance: Any) -> Any:
        return (alpha / (alpha + variance)) ** 2

    if math.isfinite(n_rows) and unexplained(median) > UNEXPLAINED:
        alpha = min(alpha, max(1.0 / n_rows, median / (UNEXPLAINED**-0.5 - 1.0)))
    if alpha > least and unexplained(varying.min()) > unexplained(median) + UNEXPLAINED:
        explained = to_numpy(cross())[varies] ** 2 / varying[:, None]
        explained /= np.maximum(explained.sum(axis=0), 1e-300)
        while alpha > least and unexplained(varying) @ explained.mean(axis=1) > unexplained(median) + UNEXPLAINED:
            alpha = max(0.5 * alpha, least)
    return alpha


def penalty_of_columns(problem: Problem, counts_rows: bool = True) -> float:
    """`usual_penalty` of a problem, if rows left out agree; without the prior of 1/n if rows do not count."""
    n_rows = problem.n_counted if counts_rows else math.inf
    given = to_numpy(problem.feature_variance)
    variance = variance_of_most_rows(problem, given)
    shorter = np.sqrt(variance / np.where(given > 0, given, 1.0))[:, None]
    usual = usual_penalty(variance, n_rows, lambda: to_numpy(problem.cross_covariance) * shorter)
    if problem.loss.quadratic and counts_rows:
        return usual  # as streams of sums have, whose rows are gone
    return penalty_left_out(problem, usual)


def variance_of_most_rows(problem: Problem, variance: np.ndarray) -> np.ndarray:
    """The variance of each column, in which no squared cell counts for more than `OUTLYING` times the median one.

    So a few rows in other units, or with -999 for what is unknown, do not decide for all others. If the median is 0, as
    with flags and sparse rows, nothing says which cells are too large, and the variance is as given. So it is for least
    squares, whose streams know only sums over all rows.
    """
    rows = problem.rows
    if problem.loss.quadratic or not (rows.can_be_centred and are_in_memory(rows)):
        return variance
    index = problem.sample(min(SEEN, max(SEEN**2 // rows.n_features, 2)))
    weight = None if problem.weight is None else to_numpy(problem.weight)[index]
    square = to_numpy(rows.take(index).dense()).astype(np.float64)
    some = square[:: math.ceil(len(index) / OF_MEDIAN)]  # a view, as medians take longer than all else
    if problem.fit_intercept:
        square -= np.median(some, axis=0)
    square *= square
    median = np.median(some, axis=0)
    most = np.where(median > 0, OUTLYING * median, np.inf)
    whole, clipped = (np.average(part, axis=0, weights=weight) for part in (square, np.minimum(square, most)))
    return np.asarray(np.minimum(variance * clipped / np.where(whole > 0, whole, 1.0), most))


def advice_on_penalty(problem: Problem) -> str:
    """What to do about a penalty that is small beside columns in large units, for a warning."""
    if math.isfinite(problem.rows.block_limit):
        return ""
    xp, variance = problem.xp, problem.feature_variance
    mean = float(xp.sum(variance)) / max(float(xp.sum(xp.astype(variance > 0, xp.float64))), 1.0)
    if not 0.0 < problem.alpha < NEXT_TO_NONE * mean:
        return ""
    return (
        f" alpha={problem.alpha:g} is next to no penalty on columns of variance {mean:.2g}: raise it, or let "
        "GLMClassifierCV compare several by rows held out."
    )
