"""How far to go along a descent direction of a convex function, safe against rounding."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.data.rows import Array
from manyclass.model import Evaluation, Problem

SUFFICIENT = 1e-4
"""Share of the predicted decrease that must be reached (Armijo)."""
STEEP, GENTLE, FURTHER = 0.2, 0.1, 4.0
"""Share of the first slope above which a step is made longer, the one looked for then, and by how much at a time."""
NEGLIGIBLE = 0.1
"""Share of what independent problems promise to gain, below which they may stay where they are, and do not go alone."""
FLAT = 1e-7
"""Relative change of the objective below which float32 sums decide nothing and slopes are compared instead."""


@dataclass(frozen=True)
class Step:
    theta: Array
    evaluation: Evaluation  # at theta
    length: np.ndarray  # of each independent problem
    move: Array  # what was tried
    seen: Evaluation  # where that led
    taken: np.ndarray | None = None  # which of the independent problems have gone there, where some stayed


def backtrack(
    problem: Problem, theta: Array, evaluation: Evaluation, direction: Array, *, apart: bool = False, **options: bool
) -> Step | None:
    """A step from `theta` along `direction` that lowers the objective, or None where rounding allows none.

    Starts at length 1, the natural one in the metric of a curvature, and shrinks by quadratic interpolation. Where the
    decrease drowns in rounding, a step is accepted if the slope has shrunk without the objective visibly rising (the
    approximate Wolfe condition of Hager and Zhang, 2005). Each of the independent problems has a length of its own;
    those that promise little, beside what the others gain, may stay where they are; and where they go `apart` all that
    the step of length 1 does not take down, rather than cost a pass or hold the others back: a quasi-Newton method has
    learnt from what they have seen how far they may go.
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
    """A longer step than one of `backtrack`, or that one: for directions that cost more than a pass.

    While rows come to be fitted the slope falls exponentially along a direction, not linearly as for a quadratic. So
    its logarithm is extrapolated, for as long as the slope is steep and the objective falls.
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
    """Which of the independent problems a step takes down, and for which it ends lower as far as rounding can tell."""
    value = _values(problem, before)
    change = _values(problem, seen) - value
    there = np.atleast_1d(problem.inner_of_each(seen.gradient, direction))
    is_flat = (abs(change) <= FLAT * abs(value)) & (abs(there) <= -0.9 * slope)
    return np.asarray(change <= SUFFICIENT * length * slope), np.asarray(is_flat)


def _by_those(
    problem: Problem, goes: np.ndarray, theta: Array, evaluation: Evaluation, step: Step, length: Any = 0.0
) -> Step:
    """A step by some of the independent problems; the others stay at `theta`, as if they had gone `length`."""
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
