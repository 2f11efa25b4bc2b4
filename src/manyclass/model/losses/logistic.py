from typing import Any

from manyclass.data.rows import Array
from manyclass.model.losses.base import SeparableLoss, flushed, xlogx
from manyclass.model.sets import Box


class Logistic(SeparableLoss):
    """Φ(z) = Σ_j log(1 + exp z_j), g(z)_j = 1 / (1 + exp(−z_j)): one logistic regression per label."""

    name = "logistic"
    lipschitz = 0.25
    domain = Box()
    probabilistic = True
    label_values = (0.0, 1.0)
    column_loss = "logistic"
    label_loss = "logistic"
    labels_cost = False

    def potentials_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        # Never overflows; σ(z) = 1/(1 + decay) for z ≥ 0 and decay/(1 + decay) below.
        decay = flushed(xp.exp(-xp.abs(Z)), xp)
        positive, share = Z >= 0, 1.0 / (1.0 + decay)
        return xp.where(positive, Z, 0.0) + xp.log1p(decay), xp.where(positive, share, decay * share)

    def scores(self, mean: Array, xp: Any) -> Array:
        return xp.log(mean) - xp.log1p(-mean)

    def conjugate(self, P: Array, xp: Any) -> Array:
        return xp.sum(xlogx(P, xp) + xlogx(1.0 - P, xp), axis=1)

    def hessian(self, P: Array, xp: Any) -> tuple[Array, Array | None]:
        return P * (1.0 - P), None
