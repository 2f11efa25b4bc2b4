"""How far to go along a descent direction of a convex function, safe against rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manyclass.data.rows import Array
from manyclass.model import Evaluation, Problem

SUFFICIENT = 1e-4
"""Share of the predicted decrease that must be reached (Armijo)."""
STEEP, GENTLE, FURTHER = 0.2, 0.1, 4.0
"""Share of the first slope above which a step is made longer, the one looked for then, and by how much at a time."""
FLAT = 1e-7
"""Relative change of the objective below which float32 sums decide nothing and slopes are compared instead."""


@dataclass(frozen=True)
class Step:
    """A step that has been taken.

    Attributes
    ----------
    theta : array
    evaluation : Evaluation
        At theta.
    length : float
    move : array
        What was tried.
    seen : Evaluation
        Where that led.
    taken : ndarray of shape (n_independent,), or None
        Which of the independent problems have gone there, where some stayed.
    """

    theta: Array
    evaluation: Evaluation
    length: float
    move: Array
    seen: Evaluation
    taken: np.ndarray | None = None


def step_of_each(
    problem: Problem, theta: Array, evaluation: Evaluation, direction: Array, **options: bool
) -> Step | None:
    """The step of length 1 by those of the independent problems that it takes down, as in `backtrack`; or None.

    The others stay where they are, rather than cost a pass or hold the others back: a quasi-Newton method has learnt
    from what they have seen how far they may go.
    """
    xp, tried = problem.xp, theta + direction
    seen = problem.value_and_gradient(tried, **options)
    if not math.isfinite(seen.value):
        return None
    slope, there = (problem.inner_of_each(one.gradient, direction) for one in (evaluation, seen))
    change = seen.of_each - evaluation.of_each
    is_flat = (abs(change) <= FLAT * abs(evaluation.of_each)) & (abs(there) <= -0.9 * slope)
    goes = (slope < 0) & ((change <= SUFFICIENT * slope) | is_flat)
    if goes.all():
        return Step(tried, seen, 1.0, direction, seen)
    if not goes.any():
        return None
    mask = problem.rows.asarray(goes, xp.bool)[None, :]
    now = Evaluation(
        evaluation.value + float(change[goes].sum()),
        np.where(goes, seen.of_each, evaluation.of_each),
        xp.where(mask, seen.gradient, evaluation.gradient),
        xp.where(mask[0, :], seen.mean_residual, evaluation.mean_residual),
        seen.row_weight,
    )
    return Step(xp.where(mask, tried, theta), now, 1.0, direction, seen, goes)


def backtrack(
    problem: Problem,
    theta: Array,
    evaluation: Evaluation,
    direction: Array,
    **options: bool,
) -> Step | None:
    """A step from `theta` along `direction` that lowers the objective, or None where rounding allows none.

    Starts at length 1, the natural one in the metric of a curvature, and shrinks by quadratic interpolation. Where the
    decrease drowns in rounding, a step is accepted if the slope has shrunk without the objective visibly rising (the
    approximate Wolfe condition of Hager and Zhang, 2005).
    """
    slope = problem.inner(evaluation.gradient, direction)
    if not slope < 0:
        return None
    length = 1.0
    for _ in range(30):
        candidate = theta + length * direction
        there = problem.value_and_gradient(candidate, **options)
        change = there.value - evaluation.value
        if change <= SUFFICIENT * length * slope:
            return Step(candidate, there, length, candidate - theta, there)
        if (
            abs(change) <= FLAT * abs(evaluation.value)
            and abs(problem.inner(there.gradient, direction)) <= -0.9 * slope
        ):
            return Step(candidate, there, length, candidate - theta, there)
        if change != change or change == float("inf"):
            length *= 0.1
            continue
        parabola = -slope * length**2 / (2.0 * (change - slope * length))
        length = min(max(parabola, 0.1 * length), 0.5 * length)
    return None


def stretched(problem: Problem, theta: Array, evaluation: Evaluation, direction: Array, step: Step) -> Step:
    """A longer step than one of `backtrack`, or that one: for directions that cost more than a pass.

    While rows come to be fitted the slope falls exponentially along a direction, not linearly as for a quadratic. So
    its logarithm is extrapolated, for as long as the slope is steep and the objective falls.
    """
    slope = problem.inner(evaluation.gradient, direction)
    while True:
        share = problem.inner(step.evaluation.gradient, direction) / slope
        if not (share > STEEP and math.isfinite(step.length)):
            return step
        growth = math.log(GENTLE) / math.log(share) if share < 1.0 else FURTHER
        length = step.length * min(growth, FURTHER)
        there = problem.value_and_gradient(theta + length * direction)
        if not there.value < step.evaluation.value:
            return step
        step = Step(theta + length * direction, there, length, length * direction, there)
