"""The penalty in the units of the columns, and what a user is told of one that is far below these."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from manyclass.data.rows import Array, to_numpy
from manyclass.model import Problem

USUAL = 1e-4
"""On columns of unit variance."""
UNTOLD = 1e-3
"""Share of what columns tell of the responses, each by itself, that a penalty may leave untold."""
NEXT_TO_NONE = 1e-6
"""A penalty, over the mean variance of the columns, that holds nothing back before rows are all but fitted."""


def usual_penalty(variance: Array, cross: Callable[[], Array]) -> float:
    """`USUAL`, as many times as the variance of most columns is above 1, and less where that would hold back others.

    alpha ‖W‖² has the unit of x². The median, as a few columns in units of their own, such as a price, must not decide
    for the others. Smaller variances are left alone: those of words are small because words are rare, not because of
    their unit.

    Where most columns are prices, flags beside them may tell all there is. Of a column that explains the share r² of a
    response by itself, alpha leaves r² (alpha/(alpha + variance))² unexplained; over r² of all columns that must be
    next to nothing. So columns that are nearly constant, such as pixels at the edge, decide nothing. `cross` gives the
    covariance of columns and responses, for which rows may have to be read.
    """
    given = to_numpy(variance)
    varies = given > 0
    varying = given[varies]
    alpha = USUAL * max(1.0, float(np.median(varying))) if len(varying) else USUAL
    if alpha > USUAL and (alpha / (alpha + varying.min())) ** 2 > UNTOLD:
        told = to_numpy(cross())[varies] ** 2 / varying[:, None]
        told /= np.maximum(told.sum(axis=0), 1e-300)
        while alpha > USUAL and (alpha / (alpha + varying)) ** 2 @ told.mean(axis=1) > UNTOLD:
            alpha = max(0.5 * alpha, USUAL)
    return alpha


def penalty_of_columns(problem: Problem) -> float:
    return usual_penalty(problem.feature_variance, lambda: problem.cross_covariance)


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
