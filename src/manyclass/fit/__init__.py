"""The one loop of every fit, and what it leaves behind."""

from manyclass.fit.history import Record
from manyclass.fit.run import Clock, Iterate, Iterates, Outcome, OutOfTime, Run
from manyclass.fit.status import Status

__all__ = ["Clock", "Iterate", "Iterates", "OutOfTime", "Outcome", "Record", "Run", "Status"]
