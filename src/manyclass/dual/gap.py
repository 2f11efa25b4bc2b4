"""What a pass over all rows says about a primal and a dual point, and the best of both so far."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

NEAR = 1e-9
"""Relative gap below which F − D is mostly rounding, and is summed row by row instead."""


class DualModel(NamedTuple):
    """W and b of the rows as given, and the dual variables they belong to.

    coef = Σ_i s_i x_i a_iᵀ/(alpha·S), where a_i, the rows of `dual`, are the negative derivatives of the loss; it is
    None where these are those of the fit before.
    """

    coef: np.ndarray
    intercept: np.ndarray
    dual: np.ndarray | None
    alpha: float


@dataclass(frozen=True)
class GapTerms:
    """Losses, penalty and conjugates in terms that do not depend on alpha.

    F = losses + (alpha/2)·square and D = −conjugates − dual_square/(2 alpha), the dual point being feasible.

    `own_gap` is F − D at the penalty of the ascent as a sum over rows of terms that are not negative, which keeps
    digits that F − D loses; infinite where the dual point had to be moved to be feasible.
    """

    losses: float
    square: float
    conjugates: float
    dual_square: float
    own_gap: float = math.inf

    def primal(self, alpha: float) -> float:
        return self.losses + 0.5 * alpha * self.square

    def dual(self, alpha: float) -> float:
        return -self.conjugates - 0.5 * self.dual_square / alpha


class BestPoint:
    """The least F and the largest D met, both at the penalty asked for: together they bound the minimum.

    `zero` is F of the zero model, of which a gap is a share.
    """

    def __init__(self, zero: float):
        self.zero = max(zero, 1e-300)
        self.primal, self.dual = math.inf, 0.0  # a = 0 is feasible for every loss here and has D ≥ 0
        self.own_gap = math.inf

    def improves(self, primal: float, dual: float, own_gap: float) -> bool:
        """Take in a point; whether its model is the best so far."""
        if math.isfinite(dual):
            self.dual = max(self.dual, dual)
        # In the last digits of F the gap is the better judge of what is best.
        closes = own_gap < min(self.own_gap, NEAR * self.zero)
        improved = closes or (primal < self.primal and not self.own_gap < math.inf)
        if closes:
            self.own_gap = own_gap
        if improved:
            self.primal = min(primal, self.primal)
        return improved

    @property
    def gap(self) -> float:
        """Relative duality gap between the best model and the best dual point.

        Rounding can put D above F by some units in the last place, which is why `own_gap` takes over near 0.
        """
        if self.own_gap < math.inf:
            return self.own_gap / self.zero
        return max(self.primal - self.dual, 0.0) / self.zero
