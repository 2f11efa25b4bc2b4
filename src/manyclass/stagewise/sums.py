"""Sums over the rows for a stage: its normal equations, and their right-hand side."""

from collections.abc import Callable
from typing import Any

import numpy as np

from manyclass.curvature.sampling import heaviest
from manyclass.data.moments import MomentSums
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, to_numpy
from manyclass.model import Problem
from manyclass.stagewise.updates import Update

FEW = 0.7
"""If the rows that hold nearly all of the weight are at most this share, only these are read."""


def sums_of_block(stage: Problem, state: Array, on: Callable[[Problem], Update], with_moments: bool) -> tuple[Any, ...]:
    """Σ s x rᵀ and Σ s r of a block, Σ s h of each output if the update weighs outputs, and, `with_moments`, the
    `Moments` of the block under the weights that the update gives to rows."""
    xp, features, update = stage.xp, stage.rows, on(stage)
    weight, heavy = stage.weight, None
    if update.weighs_rows:
        curvature = update.row_weight(state)
        weight = curvature if weight is None else curvature * weight
        heavy = np.sort(heaviest(to_numpy(weight)))
        copies = np.ones(len(weight)) if stage.weight is None else to_numpy(stage.weight)
        heavy = heavy if copies[heavy].sum() <= FEW * copies.sum() else None
    sums = MomentSums(features) if with_moments else None
    cross = features.zeros((features.n_features, stage.n_outputs), dtype=xp.float64)
    mean = features.zeros((stage.n_outputs,), dtype=xp.float64)
    curvature = 0.0 * mean
    step = features.rows_per_block(stage.n_outputs)
    for rows, chunk, given in stage.blocks(GRAM_BLOCK_BYTES):
        if sums is not None and heavy is None:
            sums.add(chunk, None if weight is None else weight[rows])
        for part, few in chunk.blocks(step):  # where outputs are many it is they that take memory and time
            stage.on_block()
            inside = slice(rows.start + part.start, rows.start + part.stop)
            of_rows = None if given is None else given[part]
            residual = weighted_residual(update, state, inside, of_rows)
            few.rmatmat(residual, cross)
            mean += xp.sum(residual, axis=0, dtype=xp.float64)
            if update.weighs_outputs:
                curvature += update.output_weight(state[inside, :], of_rows)
    if sums is None:
        return cross, mean, curvature
    if heavy is not None:
        for part, few in features.blocks_of(heavy, features.rows_per_block(stage.n_outputs, GRAM_BLOCK_BYTES)):
            stage.on_block()
            sums.add(few, xp.take(weight, features.asarray(heavy[part], xp.int64), axis=0))
    return cross, mean, curvature, sums.result()


def weighted_residual(update: Update, state: Array, rows: slice, weight: Array | None) -> Array:
    """s_i r_i of a block of rows."""
    block = state[rows, :]
    residual = update.residual(block, update.problem.targets.dense(rows, block, update.xp))
    return residual if weight is None else residual * weight[:, None]


def gradient_in_columns(part: Problem, state: Array, on: Callable[[Problem], Update]) -> Array:
    """Σ s x rᵀ over the original columns."""
    update, total = on(part), part.rows.zeros((part.rows.n_features, part.n_outputs), dtype=part.xp.float64)
    for rows, block, weight in part.blocks():
        block.rmatmat(weighted_residual(update, state, rows, weight), total)
    return total


def weighted_residuals(stage: Problem, state: Array, update: Update) -> Array:
    """s_i r_i of all rows, float64."""
    xp = stage.xp
    parts = [weighted_residual(update, state, rows, weight) for rows, _, weight in stage.blocks()]
    return xp.astype(xp.concat(parts), xp.float64)
