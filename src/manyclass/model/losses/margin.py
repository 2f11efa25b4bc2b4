"""Losses with kinks, which compiled solvers minimise: here is what they are, not how they are stepped on."""

from typing import Any

from manyclass.data.rows import Array
from manyclass.data.targets import ClassTargets, Targets
from manyclass.model.losses.base import Loss


class ColumnMargin(Loss):
    """Σ_j max(0, margin − y_j z_j) with y_j = ±1, or the squares, as in scikit-learn and LIBLINEAR: one SVM per column.

    Without a margin it is the loss of perceptrons.
    """

    label_values = (-1.0, 1.0)

    def __init__(self, name: str, margin: float = 1.0, *, squared: bool = False):
        self.name = self.column_loss = self.label_loss = name
        self.margin, self.squared, self.scale_free = margin, squared, margin == 0.0

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        short = xp.clip(self.margin - targets.dense(rows, Z[:0, :], xp) * Z, min=0.0)
        return xp.sum(short**2 if self.squared else short, axis=1)


class JointMargin(Loss):
    """max_j (z_j + margin·[j ≠ y]) − z_y (Crammer and Singer, 2001), or its square; a perceptron without a margin.

    `column_loss` is the same of one column, and of labels where only ratios of scores matter.
    """

    def __init__(self, name: str, column_loss: str, margin: float = 1.0, *, squared: bool = False):
        self.name, self.column_loss = name, column_loss
        self.margin, self.squared, self.scale_free = margin, squared, margin == 0.0
        self.label_loss = column_loss if self.scale_free else None

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        matched = targets.dot(rows, Z, xp)
        short = xp.max(Z + self.margin * (1.0 - targets.dense(rows, Z[:0, :], xp)), axis=1) - matched
        return short**2 if self.squared else short


class ZeroOneLoss(Loss):
    """1 where the predicted label, or any of several, is wrong, else 0: not convex, to score by and not to fit.

    Where only ratios of scores matter, the loss that is fitted does not say which of two models is better.
    """

    name = "mistakes"

    def values(self, Z: Array, rows: slice, targets: Targets, xp: Any) -> Array:
        Y = targets.dense(rows, Z[:0, :], xp)
        if isinstance(targets, ClassTargets):
            wrong = xp.argmax(Z, axis=1) != xp.argmax(Y, axis=1)
        else:
            wrong = xp.any((Z > 0) != (Y > 0), axis=1)
        return xp.astype(wrong, Z.dtype)
