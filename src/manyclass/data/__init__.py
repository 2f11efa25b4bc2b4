"""How rows are held and summarised."""

from manyclass.data.design import Design
from manyclass.data.moments import Moments
from manyclass.data.targets import ClassTargets, MatrixTargets, Targets

__all__ = ["ClassTargets", "Design", "MatrixTargets", "Moments", "Targets"]
