"""A ⊗ Σ: the curvature between the classes times the curvature between the features."""

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.curvature.class_factor import ClassFactor
from manyclass.curvature.sampling import CLASS_ROWS, RowSample, carrying_sample, uniform_sample
from manyclass.data import Moments, Rows
from manyclass.data.factor import eigh_in_place
from manyclass.data.moments import MomentSums
from manyclass.data.rows import Array, add_to_diagonal
from manyclass.model import Problem

ROWS_PER_FEATURE = 16
"""Rows from which the feature factor is estimated, per feature; beyond that its noise no longer costs passes."""


class Kronecker(Curvature):
    """H = A ⊗ Σ + alpha·I with A near the mean of ∇²Φ(z_i) (`ClassFactor`), and Σ a weighted covariance of the rows.

    L·Σ̂ treats every class as if its probability were ½; the true curvature of a class is about 1/k, so for many
    classes steps in the fixed metric are far too short. Both factors are means over a sample of rows (with weights
    tr ∇²Φ(z_i) in Σ, so that rows already fitted stop counting). With Σ = QΛQᵀ, row j of QᵀG is multiplied by
    (λ_j A + alpha·I)⁻¹, which has a closed form. H tracks the Hessian but does not dominate it.
    """

    name = "kronecker"
    majorizes = False

    def __init__(self, problem: Problem, sample: RowSample, theta: Array | None = None):
        self.alpha, self.fit_intercept, self.xp = problem.alpha, problem.fit_intercept, problem.xp
        self.refit(problem, sample, theta)

    @classmethod
    def build(cls, problem: Problem, rng: np.random.Generator) -> Kronecker:
        return cls(problem, problem.map(uniform_sample, ROWS_PER_FEATURE * problem.rows.n_features, rng))

    def refit(self, problem: Problem, sample: RowSample, theta: Array | None = None) -> None:
        """Both factors at theta, or at the constant model, where all rows have one mean, from a sample of rows."""
        xp, rows = problem.xp, problem.rows
        W, b = problem.unpack(problem.constant_model() if theta is None else theta)
        classes, moments, is_uniform = problem.sum(_factor_sums, sample, None if theta is None else W, b)
        self.classes = ClassFactor(problem).finish(*classes)
        moments.weight = max(moments.weight, 1e-12 * problem.total_weight)  # nothing may curve but the penalty
        mean = moments.mean
        self._shift = xp.astype(mean - problem.center if self.fit_intercept else mean * 0, rows.dtype)
        second = moments.covariance if self.fit_intercept else moments.second_moment
        if is_uniform:
            add_to_diagonal(second, self._unseen(problem, xp.linalg.diagonal(second)))
        # Float32 is exact enough for a metric, and half the time and memory of the decomposition.
        eigenvalues, self._vectors = eigh_in_place(xp.astype(second, rows.dtype, copy=False))
        floor = rows.precision * max(float(eigenvalues[-1]), 0.0) or 1.0
        self._eigenvalues = xp.clip(xp.astype(eigenvalues, xp.float64), min=floor)
        # A weight carries the trace of ∇²Φ while A is normalised to trace 1, so Σ takes the mean weight.
        self._mean_weight = moments.weight / problem.total_weight

    @staticmethod
    def _unseen(problem: Problem, seen: Array) -> Array:
        """The variance that a sample of rows missed in rare features.

        Without it a column that is zero in the sample but not in X would seem flat, and steps along it be unbounded.
        """
        xp = problem.xp
        exact = problem.feature_mean_square
        if problem.fit_intercept:
            exact = exact - problem.feature_mean**2
        return xp.where(exact > 2.0 * seen, exact - seen, xp.zeros_like(seen))

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(0)
        self.alpha = problem.alpha
        if row_weight is not None:
            n_rows = ROWS_PER_FEATURE // 2 * problem.rows.n_features
            self.refit(problem, problem.map(carrying_sample, row_weight, n_rows, rng), theta)
            return
        # The features' covariance stays; only what happens between the classes has changed.
        W, b = problem.unpack(theta)
        sample = problem.map(uniform_sample, CLASS_ROWS, rng)
        self.classes = classes = ClassFactor(problem).finish(*problem.sum(_class_sums, sample, W, b))
        self._mean_weight = max(classes.trace / problem.total_weight, 1e-12)

    def solve(self, gradient: Array) -> Array:
        Q, eigenvalues = self._vectors, self._eigenvalues * self._mean_weight
        if not self.fit_intercept:
            return Q @ self.classes.solve(Q.T @ gradient, eigenvalues, self.alpha)
        # The weighted mean of the rows differs from c; about it W and the intercept decouple.
        g = gradient[-1, :]
        W = Q @ self.classes.solve(
            Q.T @ (gradient[:-1, :] - self._shift[:, None] * g[None, :]), eigenvalues, self.alpha
        )
        b = self.classes.solve_intercept(g, self._mean_weight) - self._shift @ W
        return self.with_intercept(W, b, self.xp)

    def leverages(self, problem: Problem, block: Rows) -> Array:
        """The diagonal of (x̃ᵀ ⊗ I) H⁻¹ (x̃ ⊗ I) for rows of the problem, of shape (n_rows, n_outputs), float64.

        The rank-one part of (λA + alpha·I)⁻¹ is left out: where the penalty is small diag(1/a) is itself a generalised
        inverse of A, and where it is large both parts are.
        """
        xp, a = self.xp, self.classes.a
        origin = problem.center + xp.astype(self._shift, xp.float64)
        Z = xp.astype(block.matmat(self._vectors), xp.float64) - origin @ xp.astype(self._vectors, xp.float64)
        curving = (self._eigenvalues * self._mean_weight)[:, None] * a[None, :] + self.alpha
        found = (Z * Z) @ (1.0 / curving)
        return found + 1.0 / (a * self._mean_weight) if self.fit_intercept else found


def _factor_sums(
    part: Problem, sample: RowSample, W: Array | None, b: Array
) -> tuple[tuple[Array, float], Moments, bool]:
    """Of `ClassFactor`, the moments of the rows weighted by their curvature, and whether the sample is uniform.

    Without W at the constant model, where all rows have one mean.
    """
    xp, loss = part.xp, part.loss
    classes, sums = ClassFactor(part), MomentSums(part.rows)
    P = loss.mean(b[None, :] + 0.0, xp)
    for block, scale in sample.blocks(part):
        if W is None:
            classes.add(P, xp.sum(scale)[None])
        else:
            P = loss.mean(part.scores(block, W, b), xp)
            classes.add(P, scale)
        sums.add(block, scale * loss.hessian_trace(P, xp))
    return classes.sums, sums.result(), sample.is_uniform


def _class_sums(part: Problem, sample: RowSample, W: Array, b: Array) -> tuple[Array, float]:
    classes = ClassFactor(part)
    for block, scale in sample.blocks(part):
        classes.add(part.loss.mean(part.scores(block, W, b), part.xp), scale)
    return classes.sums
