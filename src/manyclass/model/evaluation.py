"""What is known of a point after a pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyclass.data.rows import Array


@dataclass(frozen=True)
class Evaluation:
    """What one pass over the rows tells about a point."""

    value: float  # F
    of_each: Any  # what it is the sum of, but for Φ* of the targets: a float, or an ndarray of shape (n_independent,)
    gradient: Array
    mean_residual: Array  # Σ s_i (p_i − y_i) / S in float64: the gradient in the intercept
    row_weight: Any = None  # s_i tr ∇²Φ(z_i), where asked for; of rows in parts what `Problem.map` gives
    scores: Any = None  # z_i of each block of `Problem.blocks`, likewise
