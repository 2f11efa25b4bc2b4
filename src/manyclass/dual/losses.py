"""Which losses the dual solver knows, and the numbers by which its compiled formulas know them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class DualLoss(NamedTuple):
    """A loss φ(z, y) of `manyclass.model` by its conjugate, for the dual variable a = −∂φ/∂z.

        φ*(−a) = kink·|a| + ½ curvature·a² − ay   for |a| ≤ top, and ay ≥ 0 where y is a label,

    or an entropy for the log losses. The compiled loops take these numbers: functions given as arguments would be
    compiled anew in each process.

    Attributes
    ----------
    labels : bool
        Whether y is −1 or 1 (the class code where the loss is joint) and a has its sign.
    joint : bool
        Whether all classes of a row are seen together: the row has one dual point in the simplex then, instead of
        one dual number per output.
    entropic : bool
        Whether it is the logistic loss, or the softmax where joint.
    """

    labels: bool = False
    joint: bool = False
    entropic: bool = False
    kink: float = 0.0
    curvature: float = 0.0
    top: float = 1.0

    @property
    def is_quadratic(self) -> bool:
        return not (self.labels or self.kink) and self.top == math.inf


DUAL_LOSSES: dict[str, Callable[[float], DualLoss]] = {
    "squared": lambda epsilon: DualLoss(curvature=1.0, top=math.inf),
    "hinge": lambda epsilon: DualLoss(labels=True),
    "squared_hinge": lambda epsilon: DualLoss(labels=True, curvature=0.5, top=math.inf),
    "logistic": lambda epsilon: DualLoss(labels=True, entropic=True),
    "epsilon_insensitive": lambda epsilon: DualLoss(kink=epsilon),
    "squared_epsilon_insensitive": lambda epsilon: DualLoss(kink=epsilon, curvature=0.5, top=math.inf),
    "huber": lambda epsilon: DualLoss(curvature=1.0, top=epsilon),
    "crammer_singer": lambda epsilon: DualLoss(labels=True, joint=True),
    "softmax": lambda epsilon: DualLoss(labels=True, joint=True, entropic=True),
}
"""From the epsilon of a loss, where it has one."""
