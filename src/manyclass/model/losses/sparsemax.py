from typing import Any

from manyclass.data.rows import Array
from manyclass.model.losses.base import SmoothLoss
from manyclass.model.sets import Simplex


class Sparsemax(SmoothLoss):
    """Φ(z) = ½‖z‖² − ½‖z − Π(z)‖², g(z) = Π(z), the projection onto the simplex (Martins and Astudillo, 2016).

    Probabilities can be exactly 0. Φ* = ½‖p‖² on the simplex. The generalised Jacobian on the support s of p is
    diag(s) − ssᵀ/|s|.
    """

    name = "sparsemax"
    lipschitz = 1.0
    domain = Simplex()
    probabilistic = True
    has_kinks = True

    def normalise(self, Z: Array, xp: Any) -> Array:
        Z -= xp.max(Z, axis=1, keepdims=True)
        return Z

    def potential_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        P = self.domain.project(Z, xp)
        # ½‖z‖² − ½‖z − p‖² = pᵀz − ½‖p‖², which keeps its digits when z is large.
        return xp.sum(P * Z, axis=1) - 0.5 * xp.sum(P * P, axis=1), P

    def scores(self, mean: Array, xp: Any) -> Array:
        return mean

    def conjugate(self, P: Array, xp: Any) -> Array:
        return 0.5 * xp.sum(P * P, axis=1)

    def hessian(self, P: Array, xp: Any) -> tuple[Array, Array | None]:
        support = xp.astype(P > 0, P.dtype)
        return support, support / xp.sum(support, axis=1, keepdims=True) ** 0.5
