"""The state of a dual ascent, for losses that see one score at a time."""

from __future__ import annotations

import numpy as np

from manyclass.dual.column_kernels import (
    OFFSET,
    constant_loss,
    gap_terms,
    make_feasible,
    scaled_conjugates,
    visit_many,
    visit_one,
)
from manyclass.dual.gap import GapTerms
from manyclass.dual.problem import NO_CODES
from manyclass.dual.state import DualState

ROUNDING = 1e-12
"""Relative to y: responses that differ by less are the same."""


class ColumnState(DualState):
    """One dual number for each row and output.

    With an intercept a feasible point is found by scaling down, in each output, the positive or the negative ones,
    whichever are heavier.
    """

    def _prepare(self, start: np.ndarray | None) -> None:
        problem, Y = self.problem, self.problem.Y
        self.loss = (problem.loss.code, problem.epsilon)
        self.targets = (problem.codes, Y)
        constant = self.affine[OFFSET]
        # Constant responses leave nothing but their rounding, of which nothing is a share.
        rounding = ROUNDING * (abs(problem.origin) + abs(constant))
        floor = 0.0
        if not problem.loss.labels:
            floor = constant_loss(self.loss[0], 0.0, NO_CODES, np.zeros((1, len(constant))), np.ones(1), rounding)
        self.zero_value = max(constant_loss(*self.loss, *self.targets, problem.share, constant), floor)
        self.a = np.zeros((problem.n_rows, problem.n_outputs)) if start is None else start
        if start is not None:
            make_feasible(*self.loss, *self.targets, self.a)

    def _visit(self, first: int, estimate: np.ndarray, worst: np.ndarray) -> tuple[int, int]:
        head, where = (*self.loss, *self.problem.rows), (first, self.rows_per_slice, self.n_active)
        if self.V.shape[1] > 1:
            return visit_many(
                *head, *self.targets, self.per_row, self.affine, self.a, self.V, self.order, *where, self.threshold,
                estimate, worst,
            )  # fmt: skip
        y, affine = self.targets[1][:, 0], self.affine[:, 0]
        first, n_active, gap, violation = visit_one(
            *head, y, self.per_row, affine, self.a[:, 0], self.V[:, 0], self.order, *where, self.threshold[0]
        )
        estimate += gap
        worst[:] = np.maximum(worst, violation)
        return first, n_active

    def gap_terms(self) -> GapTerms:
        share, scale = self.problem.share, None
        if self.kappa_square:
            dual_square, scale = self._gather_feasible()
        else:
            if self.problem.eliminates_intercept:
                self.a -= share @ self.a  # a constant in a changes no W of centred rows, and its best value is this
            self._sum_duals(share[:, None] * self.a, self.V)
            self._set_sums(0.0)
            dual_square = float(np.sum((self.alpha * self.V) ** 2))
        active = np.empty(len(self.a), dtype=bool)
        losses, conjugates, inner = gap_terms(
            *self.loss, *self.problem.rows, *self.targets, share, self.per_row, self.affine, self.a, self.V,
            self.threshold, active,
        )  # fmt: skip
        if scale is not None:
            conjugates = scaled_conjugates(*self.loss, *self.targets, share, self.a, scale)
        self._visit_only(active)
        square = float(np.sum(self.coef() ** 2))
        own_gap = float(inner.sum()) if scale is None else float("inf")
        return GapTerms(float(losses.sum()), square, float(conjugates.sum()), dual_square, own_gap)

    def _gather_feasible(self) -> tuple[float, np.ndarray]:
        """Set V and the sums from a; ‖alpha W'‖² and the scale of a feasible dual point near a."""
        k, weight = self.problem.n_outputs, self.problem.share[:, None] * self.a
        total = weight.sum(axis=0)
        positive = np.maximum(weight, 0.0)
        weight -= positive
        up, down = positive.sum(axis=0), -weight.sum(axis=0)
        heavier = np.maximum(up, down)
        balanced = np.minimum(up, down) / np.where(heavier > 0, heavier, 1.0)
        scale = np.stack([np.where(up > down, balanced, 1.0), np.where(up > down, 1.0, balanced)])
        above = np.zeros_like(self.V)
        self._sum_duals(positive, above)
        self._sum_duals(weight, self.V)
        feasible = above[:, :k] * scale[0] + self.V[:, :k] * scale[1]
        self.V += above
        self._set_sums(total)
        return float(np.sum((self.alpha * feasible) ** 2)), scale

    def duals(self) -> np.ndarray:
        return self.a.copy()
