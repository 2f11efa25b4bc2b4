"""How rows are held and summarised."""

from manyclass.data.design import Design
from manyclass.data.moments import Moments
from manyclass.data.targets import ClassTargets, MatrixTargets, Targets
from manyclass.data.training import TrainingSet

__all__ = ["ClassTargets", "Design", "MatrixTargets", "Moments", "Targets", "TrainingSet"]
