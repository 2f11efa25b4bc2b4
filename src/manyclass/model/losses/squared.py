from typing import Any

from manyclass.data.rows import Array
from manyclass.data.targets import Targets
from manyclass.model.losses.base import SeparableLoss
from manyclass.model.sets import WholeSpace


class Squared(SeparableLoss):
    """ℓ = ½‖z − y‖², y = −1 or 1 for an absent and a present class: Φ(z) = ½‖z‖², g(z) = z."""

    name = "squared"
    lipschitz = 1.0
    domain = WholeSpace()
    quadratic = True
    label_values = (-1.0, 1.0)
    column_loss = "squared"
    label_loss = "squared"

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        Z -= targets.dense(rows, Z[:0, :], xp)  # the sum of Φ, −yᵀz and Φ* would cancel where the residual is small
        return 0.5 * xp.sum(Z * Z, axis=1)

    def potentials_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        return 0.5 * Z * Z, Z

    def scores(self, mean: Array, xp: Any) -> Array:
        return mean

    def conjugate(self, P: Array, xp: Any) -> Array:
        return 0.5 * xp.sum(P * P, axis=1)

    def hessian(self, P: Array, xp: Any) -> tuple[Array, Array | None]:
        return xp.ones_like(P), None


class Calibrated(Squared):
    """½‖z − y‖² with y = 0 or 1, half the Brier score, where z is a prediction whose link is learned with it."""

    name = "calibrated"
    label_values = (0.0, 1.0)
    column_loss = label_loss = "calibrated"
