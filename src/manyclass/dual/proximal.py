"""Help for dual ascent at weak penalties: a path of larger penalties before it, or a sequence of proximal points."""

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
"""Mean ‖x‖²/(alpha·n), times the curvature of the loss, above which an epoch at alpha itself gains too little."""
ACCURACY = 0.9
"""An inner problem is solved when its gap is below this share of its proximal term; any below 1 keeps the rate."""
PATIENCE = 10
"""After so many epochs the gap may be as large as the proximal term, after twice as many twice as large, and so on. The
gaps of hinges fall by only a tenth in an epoch, and they converge faster with rough points."""
SHARE = 0.25
"""Share of the requested gap that an inner problem may keep."""
RATIO = 4.0
"""Ratio of the values of kappa that are tried."""
FAINT = 1e-3
"""If the proximal term is weaker than this share of alpha in all columns, kappa is not lowered further."""
FORGET = 0.9
"""At each proximal point the costs of other values of kappa are multiplied by this, so that they are tried again."""


def homotopy_path(problem: DualProblem, homotopy: str | bool | int) -> list[float]:
    """Penalties, decreasing, the last one being alpha.

    ``False`` and ``"auto"`` are alpha alone; ``True`` is ν = 0.25·√alpha and then alpha (*Homotopic Initialization*,
    §3.2); an integer P ≥ 2 is P points in geometric progression from the larger of ν and ‖x‖²/n, the mean of ‖x_i‖²/n
    (of centred rows if there is an intercept). The latter makes the first phase cheap whatever the scale of X: in
    directions that X does not see, an epoch removes a share 1/(1 + q) of the error, and q_i = ‖x_i‖²/(ν·n) is about 1
    there. n is what the weights are worth. If the first point would not be above alpha, the path is alpha alone.
    """
    alpha = problem.alpha
    if homotopy is False or homotopy == "auto":
        return [alpha]
    first = 0.25 * alpha**0.5
    if homotopy is not True:
        first = max(first, problem.mean_square_norm / problem.n_worth)
    if first <= alpha:
        return [alpha]
    return [*np.geomspace(first, alpha, 2 if homotopy is True else int(homotopy))[:-1].tolist(), alpha]


def is_hard(problem: DualProblem) -> bool:
    """Whether q = ‖x‖²/(alpha·n), the mean over centred rows, is large: an epoch removes 1/(1 + q) of some errors."""
    return problem.mean_square_norm * problem.curvature > HARD * problem.alpha * problem.n_worth


def squared_units(problem: DualProblem) -> np.ndarray:
    """u² of each column: its variance, or one number for all if that promises fewer epochs; 0 for constant columns."""
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
    """Minima of F + (kappa/2) (‖u∘(W − Y)‖² + β ‖b − c‖²), whose centres Y and c approach the minimum of F.

    The proximal term is measured in the units u, so it depends neither on those of the columns nor on alpha. With
    kappa = d/n, times the curvature of the loss, q is about 1, and the ascent closes most of the gap in an epoch. Each
    point is right in all directions in which the Hessian of the loss exceeds kappa·u².

    Centres are accelerated as by Monteiro and Svaiter ("An accelerated hybrid proximal extragradient method", 2013):
    F − F* falls with (Σ kappa^−½)^−2 for any sequence of kappas, if an inner problem is solved to a gap below
    (kappa/2)‖u∘(W − Y)‖². When F rises, the acceleration starts anew. Catalyst (Lin, Mairal and Harchaoui, 2015) has a
    single kappa, and inner problems are solved to accuracies set beforehand.

    The best kappa falls as losses become flat, and is small for hinges, which take many epochs at any kappa. So it is
    searched for on the way: among the present one, and those `RATIO` times as large and as small, it is the one with
    the fewest epochs·kappa^½ when it was last used.

    `enough` is the requested gap; `center` holds W and the intercept of the centred rows to begin with.
    """

    def __init__(self, state: DualState, enough: float, center: tuple[np.ndarray, np.ndarray] | None = None):
        self.enough, self.square = enough, squared_units(state.problem)
        self.easy = max(int(np.count_nonzero(self.square)), 1) / state.problem.n_worth * state.problem.curvature
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
        """After an epoch: move the centre if the inner problem is solved. Gives an estimate of the gap of F."""
        self.n_epochs += 1
        W, b, (Y, c) = state.coef(), state.centred_intercept(), state.center
        moved, moved_b = W - Y, b - c
        weight, squares = self.kappa * self.square, np.einsum("ij,ij->i", moved, moved)
        pulled = 0.5 * (float(weight @ squares) + state.intercept_weight * float(moved_b @ moved_b))
        # W differs from Σ s_i x_i a_iᵀ/(alpha·S) by the gradient of the proximal term over alpha, which adds to the gap
        # of F. As it is computed at W, it also contains the error of the inner problem.
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
        """Set the next kappa, after taking down the cost of the present one."""
        cost, is_faint = self.cost, self.kappa * float(np.max(self.square)) <= faint
        for level in cost:
            cost[level] *= FORGET
        cost[self.level] = self.n_epochs * self.kappa**0.5
        self.n_epochs = 0
        best = min(cost, key=lambda level: cost[level])
        if best == self.level:
            best = next((level for level in (best - 1, best + 1) if level not in cost), best)
        self.level += max(int(np.sign(best - self.level)), 0 if is_faint else -1)
