"""The Hessian itself, where all parameters together are few."""

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.data.factor import Factor
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, Rows
from manyclass.model import Problem

LARGEST = 4096
"""Most parameters for which the matrix and its factor are made (0.13 GB each in float64)."""


class Hessian(Curvature):
    """H = ∇²F = (1/S) Σ_i s_i ∇²Φ(z_i) ⊗ x_i x_iᵀ + alpha·I at theta, of shape (d·k, d·k).

    One matrix product per pair of outputs. H is solved with in units in which its diagonal is 1, so that columns of
    very different size cost no digits, and directions in which F is flat (the common shift of a softmax) get the step
    of minimum norm.
    """

    name = "hessian"
    majorizes = False
    local = True

    def __init__(self, problem: Problem, theta: Array):
        self.refresh(problem, theta)

    @classmethod
    def build(cls, problem: Problem, rng: np.random.Generator) -> Hessian:
        return cls(problem, problem.constant_model())

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        self._shape = tuple(map(int, theta.shape))
        size = self._shape[0] * self._shape[1]
        if size > LARGEST:
            raise ValueError(
                f"The Hessian of all {size} parameters would take {8e-9 * size**2:.1f} GB; use curvature='kronecker', "
                "which does not grow with the number of classes."
            )
        xp = problem.xp
        H = hessian_matrix(problem, theta)
        diagonal, k = xp.linalg.diagonal(H), problem.n_outputs
        zero_mean = problem.loss.mean(problem.rows.zeros((1, k)), xp)
        if problem.fit_intercept and problem.loss.hessian(zero_mean, xp)[1] is not None:
            # F does not see a common shift of the intercepts, and rounding alone would choose one.
            H[-k:, -k:] += xp.mean(diagonal[-k:]) / k
        least = problem.rows.precision * float(xp.max(diagonal)) ** 0.5
        self._unit = 1.0 / xp.clip(xp.sqrt(xp.clip(diagonal, min=0.0)), min=least or 1.0)
        # Kept away from singular by the rounding of the rows; the gradient has no part where F is flat.
        self._ridge = 4.0 * problem.rows.precision**0.75
        self._factor = Factor(H * self._unit[:, None] * self._unit[None, :], problem.rows.precision)

    def solve(self, gradient: Array) -> Array:
        xp = self._factor.xp
        flat = xp.astype(xp.reshape(gradient, (-1,)), xp.float64) * self._unit
        step = self._factor.solve(flat[:, None], self._ridge)[:, 0] * self._unit
        return xp.astype(xp.reshape(step, self._shape), gradient.dtype)


def hessian_matrix(problem: Problem, theta: Array) -> Array:
    """∇²F at theta in float64; parameter i·n_outputs + a is that of feature i (last: intercept) and output a."""
    xp, rows, k = problem.xp, problem.rows, problem.n_outputs
    problem.n_passes += 1
    size = int(theta.shape[0])
    H, diagonal = problem.sum(_pair_sums, *problem.unpack(theta), problem.center)
    index = xp.arange(size * k, device=rows.device)
    same_output = (index[:, None] % k) == (index[None, :] % k)
    # Row i of `diagonal` is that of feature i for every output, whose own columns it belongs to.
    H += xp.where(same_output, xp.take(diagonal, index // k, axis=0), 0.0)
    H /= problem.total_weight
    n_penalised = rows.n_features * k
    penalty = xp.astype(index < n_penalised, xp.float64) * problem.alpha
    return H + penalty[:, None] * xp.eye(size * k, dtype=H.dtype, device=rows.device)


def _pair_sums(part: Problem, W: Array, b: Array, center: Array) -> tuple[Array, Array]:
    """−Σ s (u ⊗ x)(u ⊗ x)ᵀ, and Σ s x (v ⊗ x)ᵀ, of which the columns of the row's own output count."""
    xp, rows, loss, k = part.xp, part.rows, part.loss, part.n_outputs
    size = rows.n_features + part.fit_intercept
    H = rows.zeros((size * k, size * k), dtype=xp.float64)
    diagonal = rows.zeros((size, size * k), dtype=xp.float64)
    for _, block, weight in part.blocks(GRAM_BLOCK_BYTES // (8 * k)):
        v, u = loss.hessian(loss.mean(part.scores(block, W, b), xp), xp)
        X = with_ones(block, part, center)
        if weight is not None:
            v, u = weight[:, None] * v, None if u is None else weight[:, None] ** 0.5 * u
        diagonal += X.T @ xp.reshape(X[:, :, None] * v[:, None, :], (block.n_rows, -1))
        if u is not None:
            spread = xp.reshape(X[:, :, None] * u[:, None, :], (block.n_rows, -1))
            H -= spread.T @ spread
    return H, diagonal


def with_ones(block: Rows, problem: Problem, center: Array) -> Array:
    """Rows x − c as a dense block, with the column of ones of the intercept."""
    xp, dense = problem.xp, block.dense()
    if not problem.fit_intercept:
        return dense
    dense = dense - xp.astype(center, dense.dtype)[None, :]
    return xp.concat([dense, block.ones(block.n_rows)[:, None]], axis=1)
