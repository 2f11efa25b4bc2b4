"""A ⊗ Σ: the curvature between the classes times the curvature between the features."""

from __future__ import annotations

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.curvature.sampling import RowSample, uniform_sample, weighted_sample
from manyclass.data.factor import eigh_in_place
from manyclass.data.moments import MomentSums
from manyclass.data.rows import Array, add_to_diagonal
from manyclass.model import Problem

ROWS_PER_FEATURE = 16
"""Rows from which the feature factor is estimated, per feature; beyond that its noise no longer costs passes."""


CLASS_ROWS = 4096
"""Rows from which the class factor alone is refreshed."""


class Kronecker(Curvature):
    """H = A ⊗ Σ + alpha·I with A = mean of ∇²Φ(z_i), k×k, and Σ a weighted covariance of the rows, d×d.

    L·Σ̂ treats every class as if its probability were ½; the true curvature of a class is about 1/k, so for many
    classes steps in the fixed metric are far too short. Both factors are means over a sample of rows (with weights
    tr ∇²Φ(z_i) in Σ, so that rows already fitted stop counting), and H⁻¹ follows from their eigendecompositions
    Σ = QΛQᵀ, A = UΓUᵀ as H⁻¹G = Q[(QᵀGU) / (λγᵀ + alpha)]Uᵀ. H tracks the Hessian but does not dominate it.
    """

    name = "kronecker"
    majorizes = False

    def __init__(self, problem: Problem, theta: Array, sample: RowSample):
        self.fit_intercept = problem.fit_intercept
        self.refit(problem, theta, sample)

    @classmethod
    def build(cls, problem: Problem, rng: np.random.Generator) -> Kronecker:
        n_rows = ROWS_PER_FEATURE * max(problem.rows.n_features, problem.n_outputs)
        return cls(problem, problem.constant_model(), uniform_sample(problem, n_rows, rng))

    def refit(self, problem: Problem, theta: Array, sample: RowSample) -> None:
        """Both factors at theta, from a sample of rows."""
        xp, rows, loss = problem.xp, problem.rows, problem.loss
        W, b = problem.unpack(theta)
        k = problem.n_outputs
        A = rows.zeros((k, k), dtype=xp.float64)
        sums = MomentSums(rows)
        for block, scale in sample.blocks(problem):
            P = loss.mean(problem.scores(block, W, b), xp)
            A += loss.hessian_sum(P, scale, xp)
            sums.add(block, scale * loss.hessian_trace(P, xp))
        self._set_class_factor(A, xp)
        moments = sums.result()
        moments.weight = max(moments.weight, 1e-12 * problem.total_weight)  # nothing may curve but the penalty
        mean = moments.mean
        self._shift = mean - problem.center if self.fit_intercept else mean * 0
        second = moments.covariance if self.fit_intercept else moments.second_moment
        if sample.is_uniform:
            add_to_diagonal(second, self._unseen(problem, xp.linalg.diagonal(second)))
        # Float32 is exact enough for a metric, and half the time and memory of the decomposition.
        second = xp.astype(second, rows.dtype, copy=False)
        eigenvalues, self._vectors = eigh_in_place(second)
        del second
        floor = float(xp.finfo(rows.dtype).eps) * max(float(eigenvalues[-1]), 0.0) or 1.0
        self._eigenvalues = xp.clip(xp.astype(eigenvalues, xp.float64), min=floor)
        # A weight carries the trace of ∇²Φ while A is normalised to trace 1, so Σ takes the mean weight.
        self._mean_weight = moments.weight / problem.total_weight
        self._invert(problem)

    @staticmethod
    def _unseen(problem: Problem, seen: Array) -> Array:
        """The variance that a sample of rows missed in rare features.

        Without it a column that is zero in the sample but not in X would seem flat, and steps along it be unbounded.
        """
        xp = problem.xp
        exact = problem.rows.mean_square(problem.weight)
        if problem.fit_intercept:
            exact -= problem.feature_mean**2
        return xp.where(exact > 2.0 * seen, exact - seen, xp.zeros_like(seen))

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(0)
        if row_weight is not None:
            n_rows = ROWS_PER_FEATURE // 2 * problem.rows.n_features
            self.refit(problem, theta, weighted_sample(row_weight, n_rows, rng))
            return
        # The features' covariance stays; only what happens between the classes has changed.
        xp, loss = problem.xp, problem.loss
        W, b = problem.unpack(theta)
        A = problem.rows.zeros((problem.n_outputs, problem.n_outputs), dtype=xp.float64)
        total = 0.0
        for block, scale in uniform_sample(problem, max(CLASS_ROWS, 4 * problem.n_outputs), rng).blocks(problem):
            P = loss.mean(problem.scores(block, W, b), xp)
            A += loss.hessian_sum(P, scale, xp)
            total += float(xp.sum(scale * loss.hessian_trace(P, xp), dtype=xp.float64))
        self._mean_weight = max(total / problem.total_weight, 1e-12)
        self._set_class_factor(A, xp)
        self._invert(problem)

    def _set_class_factor(self, A: Array, xp) -> None:
        trace = float(xp.sum(xp.linalg.diagonal(A)))
        k = int(A.shape[0])
        A = A / trace if trace > 0 else xp.eye(k, dtype=xp.float64, device=A.device) / k
        gamma, self._class_vectors = xp.linalg.eigh(A)
        # Scores may be free along a direction (the shift of a softmax) and classes all but decided: the floor keeps
        # steps along those finite, and gradients there are zero or small.
        self._gamma = xp.clip(gamma, min=0.1 / k)

    def _invert(self, problem: Problem) -> None:
        xp, dtype = problem.xp, problem.rows.dtype
        gamma = self._gamma * self._mean_weight
        self._inverse = xp.astype(1.0 / (self._eigenvalues[:, None] * gamma[None, :] + problem.alpha), dtype)
        self._intercept_inverse = xp.astype(1.0 / gamma, dtype)
        self._class_vectors = xp.astype(self._class_vectors, dtype)
        self._shift = xp.astype(self._shift, dtype)
        self._xp = xp

    def solve(self, gradient: Array) -> Array:
        Q, U = self._vectors, self._class_vectors
        if not self.fit_intercept:
            return Q @ (((Q.T @ gradient) @ U) * self._inverse) @ U.T
        # The weighted mean of the rows differs from c; about it W and the intercept decouple.
        g = gradient[-1, :]
        G = gradient[:-1, :] - self._shift[:, None] * g[None, :]
        W = (Q @ (((Q.T @ G) @ U) * self._inverse)) @ U.T
        b = ((g @ U) * self._intercept_inverse) @ U.T - self._shift @ W
        return self.with_intercept(W, b, self._xp)
