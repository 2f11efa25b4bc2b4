"""What a stagewise fit leaves behind: its stages, their records, and the replay that predicts from them."""

from __future__ import annotations

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
    """The state of each row after all stages; the stages of an additive update are merged block by block."""
    if inner.additive:
        merged: dict[int, Stage] = {}
        for stage in stages:
            present = merged.get(stage.block)
            if present is not None:
                stage = Stage(stage.block, present.coef + stage.coef, present.intercept + stage.intercept)
            merged[stage.block] = stage
        stages = list(merged.values())
    state = None
    for state in staged_states(design, blocks, stages, inner):  # noqa: B007
        pass
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
