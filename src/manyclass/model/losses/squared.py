from typing import Any

from manyclass.data.rows import Array
from manyclass.model.sets import WholeSpace
from manyclass.model.losses.base import SmoothLoss


class Squared(SmoothLoss):
    """ℓ = ½‖z − y‖², y = −1 or 1 for an absent and a present class: Φ(z) = ½‖z‖², g(z) = z."""

    name = "squared"
    lipschitz = 1.0
    domain = WholeSpace()
    quadratic = True
    probabilistic = False
    label_values = (-1.0, 1.0)
    column_loss = "squared"
    label_loss = "squared"

    def potential_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        return 0.5 * xp.sum(Z * Z, axis=1), Z

    def scores(self, mean: Array, xp: Any) -> Array:
        return mean

    def conjugate(self, P: Array, xp: Any) -> Array:
        return 0.5 * xp.sum(P * P, axis=1)

    def hessian_product(self, P: Array, D: Array, xp: Any) -> Array:
        return D

    def hessian_sum(self, P: Array, weight: Array, xp: Any) -> Array:
        return xp.sum(weight) * xp.eye(int(P.shape[1]), dtype=P.dtype, device=P.device)

    def hessian_trace(self, P: Array, xp: Any) -> Array:
        return xp.ones_like(P[:, 0]) * int(P.shape[1])
