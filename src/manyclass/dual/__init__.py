"""Stochastic dual coordinate ascent with homotopic start (*Accelerated Dual Learning by Homotopic Initialization*).

`ascent` is the algorithm. It drives a `state` (dual variables and W), whose loops are compiled in `kernels`, with the
formulas of losses of one score in `column_losses` and of all classes of a row in `joint_losses`.
"""

from manyclass.dual.ascent import DualStart, Limits, ascend
from manyclass.dual.gap import DualModel
from manyclass.dual.problem import DualProblem
from manyclass.dual.proximal import homotopy_path, is_hard

__all__ = ["DualModel", "DualProblem", "DualStart", "Limits", "ascend", "homotopy_path", "is_hard"]
