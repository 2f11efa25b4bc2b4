from typing import Any

from manyclass.data.rows import Array
from manyclass.model.losses.base import SmoothLoss, flushed, smallest, xlogx
from manyclass.model.sets import Simplex

FEW_COLUMNS = 32
MODERATE = 16.0
"""Scores up to this size are exponentiated as they are: no digit is lost that their own rounding has not taken."""

NEVER = -800.0
"""A score that gives a probability of 0 in float64 and all that is narrower."""


class Softmax(SmoothLoss):
    """Φ(z) = log Σ_j exp z_j, g(z) = softmax(z): multinomial logistic regression.

    ‖diag(p) − ppᵀ‖₂ ≤ ½, so L = ½; the paper's L = 1 is valid but makes every step twice too short. Böhning's bound
    ½(I − 11ᵀ/k) gives the same step as ½I, because the gradient already sums to zero over the classes.
    """

    name = "softmax"
    lipschitz = 0.5
    domain = Simplex()
    probabilistic = True
    column_loss = "logistic"
    labels_cost = False

    def normalise(self, Z: Array, xp: Any) -> Array:
        if not 0 < Z.shape[1] <= FEW_COLUMNS:
            Z -= xp.max(Z, axis=1, keepdims=True)
            return Z
        largest = Z[:, 0]
        for column in range(1, Z.shape[1]):  # as reductions over a short last axis are slow
            largest = xp.maximum(largest, Z[:, column])
        Z -= largest[:, None]
        return Z

    def tamed(self, Z: Array, xp: Any) -> Array:
        least = smallest(Z, xp)  # known for a fraction of what maxima by row cost
        is_moderate = least is not None and least >= -MODERATE and bool(Z.max() <= MODERATE)
        return Z if is_moderate else self.normalise(Z, xp)

    def potential_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        P = xp.exp(Z)
        total = P @ xp.ones_like(P[:1, :])[0, :]
        P /= total[:, None]  # not times 1/total, which leaves a rounding where a row is fitted and P is 1
        return xp.log(total), flushed(P, xp)

    def scores(self, mean: Array, xp: Any) -> Array:
        seen = mean > 0
        return xp.where(seen, xp.log(xp.where(seen, mean, xp.ones_like(mean))), NEVER * xp.ones_like(mean))

    def conjugate(self, P: Array, xp: Any) -> Array:
        return xp.sum(xlogx(P, xp), axis=1)

    def hessian(self, P: Array, xp: Any) -> tuple[Array, Array | None]:
        return P, P
