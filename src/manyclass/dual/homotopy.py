"""Which penalties the ascent goes through before it arrives at the one asked for."""

from __future__ import annotations

import math

import numpy as np

from manyclass.dual.problem import DualProblem

STEP = 4.0
"""Ratio of one penalty to the next on the automatic path, at most."""


def homotopy_path(problem: DualProblem, homotopy: str | bool | int) -> list[float]:
    """Penalties, decreasing, the last one being alpha.

    ``False`` is alpha alone; ``True`` is ν = 0.25·√alpha and then alpha (*Homotopic Initialization*, §3.2); an integer
    P ≥ 2 is P points in geometric progression from the larger of ν and ‖x‖²/n, the mean of ‖x_i‖²/n (of centred rows
    where there is an intercept). The latter makes the first phase cheap whatever the scale of X: with
    q_i = ‖x_i‖²/(ν·n) about 1, an epoch mends more than half of what is wrong in the directions that X does not see,
    and only 1/(1 + q) of it otherwise. ``"auto"`` goes from ‖x‖²/n to alpha in the fewest equal steps that are no
    longer than `STEP`, and straight to alpha where that is one. Where the first point would not be above alpha there is
    nothing to go through.
    """
    alpha = problem.alpha
    if homotopy is False:
        return [alpha]
    easy = problem.mean_square_norm / problem.n_rows
    if homotopy == "auto":
        first = easy if easy > STEP * alpha else 0.0
        points = 1 + math.ceil(math.log(first / alpha, STEP)) if first else 1
    else:
        first = 0.25 * alpha**0.5
        first = first if homotopy is True else max(first, easy)
        points = 2 if homotopy is True else int(homotopy)
    if first <= alpha:
        return [alpha]
    return [*np.geomspace(first, alpha, points)[:-1].tolist(), alpha]
