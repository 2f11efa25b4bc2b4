"""Dual variables, the W that belongs to them, and the rows worth visiting: what both kinds of losses share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from manyclass.dual.column_kernels import DUAL_SUM, LIFT, MEAN_SCORE, OFFSET
from manyclass.dual.gap import GapTerms
from manyclass.dual.problem import DualProblem
from manyclass.dual.row_kernels import gather, shuffle, width

AMPLE = 10.0
"""κ² is at least this times alpha, so that each update of the intercept removes most of its error."""

SLICE = 1 << 22
"""Numbers that the visits of a slice read, some tens of milliseconds: an epoch can be left between two slices."""

COST_OF_A_VISIT = 16
"""Of one output of a row beside its product, in numbers read."""


class DualState(ABC):
    """Of an ascent; `set_alpha` begins it.

    The intercept is not penalised, which in the dual is the constraint Σ s_i a_i = 0, and no single coordinate can
    move along it. For the squared loss X and y are centred, which leaves no intercept to look for. For the others X is
    centred too, and the augmented Lagrangian is ascended: a constant feature κ with a penalty around b₀, and b₀ moves
    to the intercept reached whenever the constraint is what keeps the gap open (Rockafellar, 1976: a proximal-point
    method in b).

    Parameters
    ----------
    problem : DualProblem
    start : pair of arrays, optional
        Dual variables (n_rows, n_outputs) and intercepts of the centred rows (n_outputs,); moved to the nearest
        feasible point.
    seed : int
        Of the permutations.

    Attributes
    ----------
    a, V, affine, per_row : arrays
        See `column_kernels`.
    alpha : float
        The present penalty.
    zero_value : float
        F at W = 0 (for responses and the squared loss at the best constant, with an intercept): what every gap is a
        share of.
    """

    a: np.ndarray
    zero_value: float

    def __init__(self, problem: DualProblem, start: tuple[np.ndarray, np.ndarray] | None = None, seed: int = 0):
        self.problem, self.alpha = problem, problem.alpha
        k, mean = problem.n_outputs, problem.feature_mean
        self.V, self.affine = np.zeros((problem.n_features, width(k))), np.zeros((4, k))
        self.per_row = np.empty((problem.n_rows, 3))
        self.per_row[:, 2] = problem.row_products[0]
        self.kappa_square = 0.0
        if problem.fit_intercept and not problem.eliminates_intercept:
            self.kappa_square = max(problem.mean_square_norm, AMPLE * problem.alpha)
        elif problem.eliminates_intercept and problem.codes.size:
            self.affine[OFFSET] = 2.0 * problem.class_share - 1.0
        self.affine[LIFT] = self.kappa_square + mean @ mean
        row_length = problem.rows.data.size / max(problem.n_rows, 1) + COST_OF_A_VISIT
        self.rows_per_slice = max(1, int(SLICE / (row_length * self.V.shape[1])))
        self.random_state = np.array([2 * seed + 0x9E3779B97F4A7C15], dtype=np.uint64)
        self.visit_all()
        self._prepare(None if start is None else np.array(start[0], dtype=np.float64, order="C"))
        if start is not None:
            if self.kappa_square:
                self.affine[OFFSET] = start[1]
            self.gap_terms()

    # -- what depends on the kind of loss ---------------------------------------------------------------------------

    @abstractmethod
    def _prepare(self, start: np.ndarray | None) -> None:
        """Set `a` and `zero_value`."""

    @abstractmethod
    def _visit(self, first: int, estimate: np.ndarray, worst: np.ndarray) -> tuple[int, int]:
        """A slice of an epoch, see `column_kernels.visit_many`."""

    @abstractmethod
    def gap_terms(self) -> GapTerms:
        """Loss, penalty and conjugates at the present point by a pass over all rows.

        V is summed afresh from a, which removes the rounding of many updates, and every row that is not strictly
        optimal becomes active again: a row that was skipped wrongly is never skipped for longer.
        """

    @abstractmethod
    def duals(self) -> np.ndarray:
        """A copy of the dual variables, of shape (n_rows, n_outputs)."""

    # -- the ascent -------------------------------------------------------------------------------------------------

    def set_alpha(self, alpha: float) -> None:
        """Continue at another penalty from the same dual point; W is multiplied by old/new."""
        ratio = self.alpha / alpha
        self.alpha = alpha
        self.V *= ratio
        self.affine[DUAL_SUM] *= ratio
        self.affine[MEAN_SCORE] *= ratio
        self.per_row[:, 0] = self.problem.share / alpha
        self.per_row[:, 1] = self.per_row[:, 0] * (self.problem.row_products[1] + self.kappa_square)
        self.visit_all()

    def visit_all(self) -> None:
        self._visit_only(self.problem.share > 0)
        self.threshold = np.full(self.problem.n_outputs, np.inf)

    def _visit_only(self, active: np.ndarray) -> None:
        self.order = np.flatnonzero(active)
        self.n_active = len(self.order)

    def epoch(self, on_slice: Callable[[], None] | None = None) -> float:
        """One step in each active coordinate; a running estimate of the duality gap, which costs nothing extra.

        Parameters
        ----------
        on_slice : callable, optional
            Called between slices; what it raises leaves a valid state.
        """
        estimate, worst = np.zeros_like(self.threshold), np.zeros_like(self.threshold)
        shuffle(self.order, self.n_active, self.random_state)
        first = 0
        while first < self.n_active:
            if on_slice is not None:
                on_slice()
            first, self.n_active = self._visit(first, estimate, worst)
        self.threshold = np.where(worst > 0, worst, np.inf)
        if self.n_active == 0:
            self.visit_all()
        gap = self.alpha * float(estimate.sum())
        if not self.kappa_square:
            return gap
        intercept, dual_sum = self._centred_intercept(), self.affine[DUAL_SUM]
        unbalanced = self.alpha * float(np.abs(dual_sum) @ (np.abs(intercept) + 1.0))
        if gap <= 4.0 * unbalanced:
            self.affine[OFFSET] = intercept
        return gap + unbalanced

    # -- W and b ------------------------------------------------------------------------------------------------------

    def _sum_duals(self, weight: np.ndarray, V: np.ndarray) -> None:
        """V = Σ_i x_i weight_iᵀ/alpha."""
        V[:] = 0.0
        gather(*self.problem.rows, weight, V)
        V /= self.alpha

    def _set_sums(self, total: np.ndarray | float) -> None:
        """The affine terms that belong to V and to Σ_i r_i a_i."""
        self.affine[DUAL_SUM] = total / self.alpha
        self.affine[MEAN_SCORE] = (self.problem.feature_mean @ self.V)[: self.problem.n_outputs]

    def _centred_intercept(self) -> np.ndarray:
        return self.affine[OFFSET] + self.kappa_square * self.affine[DUAL_SUM]

    def coef(self) -> np.ndarray:
        """W, of shape (n_features, n_outputs)."""
        W = self.V[:, : self.problem.n_outputs].copy()
        if self.problem.fit_intercept:
            W -= self.problem.feature_mean[:, None] * self.affine[DUAL_SUM]
        return W

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """W and b of the problem's rows, in float64."""
        W = self.coef()
        return W, self.problem.origin + self._centred_intercept() - self.problem.feature_mean @ W
