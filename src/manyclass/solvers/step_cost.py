"""What a step of a solver takes, for estimates of its seconds and memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepCost:
    """Beside the solve in the metric of the curvature; as it comes, of L-BFGS."""

    passes: float = 1.0  # over the rows
    looks: int = 0  # how often it goes through the scores of all rows beside these
    arrays: int = 40  # of the size of the parameters that the solver holds; a step reads half of them
