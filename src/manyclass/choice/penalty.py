"""The penalty in the units of the columns, and what a user is told of one that is far below these."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manyclass.data.penalty import OF_MEDIAN, OUTLYING, SEEN
from manyclass.data.rows import Array, to_numpy
from manyclass.data.summary import are_in_memory
from manyclass.model import Problem

USUAL = 1e-4
"""On columns of unit variance."""
UNTOLD = 1e-3
"""Share of what columns tell of the responses, each by itself, that a penalty may leave untold."""
NEXT_TO_NONE = 1e-6
"""A penalty, over the mean variance of the columns, that holds nothing back before rows are all but fitted."""


def usual_penalty(variance: Array, n_rows: float, cross: Callable[[], Array]) -> float:
    """`USUAL` or 1/n, as many times as the variance of most columns, and less where that would hold back others.

    alpha ‖W‖² has the unit of x². The median, as a few columns in units of their own, such as a price, must not decide
    for the others. Smaller variances do not make `USUAL` smaller: those of words are small because words are rare, not
    because of their unit; but that of all columns together does, where it is below half of 1, the squared length that
    texts and embeddings have: beside `USUAL` itself no coefficients could tell much of such rows. 1/n weighs as much as
    one row, a prior by which coefficients of labels are about as large as 1 in units of the columns; few rows need it,
    and many no more where `USUAL` would hold most columns back, as those of words, however many rows speak for these.
    Of responses in any unit, or of the first rows of many, `n_rows` is infinite.

    Where most columns are prices, flags beside them may tell all there is. Of a column that explains the share r² of a
    response by itself, alpha leaves r² (alpha/(alpha + variance))² unexplained; over r² of all columns that must be
    next to nothing more than of the median. So columns that are nearly constant, such as pixels at the edge, decide
    nothing. `cross` gives the covariance of columns and responses, for which rows may have to be read.
    """
    given = to_numpy(variance)
    varies = given > 0
    varying = given[varies]
    if not len(varying):
        return USUAL
    median = float(np.median(varying))
    of_one_row = 1.0 / n_rows
    least = USUAL * min(1.0, 2.0 * float(varying.sum()))
    alpha = max(least, median * max(USUAL, of_one_row))

    def untold(variance: Any) -> Any:
        return (alpha / (alpha + variance)) ** 2

    if 0.0 < of_one_row < USUAL and untold(median) > UNTOLD:
        alpha = max(of_one_row, median / (UNTOLD**-0.5 - 1.0))
    if alpha > least and untold(varying.min()) > untold(median) + UNTOLD:
        told = to_numpy(cross())[varies] ** 2 / varying[:, None]
        told /= np.maximum(told.sum(axis=0), 1e-300)
        while alpha > least and untold(varying) @ told.mean(axis=1) > untold(median) + UNTOLD:
            alpha = max(0.5 * alpha, least)
    return alpha


def penalty_of_columns(problem: Problem, counts_rows: bool = True) -> float:
    n_rows = problem.n_counted if counts_rows else math.inf
    given = to_numpy(problem.feature_variance)
    variance = variance_of_most_rows(problem, given)
    shorter = np.sqrt(variance / np.where(given > 0, given, 1.0))[:, None]
    return usual_penalty(variance, n_rows, lambda: to_numpy(problem.cross_covariance) * shorter)


def variance_of_most_rows(problem: Problem, variance: np.ndarray) -> np.ndarray:
    """That of columns where no cell counts for more than `OUTLYING` times the median one.

    A few rows in other units, or that say -999 where nothing is known, must not decide for all others. Where the median
    is that of the most frequent number itself, as of flags and of sparse rows, nothing says which cells are too large.
    Least squares is left as the sums over all rows have it, by which streams know it.
    """
    rows = problem.rows
    if getattr(problem.loss, "quadratic", False) or not (rows.can_be_centred and are_in_memory(rows)):
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
    all_told, told = (np.average(part, axis=0, weights=weight) for part in (square, np.minimum(square, most)))
    return np.asarray(np.minimum(variance * told / np.where(all_told > 0, all_told, 1.0), most))


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
