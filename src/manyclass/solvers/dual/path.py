"""Which penalties the ascent goes through before it arrives at the one asked for."""

from __future__ import annotations

import numpy as np

from manyclass.solvers.dual.problem import DualProblem


def homotopy_path(problem: DualProblem, homotopy: bool | int) -> list[float]:
    """Penalties, decreasing, the last one being alpha.

    ``False`` is alpha alone; ``True`` is ν = 0.25·√alpha and then alpha (*Homotopic Initialization*, §3.2); an integer
    P ≥ 2 is P points in geometric progression from the larger of ν and mean ‖x_i‖²/n. The latter makes the first phase
    cheap whatever the scale of X: with q_i = ‖x_i‖²/(ν·n) about 1, an epoch mends more than half of what is wrong in
    the directions that X does not see, and only 1/(1 + q) of it otherwise. Where the first point would not be above
    alpha there is nothing to go through.
    """
    alpha = problem.alpha
    first = 0.25 * alpha**0.5
    if homotopy is not True and homotopy:
        first = max(first, float(problem.share @ problem.square_norms) / problem.design.n_rows)
    if homotopy is False or first <= alpha:
        return [alpha]
    points = 2 if homotopy is True else int(homotopy)
    return [*np.geomspace(first, alpha, points)[:-1].tolist(), alpha]
