"""Which penalties the ascent goes through before it arrives at the one asked for."""

from __future__ import annotations

import numpy as np

from manyclass.dual.problem import DualProblem


def homotopy_path(problem: DualProblem, homotopy: str | bool | int) -> list[float]:
    """Penalties, decreasing, the last one being alpha.

    ``False`` and ``"auto"`` are alpha alone; ``True`` is ν = 0.25·√alpha and then alpha (*Homotopic Initialization*,
    §3.2); an integer P ≥ 2 is P points in geometric progression from the larger of ν and ‖x‖²/n, the mean of ‖x_i‖²/n
    (of centred rows where there is an intercept). The latter makes the first phase cheap whatever the scale of X: with
    q_i = ‖x_i‖²/(ν·n) about 1, an epoch mends more than half of what is wrong in the directions that X does not see,
    and only 1/(1 + q) of it otherwise. Where the first point would not be above alpha there is nothing to go through.
    """
    alpha = problem.alpha
    if homotopy is False or homotopy == "auto":
        return [alpha]
    first = 0.25 * alpha**0.5
    if homotopy is not True:
        first = max(first, problem.mean_square_norm / problem.n_rows)
    if first <= alpha:
        return [alpha]
    return [*np.geomspace(first, alpha, 2 if homotopy is True else int(homotopy))[:-1].tolist(), alpha]
