"""Stagewise regression over generated features: *Least Squares Revisited*, Algorithm 3."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.data.design import GRAM_BLOCK_BYTES, Array, Design, scale_rows
from manyclass.data.generated import GeneratedDesign
from manyclass.data.training import TrainingSet
from manyclass.model.objective import to_numpy
from manyclass.solvers.base import Record, Status
from manyclass.solvers.inner import InnerUpdate, Move, heavy_rows
from manyclass.solvers.metric import Metric, MetricSums
from manyclass.solvers.stages import Stage, StageRecord, StagewiseSolution


@dataclass
class Stagewise:
    """Fits blocks of generated features to what the blocks before have left over.

    A stage reads its block twice, in chunks of rows that are generated when they are read: once for the Gram matrix
    and the correlation with the residuals, once to move the predictions. So memory is that of X, two arrays of shape
    (n_rows, n_outputs), one chunk and the factors that are kept.

    Parameters
    ----------
    inner : InnerUpdate
    alpha : float
    block_size : int
        Features per block.
    n_components : int or None
        Features in all; None for as many as the generator has.
    n_passes : int
        How often every block is visited.
    fit_intercept : bool
    cache_bytes : float
        Memory for the factors of blocks that will be visited again; the others are computed again.
    patience : int
        Stages without gain on the held-out rows after which to stop.
    max_time : float, optional
        Seconds; a stage that would probably end later is not begun.
    callback : callable, optional
        Called with each `StageRecord`.
    """

    inner: InnerUpdate
    alpha: float
    block_size: int
    n_components: int | None
    n_passes: int = 1
    fit_intercept: bool = True
    cache_bytes: float = 1e9
    patience: int = 10
    max_time: float | None = None
    callback: Callable[[Record], Any] | None = None

    def solve(
        self,
        training: TrainingSet,
        generator: Any,
        rng: np.random.Generator,
        started: float | None = None,
        model: int = 0,
    ) -> StagewiseSolution:
        """Run all stages, or as many as time, the held-out rows or the user allow.

        Parameters
        ----------
        generator : FeatureGenerator
            Fitted.
        started : float, optional
            When the fit began, by ``time.perf_counter``.
        model : int
            Number of the model, for its records.
        """
        run = _Run(self, training, generator, rng)
        run.started = time.perf_counter() if started is None else started
        run.model = model
        try:
            status = run.all_stages()
        except KeyboardInterrupt:
            if not run.stages:
                raise
            status = Status.INTERRUPTED
        stages = run.stages[: run.best_stage] if training.held_out is not None else run.stages
        used = 1 + max(stage.block for stage in stages)
        return StagewiseSolution(run.blocks[:used], stages, status, run.history, run.n_passes)


class _Run:
    """The state of one fit."""

    def __init__(self, settings: Stagewise, training: TrainingSet, generator: Any, rng: np.random.Generator):
        self.settings, self.inner = settings, settings.inner
        self.design, self.targets, self.generator, self.rng = training.design, training.targets, generator, rng
        self.sample_weight, self.held_out_weight = training.weight, training.held_out
        self.total_weight = training.total_weight
        design, targets = self.design, self.targets
        self.xp = design.xp
        self.state = design.zeros((design.n_rows, targets.n_outputs))
        self.gain = design.zeros((design.n_rows, targets.n_outputs))
        self.blocks: list[Any] = []
        self.stages: list[Stage] = []
        self.history: list[StageRecord] = []
        self.metrics: dict[int, Metric] = {}
        self.cached_bytes = 0.0
        self.sums: dict[int, Array] = {}  # coefficients of each block, summed over its stages
        self.table: Array | None = None  # those of all columns, where blocks are drawn again from the same columns
        self.square = 0.0  # ‖all coefficients‖²
        self.zero_loss = self.previous = self.inner.loss(self.state, targets, self.sample_weight)
        self.best, self.best_stage, self.n_passes, self.model = float("inf"), 0, 0, 0
        self.started = 0.0

    def all_stages(self) -> Status:
        for pass_number in range(self.settings.n_passes):
            again = pass_number > 0 and not self.generator.redraws
            for block, is_last in self._present_blocks() if again else self._new_blocks():
                before = time.perf_counter()
                self._stage(block, pass_number, is_last)
                if self._no_gain():
                    return Status.EARLY_STOPPED
                now = time.perf_counter()
                next_end = (now - self.started) + (now - before)
                if self.settings.max_time is not None and next_end > self.settings.max_time:
                    done = is_last and pass_number == self.settings.n_passes - 1
                    return Status.FINISHED if done else Status.TIME_UP
        return Status.FINISHED

    def _present_blocks(self) -> Iterator[tuple[int, bool]]:
        """Numbers of the blocks, and whether each is the last of the pass."""
        for block in range(len(self.blocks)):
            yield block, block == len(self.blocks) - 1

    def _new_blocks(self) -> Iterator[tuple[int, bool]]:
        """The same for a pass over new blocks, each drawn when its turn comes."""
        limits = [n for n in (self.settings.n_components, self.generator.capacity) if n is not None]
        n_wanted, n_drawn = min(limits), 0
        self.generator.begin_pass(self.design, self._gradient, self.rng)
        while n_drawn < n_wanted:
            size = min(self.settings.block_size, n_wanted - n_drawn)
            self.blocks.append(self.generator.draw(size, self.rng))
            n_drawn += self.blocks[-1].n_features_out
            yield len(self.blocks) - 1, n_drawn >= n_wanted

    def _gradient(self) -> Array:
        """Σ s x rᵀ over the original columns."""
        design = self.design
        total = design.zeros((design.n_features, self.targets.n_outputs), dtype=self.xp.float64)
        for rows, block in design.blocks(design.rows_per_block(self.targets.n_outputs)):
            total += block.T @ self._residual(rows)
        return total

    def _residual(self, rows: slice) -> Array:
        """s_i r_i of a block of rows."""
        block = self.state[rows, :]
        residual = self.inner.residual(block, self.targets.dense(rows, block, self.xp), self.xp)
        return residual if self.sample_weight is None else scale_rows(residual, self.sample_weight[rows])

    def _row_weights(self) -> np.ndarray:
        """s_i h_i on the host."""
        weight = self.inner.row_weight(self.state, self.xp)
        return to_numpy(weight if self.sample_weight is None else weight * self.sample_weight)

    # -- one stage ----------------------------------------------------------------------------------------------

    def _stage(self, block: int, pass_number: int, is_last: bool) -> None:
        clock = _Clock()
        design = GeneratedDesign(self.design, self.blocks[block])
        metric, cross, mean = self._read(design, block, clock)
        previous = self._present(block) if self.inner.additive else None
        if previous is not None:
            cross -= self.settings.alpha * previous
        with clock("solve"):
            coef, intercept = metric.solve(cross, mean, self.settings.fit_intercept)
            coef, intercept = self.xp.astype(coef, design.dtype), self.xp.astype(intercept, design.dtype)
            self._keep(block, metric, pass_number)
        with clock("update"):
            for rows, features in design.blocks(self._step(design)):
                self.gain[rows, :] = features @ coef + intercept
            square = self._square(coef, previous)
            penalty = tuple(0.5 * self.settings.alpha * c for c in (square[0], 2.0 * square[1], square[2]))
            move = Move(self.state, self.gain, self.targets, self.sample_weight, penalty, is_last)
            length, parameters = self.inner.settle(move)
            if length != 1.0:
                coef, intercept, self.gain = length * coef, length * intercept, length * self.gain
            whole = Design(self.state)
            for rows, state in whole.blocks(whole.rows_per_block(4)):
                self.state[rows, :] = self.inner.advance(state, self.gain[rows, :], parameters, self.xp)
        clock.move("update", "generate", design.seconds - clock.generated)
        self.n_passes += 2
        self.stages.append(Stage(block, coef, intercept, parameters))
        self._add(block, coef, square, length)
        self._record(clock)

    def _read(self, design: GeneratedDesign, block: int, clock: _Clock) -> tuple[Metric, Array, Array]:
        """The metric of the block, and Σ s x rᵀ / S and Σ s r / S of its features x and the residuals r."""
        xp, k, S = self.xp, self.targets.n_outputs, self.total_weight
        metric = self.metrics.get(block)
        chosen, row_weight = None, None
        if self.inner.weighs_rows:
            with clock("gram"):
                row_weight = self._row_weights()
                chosen = heavy_rows(row_weight)
        gathering = metric is None and chosen is None
        weight = self.sample_weight if row_weight is None else design.asarray(row_weight)
        sums = MetricSums(design)
        cross, mean = design.zeros((design.n_features, k), xp.float64), design.zeros((k,), xp.float64)
        with clock("gram"):
            for rows, features in design.blocks(self._step(design)):
                if gathering:
                    sums.add(features, None if weight is None else weight[rows])
                residual = self._residual(rows)
                cross += features.T @ residual
                mean += xp.sum(residual, axis=0, dtype=xp.float64)
            if chosen is not None and row_weight is not None:
                step = self._step(design)
                for index in (chosen[start : start + step] for start in range(0, len(chosen), step)):
                    sums.add(design.take(index), design.asarray(row_weight[index]))
        clock.move("gram", "generate", design.seconds)
        clock.generated = design.seconds
        with clock("solve"):
            metric = sums.metric(S, self.settings.alpha, self.settings.fit_intercept) if metric is None else metric
        return metric, cross / S, mean / S

    def _step(self, design: Design) -> int:
        return design.rows_per_block(self.targets.n_outputs, GRAM_BLOCK_BYTES)

    def _keep(self, block: int, metric: Metric, pass_number: int) -> None:
        visited_again = pass_number + 1 < self.settings.n_passes and not self.generator.redraws
        if self.inner.weighs_rows or not visited_again:
            self.metrics.pop(block, None)
            return
        size = 8.0 * int(metric.center.shape[0]) ** 2
        if block not in self.metrics and self.cached_bytes + size <= self.settings.cache_bytes:
            self.metrics[block] = metric
            self.cached_bytes += size

    # -- coefficients of stages before ----------------------------------------------------------------------------

    def _present(self, block: int) -> Array | None:
        columns = self.blocks[block].columns
        if columns is None:
            return self.sums.get(block)
        if self.table is None:
            self.table = self.design.zeros((self.generator.capacity, self.targets.n_outputs), self.xp.float64)
        return self.xp.take(self.table, self.design.asarray(columns, self.xp.int64), axis=0)

    def _add(self, block: int, coef: Array, square: tuple[float, float, float], length: float) -> None:
        if not self.inner.additive:
            return
        self.square += length * (2.0 * square[1] + length * square[2])
        wide, columns = self.xp.astype(coef, self.xp.float64), self.blocks[block].columns
        if columns is None:
            self.sums[block] = wide if block not in self.sums else self.sums[block] + wide
        elif self.table is not None:
            index = self.design.asarray(columns, self.xp.int64)
            self.table[index, :] = self.xp.take(self.table, index, axis=0) + wide

    def _square(self, coef: Array, previous: Array | None) -> tuple[float, float, float]:
        """‖all coefficients + length·coef‖² = c₀ + 2 c₁ length + c₂ length²."""
        wide = self.xp.astype(coef, self.xp.float64)
        product = 0.0 if previous is None else float(self.xp.sum(previous * wide))
        return self.square, product, float(self.xp.sum(wide * wide))

    # -- records ------------------------------------------------------------------------------------------------

    def _record(self, clock: _Clock) -> None:
        objective = self.inner.loss(self.state, self.targets, self.sample_weight)
        if self.inner.additive:
            objective += 0.5 * self.settings.alpha * self.square
        held_out = float("nan")
        if self.held_out_weight is not None:
            held_out = self.inner.loss(self.state, self.targets, self.held_out_weight)
            if held_out < self.best:
                self.best, self.best_stage = held_out, len(self.stages)
        record = StageRecord(
            n_passes=self.n_passes,
            objective=objective,
            certificate=(self.previous - objective) / max(self.zero_loss, 1e-300),
            seconds=time.perf_counter() - self.started,
            held_out=held_out,
            model=self.model,
            stage=len(self.stages) - 1,
            n_features=sum(block.n_features_out for block in self.blocks),
            phases=dict(clock.seconds),
        )
        self.previous = objective
        self.history.append(record)
        if self.settings.callback is not None:
            self.settings.callback(record)

    def _no_gain(self) -> bool:
        return self.held_out_weight is not None and len(self.stages) - self.best_stage >= self.settings.patience


class _Clock:
    """Seconds per phase."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("generate", "gram", "solve", "update"), 0.0)
        self.generated = 0.0

    def __call__(self, phase: str) -> _Clock:
        self._phase = phase
        return self

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self._phase] += time.perf_counter() - self._begun

    def move(self, source: str, target: str, seconds: float) -> None:
        self.seconds[source] -= seconds
        self.seconds[target] += seconds
