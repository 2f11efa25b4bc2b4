"""The state of a dual ascent, for losses that see all classes of a row together."""

from __future__ import annotations

import numpy as np
from array_api_compat import numpy as xp

from manyclass.model.domains import Simplex
from manyclass.solvers.dual import joint
from manyclass.solvers.dual.ascent import Ascent, Verdict
from manyclass.solvers.dual.columns import DUAL_SUM, KAPPA, OFFSET, gather
from manyclass.solvers.dual.losses import CRAMMER_SINGER


class JointAscent(Ascent):
    """As `Ascent`, the dual variables of a row being e_y − p for a probability vector p.

    With an intercept the constraint is that the mean of p is the mean of e_y; a feasible point is found by moving all
    p towards one q that mends the mean, as in `Objective.duality_gap`.
    """

    def _prepare(self) -> None:
        super()._prepare()
        problem, n = self.problem, self.problem.design.n_rows
        rows = np.arange(n)
        # self.a holds the duals of a warm start, or zeros: p = e_y − a.
        P = -self.a
        P[rows, problem.codes] += 1.0
        self.a = P
        assert problem.codes is not None  # joint losses are for classes
        self.class_mean = np.bincount(problem.codes, problem.share, problem.n_outputs)

    def _restrict(self) -> None:
        self.a = np.ascontiguousarray(Simplex().project(self.a, xp))

    def duals(self) -> np.ndarray:
        duals = -self.a
        duals[np.arange(len(duals)), self.problem.codes] += 1.0
        return duals

    def _zero_value(self) -> float:
        return 1.0 if self.problem.loss.code == CRAMMER_SINGER else float(np.log(self.problem.n_outputs))

    def _epoch(self) -> tuple[int, np.ndarray, np.ndarray]:
        problem = self.problem
        n_active, estimate, worst = joint.epoch(
            problem.loss.code, *problem.rows, problem.codes, self.c, self.q, self.affine, self.a, self.V, self.order,
            self.n_active, self.threshold[0], self.random_state,
        )  # fmt: skip
        return n_active, np.array([estimate]), np.full_like(self.threshold, worst)

    def judge(self) -> Verdict:
        problem, k = self.problem, self.problem.n_outputs
        weight = problem.share[:, None] * self.duals()
        self._sum(weight, self.V)
        self.affine[DUAL_SUM] = 0.0
        if problem.fit_intercept:
            self.affine[DUAL_SUM] = weight.sum(axis=0) / self.alpha
        active = np.empty(len(self.a), dtype=bool)
        losses, conjugates = joint.judge(
            problem.loss.code, *problem.rows, problem.codes, problem.share, self.affine, self.a, self.V,
            self.threshold[0], active,
        )  # fmt: skip
        self.order = np.flatnonzero(active)
        self.n_active = len(self.order)
        W = self.V[:, :k]
        G = self.alpha * W
        if problem.fit_intercept:
            mean = problem.share @ self.a
            theta, q = Simplex().blend(mean, self.class_mean, xp)
            if theta > 0:
                towards_q = self._class_sums() - problem.feature_mean[:, None] * q
                G = (1.0 - theta) * G + theta * towards_q
                conjugates = (1.0 - theta) * conjugates + theta * self._conjugate(q)
        return Verdict(losses, float(np.sum(W**2)), conjugates, float(np.sum(G**2)))

    def _conjugate(self, q: np.ndarray) -> float:
        """Σ r φ*(p_i) where every p_i is q."""
        if self.problem.loss.code == CRAMMER_SINGER:
            return float(q @ self.class_mean) - 1.0
        return float(np.sum(q[q > 0] * np.log(q[q > 0])))

    def _class_sums(self) -> np.ndarray:
        """Σ_i r_i x_i e_yᵀ."""
        problem = self.problem
        weight = np.zeros_like(self.a)
        weight[np.arange(len(weight)), problem.codes] = problem.share
        total = np.zeros_like(self.V)
        gather(*problem.rows, weight, total)
        return total[:, : problem.n_outputs]

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        W = self.V[:, : self.problem.n_outputs].copy()
        return W, self.affine[OFFSET] + self.affine[KAPPA] * self.affine[DUAL_SUM]
