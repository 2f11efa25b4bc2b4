"""Where the penalty is too weak for the rows: larger ones before it, or proximal points, each from the last."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np

from manyclass.data.units import own_units_pay

if TYPE_CHECKING:
    from manyclass.dual.problem import DualProblem
    from manyclass.dual.state import DualState

HARD = 4.0
"""Mean ‖x‖²/(alpha·n), times the curvature of the loss, from which epochs at alpha itself mend too little of what is
wrong."""
ACCURACY = 0.9
"""Gap at which an inner problem is solved, in units of its pull: any share below 1 keeps the rate."""
PATIENCE = 10
"""Epochs after which an inner problem may be left with as large a gap as its pull, and twice that after twice as many:
hinges, whose gaps fall by a tenth in an epoch, come on faster with rough points."""
SHARE = 0.25
"""Of the gap asked for, which an inner problem may keep."""
RATIO = 4.0
"""Of one pull to the next that is tried."""
FAINT = 1e-3
"""Of alpha: a pull that is weaker in all columns need not become weaker still."""
FORGET = 0.9
"""What the costs of other pulls are multiplied by at each proximal point, so that they are tried again some time."""


def homotopy_path(problem: DualProblem, homotopy: str | bool | int) -> list[float]:
    """Penalties, decreasing, the last one being alpha.

    ``False`` and ``"auto"`` are alpha alone; ``True`` is ν = 0.25·√alpha and then alpha (*Homotopic Initialization*,
    §3.2); an integer P ≥ 2 is P points in geometric progression from the larger of ν and ‖x‖²/n, the mean of ‖x_i‖²/n
    (of centred rows where there is an intercept). The latter makes the first phase cheap whatever the scale of X: with
    q_i = ‖x_i‖²/(ν·n) about 1, an epoch mends more than half of what is wrong in the directions that X does not see,
    and only 1/(1 + q) of it otherwise. Where the first point would not be above alpha there is nothing to go through.
    """
    alpha = problem.alpha
    if homotopy is False or homotopy == "auto":
        return [alpha]
    first = 0.25 * alpha**0.5
    if homotopy is not True:
        first = max(first, problem.mean_square_norm / problem.n_rows)
    if first <= alpha:
        return [alpha]
    return [*np.geomspace(first, alpha, 2 if homotopy is True else int(homotopy))[:-1].tolist(), alpha]


def is_hard(problem: DualProblem) -> bool:
    """Whether q = ‖x‖²/(alpha·n), the mean over centred rows, is so large that an epoch at alpha mends 1/(1 + q)."""
    return problem.mean_square_norm * problem.curvature > HARD * problem.alpha * problem.n_rows


def squared_units(problem: DualProblem) -> np.ndarray:
    """u² of each column: its variance, or one number for all, whichever promises fewer epochs; 0 for constants."""
    given = problem.problem
    variance: np.ndarray = given.feature_variance
    if problem.usual_share is not problem.share:
        usual = given.variant(weight=problem.usual_share).feature_variance
        variance = np.where(usual > 0, usual, variance)
    varies = variance > 0
    _, own = problem.products_in(np.divide(1.0, variance, out=np.zeros_like(variance), where=varies))
    longest = (float(np.max(norms * problem.usual_share)) for norms in (problem.row_products[1], own))
    if own_units_pay(variance, next(longest), next(longest), problem.alpha):
        return variance
    return np.where(varies, float(np.mean(variance, where=varies)), 0.0) if varies.any() else variance


class ProximalPoints:
    """The minima of F + (kappa/2) (‖u∘(W − Y)‖² + β ‖b − c‖²), whose centres Y and c approach the minimum of F.

    In the units u the pull towards a centre sees neither those of the columns nor alpha: with kappa = d/n, times the
    curvature of the loss, where q is about 1, the ascent closes most of the gap in an epoch, and each point gets right
    whatever the Hessian of the loss sees by more than kappa·u². Centres are accelerated as by Monteiro and Svaiter ("An
    accelerated hybrid proximal extragradient method", 2013): F − F* falls with (Σ kappa^−½)^−2 whatever the kappas are,
    and an inner problem is solved when its gap is below (kappa/2)‖u∘(W − Y)‖². Where F rises the acceleration starts
    anew. Catalyst (Lin, Mairal and Harchaoui, 2015) has one kappa for all, and inner problems solved to accuracies set
    beforehand.

    The best kappa falls when losses become flat, and is small for hinges, which take many epochs at any kappa. It is
    looked for on the way: of the present one and those `RATIO` times larger and smaller, that which the last time cost
    the fewest epochs·kappa^½.

    `enough` is the gap asked for; `center` has W and the intercept of the centred rows to begin with.
    """

    def __init__(self, state: DualState, enough: float, center: tuple[np.ndarray, np.ndarray] | None = None):
        self.enough, self.square = enough, squared_units(state.problem)
        self.easy = max(int(np.count_nonzero(self.square)), 1) / state.problem.n_rows * state.problem.curvature
        self.level, self.n_points, self.n_epochs = 0, 0, 0
        self.cost: dict[int, float] = {}
        self.W: np.ndarray = state.coef() if center is None else center[0]
        self.b: np.ndarray = state.centred_intercept() if center is None else center[1]
        self._restart()
        state.pull(self.kappa * self.square, self.W, self.b)

    @property
    def kappa(self) -> float:
        return self.easy * RATIO**self.level

    def _restart(self) -> None:
        """The acceleration begins at the present point."""
        self.total, self.length = 0.0, 1.0 / self.kappa
        self.ahead_W, self.ahead_b = self.W.copy(), self.b.copy()

    def follow(self, state: DualState, gap: float) -> float:
        """Look at the state after an epoch, and move the centre when its problem is solved; the gap of F, about."""
        self.n_epochs += 1
        W, b, (Y, c) = state.coef(), state.centred_intercept(), state.center
        moved, moved_b = W - Y, b - c
        weight, squares = self.kappa * self.square, np.einsum("ij,ij->i", moved, moved)
        pulled = 0.5 * (float(weight @ squares) + state.intercept_weight * float(moved_b @ moved_b))
        # W is not Σ s_i x_i a_iᵀ/(alpha·S): they differ by the gradient of the pull over alpha. What the inner problem
        # leaves undone is in W, and comes again in that difference.
        beside = 0.5 * float((weight * weight) @ squares) / state.alpha
        accuracy = max(ACCURACY, self.n_epochs / PATIENCE)
        is_solved = gap <= max(accuracy * pulled, sys.float_info.epsilon * state.zero_value)
        if is_solved or gap * (pulled + beside) <= SHARE * self.enough * pulled:
            self._move(state, W, b, moved, moved_b)
        return gap + beside + state.imbalance()

    def _move(self, state: DualState, W: np.ndarray, b: np.ndarray, moved: np.ndarray, moved_b: np.ndarray) -> None:
        kappa = self.kappa
        self.n_points += 1
        self.total += self.length
        self.ahead_W += (self.length * kappa) * moved
        self.ahead_b += (self.length * kappa) * moved_b
        falls = kappa * float(self.square @ np.einsum("ij,ij->i", moved, W - self.W))
        falls += state.intercept_weight * float(moved_b @ (b - self.b))
        self.W, self.b = W, b
        if falls < 0.0:
            self._restart()
        self._choose(FAINT * state.alpha)
        step = 1.0 / self.kappa
        self.length = 0.5 * (step + math.sqrt(step * step + 4.0 * step * self.total))
        share = self.length / (self.total + self.length)
        Y, c = W + share * (self.ahead_W - W), b + share * (self.ahead_b - b)
        if self.kappa == kappa:
            state.move(Y, c)
        else:
            state.pull(self.kappa * self.square, Y, c)

    def _choose(self, faint: float) -> None:
        """The next kappa, from what the last one took."""
        cost, is_faint = self.cost, self.kappa * float(np.max(self.square)) <= faint
        for level in cost:
            cost[level] *= FORGET
        cost[self.level] = self.n_epochs * self.kappa**0.5
        self.n_epochs = 0
        best = min(cost, key=lambda level: cost[level])
        if best == self.level:
            best = next((level for level in (best - 1, best + 1) if level not in cost), best)
        self.level += max(int(np.sign(best - self.level)), 0 if is_faint else -1)
