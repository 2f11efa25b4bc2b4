"""Stochastic dual coordinate ascent with homotopic start (*Accelerated Dual Learning by Homotopic Initialization*)."""

from manyclass.solvers.dual.driver import DualRecord, DualSolution, ascend
from manyclass.solvers.dual.losses import COLUMN_LOSSES, JOINT_LOSSES, DualLoss
from manyclass.solvers.dual.path import homotopy_path
from manyclass.solvers.dual.problem import DualProblem

__all__ = [
    "COLUMN_LOSSES",
    "JOINT_LOSSES",
    "DualLoss",
    "DualProblem",
    "DualRecord",
    "DualSolution",
    "ascend",
    "homotopy_path",
]
