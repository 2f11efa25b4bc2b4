"""The penalty in the units of the columns, and what a user is told of one that is far below these."""

from __future__ import annotations

import math

import numpy as np

from manyclass.data.rows import Array, to_numpy
from manyclass.model import Problem

USUAL = 1e-4
"""On columns of unit variance."""
NEXT_TO_NONE = 1e-6
"""A penalty, over the mean variance of the columns, that holds nothing back before rows are all but fitted."""


def usual_penalty(variance: Array) -> float:
    """`USUAL`, as many times as the variance of most columns is above 1: alpha ‖W‖² has the unit of x².

    The median, as a few columns in units of their own, such as a price, must not decide for the others. Smaller
    variances are left alone: those of words are small because words are rare, not because of their unit.
    """
    given = to_numpy(variance)
    varying = given[given > 0]
    return USUAL * max(1.0, float(np.median(varying))) if len(varying) else USUAL


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
