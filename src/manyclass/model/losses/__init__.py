"""Losses by name. The same name and alpha mean the same objective in every estimator."""

from collections.abc import Callable
from functools import partial

from manyclass.model.losses.base import Loss, SmoothLoss, loss_sums
from manyclass.model.losses.logistic import Logistic
from manyclass.model.losses.margin import ColumnMargin, JointMargin, ZeroOneLoss
from manyclass.model.losses.regression import EpsilonInsensitive, Huber, ResponseLoss
from manyclass.model.losses.softmax import Softmax
from manyclass.model.losses.sparsemax import Sparsemax
from manyclass.model.losses.squared import Calibrated, Squared

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Softmax(),
        Logistic(),
        Squared(),
        Sparsemax(),
        Calibrated(),
        ColumnMargin("hinge"),
        ColumnMargin("squared_hinge", squared=True),
        JointMargin("crammer_singer", "hinge"),
        JointMargin("squared_crammer_singer", "squared_hinge", squared=True),
        JointMargin("perceptron", "column_perceptron", margin=0.0),
        ColumnMargin("column_perceptron", margin=0.0),
    )
}
"""Of labels."""

SMOOTH_LOSSES: dict[str, SmoothLoss] = {name: loss for name, loss in LOSSES.items() if isinstance(loss, SmoothLoss)}

RESPONSE_LOSSES: dict[str, Callable[[float], ResponseLoss]] = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": partial(EpsilonInsensitive, squared=True),
    "huber": Huber,
}
"""Of real responses, beside "squared", from their epsilon."""

__all__ = [
    "LOSSES",
    "RESPONSE_LOSSES",
    "SMOOTH_LOSSES",
    "Loss",
    "ResponseLoss",
    "SmoothLoss",
    "ZeroOneLoss",
    "loss_sums",
]
