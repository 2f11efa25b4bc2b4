"""What a fit reads that keeps predictions of every row: rows, targets, and which rows count for what."""

from __future__ import annotations

from dataclasses import dataclass

from manyclass.data.design import Array, Design
from manyclass.data.targets import Targets


@dataclass(frozen=True)
class TrainingSet:
    """Rows x_i, what they are to be matched with, and their weights.

    Attributes
    ----------
    design : Design
    targets : Targets
    weight : array of shape (n_rows,), optional
        s_i of the rows that are fitted to; None where all are 1.
    held_out : array of shape (n_rows,), optional
        Weights of the rows that count for the score, whose `weight` is 0; None where none is held out.
    """

    design: Design
    targets: Targets
    weight: Array | None = None
    held_out: Array | None = None

    @property
    def total_weight(self) -> float:
        """S = Σ s_i."""
        xp = self.design.xp
        return float(self.design.n_rows) if self.weight is None else float(xp.sum(self.weight, dtype=xp.float64))
