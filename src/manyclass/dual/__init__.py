"""Stochastic dual coordinate ascent with homotopic start (*Accelerated Dual Learning by Homotopic Initialization*).

`ascent` is the algorithm. It drives a `state` (dual variables and W) of one of two kinds, `column_state` for losses of
one score and `joint_state` for losses of all classes of a row, whose loops are compiled in the ``*_kernels``.
"""

from manyclass.dual.ascent import Limits, ascend
from manyclass.dual.gap import DualModel
from manyclass.dual.homotopy import homotopy_path
from manyclass.dual.problem import DualProblem

__all__ = ["DualModel", "DualProblem", "Limits", "ascend", "homotopy_path"]
