"""Losses of real responses beside the squared one; r = |y − z| in each column, and ε in units of y."""

from typing import Any

from manyclass.data.rows import Array
from manyclass.data.targets import Targets
from manyclass.model.losses.base import Loss


class EpsilonInsensitive(Loss):
    """Σ max(0, r − ε), or the squares."""

    def __init__(self, epsilon: float = 0.1, *, squared: bool = False):
        self.name = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
        self.epsilon, self.squared = float(epsilon), squared
        self.blind = self.epsilon

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        beyond = xp.clip(abs(targets.dense(rows, Z[:0, :], xp) - Z) - self.epsilon, min=0.0)
        return xp.sum(beyond**2 if self.squared else beyond, axis=1)


class Huber(Loss):
    """Σ ½r² up to ε, and ε(r − ε/2) beyond."""

    name = "huber"

    def __init__(self, epsilon: float = 0.1):
        if not epsilon > 0:
            raise ValueError(
                f"The Huber loss of epsilon={epsilon:g} is 0 whatever is predicted; for the absolute error take "
                "loss='epsilon_insensitive'."
            )
        self.epsilon = float(epsilon)

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        r = abs(targets.dense(rows, Z[:0, :], xp) - Z)
        near = xp.clip(r, max=self.epsilon)
        return xp.sum(near * (r - 0.5 * near), axis=1)
