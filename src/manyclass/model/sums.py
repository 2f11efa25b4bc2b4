"""Sums over the rows of a problem, or of a part of them: what `Problem.sum` is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manyclass.data.rows import BLOCK_BYTES, Array, present_rows, slices, to_numpy
from manyclass.data.targets import column_totals
from manyclass.model.losses import SmoothLoss

if TYPE_CHECKING:
    from manyclass.model.problem import Problem


def weight_and_copies(part: Any, weight: Array, whole_rows: bool = False) -> tuple[float, float]:
    """Σ s and Σ s·min(s, 1), or Σ s² of whole rows."""
    s = to_numpy(weight).astype(np.float64)
    return float(s.sum()), float((s * (s if whole_rows else np.minimum(s, 1.0))).sum())


def in_copies(weight: np.ndarray) -> np.ndarray:
    """Weights, in a unit in which their sum is the number of rows that they tell as much as (`effective_rows`)."""
    total, copies = weight_and_copies(None, weight)
    return weight * (total / max(copies, 1e-300))


def gain_and_error(gain: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """The mean of what rows gain, and its standard error."""
    weight = np.ones(len(gain)) if weight is None else weight
    mean = float(np.average(gain, weights=weight))
    variance = float(np.average((gain - mean) ** 2, weights=weight))
    return mean, (variance / float(in_copies(weight).sum())) ** 0.5


def weight_sum(part: Problem) -> float:
    return float(part.xp.sum(part.weight, dtype=part.xp.float64))


def present_sum(part: Problem) -> float:
    return float(len(present_rows(part.rows.n_rows, part.weight)))


def column_sums(part: Problem, function: Callable[[Array], Array] | None) -> tuple[Array, float]:
    return part.rows.column_sums(function, part.weight)


def weighed(values: Array, weight: Array, xp: Any) -> Array:
    """What there is for each row and output, times one weight for each row, or one for each row and problem."""
    if weight.ndim == 1:
        values *= weight[:, None]
        return values
    of_each = xp.reshape(values, (*weight.shape, -1))
    of_each *= weight[:, :, None]
    return xp.reshape(of_each, values.shape)


def gradient_sums(
    part: Problem, W: Array, b: Array, row_weight: Array | None = None, scores: list[Array] | None = None
) -> tuple[Any, Array, Array]:
    """Σ s (Φ(z) − yᵀz) of each independent problem, Σ s x (p − y)ᵀ and Σ s (p − y), added over blocks in float64; the
    rest is filled."""
    xp, rows, loss = part.xp, part.rows, part.loss
    is_one, total = part.n_independent == 1, 0.0  # no number of a block is waited for
    gradient = rows.zeros((rows.n_features, part.n_outputs), dtype=xp.float64)
    residual_sum = rows.zeros((part.n_outputs,), dtype=xp.float64)
    for where, block, weight in part.blocks():
        Z = part.scores(block, W, b)
        if scores is not None:
            scores.append(Z + 0.0)
        losses, P = loss.losses_and_mean(loss.tamed(Z, xp), where, part.targets, xp)
        if row_weight is not None:
            trace = loss.hessian_trace(P, xp)
            row_weight[where] = xp.astype(trace if weight is None else trace * weight, xp.float64)
        part.targets.subtract(where, P, xp)
        if weight is not None:
            losses, P = weighed(losses, weight, xp), weighed(P, weight, xp)
        total = total + xp.sum(losses, axis=None if is_one else 0, dtype=xp.float64)
        residual_sum += xp.astype(block.weights() @ P, xp.float64)
        block.rmatmat(P, gradient)
    return float(total) if is_one else to_numpy(total), gradient, residual_sum


def gradient_sums_and_row_weight(part: Problem, W: Array, b: Array) -> tuple[tuple[Any, Array, Array], np.ndarray]:
    row_weight = part.rows.zeros((part.rows.n_rows,), dtype=part.xp.float64)
    return gradient_sums(part, W, b, row_weight), to_numpy(row_weight)


def gradient_sums_and_scores(part: Problem, W: Array, b: Array) -> tuple[tuple[Any, Array, Array], list[Array]]:
    scores: list[Array] = []
    return gradient_sums(part, W, b, scores=scores), scores


def rotated(
    part: Problem, vectors: Array, center: Array, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[slice, Array, Array | None]]:
    """Which rows, their Qᵀ(x − c) and their weights, in float64."""
    xp = part.xp
    narrow, origin = xp.astype(vectors, part.rows.dtype), center @ vectors
    for where, block, weight in part.blocks(block_bytes):
        Z = xp.astype(block.matmat(narrow), xp.float64) - origin
        yield where, Z, None if weight is None else xp.astype(weight, xp.float64)


def squares_of(part: Problem, responses: Callable[[slice], Array], total: Array) -> Array:
    """Σ s r² of each output, added to `total`."""
    xp = part.xp
    for where in slices(part.rows.n_rows, part.rows.rows_per_block(part.n_outputs)):
        part.on_block()
        square = responses(where) ** 2
        if part.weight is not None:
            square = square * xp.astype(part.weight[where], xp.float64)[:, None]
        total = total + xp.sum(square, axis=0)
    return total


def target_sums(part: Problem) -> tuple[Array, Array, float]:
    """Σ s x yᵀ, Σ s y and, of a loss that has it, Σ s Φ*(y)."""
    xp, rows = part.xp, part.rows
    like = rows.zeros((0,))
    cross = rows.zeros((rows.n_features, part.n_outputs), dtype=xp.float64)
    mean = rows.zeros((part.n_outputs,), dtype=xp.float64)
    conjugate = 0.0
    # Of thousands of classes, a look at every number is as long as half a pass.
    costs = isinstance(part.loss, SmoothLoss) and (part.loss.labels_cost or not part.targets.exclusive)
    for where, block, weight in part.blocks():
        if costs:
            values = part.loss.conjugate(part.targets.dense(where, like, xp), xp)
            conjugate = conjugate + xp.sum(values if weight is None else values * weight, dtype=xp.float64)
        Y = part.targets.weighted(where, weight, like, xp)
        mean += column_totals(Y, xp)
        block.rmatmat(Y, cross)
    return cross, mean, float(conjugate)
