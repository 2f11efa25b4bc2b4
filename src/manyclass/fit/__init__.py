"""The one loop of every fit, and what it leaves behind."""

from manyclass.fit.checkpoint import Checkpoint, CheckpointError
from manyclass.fit.history import Record
from manyclass.fit.parameters import Parametrised
from manyclass.fit.run import Clock, InOrder, Iterate, Iterates, Outcome, OutOfTime, Run, changed, strictness
from manyclass.fit.status import Status
from manyclass.fit.stored import restore

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Clock",
    "InOrder",
    "Iterate",
    "Iterates",
    "OutOfTime",
    "Outcome",
    "Parametrised",
    "Record",
    "Run",
    "Status",
    "changed",
    "restore",
    "strictness",
]
