"""What a stagewise fit leaves behind: its stages, their records, and the replay that predicts from them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from manyclass.data.design import GRAM_BLOCK_BYTES, Array, Design
from manyclass.data.generated import GeneratedDesign
from manyclass.model.calibration import Map
from manyclass.solvers.base import Record, Status
from manyclass.solvers.inner import InnerUpdate


@dataclass(frozen=True)
class Stage:
    """What one stage adds: block features times `coef` plus `intercept`, and the parameters of its inner update."""

    block: int
    coef: Array
    intercept: Array
    parameters: Map | None = None


@dataclass(frozen=True)
class StageRecord(Record):
    """The state after a stage.

    Attributes
    ----------
    objective : float
        Mean loss of the training rows plus (alpha/2)·‖coefficients‖² (without penalty for inner="calibrated").
    certificate : float
        Decrease of the objective in this stage, relative to the loss before the first.
    held_out : float
        Mean loss of the held-out rows; nan without.
    model, stage, n_features : int
        Which model and stage this is, and how many different features have been generated for it.
    phases : dict
        Seconds of this stage spent on "generate", "gram", "solve" and "update".
    """

    held_out: float = float("nan")
    model: int = 0
    stage: int = 0
    n_features: int = 0
    phases: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StagewiseModel:
    """Drawn generators, and the stages that use them."""

    blocks: list[Any]
    stages: list[Stage]


@dataclass(frozen=True)
class StagewiseSolution(StagewiseModel):
    status: Status
    history: list[StageRecord]
    n_passes: int


def final_states(design: Design, blocks: list[Any], stages: list[Stage], inner: InnerUpdate) -> Array:
    """The state of each row after all stages. Each block is generated once, however many stages use it."""
    xp, k = design.xp, int(stages[0].coef.shape[1])
    ends = [t for t, stage in enumerate(stages) if stage.parameters is not None]
    if not ends or ends[-1] < len(stages) - 1:
        ends.append(len(stages) - 1)
    # Up to the next calibration stages only add up, so those of the same block are one matrix product.
    gains = design.zeros((design.n_rows, k * len(ends)))
    for block in sorted({stage.block for stage in stages}):
        generated = GeneratedDesign(design, blocks[block])
        coef = design.zeros((generated.n_features, k * len(ends)))
        intercept = design.zeros((k * len(ends),))
        for t, stage in enumerate(stages):
            if stage.block == block:
                first = k * bisect_left(ends, t)
                coef[:, first : first + k] += xp.astype(stage.coef, design.dtype, copy=False)
                intercept[first : first + k] += xp.astype(stage.intercept, design.dtype, copy=False)
        for rows, features in generated.blocks(generated.rows_per_block(k * len(ends), GRAM_BLOCK_BYTES)):
            gains[rows, :] += features @ coef + intercept
    state = design.zeros((design.n_rows, k))
    for part, end in enumerate(ends):
        state = inner.advance(state, gains[:, part * k : (part + 1) * k], stages[end].parameters, xp)
    return state


def staged_states(design: Design, blocks: list[Any], stages: list[Stage], inner: InnerUpdate) -> Iterator[Array]:
    """The state of each row after each stage; one array, overwritten."""
    xp = design.xp
    state = design.zeros((design.n_rows, int(stages[0].coef.shape[1])))
    for stage in stages:
        generated = GeneratedDesign(design, blocks[stage.block])
        coef, intercept = (xp.astype(part, design.dtype, copy=False) for part in (stage.coef, stage.intercept))
        for rows, features in generated.blocks(generated.rows_per_block(int(state.shape[1]), GRAM_BLOCK_BYTES)):
            gain = features @ coef + intercept
            state[rows, :] = inner.advance(state[rows, :], gain, stage.parameters, xp)
        yield state
