from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

from manyclass.curvature import Curvature
from manyclass.curvature.class_bounds import class_bound
from manyclass.data.rows import Array
from manyclass.fit import Iterates, Status
from manyclass.model import Problem
from manyclass.solvers.base import NOTHING, REFRESH, Solver, StepCost, iterate, refresh
from manyclass.solvers.plane import PartitionPlane

HELD = 4
"""Arrays of the scores of all rows that are held at once: at two points, and along two directions."""
LOOKS, ARRAYS = 8, 8
"""Evaluations at all scores in a step in a plane, and arrays of the size of the parameters that it holds."""
HELD_PASSES, UNHELD_PASSES = 2.0, 9.0
"""Passes of such a step if scores are held, and if they are computed again for each evaluation."""


class Majorize(Solver):
    """Minimise a quadratic that lies above F and touches it, again and again.

    F never rises and no step size exists. The curvature decides which algorithm this is. With one that majorizes it is
    theta ← theta − H⁻¹∇F(theta): with "second-moment", one d×d factor for all steps, generalized least squares (*Least
    Squares Revisited*, Algorithm 1), whose rate does not depend on the condition number of X (Theorem 1:
    F − F* ≤ 2L‖W*‖²_Σ/(t + 4)); with "partition-bound", refreshed at each step, batch bound majorization (*Stochastic
    Bound Majorization*, equation 2).

    With any other curvature M, a metric, the quadratic is that of the partition bound, too, but it is minimised on the
    plane of −M⁻¹∇F and the last step. There it takes no matrix of all parameters (`PartitionPlane`), and two passes per
    step. These are conjugate gradients: the metric gives good directions, also for decided rows, where the bound is far
    above F, and the bound gives safe lengths.
    """

    name = "majorize"
    needs_majorizer = True
    default_curvature = "second-moment"
    refreshes_majorizer = True

    def step_cost(self, problem: Problem) -> StepCost:
        class_bound(problem.loss.name)
        return StepCost(HELD_PASSES if holds_scores(problem) else UNHELD_PASSES, LOOKS, ARRAYS)

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        if not curvature.majorizes:
            return (yield from self._in_planes(problem, curvature, theta, n_iter, saved))
        for number in count(n_iter + 1):
            evaluation = problem.value_and_gradient(theta)
            yield iterate(problem, curvature, theta, evaluation, number)
            if curvature.local:
                curvature.refresh(problem, theta)
            theta = theta - curvature.solve(evaluation.gradient)
        return None

    @staticmethod
    def _in_planes(
        problem: Problem, curvature: Curvature, theta: Array, n_iter: int, saved: Mapping[str, Any]
    ) -> Iterates:
        known: dict[str, Any] = {"before": None, "relaxation": 1.0, "n_steps": 0, "refreshed_at": None}
        known |= {name: saved[name] for name in known.keys() & saved.keys()}
        if known["refreshed_at"] is not None:
            refresh(problem, curvature, known["refreshed_at"])
        holds = holds_scores(problem)
        for number in count(n_iter + 1):
            evaluation = problem.value_and_gradient(theta, with_scores=holds)
            yield iterate(problem, curvature, theta, evaluation, number, **known)
            if known["n_steps"] in REFRESH and known["refreshed_at"] is not theta:
                refresh(problem, curvature, theta)
                known["refreshed_at"] = theta
            directions = [-curvature.solve(evaluation.gradient)]
            if known["before"] is not None:
                directions.append(theta - known["before"])
            plane = PartitionPlane(problem, theta, directions, evaluation.scores, holds=holds)
            problem.n_passes += 0.5 * len(directions) if holds else 0.0
            slope = np.array([problem.inner(evaluation.gradient, one) for one in directions])
            found = plane.descended(evaluation.value, slope, known["relaxation"])
            if found is None:
                return Status.STALLED
            lengths, relaxation = found
            known = known | {"before": theta, "relaxation": relaxation, "n_steps": known["n_steps"] + 1}
            for length, direction in zip(lengths, directions, strict=True):
                theta = theta + float(length) * direction
        return None


def holds_scores(problem: Problem) -> bool:
    """Whether there is room for the scores of all rows. If not, each evaluation computes them again."""
    rows = problem.rows
    needed = HELD * float(rows.n_rows) * problem.n_outputs * rows.itemsize
    return bool(needed <= rows.place.room(problem.memory_limit))
