"""The state of a dual ascent, for losses that see one score at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyclass.solvers.dual.columns import (
    DUAL_SUM,
    KAPPA,
    MEAN_SCORE,
    MEAN_SQUARE,
    OFFSET,
    constant_loss,
    epoch_many,
    epoch_one,
    gather,
    judge,
    restrict,
    scaled_conjugates,
)
from manyclass.solvers.dual.problem import DualProblem
from manyclass.solvers.dual.rows import width

AMPLE = 10.0
"""κ² is at least this times alpha, so that each update of the intercept removes most of its error."""

ROUNDING = 1e-12
"""Relative to y: responses that differ by less are the same."""


@dataclass(frozen=True)
class Verdict:
    """What an honest pass over all rows says, in terms that do not depend on alpha.

    F = losses + (alpha/2)·square and D = −conjugates − dual_square/(2 alpha), the dual point being feasible.

    Attributes
    ----------
    own_gap : float
        F − D at the penalty of the ascent as a sum over rows of terms that are not negative, which keeps digits that
        F − D loses; infinite where the dual point had to be moved to be feasible.
    """

    losses: float
    square: float
    conjugates: float
    dual_square: float
    own_gap: float = float("inf")

    def primal(self, alpha: float) -> float:
        return self.losses + 0.5 * alpha * self.square

    def dual(self, alpha: float) -> float:
        return -self.conjugates - 0.5 * self.dual_square / alpha


class Ascent:
    """Dual variables a, the W that belongs to them, and the rows worth visiting.

    The intercept is not penalised, which in the dual is the constraint Σ s_i a_i = 0, and no single coordinate can
    move along it. For the squared loss X and y are centred instead, exactly. For the others the augmented Lagrangian
    is ascended: a constant feature κ with a penalty around b₀, and b₀ moves to the intercept reached whenever the
    constraint is what keeps the gap open (Rockafellar, 1976: a proximal-point method in b).

    Parameters
    ----------
    problem : DualProblem
    start : pair of arrays, optional
        Dual variables (n_rows, n_outputs) and intercepts (n_outputs,); moved to the nearest feasible point.
    seed : int
        Of the permutations.
    """

    def __init__(
        self,
        problem: DualProblem,
        start: tuple[np.ndarray, np.ndarray] | None = None,
        seed: int = 0,
        shrink: bool = True,
    ):
        self.problem, self.shrink = problem, shrink
        n, d, k = problem.design.n_rows, problem.design.n_features, problem.n_outputs
        self.a = np.zeros((n, k)) if start is None else np.array(start[0], dtype=np.float64, order="C")
        self.width = width(k)
        self.V = np.zeros((d, self.width))
        self.affine = np.zeros((5, k))
        assert problem.Y is not None  # filled by the problem itself
        self.Y = problem.Y
        self.target_mean = np.zeros(k)
        self.random_state = np.array([2 * seed + 0x9E3779B97F4A7C15], dtype=np.uint64)
        self.order = np.flatnonzero(problem.share > 0)
        self.n_active, self.threshold = len(self.order), np.full(k, np.inf)
        self.alpha = problem.alpha
        self._prepare()
        self.zero = self._zero_value()
        if start is not None:
            self._restrict()
            if self.affine[KAPPA, 0]:
                self.affine[OFFSET] = start[1]
            self._set_shares()
            self.judge()

    # -- what depends on the kind of loss ---------------------------------------------------------------------------

    def _prepare(self) -> None:
        problem = self.problem
        self.shift = np.empty(0)
        if problem.centred:
            self.shift = problem.mean_products
            self.affine[MEAN_SQUARE] = problem.feature_mean @ problem.feature_mean
            self.target_mean = problem.share @ self.Y
            self.Y = self.Y - self.target_mean
        elif problem.fit_intercept:
            if not problem.loss.labels:
                self.affine[OFFSET] = problem.share @ self.Y
            scale = problem.share @ problem.square_norms
            self.affine[KAPPA] = max(scale, AMPLE * problem.alpha)

    def _restrict(self) -> None:
        problem = self.problem
        restrict(problem.loss.code, problem.epsilon, problem.codes, self.Y, self.a)

    def _epoch(self) -> tuple[int, np.ndarray, np.ndarray]:
        problem, (data, indices, indptr) = self.problem, self.problem.rows
        head = (problem.loss.code, problem.epsilon, data, indices, indptr)
        if self.width > 1:
            return epoch_many(
                *head, problem.codes, self.Y, self.c, self.q, self.shift, self.affine, self.a, self.V,
                self.order, self.n_active, self.threshold, self.random_state,
            )  # fmt: skip
        affine = self.affine[:, 0].copy()
        n_active, estimate, worst = epoch_one(
            *head, self.Y[:, 0], self.c, self.q, self.shift, affine, self.a[:, 0], self.V[:, 0],
            self.order, self.n_active, self.threshold[0], self.random_state,
        )  # fmt: skip
        self.affine[:, 0] = affine
        return n_active, np.array([estimate]), np.array([worst])

    # -- the ascent -------------------------------------------------------------------------------------------------

    def set_alpha(self, alpha: float) -> None:
        """Continue at another penalty from the same dual point; W is multiplied by old/new."""
        ratio = self.alpha / alpha
        self.alpha = alpha
        self.V *= ratio
        self.affine[DUAL_SUM] *= ratio
        self.affine[MEAN_SCORE] *= ratio
        self._set_shares()
        self.visit_all()

    def _set_shares(self) -> None:
        problem = self.problem
        self.c = problem.share / self.alpha
        self.q = self.c * (problem.square_norms + self.affine[KAPPA, 0])

    def visit_all(self) -> None:
        self.order = np.flatnonzero(self.problem.share > 0)
        self.n_active = len(self.order)
        self.threshold[:] = np.inf

    def epoch(self) -> float:
        """One step in each active coordinate; a running estimate of the duality gap, which costs nothing extra."""
        self.n_active, estimate, worst = self._epoch()
        self.threshold = np.where(worst > 0, worst, np.inf) if self.shrink else np.full_like(worst, np.inf)
        if self.n_active == 0:
            self.visit_all()
        gap = self.alpha * float(estimate.sum())
        if self.affine[KAPPA, 0] == 0:
            return gap
        dual_sum = self.affine[DUAL_SUM]
        intercept = self.affine[OFFSET] + self.affine[KAPPA] * dual_sum
        unbalanced = self.alpha * float(np.abs(dual_sum) @ (np.abs(intercept) + 1.0))
        if gap <= 4.0 * unbalanced:
            self.affine[OFFSET] = intercept
        return gap + unbalanced

    def judge(self) -> Verdict:
        """Loss, penalty and conjugates at the present point by a pass over all rows.

        V is summed afresh from a, which removes the rounding of many updates, and every row that is not strictly
        optimal becomes active again: a row that was skipped wrongly is never skipped for longer.
        """
        problem, k = self.problem, self.problem.n_outputs
        dual_square, scale = self._gather()
        active = np.empty(len(self.a), dtype=bool)
        losses, conjugates, inner = judge(
            problem.loss.code, problem.epsilon, *problem.rows, problem.codes, self.Y, problem.share, self.shift,
            self.affine, self.a, self.V, self.threshold, active,
        )  # fmt: skip
        if scale is not None:
            conjugates = scaled_conjugates(
                problem.loss.code, problem.epsilon, problem.codes, self.Y, problem.share, self.a, scale
            )
        self.order = np.flatnonzero(active)
        self.n_active = len(self.order)
        square = float(np.sum(self.V[:, :k] ** 2))
        own_gap = float(inner.sum()) if scale is None else float("inf")
        return Verdict(float(losses.sum()), square, float(conjugates.sum()), dual_square, own_gap)

    def _gather(self) -> tuple[float, np.ndarray | None]:
        """V and the affine terms from a; ‖alpha W'‖² and the scale of a feasible dual point near a."""
        problem, r = self.problem, self.problem.share[:, None]
        if problem.centred:
            self.a -= r.T @ self.a  # a constant in a changes no W of centred rows, and its best value is this
        weight = r * self.a
        total = weight.sum(axis=0)
        if not self.affine[KAPPA, 0]:
            self._sum(weight, self.V)
            self.affine[DUAL_SUM] = 0.0
            if problem.centred:
                self.affine[MEAN_SCORE, :] = (problem.feature_mean @ self.V)[: problem.n_outputs]
            return float(np.sum((self.alpha * self.V) ** 2)), None
        positive = np.maximum(weight, 0.0)
        weight -= positive
        up, down = positive.sum(axis=0), -weight.sum(axis=0)
        scale = np.ones((2, problem.n_outputs))
        heavier = np.maximum(up, down)
        balanced = np.minimum(up, down) / np.where(heavier > 0, heavier, 1.0)
        scale[0] = np.where(up > down, balanced, 1.0)
        scale[1] = np.where(up > down, 1.0, balanced)
        above = np.zeros_like(self.V)
        self._sum(positive, above)
        self._sum(weight, self.V)
        feasible = above[:, : problem.n_outputs] * scale[0] + self.V[:, : problem.n_outputs] * scale[1]
        self.V += above
        self.affine[DUAL_SUM] = total / self.alpha
        return float(np.sum((self.alpha * feasible) ** 2)), scale

    def _sum(self, weight: np.ndarray, V: np.ndarray) -> None:
        V[:] = 0.0
        gather(*self.problem.rows, weight, V)
        V /= self.alpha

    def duals(self) -> np.ndarray:
        """A copy of a, of shape (n_rows, n_outputs)."""
        return self.a.copy()

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """W of shape (n_features, n_outputs) and b, in float64."""
        W = self.V[:, : self.problem.n_outputs].copy()
        if self.problem.centred:
            mean = self.problem.feature_mean
            W -= mean[:, None] * self.affine[DUAL_SUM]
            return W, self.target_mean - mean @ W
        return W, self.affine[OFFSET] + self.affine[KAPPA] * self.affine[DUAL_SUM]

    def zero_value(self) -> float:
        return self.zero

    def _zero_value(self) -> float:
        """F at W = 0 (and, with an intercept, at b = ȳ for real responses): what every gap is a share of."""
        problem, at_zero = self.problem, np.zeros(self.problem.n_outputs)
        code, codes, share = problem.loss.code, problem.codes, problem.share
        if problem.loss.labels:
            return constant_loss(code, problem.epsilon, codes, self.Y, share, at_zero)
        z = self.affine[OFFSET] if problem.fit_intercept else at_zero
        # Constant responses leave nothing but their rounding, of which nothing is a share.
        rounding = constant_loss(code, 0.0, codes, ROUNDING * np.asarray(problem.Y), share, at_zero)
        return max(constant_loss(code, problem.epsilon, codes, self.Y, share, z), rounding)
