"""The model of a stagewise fit, and the scores that it gives to rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from manyclass.data import GeneratedRows, Rows
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array
from manyclass.model.calibrator import Calibrator, Map


@dataclass(frozen=True)
class Stage:
    """What one stage adds: the features of a block times `coef`, plus `intercept`; then `calibration`, if any."""

    block: int
    coef: Array
    intercept: Array
    calibration: Map | None = None


@dataclass(frozen=True)
class StagewiseModel:
    """From z = 0, each stage adds Wᵀφ(x) + b to the predictions, and a calibration maps them to Π(M G(z) + c).

    `doubt` is the probability that a label has a predicted probability of 0; so much of them is spread evenly.
    """

    blocks: tuple[Any, ...]  # drawn generators; None for the original columns
    stages: tuple[Stage, ...]
    doubt: float = 0.0

    @property
    def n_outputs(self) -> int:
        return int(self.stages[0].intercept.shape[0])

    def mapped(self, change: Callable[[Array, Array], tuple[Array, Array]], xp: Any) -> Self:
        """The model with changed coefficients and intercepts: `change` is given those of all stages, side by side."""
        k = self.n_outputs
        W, b = change(
            xp.concat([stage.coef for stage in self.stages], axis=1), xp.concat([one.intercept for one in self.stages])
        )
        places = (slice(number * k, (number + 1) * k) for number in range(len(self.stages)))
        pairs = zip(self.stages, places, strict=True)
        stages = tuple(replace(one, coef=W[:, place], intercept=b[place]) for one, place in pairs)
        return replace(self, stages=stages)

    def times(self, unit: Array) -> Self:
        """The model with each output multiplied by its unit, if nothing is calibrated."""
        stages = (replace(one, coef=one.coef * unit, intercept=one.intercept * unit) for one in self.stages)
        return replace(self, stages=tuple(stages))

    def scores(self, rows: Rows, calibrator: Calibrator | None = None) -> Array:
        """The scores after all stages, of shape (n_rows, n_outputs); not projected if the last stage calibrates.

        Between two calibrations stages only add up. So each block is generated once and multiplied once, however many
        stages use it.
        """
        calibrations, parts, intercepts = self._between_calibrations(rows)
        k = self.n_outputs
        step = min(
            features_of(rows, block).rows_per_block(k * len(places), GRAM_BLOCK_BYTES) for block, places, _ in parts
        )
        pieces = []
        for _, chunk in rows.blocks(step):
            gains = list(intercepts)
            for block, places, coef in parts:
                product = features_of(chunk, block).part(slice(0, chunk.n_rows)).matmat(coef)
                for column, place in enumerate(places):
                    gains[place] = gains[place] + product[:, column * k : (column + 1) * k]
            state: Any = 0.0
            for gain, calibration in zip(gains, calibrations, strict=True):
                state = state + gain
                scores, state = _calibrated(state, calibration, calibrator, rows)
            pieces.append(scores)
        return rows.xp.concat(pieces)

    def staged_scores(self, rows: Rows, calibrator: Calibrator | None = None) -> Iterator[Array]:
        """The scores after each stage."""
        state = rows.zeros((rows.n_rows, self.n_outputs))
        for stage in self.stages:
            product = features_of(rows, self.blocks[stage.block]).matmat(rows.asarray(stage.coef))
            state = state + product + rows.asarray(stage.intercept)
            scores, state = _calibrated(state, stage.calibration, calibrator, rows)
            yield scores

    def _between_calibrations(
        self, rows: Rows
    ) -> tuple[list[Map | None], list[tuple[Any, list[int], Array]], list[Array]]:
        """Calibrations; (block, numbers of the calibrations after its stages, their coefficients); intercepts."""
        calibrations: list[Map | None] = []
        intercepts: list[Array] = []
        coefs: dict[int, dict[int, Array]] = {}
        begins = True
        for stage in self.stages:
            if begins:
                calibrations.append(None)
                intercepts.append(rows.zeros((self.n_outputs,)))
            place, mine, coef = len(calibrations) - 1, coefs.setdefault(stage.block, {}), rows.asarray(stage.coef)
            mine[place] = mine[place] + coef if place in mine else coef
            intercepts[place] = intercepts[place] + rows.asarray(stage.intercept)
            calibrations[place] = stage.calibration
            begins = stage.calibration is not None
        parts = [
            (self.blocks[block], list(mine), rows.xp.concat(list(mine.values()), axis=1))
            for block, mine in coefs.items()
        ]
        return calibrations, parts, intercepts


def features_of(rows: Rows, block: Any) -> Rows:
    """The features of a block, generated as they are read; or the original columns."""
    return rows if block is None else GeneratedRows(rows, block)


def _calibrated(
    state: Array, calibration: Map | None, calibrator: Calibrator | None, rows: Rows
) -> tuple[Array, Array]:
    """The scores, and the projected predictions that the next stage adds to."""
    if calibration is None or calibrator is None:
        return state, state
    M, c = calibration
    scores = calibrator.scores(state, (rows.asarray(M), rows.asarray(c)), rows.xp)
    return scores, calibrator.domain.project(scores, rows.xp)
