"""The curvature of batch bound majorization (*Stochastic Bound Majorization*, equation 2)."""

import time
from typing import Any

import numpy as np

from manyclass.curvature.base import with_penalty
from manyclass.curvature.class_bounds import ClassBound, class_bound
from manyclass.curvature.hessian import Hessian, with_ones
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array
from manyclass.model import Problem

LARGEST = 8192
"""Most parameters for which Σ and its factor are made (0.5 GB each in float64)."""


def require_room(n_parameters: int) -> None:
    if n_parameters > LARGEST:
        raise ValueError(
            f"The bound's curvature couples all {n_parameters} parameters and would take "
            f"{8e-9 * n_parameters**2:.0f} GB; use BoundMajorizationClassifier() as it comes, whose steps need no such "
            "matrix, or its method='stochastic' with rank=1 to 20."
        )


class PartitionBound(Hessian):
    """H = (1/S) Σ_i s_i B_i ⊗ x_i x_iᵀ + alpha·I, of shape (d·k, d·k), with B_i the bound of row i at theta.

    Σ_i B_i ⊗ x_i x_iᵀ is the Σ of Algorithm 1 for multi-class features, so the quadratic with curvature H lies above F
    and touches it at the point of the last `refresh`: the same loop as Algorithm 1 of *Least Squares Revisited*, with a
    tighter curvature that has to be built and factored anew for each step.
    """

    name = "partition-bound"
    default_solver = "majorize"
    majorizes = True

    _require_room = staticmethod(require_room)

    def _matrix(self, problem: Problem, theta: Array) -> Array:
        began = time.perf_counter()
        H = bound_curvature(problem, theta)
        # A factor cannot be interrupted. It has size³/6 multiplications, at two thirds of the speed of the
        # n·size²/2 of the products before it.
        problem.on_block((time.perf_counter() - began) * int(H.shape[0]) / max(2 * problem.rows.n_rows, 1))
        return H


def bound_curvature(problem: Problem, theta: Array) -> Array:
    """H of `PartitionBound` in float64; parameter i·n_outputs + a is that of feature i (last: intercept), output a."""
    bound, k = class_bound(problem.loss.name), problem.n_outputs
    total = PairSums(bound, k, int(theta.shape[0]), problem.xp, problem.rows.device)
    total.total = problem.sum(_bound_sums, *problem.unpack(theta), problem.center)
    return with_penalty(total.matrix() / problem.total_weight, problem, k)


def _bound_sums(part: Problem, W: Array, b: Array, center: Array) -> Array:
    xp, rows, loss = part.xp, part.rows, part.loss
    bound = class_bound(loss.name)
    total = PairSums(bound, part.n_outputs, rows.n_features + part.fit_intercept, xp, rows.device)
    began = time.perf_counter()
    for where, block in rows.blocks(rows_per_block(rows.n_rows, rows.n_features, total.n_pairs, rows.itemsize)):
        part.on_block(time.perf_counter() - began)
        began = time.perf_counter()
        weights = bound.weights(loss.normalise(part.scores(block, W, b), xp), xp)
        if part.weight is not None:
            weights = weights * part.weight[where][:, None]
        total.add(with_ones(block, part, center), weights)
    return total.total


class PairSums:
    """Σ_i B_i ⊗ x_i x_iᵀ, summed in float64 over blocks of rows by one matrix product each.

    The d×d blocks of all pairs of outputs are columns of one product Xᵀ[B_ab,i x_i], so that BLAS sees (d × rows) times
    (rows × pairs·d) rather than one small product per class.
    """

    _given = ("xp", "device", "left", "right")

    def __init__(self, bound: ClassBound, n_outputs: int, n_features: int, xp: Any, device: Any = None):
        self.xp, self.device = xp, device
        self.n_outputs, self.n_features = n_outputs, n_features
        self.left, self.right = bound.pairs(n_outputs)
        self.n_pairs = len(self.left)
        self.total = xp.zeros((n_features, self.n_pairs * n_features), dtype=xp.float64, device=device)

    def add(self, X: Array, weights: Array) -> None:
        """Rows X of shape (n_rows, n_features) with entries `weights`, of shape (n_rows, n_pairs), of their B."""
        xp = self.xp
        if self.n_pairs == 1:
            rooted = X * xp.sqrt(weights)  # one entry of B is never negative; half the work
            self.total += rooted.T @ rooted
            return
        columns = xp.reshape(weights[:, :, None] * X[:, None, :], (int(X.shape[0]), -1))
        self.total += X.T @ columns

    def clear(self) -> None:
        self.total *= 0.0

    def matrix(self) -> Array:
        """The sum, of shape (n_features·n_outputs, n_features·n_outputs)."""
        xp, m, d = self.xp, self.n_outputs, self.n_features
        blocks = xp.permute_dims(xp.reshape(self.total, (d, self.n_pairs, d)), (1, 0, 2))
        zero = xp.zeros((1, d, d), dtype=xp.float64, device=self.device)
        place = np.full((m, m), self.n_pairs)
        place[self.left, self.right] = place[self.right, self.left] = np.arange(self.n_pairs)
        index = xp.asarray(place.ravel(), device=self.device)
        full = xp.take(xp.concat([blocks, zero], axis=0), index, axis=0)
        full = xp.permute_dims(xp.reshape(full, (m, m, d, d)), (2, 0, 3, 1))
        return xp.reshape(full, (d * m, d * m))


def rows_per_block(n_rows: int, n_features: int, n_pairs: int, itemsize: int) -> int:
    return int(min(max(GRAM_BLOCK_BYTES // (n_features * n_pairs * itemsize), 16), max(n_rows, 1)))
