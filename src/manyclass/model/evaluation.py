"""What is known of a point after a pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyclass.data.rows import Array


@dataclass(frozen=True)
class Evaluation:
    """What one pass over the rows tells about a point.

    Attributes
    ----------
    value : float
        F.
    of_each : float, or ndarray of shape (n_independent,)
        What it is the sum of, but for Φ* of the targets.
    gradient : array, shaped as the parameters
    mean_residual : array of shape (n_outputs,), float64
        Σ s_i (p_i − y_i) / S: the gradient in the intercept.
    row_weight : ndarray of shape (n_rows,), optional
        s_i tr ∇²Φ(z_i), where asked for; where the rows lie in parts, what `Problem.map` gives of each.
    scores : list of arrays, optional
        z_i of each block of `Problem.blocks`, likewise.
    """

    value: float
    of_each: Any
    gradient: Array
    mean_residual: Array
    row_weight: Any = None
    scores: Any = None
