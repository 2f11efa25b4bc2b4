"""Which losses the dual solver knows, and the numbers by which its compiled formulas know them."""

import math
from collections.abc import Callable
from typing import NamedTuple


class DualLoss(NamedTuple):
    """A loss φ(z, y) of `manyclass.model` by its conjugate, for the dual variable a = −∂φ/∂z.

        φ*(−a) = kink·|a| + ½ curvature·a² − ay   for |a| ≤ top, and ay ≥ 0 where y is a label,

    or an entropy for the log losses. The compiled loops take these numbers: functions given as arguments would be
    compiled anew in each process. The type of a loss says which formulas are compiled into the loops.

    With `labels` y is −1 or 1 (the class code where the loss is joint) and a has its sign; an `entropic` loss is the
    logistic one or the softmax.
    """

    labels: bool = False
    entropic: bool = False
    kink: float = 0.0
    curvature: float = 0.0
    top: float = 1.0


class JointLoss(DualLoss):
    """One that sees all classes of a row together, which has one dual point in the simplex, not a number per output."""


class SoftmaxLoss(JointLoss):
    """By its entropy."""


DUAL_LOSSES: dict[str, Callable[[float], DualLoss]] = {
    "squared": lambda epsilon: DualLoss(curvature=1.0, top=math.inf),
    "hinge": lambda epsilon: DualLoss(labels=True),
    "squared_hinge": lambda epsilon: DualLoss(labels=True, curvature=0.5, top=math.inf),
    "logistic": lambda epsilon: DualLoss(labels=True, entropic=True),
    "epsilon_insensitive": lambda epsilon: DualLoss(kink=epsilon),
    "squared_epsilon_insensitive": lambda epsilon: DualLoss(kink=epsilon, curvature=0.5, top=math.inf),
    "huber": lambda epsilon: DualLoss(curvature=1.0, top=epsilon),
    "crammer_singer": lambda epsilon: JointLoss(labels=True),
    "softmax": lambda epsilon: SoftmaxLoss(labels=True, entropic=True),
}
"""From the epsilon of a loss, where it has one."""
