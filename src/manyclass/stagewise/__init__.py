"""Stagewise regression: *Least Squares Revisited*, Algorithm 3, and Algorithm 2, which is the same over one block."""

from manyclass.stagewise.blocks import DrawnBlocks, OriginalColumns
from manyclass.stagewise.judges import FoldsJudge, HeldOutJudge, SmallerTrials, Trials
from manyclass.stagewise.solver import Stagewise
from manyclass.stagewise.stage import Stage, StagewiseModel
from manyclass.stagewise.updates import UPDATES

__all__ = [
    "UPDATES",
    "DrawnBlocks",
    "FoldsJudge",
    "HeldOutJudge",
    "OriginalColumns",
    "SmallerTrials",
    "Stage",
    "Stagewise",
    "StagewiseModel",
    "Trials",
]
