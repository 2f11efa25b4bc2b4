"""Losses with kinks, which compiled solvers minimise: here is what they are, not how they are stepped on."""

from __future__ import annotations

from typing import Any

from manyclass.data.rows import Array
from manyclass.data.targets import ClassTargets, Targets
from manyclass.model.losses.base import Loss


class Hinge(Loss):
    """Σ_j max(0, 1 − y_j z_j) with y_j = ±1: one support vector machine per column."""

    name = "hinge"
    label_values = (-1.0, 1.0)
    column_loss = label_loss = "hinge"

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        return xp.sum(self._short(Z, rows, targets, xp), axis=1)

    @staticmethod
    def _short(Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        """By how much each margin falls short of 1."""
        return xp.clip(1.0 - targets.dense(rows, Z[:0, :], xp) * Z, min=0.0)


class SquaredHinge(Hinge):
    """Σ_j max(0, 1 − y_j z_j)² with y_j = ±1, as in scikit-learn and LIBLINEAR."""

    name = "squared_hinge"
    column_loss = label_loss = "squared_hinge"

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        return xp.sum(self._short(Z, rows, targets, xp) ** 2, axis=1)


class CrammerSinger(Loss):
    """max_j (z_j + [j ≠ y]) − z_y (Crammer and Singer, 2001)."""

    name = "crammer_singer"
    label_values = None
    column_loss = "hinge"
    label_loss = None

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        matched = targets.dot(rows, Z, xp)
        return xp.max(Z + (1.0 - targets.dense(rows, Z[:0, :], xp)), axis=1) - matched


class SquaredCrammerSinger(CrammerSinger):
    """The square of the loss of Crammer and Singer."""

    name = "squared_crammer_singer"
    column_loss = "squared_hinge"

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        return super().values(Z, rows, targets, xp) ** 2


class Perceptron(Loss):
    """max_j z_j − z_y."""

    name = "perceptron"
    label_values = None
    column_loss = label_loss = "column_perceptron"
    scale_free = True

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        return xp.max(Z, axis=1) - targets.dot(rows, Z, xp)


class ColumnPerceptron(Loss):
    """Σ_j max(0, −y_j z_j) with y_j = ±1."""

    name = "column_perceptron"
    label_values = (-1.0, 1.0)
    column_loss = label_loss = "column_perceptron"
    scale_free = True

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        return xp.sum(xp.clip(-targets.dense(rows, Z[:0, :], xp) * Z, min=0.0), axis=1)


class Mistakes(Loss):
    """1 where the predicted label, or any of several, is wrong, else 0: not convex, to score by and not to fit.

    Where only ratios of scores matter, the loss that is fitted does not say which of two models is better.
    """

    name = "mistakes"
    label_values = column_loss = label_loss = None

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        Y = targets.dense(rows, Z[:0, :], xp)
        if isinstance(targets, ClassTargets):
            wrong = xp.argmax(Z, axis=1) != xp.argmax(Y, axis=1)
        else:
            wrong = xp.any((Z > 0) != (Y > 0), axis=1)
        return xp.astype(wrong, Z.dtype)
