"""A ⊗ Σ: the curvature between the classes times the curvature between the features."""

from typing import Self

import numpy as np
from array_api_compat import device

from manyclass.curvature import base
from manyclass.curvature.base import MATRICES, Curvature
from manyclass.curvature.sampling import CLASS_ROWS, RowSample, carrying_sample, uniform_sample
from manyclass.data import Moments
from manyclass.data.factor import Metric
from manyclass.data.moments import MomentSums
from manyclass.data.rows import Array, add_to_diagonal, to_numpy
from manyclass.model import Problem

SAMPLED_ROWS, ROWS_PER_FEATURE = 4000, 8
"""Rows from which the feature factor is estimated, and how many more for each feature; beyond that its noise no longer
costs passes."""
WITHIN, MOST_FACTORS = 10.0, 4
"""Classes whose curvatures differ by less than this share a factor, and how many factors there are at most."""
FITTED = 0.1
"""Share of the columns' variance in the rows that still count below which the others are left out of the features'
factor: it was 0.3 to 1 on 20 sets, and below 0.04 on ten with heavy tails."""
FIXED_POINT_STEPS = 50
"""Of a_j = A_jj/(1 − a_j/Σa): O(k) each, and many only where one class holds nearly all rows."""
MOST_SHARE = 1.0 - 1e-4
"""Of one class in Σa, beyond which rounding of A_jj decides."""


class ClassFactor:
    """A = diag(a) − aaᵀ/Σa of trace 1, or diag(a) for losses of one column each, and what that makes of intercepts.

    The vector a is the one whose A has the diagonal of the mean of ∇²Φ(z_i); where all rows have one mean p, as at
    the constant model, a = p and A is ∇²Φ = diag(p) − ppᵀ. What a full A would know beyond that of pairs of classes
    was found to save no passes (5 data sets, 3 penalties), so there is no k×k matrix.

    `trace` is Σ_i w_i tr ∇²Φ(z_i) over the rows added.
    """

    _given = ("loss", "xp")

    def __init__(self, problem: Problem):
        self.loss, self.xp = problem.loss, problem.xp
        self.a = problem.rows.zeros((problem.n_outputs,), dtype=problem.xp.float64)
        self.couples = problem.loss.domain.exclusive
        self.trace = 0.0

    def add(self, P: Array, weight: Array) -> None:
        """Take in a block of rows with means P, of shape (n_rows, n_outputs)."""
        v, u = self.loss.hessian(P, self.xp)
        self.a += weight @ v
        if u is not None:
            self.a -= weight @ (u * u)

    def finish(self, a: Array) -> Self:
        """All rows are in, with this sum of the `a` of their parts.

        Classes that are all but decided keep a floor, which keeps steps along them finite. The curvature of none
        is above that of all others together, with which it is confused, but for rounding where all rows are decided:
        there nothing solves the equations, and its share is held below 1.
        """
        xp, k = self.xp, int(a.shape[0])
        self.trace = float(xp.sum(a))
        diagonal = xp.clip(a / self.trace if self.trace > 0 else a * 0 + 1.0 / k, min=0.1 / k)
        self.a = diagonal
        for _ in range(FIXED_POINT_STEPS if self.couples else 0):
            self.a = diagonal / (1.0 - xp.clip(self.a / xp.sum(self.a), max=MOST_SHARE))
        return self


def sampled_rows(n_features: int) -> int:
    return SAMPLED_ROWS + ROWS_PER_FEATURE * n_features


class Kronecker(Curvature):
    """H = A ⊗ Σ + alpha·I with A near the mean of ∇²Φ(z_i) (`ClassFactor`), and Σ a weighted covariance of the rows.

    Until Newton's method weighs rows Σ is that of the constant model: with what all but few rows tell of some classes
    it would be too small for others. But where the rows that still count have next to none of the columns' variance, as
    columns with heavy tails do, it is theirs from the first refresh on.

    L·Σ̂ treats every class as if its probability were ½; the true curvature of a class is about 1/k, so for many
    classes steps in the fixed metric are far too short. Both factors are means over a sample of rows (with weights
    tr ∇²Φ(z_i) in Σ, so that rows already fitted stop counting). H tracks the Hessian but does not dominate it.

    With A = diag(a) − aaᵀ/Σa the class j is solved with a_j Σ + alpha·I, between which and its own H there is no
    difference but for the common shift of the classes, on which A is 0 and H is alpha·I. (For the small penalties where
    that matters; for large ones all of H is.) Classes whose a_j are alike share the factor of Σ + (alpha/a)·I, a the
    geometric mean of theirs, so there are a few in all; a decomposition into eigenvectors would serve every a_j and
    penalty, and takes seven times as long.
    """

    name = "kronecker"
    majorizes = False

    def __init__(self, problem: Problem, rng: np.random.Generator):
        self.alpha, self.fit_intercept, self.xp = problem.alpha, problem.fit_intercept, problem.xp
        self.refit(problem, problem.map(uniform_sample, sampled_rows(problem.rows.n_features), rng))

    @classmethod
    def memory(cls, problem: Problem) -> float:
        return MATRICES * 8.0 * problem.rows.n_features**2

    def refit(self, problem: Problem, sample: RowSample, theta: Array | None = None) -> None:
        """Both factors at theta, or at the constant model, where all rows have one mean, from a sample of rows."""
        xp, rows = problem.xp, problem.rows
        W, b = problem.unpack(problem.constant_model() if theta is None else theta)
        classes, moments, is_uniform = problem.sum(_factor_sums, sample, None if theta is None else W, b)
        self.classes = ClassFactor(problem).finish(classes)
        moments.weight = max(moments.weight, 1e-12 * problem.total_weight)  # nothing may curve but the penalty
        mean = moments.mean
        self._shift = xp.astype(mean - problem.center if self.fit_intercept else mean * 0, rows.dtype)
        second = base.without_constant(moments.covariance if self.fit_intercept else moments.second_moment, problem)
        if is_uniform:
            add_to_diagonal(second, base.unseen_variance(problem.feature_variance, xp.linalg.diagonal(second), xp))
        # Float32 is exact enough for a metric, and half the memory.
        self._second, self._precision = xp.astype(second, rows.dtype, copy=False), rows.precision
        # A weight carries the trace of ∇²Φ while A is normalised to trace 1, so Σ takes the mean weight.
        self._mean_weight = moments.weight / problem.total_weight
        self._factor_anew(problem)

    def _factor_anew(self, problem: Problem) -> None:
        a = to_numpy(self.classes.a)
        size = np.log(a) / np.log(WITHIN)
        alike = np.clip(np.round(size - size.mean()), -2, MOST_FACTORS - 3)
        groups = [np.flatnonzero(alike == one) for one in np.unique(alike)]
        self._size = [float(np.exp(np.log(a[group]).mean())) for group in groups]
        self._groups = [problem.rows.asarray(group, self.xp.int64) for group in groups]
        self._order = problem.rows.asarray(np.argsort(np.concatenate(groups)), self.xp.int64)
        self._metrics: list[Metric | None] = [None] * len(self._groups)
        own = np.empty_like(a)
        for group, size in zip(groups, self._size, strict=True):
            own[group] = size
        # As a_j Σ + alpha has it in a direction of mean curvature, whichever of the two is negligible there.
        mean = float(self.xp.mean(self.xp.linalg.diagonal(self._second))) * self._mean_weight
        scale = (own * mean + self.alpha) / np.maximum(a * mean + self.alpha, 1e-300) / (own * self._mean_weight)
        self._scale = problem.rows.asarray(scale)

    def _metric(self, number: int) -> Metric:
        """The inverse of Σ + (alpha/a)·I for a group of classes."""
        found = self._metrics[number]
        if found is None:
            S = self.xp.astype(self._second, self.xp.float64) + 0.0
            add_to_diagonal(S, self.alpha / (self._size[number] * self._mean_weight))
            found = self._metrics[number] = Metric(S, self._precision, self._second.dtype)
        return found

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(0)
        self.alpha = problem.alpha
        if row_weight is not None:
            n_rows = sampled_rows(problem.rows.n_features) // 2
            self.refit(problem, problem.map(carrying_sample, row_weight, n_rows, rng), theta)
            return
        sample = problem.map(uniform_sample, CLASS_ROWS, rng)
        classes, counting, whole = problem.sum(_class_and_column_sums, sample, *problem.unpack(theta))
        left, of_all = (to_numpy(base.mean_and_variance(sums, problem)[1]) for sums in (counting, whole))
        present = of_all > 0
        # Rows that hold the columns' variance may hardly count any more.
        if float(counting[0, 0]) > 0 and present.any() and np.mean(left[present] / of_all[present]) < FITTED:
            self.n_refreshed += 1
            n_rows = sampled_rows(problem.rows.n_features) // 2
            self.refit(problem, problem.map(uniform_sample, n_rows, rng), theta)
            return
        # The features' covariance stays; only what happens between the classes has changed.
        self.classes = classes = ClassFactor(problem).finish(classes)
        self._mean_weight = max(classes.trace / problem.total_weight, 1e-12)
        self._factor_anew(problem)

    @property
    def weighs_rows(self) -> bool:
        """Once rows that are fitted have been found to hold the columns' variance."""
        return self.n_refreshed > 0

    def solve(self, gradient: Array) -> Array:
        if not self.fit_intercept:
            return self._solve(gradient)
        return base.solved_about(self._shift, gradient, self._solve, self._solve_intercept)

    def _solve_intercept(self, g: Array) -> Array:
        of_classes = self.xp.astype(self.classes.a * self._mean_weight, g.dtype)  # as g sums to zero where A couples
        return self.xp.reshape(self.xp.reshape(g, (-1, of_classes.shape[0])) / of_classes, g.shape)

    def _solve(self, G: Array) -> Array:
        xp, couples, shape, k = self.xp, self.classes.couples, G.shape, int(self._scale.shape[0])
        G = xp.reshape(G, (int(shape[0]), -1, k))  # the classes of each problem last
        if couples:
            average = xp.full((k,), 1.0 / k, dtype=G.dtype, device=device(G))
            common = (G @ average)[:, :, None]
            G = G - common
        if len(self._groups) == 1:
            found = self._solve_in(0, G)
        else:
            parts = [self._solve_in(at, xp.take(G, group, axis=2)) for at, group in enumerate(self._groups)]
            found = xp.take(xp.concat(parts, axis=2), self._order, axis=2)
        found *= xp.astype(self._scale, G.dtype, copy=False)
        if couples:
            shift = -(found @ average)[:, :, None]
            found += shift + common / self.alpha if self.alpha > 0 else shift
        return xp.reshape(found, shape)

    def _solve_in(self, number: int, G: Array) -> Array:
        """In the metric of a group of classes."""
        xp = self.xp
        return xp.reshape(self._metric(number).solve(xp.reshape(G, (int(G.shape[0]), -1))), G.shape)


def _factor_sums(part: Problem, sample: RowSample, W: Array | None, b: Array) -> tuple[Array, Moments, bool]:
    """The sum of `ClassFactor`, the moments of the rows weighted by their curvature, and whether the sample is uniform.

    Without W at the constant model, where all rows have one mean.
    """
    xp, loss = part.xp, part.loss
    classes, sums = ClassFactor(part), MomentSums(part.rows)
    P = loss.mean(b[None, :] + 0.0, xp)
    for _, block, scale in sample.blocks(part):
        if W is None:
            classes.add(P, xp.sum(scale)[None])
        else:
            P = loss.mean(part.scores(block, W, b), xp)
            classes.add(P, scale)
        sums.add(block, scale * loss.hessian_trace(P, xp))
    return classes.a, sums.result(), sample.is_uniform


def _class_and_column_sums(part: Problem, sample: RowSample, W: Array, b: Array) -> tuple[Array, Array, Array]:
    """The sum of `ClassFactor`, and `sums_of_columns` weighted by the curvature of the rows and as they are."""
    xp, classes = part.xp, ClassFactor(part)
    counting, whole = (part.rows.zeros((3, part.rows.n_features), dtype=xp.float64) for _ in range(2))
    for _, block, scale in sample.blocks(part):
        P = part.loss.mean(part.scores(block, W, b), xp)
        classes.add(P, scale)
        counting += base.sums_of_columns(block, scale * part.loss.hessian_trace(P, xp))
        whole += base.sums_of_columns(block, scale)
    return classes.a, counting, whole


def class_sums(part: Problem, sample: RowSample, W: Array, b: Array) -> Array:
    """The sum of `ClassFactor`, which itself sums up to that of the traces of ∇²Φ."""
    classes = ClassFactor(part)
    for _, block, scale in sample.blocks(part):
        classes.add(part.loss.mean(part.scores(block, W, b), part.xp), scale)
    return classes.a
