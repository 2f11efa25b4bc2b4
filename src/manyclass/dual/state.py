"""The state of a dual ascent: dual variables, the W that belongs to them, and the rows that are still visited."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from manyclass.data.penalty import OUTLYING
from manyclass.data.rows import RowArrays
from manyclass.data.units import MOST
from manyclass.dual import kernels
from manyclass.dual.gap import GapTerms
from manyclass.dual.kernels import DUAL_SUM, LIFT, MEAN_SCORE, OFFSET
from manyclass.dual.problem import DualProblem, DualTargets
from manyclass.dual.row_kernels import shuffle, width

AMPLE = 10.0
"""κ² is at least this times alpha, divided by the curvature of the loss. So each update of the intercept removes most
of its error."""

SLICE = 1 << 22
"""Numbers that one slice of an epoch reads, in tens of milliseconds. An epoch can be interrupted between slices."""

COST_OF_A_VISIT = 16
"""Cost of a visit per output of a row, besides the product, in numbers read."""

ROUNDING = 1e-12
"""Relative differences of responses up to this are rounding."""


class DualState(ABC):
    """The state of an ascent, which begins with `set_alpha`.

    The intercept is not penalised. In the dual that is the constraint Σ s_i a_i = 0, which no change of a single
    coordinate can keep. For the squared loss, X and y are centred, and there is no intercept to look for. For other
    losses X is centred, too, and the augmented Lagrangian is ascended: there is a constant feature κ, with a penalty
    around b₀. Whenever the constraint is what keeps the gap open, b₀ moves to the present intercept (Rockafellar, 1976:
    a proximal-point method in b).

    `start` holds dual variables and the intercepts of the centred rows; it is moved to the nearest feasible point. a,
    V, affine and per_row are as in `kernels.Point`. `zero_value` is F at W = 0 (with an intercept, for responses and
    the squared loss, at the best constant); every gap is relative to it.
    """

    _given = ("problem",)

    a: np.ndarray
    zero_value: float
    usual = 1.0
    """Share of `zero_value` without a few responses far from all others, which hardly move the minimum."""

    def __init__(self, problem: DualProblem, start: tuple[np.ndarray, ...] | None = None, seed: int = 0):
        self.problem, self.alpha = problem, problem.alpha
        k = problem.n_outputs
        self.V, self.affine = np.zeros((problem.n_features, width(k))), np.zeros((4, k))
        self.per_row, self.metric = np.empty((problem.n_rows, 3)), np.empty(0)
        self._pulled_to = np.empty((0, k))
        if problem.eliminates_intercept and problem.targets.codes.size:
            self.affine[OFFSET] = 2.0 * problem.class_share - 1.0
        self._take_products(problem.row_products)
        self.rows_per_slice = max(1, int(SLICE / ((problem.row_length + COST_OF_A_VISIT) * self.V.shape[1])))
        self.chunk_order = np.random.default_rng(seed)
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
    def gap_terms(self) -> GapTerms:
        """Loss, penalty and conjugates at the present point, by a pass over all rows.

        V is summed again from a, which removes the rounding of many updates. Every row that is not strictly optimal
        becomes active again, so that no row is skipped wrongly for longer than until here.
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
        self.per_row[:, 1] = self.per_row[:, 0] * (self.norms + self.kappa_square)
        self.visit_all()

    def _take_products(self, products: tuple[np.ndarray, np.ndarray]) -> None:
        problem, mean = self.problem, self.problem.center
        self.per_row[:, 2], self.norms = products
        self.kappa_square = 0.0
        if problem.fit_intercept and not problem.eliminates_intercept:
            square = float(problem.usual_share @ self.norms) / (AMPLE if self.metric.size else 1.0)
            self.kappa_square = max(square, AMPLE * problem.alpha / problem.curvature)
        self.affine[LIFT] = self.kappa_square + self._scaled(mean) @ mean

    # -- a pull towards a centre --------------------------------------------------------------------------------------

    def pull(self, weight: np.ndarray, W: np.ndarray, b: np.ndarray) -> None:
        """Add ½ Σ_j weight_j ‖W_j − Y_j‖² + ½ `intercept_weight` ‖b − c‖² to F, with Y = W and c = b as given.

        It replaces any earlier pull. With P = diag(alpha/(alpha + weight)), the W that belongs to the dual variables is
        (I − P) Y + P Σ_i c_i x_i a_iᵀ, and norms of rows are those in P. So the ascent is that of rows in other units,
        but no row is changed.
        """
        own = 1.0 if not self.metric.size else self.metric[:, None]
        if self.metric.size:
            self.V[:, : self.problem.n_outputs] -= (1.0 - own) * self._pulled_to
        self.metric = self.alpha / (self.alpha + weight)
        self.V *= self.metric[:, None] / own
        self._take_products(self.problem.products_in(self.metric))
        self._pulled_to = np.zeros_like(W)
        self.move(W, b)
        self.set_alpha(self.alpha)

    def move(self, W: np.ndarray, b: np.ndarray) -> None:
        """Move the centre of the pull."""
        self.V[:, : self.problem.n_outputs] += (1.0 - self.metric)[:, None] * (W - self._pulled_to)
        self._pulled_to = W
        if self.kappa_square:
            self.affine[OFFSET] = b
        self._set_sums(self.alpha * self.affine[DUAL_SUM])
        self.visit_all()

    @property
    def center(self) -> tuple[np.ndarray, np.ndarray]:
        """The centre Y and c of the pull."""
        return self._pulled_to, self.affine[OFFSET]

    @property
    def intercept_weight(self) -> float:
        """The weight of the pull of the intercept."""
        return self.alpha / self.kappa_square if self.kappa_square else 0.0

    def imbalance(self) -> float:
        """An estimate of the part of the gap that is due to Σ s_i a_i ≠ 0."""
        if not self.kappa_square:
            return 0.0
        return self.alpha * float(
            np.abs(self.affine[DUAL_SUM]) @ (np.abs(self.centred_intercept()) + self.problem.spread)
        )

    def _scaled(self, mean: np.ndarray) -> np.ndarray:
        return mean * self.metric if self.metric.size else mean

    def _pull_back(self) -> None:
        """Turn V, which holds Σ_i c_i x_i a_iᵀ, into the W of a pulled problem."""
        if self.metric.size:
            self.V *= self.metric[:, None]
            self.V[:, : self.problem.n_outputs] += (1.0 - self.metric)[:, None] * self._pulled_to

    def visit_all(self) -> None:
        self._visit_only(self.problem.share > 0)
        self.threshold = np.full(self.problem.n_outputs, np.inf)

    def _visit_only(self, active: np.ndarray) -> None:
        self.order = np.flatnonzero(active)
        self.n_active = len(self.order)

    def compile(self) -> None:
        """Compile or load the loops by a visit of no rows, so that the time of the first epoch is that of an epoch."""
        visits = self.problem.visits()
        _, rows = next(visits)
        self._visit(slice(0, 0), rows, np.empty(0, dtype=np.int64), 0, np.zeros_like(self.threshold), None)
        visits.close()

    def epoch(self, on_slice: Callable[[], None] | None = None) -> float:
        """Take one step in each active coordinate. Gives an estimate of the duality gap, which comes at no cost.

        `on_slice` is called between slices. If it raises, the state is still valid.
        """
        worst, estimate = np.zeros_like(self.threshold), 0.0
        active = np.zeros(self.problem.n_rows, dtype=bool)
        active[self.order[: self.n_active]] = True
        for part, rows in self.problem.visits(self.chunk_order):
            is_all = len(rows.indptr) - 1 == self.problem.n_rows
            # With all rows in memory, the order continues that of the last epoch.
            order = self.order if is_all else np.flatnonzero(active[part])
            n_active, gap = self._visit(part, rows, order, self.n_active if is_all else len(order), worst, on_slice)
            estimate += gap
            if is_all:
                self.n_active = n_active
                break
            kept = np.zeros(len(rows.indptr) - 1, dtype=bool)
            kept[order[:n_active]] = True
            active[part] = kept
        else:
            self._visit_only(active)
        self.threshold = np.where(worst > 0, worst, np.inf)
        if self.n_active == 0:
            self.visit_all()
        gap = self.alpha * estimate
        if not self.kappa_square or self.metric.size:
            return gap
        unbalanced = self.imbalance()
        if gap <= 4.0 * unbalanced:
            self.affine[OFFSET] = self.centred_intercept()
        return gap + unbalanced

    def _visit(
        self,
        part: slice | np.ndarray,
        rows: RowArrays,
        order: np.ndarray,
        n_active: int,
        worst: np.ndarray,
        on_slice: Callable[[], None] | None,
    ) -> tuple[int, float]:
        """Step in each active coordinate of some rows. Gives the number that stay active, and their part of the gap."""
        problem, targets, first, estimate = self.problem, self.problem.targets.part(part), 0, 0.0
        point = self._point(part)
        work, moved = np.zeros((4, self.V.shape[1])), np.empty(len(worst), dtype=np.uint64)
        shuffle(order, n_active, self.random_state)
        while True:
            if on_slice is not None:
                on_slice()
            where = (order, first, self.rows_per_slice, n_active)
            if len(worst) == 1:
                single = kernels.Point(point.a[:, 0], self.V[:, 0], self.affine[:, 0], point.per_row, self.metric)
                first, n_active, gap, violation = kernels.visit_one(
                    problem.loss, rows, targets.Y[:, 0], single, *where, self.threshold[0]
                )
                worst[0] = max(worst[0], violation)
            else:
                first, n_active, gap = kernels.visit(
                    problem.loss, rows, targets, point, *where, self.threshold, worst, work, moved
                )
            estimate += gap
            if first >= n_active:
                break
        self.a[part] = point.a  # a copy if `part` is an array
        return n_active, estimate

    def _point(self, part: slice | np.ndarray) -> kernels.Point:
        return kernels.Point(self.a[part], self.V, self.affine, self.per_row[part], self.metric)

    def _measure(self) -> tuple[float, float, float]:
        """`kernels.gap_terms`; rows that are not strictly optimal become active again."""
        problem, active = self.problem, np.empty(len(self.a), dtype=bool)
        terms, V = np.zeros(3), self.V[:, 0] if self.V.shape[1] == 1 else self.V
        for part, rows in problem.visits():
            terms += kernels.gap_terms(
                problem.loss,
                rows,
                problem.targets.part(part),
                problem.share[part],
                self._point(part)._replace(V=V),
                self.threshold,
                active[part],
                np.zeros(self.V.shape[1]),
            )
        self._visit_only(active)
        losses, conjugates, own_gap = terms.tolist()
        return losses, conjugates, own_gap

    # -- W and b ------------------------------------------------------------------------------------------------------

    def _sum_duals(self, weight: np.ndarray, V: np.ndarray) -> None:
        """V = Σ_i x_i weight_iᵀ/alpha."""
        V[:] = 0.0
        self.problem.gather(weight, V)
        V /= self.alpha

    def _set_sums(self, total: np.ndarray | float) -> None:
        """Set the affine terms from V and from `total` = Σ_i r_i a_i."""
        self.affine[DUAL_SUM] = total / self.alpha
        self.affine[MEAN_SCORE] = (self.problem.center @ self.V)[: self.problem.n_outputs]

    def centred_intercept(self) -> Any:
        return self.affine[OFFSET] + self.kappa_square * self.affine[DUAL_SUM]

    def coef(self) -> np.ndarray:
        """W, of shape (n_features, n_outputs)."""
        W = self.V[:, : self.problem.n_outputs].copy()
        if self.problem.fit_intercept:
            W -= self._scaled(self.problem.center)[:, None] * self.affine[DUAL_SUM]
        return W

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """W and b of the problem's rows, in float64."""
        W = self.coef()
        return W, self.problem.origin + self.centred_intercept() - self.problem.center @ W


class ColumnState(DualState):
    """The state for losses of single scores, with a dual number for each row and output.

    With an intercept, a feasible point is found by scaling down either the positive or the negative dual numbers of
    each output, whichever have the larger sum.
    """

    def _prepare(self, start: np.ndarray | None) -> None:
        problem, loss = self.problem, self.problem.loss
        constant = self.affine[OFFSET]
        # The loss of constant responses is rounding, which gaps must not be relative to.
        rounding = ROUNDING * (abs(problem.origin) + abs(constant))
        floor = 0.0
        if not loss.labels:
            zero = DualTargets(np.empty(0, np.int64), np.zeros((1, len(constant))))
            floor = kernels.constant_loss(loss, zero, np.ones(1), rounding)
        self.zero_value = max(kernels.constant_loss(loss, problem.targets, problem.share, constant), floor)
        if not loss.labels and loss.top < np.inf:
            self.usual = self._usual_share()
        self.a = np.zeros((problem.n_rows, problem.n_outputs)) if start is None else start
        if start is not None:
            kernels.make_feasible(loss, problem.targets, self.a)

    def gap_terms(self) -> GapTerms:
        problem, scale = self.problem, None
        if self.kappa_square:
            dual_square, scale = self._gather_feasible()
        else:
            if problem.eliminates_intercept:
                self.a -= problem.share @ self.a  # a constant changes no W of centred rows; this is the best one
            self._sum_duals(problem.share[:, None] * self.a, self.V)
            of_duals = self.V[:, : problem.n_outputs].copy()
            self._pull_back()
            self._set_sums(0.0)
            dual_square = float(np.sum((self.alpha * of_duals) ** 2))
        losses, conjugates, own_gap = self._measure()
        W = self.coef()
        if scale is not None:
            conjugates = kernels.scaled_conjugates(problem.loss, problem.targets, problem.share, self.a, scale)
            own_gap = np.inf
        elif self.metric.size:
            own_gap += 0.5 * self.alpha * float(np.sum((W - of_duals) ** 2))
        return GapTerms(losses, float(np.sum(W**2)), conjugates, dual_square, own_gap)

    def _usual_share(self) -> float:
        problem, Y = self.problem, self.problem.targets.Y
        present = problem.share > 0
        Y = Y - np.median(Y[present], axis=0) if problem.fit_intercept else Y
        most = OUTLYING * np.quantile(np.abs(Y[present]), MOST, axis=0)
        wild = (np.abs(Y) > most) & (most > 0)
        if not wild.any():
            return 1.0
        others = problem.targets._replace(Y=np.where(wild, 0.0, Y))
        usual = kernels.constant_loss(problem.loss, others, problem.share, np.zeros(problem.n_outputs))
        return float(usual / self.zero_value) if 0.0 < usual < self.zero_value else 1.0

    def _gather_feasible(self) -> tuple[float, np.ndarray]:
        """Set V and the sums from a. Gives ‖alpha·W‖² of a feasible dual point near a, and the scale that makes it."""
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
        self._pull_back()
        self._set_sums(total)
        return float(np.sum((self.alpha * feasible) ** 2)), scale

    def duals(self) -> np.ndarray:
        return self.a.copy()
