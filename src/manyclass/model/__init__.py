"""The mathematics of the objective: losses, the convex sets of their predictions, the problem that is solved."""

from manyclass.model.losses import LOSSES, SMOOTH_LOSSES, Loss, SmoothLoss
from manyclass.model.problem import Evaluation, Problem

__all__ = ["LOSSES", "SMOOTH_LOSSES", "Evaluation", "Loss", "Problem", "SmoothLoss"]
