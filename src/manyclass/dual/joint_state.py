"""The state of an ascent whose losses see all classes of a row together."""

import numpy as np
from array_api_compat import numpy as xp

from manyclass.dual.gap import GapTerms
from manyclass.dual.state import DualState
from manyclass.model.sets import Simplex


class JointState(DualState):
    """Of joint losses: the dual variables of a row are e_y − p for a probability vector p, and p is what is kept.

    With an intercept the constraint is that the mean of p is the mean of e_y; a feasible point is found by moving all
    p towards one q that mends the mean, as in `model.duality.duality_gap`.
    """

    def _prepare(self, start: np.ndarray | None) -> None:
        problem = self.problem
        self.zero_value = float(np.log(problem.n_outputs)) if problem.loss.entropic else 1.0
        if start is None:
            self.a = np.zeros((problem.n_rows, problem.n_outputs))
            self.a[np.arange(problem.n_rows), problem.targets.codes] = 1.0
        else:
            self.a = start
            self.a = np.ascontiguousarray(Simplex().project(self.duals(), xp))

    def duals(self) -> np.ndarray:
        """e_y − p (and p from these, as it is its own inverse)."""
        duals = -self.a
        duals[np.arange(len(duals)), self.problem.targets.codes] += 1.0
        return duals

    def gap_terms(self) -> GapTerms:
        problem = self.problem
        if problem.fit_intercept and not problem.class_share.all():
            # Where all rows of a class have weight 0 no p may have any of it: no q short of all would mend the mean.
            self.a[:, problem.class_share == 0] = 0.0
            total = self.a.sum(axis=1, keepdims=True)
            self.a = np.where(total > 0, self.a / np.where(total > 0, total, 1.0), problem.class_share)
        weight = problem.share[:, None] * self.duals()
        self._sum_duals(weight, self.V)
        G = self.alpha * self.V[:, : problem.n_outputs]
        G -= problem.center[:, None] * weight.sum(axis=0)
        self._pull_back()
        self._set_sums(weight.sum(axis=0))
        losses, conjugates, _ = self._measure()
        W = self.coef()
        if problem.fit_intercept:
            (theta,), (q,) = Simplex().blend((problem.share @ self.a)[None, :], problem.class_share[None, :], xp)
            if theta > 0:
                # alpha·W of a = e_y − q: Σ_i r_i (x_i − c) (e_y − q)ᵀ, of whose rows the mean is x̄ − c.
                weight, total = np.zeros_like(self.a), np.zeros_like(self.V)
                weight[np.arange(len(weight)), problem.targets.codes] = problem.share
                problem.gather(weight, total)
                cross = total[:, : problem.n_outputs] - problem.center[:, None] * problem.class_share
                cross -= (problem.feature_mean - problem.center)[:, None] * q
                G = (1.0 - theta) * G + theta * cross
                of_q = float(q @ problem.class_share) - 1.0  # Σ r φ*(p_i) where every p_i is q
                if problem.loss.entropic:
                    of_q = float(np.sum(q[q > 0] * np.log(q[q > 0])))
                conjugates = (1.0 - theta) * conjugates + theta * of_q
        return GapTerms(losses, float(np.sum(W**2)), conjugates, float(np.sum(G**2)))
