"""Stagewise regression: each block of features is fitted to the residuals of the blocks before it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import proxy

from manyclass.data import Rows
from manyclass.data.memory import room_for
from manyclass.data.rows import Array
from manyclass.fit import Clock, Iterate, Iterates, Status, restore
from manyclass.fit.history import NAN
from manyclass.fit.run import OutOfTime
from manyclass.model import Problem
from manyclass.model.calibrator import overwrite
from manyclass.stagewise.blocks import FACTOR_BYTES, Blocks, Coefficients
from manyclass.stagewise.equations import Equations, NormalEquations, Residuals
from manyclass.stagewise.judges import Judge, StageScore, Trials, counted
from manyclass.stagewise.stage import Stage, StagewiseModel, features_of
from manyclass.stagewise.sums import gradient_in_columns, sums_of_block, weighted_residuals
from manyclass.stagewise.updates import Update, add_gains

PATIENCE = 4
"""Visits with the present step length, after one that was too long. To try a longer one costs nearly a visit."""
LONGEST_STEP = 2.0**10
"""Steps that change nothing would grow until their powers overflow."""
SOLVED = 1e-6
"""Share of the loss at zero below which steps have length 1: longer ones would amplify rounding."""
LEAST_CURVATURE = 1e-3
"""The least curvature of an output that its step is divided by, in units of the mean curvature."""


@dataclass
class Stagewise:
    """*Least Squares Revisited*, Algorithm 3; over `OriginalColumns`, with calibration, it is Algorithm 2.

    From z = 0, every stage fits one block of features,

        W_t = argmin_W (1/2S) Σ s_i ‖r_i − Wᵀφ_t(x_i) − b‖² + (alpha/2) ‖W‖²,   z_i ← z_i + W_tᵀφ_t(x_i) + b_t,

    to the residuals r that the `Update` of the loss defines. After each visit of all blocks the update may calibrate z.
    A step of length 1 is right for a link of slope 1, but calibration mostly learns a flatter one. So where a single
    block is visited again and again, z_i ← z_i + λ(W_tᵀφ_t(x_i) + b_t). λ doubles with each visit, and is halved, not
    below 1, for as long as the calibrated error would rise.

    A stage reads its block twice, in chunks of rows that are generated as they are read: once for the normal equations,
    once to move the predictions. Blocks that are visited again keep their normal equations. So memory is that of X, one
    array of shape (n_rows, n_outputs), one chunk and the factors that are kept.

    Parameters
    ----------
    problem : Problem
    update : Update
    draw_blocks : callable
        Gives the `Blocks` of a model, by its number.
    max_iter : int
        Visits of every block.
    n_models : int
        Models that are fitted one after the other, and averaged.
    judge : Judge, optional
        Ranks the stages by held-out rows.
    clock : Clock, optional
    chooses_alpha : bool
        Whether the first stage whose features vary chooses ``problem.alpha``, from leave-one-out errors on its block.
    equations : dict, optional
        Normal equations that are known beforehand, by the number of the block.
    trials : Trials, optional
        Smaller fits that try other penalties than the one that leave-one-out errors choose.
    left_out : array of shape (n_rows,), optional
        Weights for the leave-one-out errors: one copy of each row has the weight of all its copies.
    """

    problem: Problem
    update: Update
    draw_blocks: Callable[[int], Blocks]
    max_iter: int = 1
    n_models: int = 1
    judge: Judge | None = None
    clock: Clock = field(default_factory=Clock)
    chooses_alpha: bool = False
    equations: dict[int, Equations] = field(default_factory=dict)
    trials: Trials | None = None
    left_out: Array = None

    def iterates(self, saved: dict[str, Any] | None = None) -> Iterates:
        """An `Iterate` per stage, whose model is the tuple of models so far; the last is the best.

        ``n_iter`` counts visits of all blocks of all models. ``details`` holds ``model`` and ``stage``, ``n_features``
        (different ones so far), ``phases`` (seconds that this stage spent on "generate", "gram", "solve" and "update"),
        ``before_calibration`` (the objective before the update calibrated) and ``length`` (λ); the last two are nan
        where nothing was calibrated.

        Parameters
        ----------
        saved : dict, optional
            The `state` after a stage of another run, of which the following stages are given. It holds the predictions:
            to replay all stages would take half as long as they took, and not give the same digits. Normal equations
            are large and come out the same again, so it does not hold them.
        """
        self.zero_loss = self.update.loss(self._zeros(), self.problem.weight)
        self.finished: tuple[StagewiseModel, ...] = ()
        self.finished_states, self.n_stages = self._zeros() if self.n_models > 1 else None, 0
        for number in range(0 if saved is None else saved["fit"].number, self.n_models):
            self.fit: _Fit = _Fit(self, self.draw_blocks(number), number)
            if saved is not None:
                self._resume(saved)
                saved = None
            status = yield from self.fit.stages()
            if status is not None:
                return status
            self.finished = (*self.finished, self.fit.model(len(self.fit.done)))
            if self.finished_states is not None:
                self.finished_states = self.problem.changed(add_state, self.finished_states, self.fit.state)
        return None

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores, to go on from here."""
        names = ("fit", "finished", "finished_states", "n_stages")
        judge = None if self.judge is None else self.judge.state()
        problem = {"alpha": self.problem.alpha, "n_passes": self.problem.n_passes}
        return {"judge": judge, "problem": problem, **{name: getattr(self, name) for name in names}}

    def _resume(self, saved: dict[str, Any]) -> None:
        restore(self.fit, saved["fit"])
        self.finished, self.finished_states = saved["finished"], saved["finished_states"]
        self.n_stages = saved["n_stages"]
        vars(self.problem).update(saved["problem"])
        if self.judge is not None:
            self.judge.resume(saved["judge"])

    def _zeros(self) -> Any:
        return self.problem.map(zeros)


class _Fit:
    """The fit of one model."""

    _given = ("solver", "problem", "update", "xp", "equations")

    def __init__(self, solver: Stagewise, blocks: Blocks, number: int):
        # A cycle of references would keep the predictions of every trial until it is collected.
        self.solver, self.blocks, self.number = proxy(solver), blocks, number
        self.problem, self.update, self.xp = solver.problem, solver.update, solver.problem.xp
        self.state = solver._zeros()
        self.done: list[Stage] = []
        self.visit, self.error, self.before_visit = 0, solver.zero_loss, solver.zero_loss
        self.equations = dict(solver.equations)
        self.coefficients = Coefficients(self.problem.rows, self.problem.n_outputs)
        self.length, self.patience = 1.0, 0  # of the step, and visits until it may be longer

    def stages(self) -> Iterates:
        solver = self.solver
        while self.visit < solver.max_iter:
            if not self.blocks.place:
                self.before_visit = self.error
                self._lengthen()
            visit = self.visit
            for index, is_last in self.blocks.visit(visit, self._gradient):
                began, phases = time.perf_counter(), _Phases()
                self._fit_block(index, visit, phases)
                before_calibration, gain, status = NAN, NAN, None
                if solver.trials is not None and solver.trials.interrupted:
                    status = Status.INTERRUPTED  # while penalties were compared, of which one is a model
                elif is_last:
                    # The judge may drop the first calibration.
                    may_drop = not visit and self.update.calibrates and solver.n_models == 1
                    if solver.judge is not None and may_drop:
                        solver.judge.before_calibration(self.update, self.state)
                    try:
                        before_calibration = self._calibrate(phases)
                    except OutOfTime:
                        if self.length > 1.0:
                            return Status.MAX_TIME
                        status = Status.MAX_TIME  # least squares without calibration is a model, too
                self.error = self.update.loss(self.state, self.problem.weight)
                if is_last and self.error <= self.before_visit:
                    gain = (self.before_visit - self.error) / max(solver.zero_loss, 1e-300)
                self.visit = visit + is_last
                yield self._iterate(gain, before_calibration, phases)
                if status or 2.0 * time.perf_counter() - began > solver.clock.deadline:
                    return status or Status.MAX_TIME
        return None

    def model(self, n_stages: int, keeps_calibration: bool = True, doubt: float = NAN) -> StagewiseModel:
        """The model of the first `n_stages`, with or without the calibration of the last of them. If no judge gives
        the doubt (nan), it is computed from the rows of the fit."""
        stages = tuple(self.done[:n_stages])
        if not keeps_calibration:
            stages = (*stages[:-1], replace(stages[-1], calibration=None))
        if self.update.calibrates and math.isnan(doubt):
            doubt = StageScore(NAN, *counted(self.update, self.state, self.problem.weight)).doubt
        drawn = tuple(self.blocks.drawn[: 1 + max(stage.block for stage in stages)])
        return StagewiseModel(drawn, stages, 0.0 if math.isnan(doubt) else doubt)

    # -- one stage --------------------------------------------------------------------------------------------------

    def _fit_block(self, index: int, visit: int, phases: _Phases) -> None:
        block, xp, update = self.blocks.drawn[index], self.xp, self.update
        stage = self._stage(block)
        features = stage.rows
        with phases("gram", features):
            equations, cross, mean, curvature = self._read(index, stage)
        if self.solver.chooses_alpha:
            with phases("solve", features):
                if not self.problem.alpha:
                    self._choose_alpha(stage, equations, cross, mean)
                elif not (self.number or index or self.update.weighs_rows):
                    equations.decompose()
        alpha = self.problem.alpha
        previous = self.coefficients.of(index, block) if update.additive else None
        if previous is not None:
            cross -= alpha * previous
        penalty: Any = alpha
        if update.weighs_outputs:
            # Rounded to powers of two, so that all outputs need only a few factors.
            curvature = 2.0 ** xp.round(xp.log2(xp.clip(curvature, LEAST_CURVATURE)))
            cross, mean, penalty = cross / curvature, mean / curvature, alpha / curvature
        with phases("solve"):
            solve = equations.solve
            if previous is None and not update.weighs_outputs:
                solve = partial(equations.solve_residuals, partial(weighted_residuals, stage, self.state, update))
            wide = solve(cross, mean, penalty)
            coef, intercept = (self.length * xp.astype(part, features.dtype, copy=False) for part in wide)
            self._keep(index, equations, visit)
        along = tuple(alpha * part for part in self.coefficients.along(previous, coef))
        with phases("update", features):
            self.state, length = update.move(stage, self.state, coef, intercept, along)
        coef, intercept = coef * length, intercept * length
        if update.additive:
            self.coefficients.add(index, block, previous, coef)
        self.problem.n_passes += 2
        self.done.append(Stage(index, coef, intercept))

    def _choose_alpha(self, stage: Problem, equations: Equations, cross: Array, mean: Array) -> None:
        """The penalty: the one with the least leave-one-out error on the first block, times the number of blocks.

        The kernels of T blocks add up to T times the kernel of one, so T times the penalty gives the same model. And
        one visit of many blocks is gradient descent, which this penalty stops where it would stop ridge regression on
        one block. The residuals of later blocks could not choose a penalty: with few rows, what is left after the first
        block has no signal that leave-one-out could see, and the penalty would be infinite. A block of constants has
        coefficients 0 at any penalty, and leaves the choice to the next block.
        """
        if not equations.varies:
            return
        total, share = self.problem.total_weight, equations.share
        # Generated features depend on the rows, so that the copies of a row have to be left out together.
        whole_rows = stage.rows is not self.problem.rows
        stage = stage if self.solver.left_out is None else stage.variant(weight=self.solver.left_out)
        responses = Residuals(stage, cross / share, mean / share, total, self.state, self.update.on, share, whole_rows)
        n_blocks = max(self.blocks.n_components / stage.rows.n_features, 1.0)
        alpha, trials = equations.best_alpha(responses) * n_blocks, self.solver.trials
        self.problem.alpha = alpha if trials is None else trials.best_penalty(alpha, equations)

    def _stage(self, block: Any) -> Problem:
        return self.problem.variant(rows=features_of(self.problem.rows, block))

    def _calibrate(self, phases: _Phases) -> float:
        """Calibrate, with a shorter step if the error would rise. Gives the objective before; nan if none follows."""
        update, weight = self.update, self.problem.weight
        while True:
            with phases("update"):
                between, calibration = update.loss(self.state, weight), update.calibration(self.state)
                if calibration is None:
                    return NAN
                if self.solver.judge is not None:
                    self.solver.judge.note(update, self.state, calibration)
                state = self.state if self.length == 1.0 else self.problem.map(copied, self.state)
                state = self.problem.changed(overwrite, state, update.calibrator, calibration)
                if self.length == 1.0 or update.loss(state, weight) <= self.before_visit:
                    break
            self._shorten(phases)
        self.state = state
        self.done[-1] = replace(self.done[-1], calibration=calibration)
        return between

    def _lengthen(self) -> None:
        """Set the length of the step of the next visit."""
        is_one = self.visit > 0 and len(self.blocks.drawn) == 1 and not self.blocks.redraws
        n_bytes = 8.0 * self.problem.rows.n_rows * self.problem.n_outputs
        has_room = n_bytes <= room_for(self.problem.memory_limit)
        if self.error <= SOLVED * self.solver.zero_loss or not has_room:  # for the copy that `_calibrate` makes
            self.length = 1.0
        elif is_one and self.update.calibrates and not self.patience:
            self.length = min(2.0 * self.length, LONGEST_STEP)
        self.patience = max(self.patience - 1, 0)

    def _shorten(self, phases: _Phases) -> None:
        """Take back half of the last step."""
        last = self.done[-1]
        coef, intercept = 0.5 * last.coef, 0.5 * last.intercept
        stage = self._stage(self.blocks.drawn[last.block])
        with phases("update", stage.rows):
            self.state = stage.changed(add_gains, self.state, -coef, -intercept)
        self.done[-1] = replace(last, coef=coef, intercept=intercept)
        self.length, self.patience = 0.5 * self.length, PATIENCE
        self.problem.n_passes += 1

    def _read(self, index: int, stage: Problem) -> tuple[Equations, Array, Array, Array]:
        """The normal equations of a block, Σ s x rᵀ / S and Σ s r / S of its features x and the residuals r, and the
        curvature of each output, divided by their mean."""
        known, total = self.equations.get(index), self.problem.total_weight
        if known is not None and self.update.weighs_rows:
            known = known.weighed(self.update.row_weight(self.state))
        cross, mean, curvature, *moments = stage.sum(sums_of_block, self.state, self.update.on, known is None)
        if known is None:
            known = NormalEquations.of(moments.pop(), self.problem)
        return known, cross / total, mean / total, curvature / max(float(self.xp.mean(curvature)), 1e-300)

    def _gradient(self) -> Array:
        self.problem.n_passes += 1
        return self.problem.sum(gradient_in_columns, self.state, self.update.on)

    def _keep(self, index: int, equations: Equations, visit: int) -> None:
        if index in self.solver.equations:
            return
        if self.update.weighs_rows or self.blocks.redraws or visit + 1 == self.solver.max_iter:
            self.equations.pop(index, None)
        elif sum(kept.n_bytes for kept in self.equations.values()) + equations.n_bytes <= self._factor_bytes:
            self.equations[index] = equations

    @property
    def _factor_bytes(self) -> float:
        limit = self.problem.memory_limit
        return FACTOR_BYTES if limit is None else min(FACTOR_BYTES, 0.25 * room_for(limit))

    # -- iterates -------------------------------------------------------------------------------------------------

    def _iterate(self, gain: float, before: float, phases: _Phases) -> Iterate:
        solver, n_done, finished = self.solver, len(self.done), self.solver.finished
        solver.n_stages += 1
        held_out_loss, keeps_calibration, doubt = None, True, NAN
        if solver.judge is not None:
            held_out_loss, keeps_calibration, doubt = solver.judge(self.update, self._average())
        penalty = 0.5 * self.problem.alpha * self.coefficients.square
        # A model with a part of its blocks is averaged with finished ones only if a judge ranks the result.
        counts = not self.number or self.visit > 0 or solver.judge is not None
        return Iterate(
            lambda: (*finished, self.model(n_done, keeps_calibration, doubt)) if counts else finished,
            self.error + penalty,
            self.visit if self.number == solver.n_models - 1 else 0,
            self.problem.n_passes,
            measure=gain,
            rank=-solver.n_stages,
            held_out_loss=held_out_loss,
            details={
                "model": self.number,
                "stage": n_done - 1,
                "n_features": sum(features_of(self.problem.rows, block).n_features for block in self.blocks.drawn),
                "phases": dict(phases.seconds),
                "before_calibration": before,
                "length": self.length if before == before else NAN,
                **self.problem.traffic,
            },
            state=solver.state,
        )

    def _average(self) -> Any:
        """The predictions, averaged with those of the finished models."""
        others, number = self.solver.finished_states, self.number
        return self.state if others is None or not number else self.problem.map(mean_state, others, self.state, number)


def zeros(part: Problem) -> Array:
    return part.rows.zeros((part.rows.n_rows, part.n_outputs))


def copied(part: Problem, state: Array) -> Array:
    return state + 0.0


def add_state(part: Problem, total: Array, state: Array) -> None:
    total += state


def mean_state(part: Problem, others: Array, state: Array, n_others: int) -> Array:
    return (others + state) / (n_others + 1)


class _Phases:
    """Seconds per phase. Generating features is a phase of its own, in whatever phase it happens."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("generate", "gram", "solve", "update"), 0.0)

    @contextmanager
    def __call__(self, phase: str, features: Rows | None = None) -> Iterator[None]:
        begun, generated = time.perf_counter(), getattr(features, "seconds", 0.0)
        try:
            yield
        finally:
            generating = getattr(features, "seconds", 0.0) - generated
            self.seconds["generate"] += generating
            self.seconds[phase] += time.perf_counter() - begun - generating
