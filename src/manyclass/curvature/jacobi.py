"""The diagonal of the Hessian: a unit for each column, where a matrix costs too much."""

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import OneUnitEach
from manyclass.curvature.sampling import CLASS_ROWS, RowSample, uniform_sample
from manyclass.data.rows import Array
from manyclass.model import Problem


class Jacobi(OneUnitEach):
    """H = h·diag(Σ̂) + alpha, h for the intercept: the mean over the outputs of the diagonal of ∇²F.

    A change of variables that gives every column the unit of its spread where the penalty does not outweigh it, with
    h = mean tr ∇²Φ(z_i) / k at the point of the last refresh. It costs one look at the columns. One h serves all
    outputs: that of a rare class changes too much on the way to the minimum.
    """

    name = "jacobi"
    majorizes = False

    def __init__(self, problem: Problem, rng: np.random.Generator):
        self._variance = problem.feature_variance
        # No point in a look at all rows for one number.
        self._sample = problem.map(uniform_sample, CLASS_ROWS, rng)
        super().__init__(problem, rng)

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        total, weights = problem.sum(_traces, self._sample, *problem.unpack(theta))
        h = total / weights / problem.n_outputs if weights > 0 else 0.0
        h = max(h, problem.rows.precision * problem.loss.lipschitz)
        self._set(problem, h * self._variance + problem.alpha, h)


def _traces(part: Problem, sample: RowSample, W: Array, b: Array) -> tuple[float, float]:
    """Σ s tr ∇²Φ(z) and Σ s over a sample of rows."""
    xp, loss = part.xp, part.loss
    total = weights = 0.0
    for block, weight in sample.blocks(part):
        trace = loss.hessian_trace(loss.mean(part.scores(block, W, b), xp), xp)
        total = total + xp.sum(trace * weight, dtype=xp.float64)
        weights = weights + xp.sum(weight, dtype=xp.float64)
    return float(total), float(weights)
