"""The state of a dual ascent, for losses that see all classes of a row together."""

from __future__ import annotations

import numpy as np
from array_api_compat import numpy as xp

from manyclass.dual import joint_kernels
from manyclass.dual.gap import GapTerms
from manyclass.dual.losses import CRAMMER_SINGER
from manyclass.dual.row_kernels import gather
from manyclass.dual.state import DualState
from manyclass.model.sets import Simplex


class JointState(DualState):
    """The dual variables of a row are a = e_y − p for a probability vector p, and p is what is kept.

    With an intercept the constraint is that the mean of p is the mean of e_y; a feasible point is found by moving all
    p towards one q that mends the mean, as in `Problem.duality_gap`.
    """

    def _prepare(self, start: np.ndarray | None) -> None:
        problem = self.problem
        self.is_hinge = problem.loss.code == CRAMMER_SINGER
        self.zero_value = 1.0 if self.is_hinge else float(np.log(problem.n_outputs))
        self.a = np.zeros((problem.n_rows, problem.n_outputs)) if start is None else start
        self.a = self.duals()
        if start is not None:
            self.a = np.ascontiguousarray(Simplex().project(self.a, xp))

    def duals(self) -> np.ndarray:
        """e_y − p (and p from these, as it is its own inverse)."""
        duals = -self.a
        duals[np.arange(len(duals)), self.problem.codes] += 1.0
        return duals

    def _visit(self, first: int, estimate: np.ndarray, worst: np.ndarray) -> tuple[int, int]:
        problem = self.problem
        first, n_active, gap, violation = joint_kernels.visit(
            problem.loss.code, *problem.rows, problem.codes, self.per_row, self.affine, self.a, self.V, self.order,
            first, self.rows_per_slice, self.n_active, self.threshold[0],
        )  # fmt: skip
        estimate[0] += gap
        worst[:] = np.maximum(worst, violation)
        return first, n_active

    def gap_terms(self) -> GapTerms:
        problem = self.problem
        weight = problem.share[:, None] * self.duals()
        self._sum_duals(weight, self.V)
        self._set_sums(weight.sum(axis=0))
        active = np.empty(len(self.a), dtype=bool)
        losses, conjugates = joint_kernels.gap_terms(
            problem.loss.code, *problem.rows, problem.codes, problem.share, self.per_row, self.affine, self.a, self.V,
            self.threshold[0], active,
        )  # fmt: skip
        self._visit_only(active)
        W = self.coef()
        G = self.alpha * W
        if problem.fit_intercept:
            theta, q = Simplex().blend(problem.share @ self.a, problem.class_share, xp)
            if theta > 0:
                G = (1.0 - theta) * G + theta * self._cross_covariance()
                conjugates = (1.0 - theta) * conjugates + theta * self._conjugate(q)
        return GapTerms(losses, float(np.sum(W**2)), conjugates, float(np.sum(G**2)))

    def _conjugate(self, q: np.ndarray) -> float:
        """Σ r φ*(p_i) where every p_i is q."""
        if self.is_hinge:
            return float(q @ self.problem.class_share) - 1.0
        return float(np.sum(q[q > 0] * np.log(q[q > 0])))

    def _cross_covariance(self) -> np.ndarray:
        """Σ_i r_i (x_i − x̄) e_yᵀ: alpha·W of a = e_y − q, whatever q is."""
        problem = self.problem
        weight = np.zeros_like(self.a)
        weight[np.arange(len(weight)), problem.codes] = problem.share
        total = np.zeros_like(self.V)
        gather(*problem.rows, weight, total)
        return total[:, : problem.n_outputs] - problem.feature_mean[:, None] * problem.class_share
