"""Losses of real responses beside the squared one; r = |y − z| in each column."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from manyclass.data.rows import Array
from manyclass.data.targets import Targets
from manyclass.model.losses.base import Loss


class ResponseLoss(Loss):
    """A loss of r = |y − z|, summed over the columns.

    Epsilon is in units of y.
    """

    label_values = None
    column_loss = label_loss = None

    def __init__(self, epsilon: float = 0.1):
        self.epsilon = float(epsilon)

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        return xp.sum(self._of(abs(targets.dense(rows, Z[:0, :], xp) - Z), xp), axis=1)

    @abstractmethod
    def _of(self, r: Array, xp: Any) -> Array:
        """The loss of each r."""


class EpsilonInsensitive(ResponseLoss):
    """max(0, r − ε)."""

    name = "epsilon_insensitive"

    def _of(self, r: Array, xp: Any) -> Array:
        return xp.clip(r - self.epsilon, min=0.0)


class SquaredEpsilonInsensitive(ResponseLoss):
    """max(0, r − ε)²."""

    name = "squared_epsilon_insensitive"

    def _of(self, r: Array, xp: Any) -> Array:
        return xp.clip(r - self.epsilon, min=0.0) ** 2


class Huber(ResponseLoss):
    """½r² up to ε, and ε(r − ε/2) beyond."""

    name = "huber"

    def _of(self, r: Array, xp: Any) -> Array:
        near = xp.clip(r, max=self.epsilon)
        return near * (r - 0.5 * near)
