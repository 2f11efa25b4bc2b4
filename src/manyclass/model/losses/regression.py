"""Losses of real responses beside the squared one; r = |y − z| in each column, and ε in units of y."""

from abc import abstractmethod
from typing import Any

from manyclass.data.rows import Array
from manyclass.data.targets import Targets
from manyclass.model.losses.base import Loss


class ResponseLoss(Loss):
    """Σ φ(r)."""

    epsilon: float

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        return xp.sum(self.of_residual(abs(targets.dense(rows, Z[:0, :], xp) - Z), xp), axis=1)

    @abstractmethod
    def of_residual(self, r: Array, xp: Any) -> Array:
        """φ(r)."""

    @abstractmethod
    def weight(self, r: Array, xp: Any) -> Array:
        """φ'(r)/r: the weight of a residual in least squares with the same gradient."""


class EpsilonInsensitive(ResponseLoss):
    """φ(r) = max(0, r − ε), or its square."""

    def __init__(self, epsilon: float = 0.1, *, squared: bool = False):
        self.name = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
        self.epsilon, self.squared = float(epsilon), squared
        self.blind = self.epsilon

    def of_residual(self, r: Array, xp: Any) -> Array:
        beyond = xp.clip(r - self.epsilon, min=0.0)
        return beyond**2 if self.squared else beyond

    def weight(self, r: Array, xp: Any) -> Array:
        beyond = xp.clip(r - self.epsilon, min=0.0)
        slope = 2.0 * beyond if self.squared else xp.where(beyond > 0, xp.ones_like(r), xp.zeros_like(r))
        return slope / xp.where(r > 0, r, xp.ones_like(r))


class Huber(ResponseLoss):
    """φ(r) = ½r² up to ε, and ε(r − ε/2) beyond."""

    name = "huber"

    def __init__(self, epsilon: float = 0.1):
        if not epsilon > 0:
            raise ValueError(
                f"The Huber loss of epsilon={epsilon:g} is 0 whatever is predicted; for the absolute error take "
                "loss='epsilon_insensitive'."
            )
        self.epsilon = float(epsilon)

    def of_residual(self, r: Array, xp: Any) -> Array:
        near = xp.clip(r, max=self.epsilon)
        return near * (r - 0.5 * near)

    def weight(self, r: Array, xp: Any) -> Array:
        return self.epsilon / xp.clip(r, min=self.epsilon)
