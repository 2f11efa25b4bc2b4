"""The yardstick: every solver is judged by this objective, computed in float64 from its iterates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyclass.data import as_rows
from manyclass.data.labels import Labels, encode
from manyclass.model import LOSSES, Loss


def column_loss(labels: Labels, name: str) -> Loss:
    """The loss as it is fitted to the columns of these labels: two classes are one column wherever it has that form."""
    loss = LOSSES[name]
    return LOSSES[loss.column_loss] if labels.is_binary and loss.column_loss is not None else loss


def objectives(
    X: Any,
    y: Any,
    iterates: Sequence[tuple[Any, Any]],
    loss_name: str,
    alpha: float,
    *,
    weight: np.ndarray | None = None,
    one_column: bool = True,
) -> list[float]:
    """Mean loss + (alpha/2) ‖W‖²_F at several iterates, the intercept unpenalised, in one pass over X.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Any floating type, possibly memory-mapped; rows are upcast to float64 a block at a time.
    y : array of shape (n,)
    iterates : list of (W of shape (d, k), b of shape (k,))
    loss_name : str
    alpha : float
    weight : ndarray of shape (n,), optional
    one_column : bool
        Whether the iterates have one column where there are two classes.
    """
    labels, rows = encode(y, "yardstick"), as_rows(X)
    loss = column_loss(labels, loss_name) if one_column else LOSSES[loss_name]
    targets = labels.targets(rows, loss.label_values, one_column=one_column)
    wide = [(np.asarray(W, dtype=np.float64), np.asarray(b, dtype=np.float64)) for W, b in iterates]
    losses = np.zeros(len(wide))
    for part, block in rows.blocks(rows.rows_per_block(2 * targets.n_outputs)):
        block = block.map(lambda values: values.astype(np.float64))
        for j, (W, b) in enumerate(wide):
            values = loss.values(block.matmat(W) + b, part, targets, np)
            losses[j] += values.sum() if weight is None else values @ weight[part]
    penalties = [0.5 * alpha * float(np.sum(W * W)) for W, _ in wide]
    return (losses / (rows.n_rows if weight is None else weight.sum()) + penalties).tolist()


def zero_objective(y: Any) -> float:
    """F(0) of softmax regression, the objective at W = 0, b = 0: log k."""
    return float(np.log(len(np.unique(y))))
