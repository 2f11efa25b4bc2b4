from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyclass.curvature import Curvature
from manyclass.curvature.sampling import RowSample, weighted_sample
from manyclass.data.design import BLOCK_BYTES, Array
from manyclass.model.objective import Objective
from manyclass.solvers.base import Monitor, Solver, Status, inner
from manyclass.solvers.line_search import backtrack

ROWS_PER_FEATURE = 8
"""Rows that carry a Hessian product, per feature (see `weighted_sample`)."""
KEEP_BYTES = 160 << 20
"""Copies of the sampled rows are kept between products up to this size, and gathered again above it."""
MAX_CG = 60
"""Conjugate-gradient steps per Newton step."""


class NewtonCG(Solver):
    """Truncated Newton: conjugate gradients on the Hessian of the rows that matter, preconditioned by the curvature.

    The gradient is exact; the Hessian is that of the rows that hold its weight tr ∇²Φ(z_i) (all of them for small
    problems, a weighted sample otherwise), so a product costs a fraction of a pass. The curvature is refreshed at
    the same rows before each Newton step. If a step on a sample fails, the sample doubles, up to all rows.
    """

    name = "newton-cg"
    needs_majorizer = False

    def run(self, objective: Objective, curvature: Curvature, theta: Array, monitor: Monitor) -> tuple[Array, Status]:
        rng = np.random.default_rng(0)
        n_rows = ROWS_PER_FEATURE * objective.design.n_features
        evaluation = monitor.evaluate(objective, theta, with_row_weight=True)
        forcing, previous = 0.3, inner(objective, evaluation.gradient, curvature.solve(evaluation.gradient))
        while (status := monitor.stop(objective, curvature, theta, evaluation)) is None:
            assert evaluation.row_weight is not None
            sample = weighted_sample(evaluation.row_weight, n_rows, rng)
            curvature.refresh(objective, theta, evaluation.row_weight)
            hessian = Hessian.at(objective, theta, sample)
            direction = conjugate_gradients(hessian, curvature, evaluation.gradient, forcing)
            step = backtrack(objective, theta, evaluation, direction, monitor, with_row_weight=True)
            if step is None:
                if (status := monitor.exhausted()) is not None:
                    break
                if sample.index is None:
                    status = Status.STALLED
                    break
                n_rows *= 2
                continue
            theta, evaluation = step.theta, step.evaluation
            size = inner(objective, evaluation.gradient, curvature.solve(evaluation.gradient))
            # Newton converges superlinearly when the inner residual shrinks with the gradient, but a sampled Hessian
            # is not worth solving beyond its own accuracy.
            ratio = (size / previous) ** 0.5 if previous > 0 else 0.0
            forcing = min(0.3, max(ratio, 1e-3 if sample.index is None else 0.05))
            if step.length < 0.5:
                n_rows *= 2
            previous = size
        assert status is not None
        return theta, status


@dataclass
class Hessian:
    """V ↦ ∇²F·V on a sample of rows, with the means P kept."""

    objective: Objective
    pieces: list[tuple[Array | None, np.ndarray | slice, Array, Array]]

    @classmethod
    def at(cls, objective: Objective, theta: Array, sample: RowSample) -> Hessian:
        W, b = objective.unpack(theta)
        row_bytes = objective.design.row_bytes
        keep = sample.index is not None and sample.n_rows(objective) * row_bytes <= KEEP_BYTES
        pieces, start = [], 0
        for block, scale in sample.blocks(objective, BLOCK_BYTES):
            stop = start + int(block.shape[0])
            rows = slice(start, stop) if sample.index is None else sample.index[start:stop]
            P = objective.link.mean(objective.scores(block, W, b), objective.xp)
            pieces.append((block if keep else None, rows, P, scale))
            start = stop
        return cls(objective, pieces)

    def product(self, V: Array) -> Array:
        objective = self.objective
        xp, design, link = objective.xp, objective.design, objective.link
        W, b = objective.unpack(V)
        total = design.zeros((design.n_features, objective.n_outputs), dtype=xp.float64)
        intercept = design.zeros((objective.n_outputs,), dtype=xp.float64)
        for kept, rows, P, scale in self.pieces:
            block = kept if kept is not None else (design.rows(rows) if isinstance(rows, slice) else design.take(rows))
            R = link.hessian_product(P, objective.scores(block, W, b), xp)
            R = R * scale[:, None]
            total += block.T @ R
            intercept += xp.sum(R, axis=0, dtype=xp.float64)
        total /= objective.total_weight
        intercept /= objective.total_weight
        total -= objective.center[:, None] * intercept[None, :]
        total += objective.alpha * xp.astype(W, xp.float64)
        if objective.fit_intercept:
            total = xp.concat([total, intercept[None, :]], axis=0)
        return xp.astype(total, V.dtype)


def conjugate_gradients(hessian: Hessian, curvature: Curvature, gradient: Array, forcing: float) -> Array:
    """An approximate solution of ∇²F·D = −∇F, until the residual in the metric of H⁻¹ has shrunk by `forcing`."""
    objective = hessian.objective
    direction, residual = gradient * 0, -gradient
    z = curvature.solve(residual)
    conjugate, size = z, inner(objective, residual, z)
    enough = forcing**2 * size
    for _ in range(MAX_CG):
        product = hessian.product(conjugate)
        bend = inner(objective, conjugate, product)
        if not bend > 0:
            break
        length = size / bend
        direction = direction + length * conjugate
        residual = residual - length * product
        z = curvature.solve(residual)
        previous, size = size, inner(objective, residual, z)
        if size <= enough:
            break
        conjugate = z + (size / previous) * conjugate
    return direction if float(objective.xp.sum(abs(direction))) > 0 else z
