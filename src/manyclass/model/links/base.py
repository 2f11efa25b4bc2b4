"""What a link is: the gradient map g = ∇Φ of a convex potential Φ, and its matching loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from manyclass.data.design import Array
from manyclass.model.domains import Domain


class Link(ABC):
    """g = ∇Φ and the Fenchel–Young loss ℓ(z, y) = Φ(z) − yᵀz + Φ*(y) ≥ 0 (*Least Squares Revisited*, Definition 2).

    Conventions: Z, P, D have shape (n_rows, n_outputs); Φ and Φ* have shape (n_rows,); P = g(Z). A method may
    overwrite the Z it is given, never P or D. All second derivatives are functions of P alone, so solvers keep P and
    forget Z. ∇²Φ is the generalised Jacobian where g has kinks.

    A new link is one file with a subclass and one line in ``LINKS``.
    """

    name: ClassVar[str]
    lipschitz: ClassVar[float]
    """L with ‖g(u) − g(v)‖ ≤ L ‖u − v‖, so that L·I dominates ∇²Φ."""
    domain: ClassVar[Domain]
    """Where Φ* is finite; g maps into it."""
    quadratic: ClassVar[bool] = False
    """Whether Φ is ½‖z‖², so that the second moments of the rows are the Hessian of the loss."""
    probabilistic: ClassVar[bool]
    """Whether g(z) is an estimate of the probabilities of the outputs that a user should be given."""

    label_values: ClassVar[tuple[float, float] | None]
    """What stands for an absent and a present label in a column of its own, so that a score above 0 means present;
    None where the link needs all classes of a row together."""
    column_link: ClassVar[str | None]
    """The link that fits the same model of two classes with one column of scores, z = z_1 − z_0, if there is one."""

    def normalise(self, Z: Array, xp: Any) -> Array:
        """Z with a part removed that neither g nor the loss sees (scores of a softmax are free to shift)."""
        return Z

    @abstractmethod
    def potential_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        """Φ(Z) and P = g(Z) for normalised Z, without overflow for any finite Z."""

    def mean(self, Z: Array, xp: Any) -> Array:
        """P = g(Z)."""
        return self.potential_and_mean(self.normalise(Z, xp), xp)[1]

    @abstractmethod
    def scores(self, mean: Array, xp: Any) -> Array:
        """∇Φ*(mean): the scores at which g gives this mean, for a mean inside the domain."""

    @abstractmethod
    def conjugate(self, P: Array, xp: Any) -> Array:
        """Φ*(P) for P in the domain, or outside by no more than rounding."""

    @abstractmethod
    def hessian_product(self, P: Array, D: Array, xp: Any) -> Array:
        """∇²Φ(z_i) d_i for every row."""

    @abstractmethod
    def hessian_sum(self, P: Array, weight: Array, xp: Any) -> Array:
        """Σ_i weight_i ∇²Φ(z_i), of shape (n_outputs, n_outputs)."""

    @abstractmethod
    def hessian_trace(self, P: Array, xp: Any) -> Array:
        """tr ∇²Φ(z_i), of shape (n_rows,): how much a row weighs in the Hessian of the objective."""


def xlogx(P: Array, xp: Any) -> Array:
    """P log P, continued by 0 at P = 0."""
    positive = P > 0
    return xp.where(positive, P * xp.log(xp.where(positive, P, xp.ones_like(P))), xp.zeros_like(P))


def diagonal_matrix(values: Array, xp: Any) -> Array:
    return values[:, None] * xp.eye(int(values.shape[0]), dtype=values.dtype, device=values.device)
