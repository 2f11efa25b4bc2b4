"""Line search along a descent direction of a convex function, safe against rounding."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.data.rows import Array
from manyclass.model import Evaluation, Problem

SUFFICIENT = 1e-4
"""Share of the predicted decrease that must be reached (Armijo)."""
STEEP, GENTLE, FURTHER = 0.2, 0.1, 4.0
"""If more than the first share of the slope is left, a step is lengthened to where the second is, up to a factor."""
NEGLIGIBLE = 0.1
"""Independent problems whose slopes are below this share of all may stay where they are, and take no step alone."""
FLAT = 1e-7
"""Relative change of the objective below which sums in float32 are rounding, and slopes are compared instead."""


@dataclass(frozen=True)
class Step:
    theta: Array
    evaluation: Evaluation  # at theta
    length: np.ndarray  # of each independent problem
    move: Array  # the step that was tried
    seen: Evaluation  # at its end
    taken: np.ndarray | None = None  # which of the independent problems took the step; None for all


def backtrack(
    problem: Problem, theta: Array, evaluation: Evaluation, direction: Array, *, apart: bool = False, **options: bool
) -> Step | None:
    """A step from `theta` along `direction` that lowers the objective, or None if rounding allows none.

    It starts at length 1, the natural one in the metric of a curvature, and shrinks by quadratic interpolation. If the
    decrease is below rounding, a step is accepted if the slope has shrunk and the objective has not visibly risen (the
    approximate Wolfe condition of Hager and Zhang, 2005).

    Each of the independent problems has its own length. Problems with little to gain, compared to the others, may stay
    where they are. With `apart`, so may all problems that the step of length 1 does not lower: they would cost a pass
    or hold the others back, and a quasi-Newton method learns from the trial how far they may go.
    """
    slope = np.atleast_1d(problem.inner_of_each(evaluation.gradient, direction))
    falls = slope < 0
    length = falls * 1.0
    if not falls.any():
        return None
    for trial in range(30):
        move = _times(problem, length, direction)
        seen = problem.value_and_gradient(theta + move, **options)
        descends, is_flat = _outcome(problem, evaluation, seen, direction, length, slope)
        goes = ~falls | descends | is_flat
        if apart and not trial and (goes & falls).any():
            return _by_those(problem, goes & falls, theta, evaluation, Step(theta + move, seen, length, move, seen))
        if goes.all() or (descends.any() and slope[~goes].sum() >= NEGLIGIBLE * slope[goes & falls].sum()):
            break
        change = _values(problem, seen) - _values(problem, evaluation)
        with np.errstate(all="ignore"):
            parabola = -slope * length**2 / (2.0 * (change - slope * length))
            shorter = np.where(np.isfinite(change), np.clip(parabola, 0.1 * length, 0.5 * length), 0.1 * length)
        length = np.where(goes, length, shorter)
    done, goes = goes.all(), goes & falls
    if not done and not (descends[goes].any() and slope[goes].sum() <= NEGLIGIBLE * slope[falls].sum()):
        return None
    return _by_those(problem, goes, theta, evaluation, Step(theta + move, seen, length, move, seen))


def stretched(problem: Problem, theta: Array, evaluation: Evaluation, direction: Array, step: Step) -> Step:
    """A longer step than `step` of `backtrack`, if it pays: for directions that cost more than a pass.

    As rows are being fitted, the slope falls exponentially along a direction, not linearly as for a quadratic. So its
    logarithm is extrapolated, for as long as the slope is steep and the objective falls.
    """
    slope = np.atleast_1d(problem.inner_of_each(evaluation.gradient, direction))
    longer = (slope < 0) & (step.length >= 1.0)
    while True:
        share = np.atleast_1d(problem.inner_of_each(step.evaluation.gradient, direction)) / np.where(longer, slope, 1.0)
        longer &= (share > STEEP) & np.isfinite(step.length)
        if not longer.any():
            return step
        inside = longer & (share < 1.0)
        growth = np.where(inside, math.log(GENTLE) / np.log(np.where(inside, share, GENTLE)), FURTHER)
        length = np.where(longer, step.length * np.minimum(growth, FURTHER), step.length)
        move = _times(problem, length, direction)
        there = problem.value_and_gradient(theta + move)
        longer &= _values(problem, there) < _values(problem, step.evaluation)
        if not longer.any():
            return step
        further = Step(theta + move, there, length, move, there)
        step = _by_those(problem, longer, step.theta, step.evaluation, further, step.length)


def _times(problem: Problem, length: np.ndarray, direction: Array) -> Array:
    return float(length[0]) * direction if len(length) == 1 else problem.spread(length)[None, :] * direction


def _values(problem: Problem, evaluation: Evaluation) -> np.ndarray:
    """The objectives of the independent problems."""
    return np.atleast_1d(evaluation.value if problem.n_independent == 1 else evaluation.of_each)


def _outcome(
    problem: Problem, before: Evaluation, seen: Evaluation, direction: Array, length: Any, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For which independent problems a step descends enough, and for which its end is as low, up to rounding."""
    value = _values(problem, before)
    change = _values(problem, seen) - value
    there = np.atleast_1d(problem.inner_of_each(seen.gradient, direction))
    is_flat = (abs(change) <= FLAT * abs(value)) & (abs(there) <= -0.9 * slope)
    return np.asarray(change <= SUFFICIENT * length * slope), np.asarray(is_flat)


def _by_those(
    problem: Problem, goes: np.ndarray, theta: Array, evaluation: Evaluation, step: Step, length: Any = 0.0
) -> Step:
    """The step for problems in `goes` only; the others stay at `theta`, where steps of `length` have led them."""
    if goes.all():
        return step
    xp, mask = problem.xp, problem.spread(goes, problem.xp.bool)[None, :]
    change = _values(problem, step.seen) - _values(problem, evaluation)
    now = Evaluation(
        evaluation.value + float(change[goes].sum()),
        np.where(goes, step.seen.of_each, evaluation.of_each),
        xp.where(mask, step.seen.gradient, evaluation.gradient),
        xp.where(mask[0, :], step.seen.mean_residual, evaluation.mean_residual),
        step.seen.row_weight,
    )
    moved = xp.where(mask, step.theta, theta)
    return Step(moved, now, np.where(goes, step.length, length), step.move, step.seen, goes)
