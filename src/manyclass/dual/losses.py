"""Which losses the dual solver knows: the codes of their formulas in compiled loops, and what they need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DualLoss:
    """What the compiled loops have to know of a loss of `manyclass.model`.

    Attributes
    ----------
    code : int
        By which `column_losses` (one score at a time) or `joint_kernels` (all classes of a row together) find its
        formulas.
    labels : bool
        Whether y is −1 or 1 (the class code where the loss is joint) rather than a real number.
    joint : bool
        Whether all classes of a row are seen together: the row has one dual point in the simplex then, instead of
        one dual number per output.
    """

    code: int
    labels: bool = False
    joint: bool = False


SQUARED, HINGE, SQUARED_HINGE, LOGISTIC, EPSILON_INSENSITIVE, SQUARED_EPSILON_INSENSITIVE, HUBER = range(7)
CRAMMER_SINGER, SOFTMAX = 7, 8

DUAL_LOSSES: dict[str, DualLoss] = {
    "squared": DualLoss(SQUARED),
    "hinge": DualLoss(HINGE, labels=True),
    "squared_hinge": DualLoss(SQUARED_HINGE, labels=True),
    "logistic": DualLoss(LOGISTIC, labels=True),
    "epsilon_insensitive": DualLoss(EPSILON_INSENSITIVE),
    "squared_epsilon_insensitive": DualLoss(SQUARED_EPSILON_INSENSITIVE),
    "huber": DualLoss(HUBER),
    "crammer_singer": DualLoss(CRAMMER_SINGER, labels=True, joint=True),
    "softmax": DualLoss(SOFTMAX, labels=True, joint=True),
}
