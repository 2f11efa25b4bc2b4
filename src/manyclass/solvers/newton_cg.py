import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from manyclass.curvature import Curvature
from manyclass.curvature.sampling import RowSample, carrying_sample, n_sampled
from manyclass.data import Rows
from manyclass.data.rows import BLOCK_BYTES, Array
from manyclass.fit import Iterates, Status
from manyclass.model import Evaluation, Problem
from manyclass.solvers.base import NOTHING, Solver, iterate, refresh
from manyclass.solvers.line_search import backtrack

ROWS_PER_FEATURE, ALL = 8, 1 << 60
"""Rows per feature in a Hessian product (see `weighted_sample`), and a number of rows that stands for all."""
KEEP_BYTES, KEEP_SHARE = 160 << 20, 0.2
"""Copies of the sampled rows are kept between products up to this size, and gathered again above it."""
MAX_CG = 60
"""Conjugate-gradient steps per Newton step."""


class NewtonCG(Solver):
    """Truncated Newton: conjugate gradients on the Hessian of the rows that matter, preconditioned by the curvature.

    The gradient is exact; the Hessian is that of the rows that hold its weight tr ∇²Φ(z_i) (all of them for small
    problems, a weighted sample otherwise), so a product costs a fraction of a pass. If a step on a sample fails, the
    sample doubles, up to all rows. The curvature `refreshes` before each Newton step.
    """

    name = "newton-cg"
    needs_majorizer = False

    def __init__(self, refreshes: bool = True):
        self.refreshes = refreshes

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        rng, n_rows = saved.get("rng", np.random.default_rng(0)), ROWS_PER_FEATURE * problem.rows.n_features
        evaluation = problem.value_and_gradient(theta, with_row_weight=True)
        previous = _size(problem, curvature, evaluation)
        known: dict[str, Any] = {"rng": rng, "n_rows": n_rows, "forcing": 0.3, "previous": previous}
        known |= {"n_refreshed": curvature.n_refreshed}
        known |= {name: saved[name] for name in known.keys() & saved.keys()}
        curvature.n_refreshed = known["n_refreshed"]
        n_iter += 1
        yield iterate(problem, curvature, theta, evaluation, n_iter, looks_back=1, **known)
        while True:
            sample = problem.map(carrying_sample, evaluation.row_weight, known["n_rows"], rng)
            if self.refreshes:
                refresh(problem, curvature, theta, evaluation)
            hessian = HessianProduct.at(problem, theta, sample)
            direction = conjugate_gradients(hessian, curvature, evaluation.gradient, known["forcing"])
            step = backtrack(problem, theta, evaluation, direction, with_row_weight=True)
            if step is None:
                if hessian.is_whole:
                    return Status.STALLED
                known["n_rows"] = min(2 * known["n_rows"], ALL)
                continue
            theta, evaluation = step.theta, step.evaluation
            n_iter += 1
            size, previous = _size(problem, curvature, evaluation), known["previous"]
            # Newton converges superlinearly when the inner residual shrinks with the gradient, but a sampled Hessian
            # is not worth solving beyond its own accuracy.
            ratio = (size / previous) ** 0.5 if previous > 0 else 0.0
            known["forcing"] = min(0.3, max(ratio, 1e-3 if hessian.is_whole else 0.05))
            if step.length.mean() < 0.5:
                known["n_rows"] = min(2 * known["n_rows"], ALL)
            known |= {"previous": size, "n_refreshed": curvature.n_refreshed}
            yield iterate(problem, curvature, theta, evaluation, n_iter, looks_back=1, **known)


def _size(problem: Problem, curvature: Curvature, evaluation: Evaluation) -> float:
    """⟨∇F, H⁻¹∇F⟩; at least 0, as at the minimum it is rounding and may be negative."""
    return max(problem.inner(evaluation.gradient, curvature.solve(evaluation.gradient)), 0.0)


@dataclass
class HessianProduct:
    """V ↦ ∇²F·V on a sample of rows, with the means P kept."""

    problem: Problem
    pieces: Any  # from `_pieces`, for each part of the rows
    share: float  # of all rows

    @classmethod
    def at(cls, problem: Problem, theta: Array, sample: RowSample) -> Self:
        share = problem.sum(n_sampled, sample) / max(problem.rows.n_rows, 1)
        return cls(problem, problem.map(_pieces, sample, *problem.unpack(theta)), share)

    @property
    def is_whole(self) -> bool:
        return self.share >= 1

    def product(self, V: Array) -> Array:
        problem, xp = self.problem, self.problem.xp
        problem.n_passes += self.share
        W, b = problem.unpack(V)
        total, intercept = problem.sum(_products, self.pieces, W, b)
        total /= problem.total_weight
        intercept = intercept / problem.total_weight
        total -= problem.center[:, None] * intercept[None, :]
        total += problem.alpha * xp.astype(W, xp.float64)
        if problem.fit_intercept:
            total = xp.concat([total, intercept[None, :]], axis=0)
        return xp.astype(total, V.dtype)


Piece = tuple[Rows | None, np.ndarray | slice, Array, Array]
"""A block of rows (None if it is not kept), their numbers, means and weights."""


def _pieces(part: Problem, sample: RowSample, W: Array, b: Array) -> list[Piece]:
    room = min(KEEP_BYTES, KEEP_SHARE * (part.memory_limit or math.inf))
    keep = sample.index is not None and n_sampled(part, sample) * part.rows.row_bytes <= room
    pieces: list[Piece] = []
    for where, block, scale in sample.blocks(part, BLOCK_BYTES):
        rows = where if sample.index is None else sample.index[where]
        P = part.loss.mean(part.scores(block, W, b), part.xp)
        pieces.append((block if keep else None, rows, P, scale))
    return pieces


def _products(part: Problem, pieces: list[Piece], W: Array, b: Array) -> tuple[Array, Array]:
    """Σ s x (∇²Φ(z) (Wᵀx + b))ᵀ, and the same without x."""
    xp, held, loss = part.xp, part.rows, part.loss
    total = held.zeros((held.n_features, part.n_outputs), dtype=xp.float64)
    intercept = held.zeros((part.n_outputs,), dtype=xp.float64)
    for kept, rows, P, scale in pieces:
        part.on_block()
        block = kept if kept is not None else (held.part(rows) if isinstance(rows, slice) else held.take(rows))
        R = loss.hessian_product(P, part.scores(block, W, b), xp)
        R = R * scale[:, None]
        block.rmatmat(R, total)
        intercept += xp.sum(R, axis=0, dtype=xp.float64)
    return total, intercept


def conjugate_gradients(hessian: HessianProduct, curvature: Curvature, gradient: Array, forcing: float) -> Array:
    """An approximate solution of ∇²F·D = −∇F, until the residual in the metric of H⁻¹ has shrunk by `forcing`.

    Independent problems have steps and conjugate directions of their own.
    """
    problem = hessian.problem
    direction, residual = gradient * 0, -gradient
    z = curvature.solve(residual)
    conjugate, size = z, np.atleast_1d(problem.inner_of_each(residual, z))
    enough = forcing**2 * size.sum()
    for _ in range(MAX_CG):
        product = hessian.product(conjugate)
        bend = np.atleast_1d(problem.inner_of_each(conjugate, product))
        curved = bend > 0
        if not curved.any():
            break
        length = problem.rows.asarray(np.where(curved, size, 0.0) / np.where(curved, bend, 1.0))
        direction = direction + length * conjugate
        residual = residual - length * product
        z = curvature.solve(residual)
        previous, size = size, np.atleast_1d(problem.inner_of_each(residual, z))
        if size.sum() <= enough:
            break
        has_more = curved & (previous > 0)  # a solved problem has a residual that underflows
        share = np.where(has_more, size, 0.0) / np.where(has_more, previous, 1.0)
        conjugate = z + problem.rows.asarray(share) * conjugate
    return direction if float(problem.xp.sum(abs(direction))) > 0 else z
