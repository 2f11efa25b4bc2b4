"""Backtracking along a descent direction of a convex function, safe against rounding."""

from __future__ import annotations

from dataclasses import dataclass

from manyclass.data.rows import Array
from manyclass.model import Evaluation, Problem

SUFFICIENT = 1e-4
"""Share of the predicted decrease that must be reached (Armijo)."""
FLAT = 1e-7
"""Relative change of the objective below which float32 sums decide nothing and slopes are compared instead."""


@dataclass(frozen=True)
class Step:
    theta: Array
    evaluation: Evaluation
    length: float


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
            return Step(candidate, there, length)
        if (
            abs(change) <= FLAT * abs(evaluation.value)
            and abs(problem.inner(there.gradient, direction)) <= -0.9 * slope
        ):
            return Step(candidate, there, length)
        if change != change or change == float("inf"):
            length *= 0.1
            continue
        parabola = -slope * length**2 / (2.0 * (change - slope * length))
        length = min(max(parabola, 0.1 * length), 0.5 * length)
    return None
