"""What a loss is: how far scores are from targets; for smooth losses also the link and the conjugate."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_numpy_namespace

from manyclass.data.rows import Array
from manyclass.data.targets import Targets
from manyclass.model.sets import ConvexSet

LEAST = {dtype().itemsize: float(np.finfo(dtype).smallest_normal) ** 0.5 for dtype in (np.float32, np.float64)}
"""By bytes of a number: the least one whose square is not denormal."""


class Loss(ABC):
    """ℓ(z, y) ≥ 0, convex in the scores z of a row.

    A new loss is one file with a subclass and one line in ``LOSSES``.

    Attributes
    ----------
    name : str
    label_values : tuple of float, or None
        Targets of an absent and a present label, where each class has a column of its own whose score above 0 means
        present; None where the loss needs all classes of a row together.
    column_loss : str or None
        The loss that fits the same model of two classes with one column of scores, z = z_1 − z_0, if there is one.
    label_loss : str or None
        The loss that is fitted to the columns of an indicator matrix; None if the loss allows one class per row only.
    probabilistic : bool
        Whether `mean` gives probabilities that a user should be given.
    scale_free : bool
        Whether only ratios of scores matter: no positive factor changes a prediction or a subgradient.
    quadratic : bool
        Whether Φ is ½‖z‖², so that the second moments of the rows are the Hessian of the loss.
    blind : float
        The distance from a response, in units of y, up to which a prediction costs nothing.
    """

    name: str
    label_values: tuple[float, float] | None = None
    column_loss: str | None = None
    label_loss: str | None = None
    probabilistic: bool = False
    scale_free: bool = False
    quadratic: bool = False
    blind: float = 0.0

    @abstractmethod
    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        """ℓ(z_i, y_i) of a block of rows with scores Z, which may be overwritten; of shape (n_rows,)."""

    def mean(self, Z: Array, xp: Any) -> Array:
        """The probabilities that follow from scores Z (only if ``probabilistic``)."""
        raise AttributeError(f"loss={self.name!r} gives scores but no probabilities.")


class SmoothLoss(Loss):
    """The Fenchel–Young loss ℓ(z, y) = Φ(z) − yᵀz + Φ*(y) of a link g = ∇Φ (*Least Squares Revisited*, Definition 2).

    Conventions: Z, P, D have shape (n_rows, n_outputs); Φ and Φ* have shape (n_rows,); P = g(Z). A method may
    overwrite the Z it is given, never P or D. All second derivatives are functions of P alone, so solvers keep P and
    forget Z. ∇²Φ is the generalised Jacobian where g has kinks.
    """

    lipschitz: ClassVar[float]
    """L with ‖g(u) − g(v)‖ ≤ L ‖u − v‖, so that L·I dominates ∇²Φ."""
    domain: ClassVar[ConvexSet]
    """Where Φ* is finite; g maps into it."""
    has_kinks: ClassVar[bool] = False
    """Whether g has kinks, where P reaches the boundary of the domain: a Hessian says nothing of points beyond them."""
    separable: ClassVar[bool] = False
    """Whether this is a `SeparableLoss`."""
    labels_cost: ClassVar[bool] = True
    """Whether Φ* of a label may differ from zero."""

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        Z = self.normalise(Z, xp)
        matched = targets.dot(rows, Z, xp)
        like = Z[:0, :]
        values = self.potential_and_mean(Z, xp)[0] - matched
        return values + self.conjugate(targets.dense(rows, like, xp), xp) if self.labels_cost else values

    def normalise(self, Z: Array, xp: Any) -> Array:
        """Z without the part that neither g nor the loss depends on, such as a common shift of a softmax's scores."""
        return Z

    def tamed(self, Z: Array, xp: Any) -> Array:
        """Z or `normalise` of it, whichever is faster and safe. In the last digits a row may then depend on those that
        share its block."""
        return self.normalise(Z, xp)

    @abstractmethod
    def potential_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        """Φ(Z) and P = g(Z) for normalised or tamed Z, without overflow for any finite Z."""

    def losses_and_mean(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> tuple[Array, Array]:
        """Φ(z_i) − y_iᵀz_i for each independent problem, of shape (n_rows, n_independent), and P, for such Z."""
        matched = targets.dot(rows, Z, xp)
        potential, P = self.potential_and_mean(Z, xp)
        return (potential - matched)[:, None], P

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
    def hessian(self, P: Array, xp: Any) -> tuple[Array, Array | None]:
        """v and u, of shape (n_rows, n_outputs), with ∇²Φ(z_i) = diag(v_i) − u_i u_iᵀ; u is None where it is zero."""

    def hessian_product(self, P: Array, D: Array, xp: Any) -> Array:
        """∇²Φ(z_i) d_i for every row."""
        v, u = self.hessian(P, xp)
        product = v * D
        if u is not None:
            product -= u * xp.sum(product if u is v else u * D, axis=1, keepdims=True)
        return product

    def hessian_trace(self, P: Array, xp: Any) -> Array:
        """tr ∇²Φ(z_i), of shape (n_rows,): how much a row weighs in the Hessian of the objective."""
        v, u = self.hessian(P, xp)
        trace = xp.sum(v, axis=1)
        return trace if u is None else trace - xp.sum(u * u, axis=1)


class SeparableLoss(SmoothLoss):
    """Φ(z) = Σ_j φ(z_j): every column is a problem of its own, and solvers treat it as one."""

    separable = True

    @abstractmethod
    def potentials_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        """φ(Z), of the shape of Z, and P = g(Z)."""

    def potential_and_mean(self, Z: Array, xp: Any) -> tuple[Array, Array]:
        potentials, P = self.potentials_and_mean(Z, xp)
        return xp.sum(potentials, axis=1), P

    def losses_and_mean(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> tuple[Array, Array]:
        if int(Z.shape[1]) == 1:
            return super().losses_and_mean(Z, rows, targets, xp)
        matched = Z * targets.dense(rows, Z, xp)
        potentials, P = self.potentials_and_mean(Z, xp)
        return potentials - matched, P


def mean_loss(
    loss: Loss, targets: Targets, weight: Array | None, scores: Iterable[tuple[slice, Array]], xp: Any
) -> float:
    """Σ s_i ℓ(z_i, y_i) / Σ s_i over blocks of scores, which may be overwritten."""
    total, mass = loss_sums(loss, targets, weight, scores, xp)
    return total / mass if mass > 0 else float("nan")


def loss_sums(
    loss: Loss, targets: Targets, weight: Array | None, scores: Iterable[tuple[slice, Array]], xp: Any
) -> tuple[float, float]:
    """Σ s_i ℓ(z_i, y_i) and Σ s_i, as in `mean_loss`."""
    total, mass = 0.0, 0.0
    for rows, Z in scores:
        values = loss.values(Z, rows, targets, xp)
        if weight is None:
            mass += int(values.shape[0])
        else:
            values = values * weight[rows]
            mass = mass + xp.sum(weight[rows], dtype=xp.float64)
        total = total + xp.sum(values, dtype=xp.float64)
    return float(total), float(mass)


def flushed(P: Array, xp: Any) -> Array:
    """P ≥ 0 with zeros for numbers whose squares would be denormal, on which processors are ten to fifty times slower.

    Rows that are fitted well have such probabilities; beside those of other rows they count for nothing.
    """
    least = smallest(P, xp)
    if least is not None and least < LEAST[P.itemsize]:
        P *= P >= LEAST[P.itemsize]
    return P


def xlogx(P: Array, xp: Any) -> Array:
    """P log P, continued by 0 at P = 0."""
    positive = P > 0
    return xp.where(positive, P * xp.log(xp.where(positive, P, xp.ones_like(P))), xp.zeros_like(P))


def smallest(values: Array, xp: Any) -> float | None:
    """The least of some numbers; None of none, and in namespaces that would have to wait for their device."""
    return values.min() if is_numpy_namespace(xp) and values.size else None
