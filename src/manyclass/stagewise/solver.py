"""Stagewise regression: fit a block of features to what the blocks before have left over, and go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from manyclass.data import Rows
from manyclass.data.moments import MomentSums
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, to_numpy
from manyclass.fit import Clock, Iterate, Iterates, Status, restore
from manyclass.fit.history import NAN
from manyclass.fit.run import OutOfTime
from manyclass.model import Problem
from manyclass.stagewise.blocks import FACTOR_BYTES, Blocks, Coefficients
from manyclass.stagewise.equations import Equations, NormalEquations, Responses
from manyclass.stagewise.judges import Judge
from manyclass.stagewise.stage import Stage, StagewiseModel, features_of
from manyclass.stagewise.updates import Update, heavy_rows


@dataclass
class Stagewise:
    """*Least Squares Revisited*, Algorithm 3; over `OriginalColumns`, with calibration, it is Algorithm 2.

    From z = 0, every stage fits one block of features,

        W_t = argmin_W (1/2S) Σ s_i ‖r_i − Wᵀφ_t(x_i) − b‖² + (alpha/2) ‖W‖²,   z_i ← z_i + W_tᵀφ_t(x_i) + b_t,

    to the residuals r that the `Update` of the loss defines; after each visit of all blocks the update may calibrate z.
    A stage reads its block twice, in chunks of rows that are generated when they are read: once for the normal
    equations (those of a block that is visited again are kept), once to move the predictions. So memory is that of X,
    one array of shape (n_rows, n_outputs), one chunk and the factors that are kept.

    Parameters
    ----------
    problem : Problem
    update : Update
    draw_blocks : callable
        Gives the `Blocks` of a new model.
    max_iter : int
        Visits of every block.
    n_models : int
        Models, fitted one after the other and averaged.
    judge : Judge, optional
        What ranks the stages, by rows that are not fitted to.
    clock : Clock, optional
    chooses_alpha : bool
        Whether the first stage chooses ``problem.alpha``, from leave-one-out errors on its block.
    equations : dict, optional
        Of blocks whose normal equations are known beforehand.
    """

    problem: Problem
    update: Update
    draw_blocks: Callable[[], Blocks]
    max_iter: int = 1
    n_models: int = 1
    judge: Judge | None = None
    clock: Clock = field(default_factory=Clock)
    chooses_alpha: bool = False
    equations: dict[int, Equations] = field(default_factory=dict)

    def iterates(self, saved: dict[str, Any] | None = None) -> Iterates:
        """An `Iterate` per stage, whose model is the tuple of models so far; the last is the best.

        ``n_iter`` counts visits of all blocks of all models. ``details`` holds ``model`` and ``stage``, ``n_features``
        (different ones so far), ``phases`` (seconds of this stage spent on "generate", "gram", "solve" and "update")
        and ``before_calibration`` (the objective before the update calibrated; nan where it did not).

        Parameters
        ----------
        saved : dict, optional
            The `state` after a stage of another run: those that followed it follow. The predictions are part of it, as
            to replay all stages would take half of the time that they took, and not give the same digits; normal
            equations are not, as they are large and come out the same again.
        """
        self.zero_loss = self.update.loss(self._zeros(), self.problem.weight)
        self.finished: tuple[StagewiseModel, ...] = ()
        self.finished_states, self.n_stages = self._zeros() if self.n_models > 1 else None, 0
        for number in range(0 if saved is None else saved["fit"].number, self.n_models):
            self.fit: _Fit = _Fit(self, self.draw_blocks(), number)
            if saved is not None:
                self._resume(saved)
                saved = None
            status = yield from self.fit.stages()
            if status is not None:
                return status
            self.finished = (*self.finished, self.fit.model(len(self.fit.done)))
            if self.finished_states is not None:
                self.finished_states += self.fit.state
        return None

    def state(self) -> dict[str, Any]:
        """All that a run has to know to go on from here."""
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

    def _zeros(self) -> Array:
        return self.problem.rows.zeros((self.problem.rows.n_rows, self.problem.n_outputs))


class _Fit:
    """One model at work."""

    _given = ("solver", "problem", "update", "xp", "equations")

    def __init__(self, solver: Stagewise, blocks: Blocks, number: int):
        self.solver, self.blocks, self.number = solver, blocks, number
        self.problem, self.update, self.xp = solver.problem, solver.update, solver.problem.xp
        self.state = solver._zeros()
        self.done: list[Stage] = []
        self.visit, self.error, self.before_visit = 0, solver.zero_loss, solver.zero_loss
        self.equations = dict(solver.equations)
        self.coefficients = Coefficients(self.problem.rows, self.problem.n_outputs)

    def stages(self) -> Iterates:
        solver = self.solver
        while self.visit < solver.max_iter:
            if not self.blocks.place:
                self.before_visit = self.error
            visit = self.visit
            for index, is_last in self.blocks.visit(visit, self._gradient):
                began, phases = time.perf_counter(), _Phases()
                self._fit_block(index, visit, phases)
                before_calibration, gain, status = NAN, NAN, None
                if is_last:
                    if solver.judge is not None and not visit and self._drops_calibration:
                        solver.judge.before_calibration(self.update, self.state)
                    try:
                        before_calibration = self._calibrate(phases)
                    except OutOfTime:
                        status = Status.MAX_TIME  # least squares is a model without
                self.error = self.update.loss(self.state, self.problem.weight)
                if is_last and self.error <= self.before_visit:
                    gain = (self.before_visit - self.error) / max(solver.zero_loss, 1e-300)
                self.visit = visit + is_last
                yield self._iterate(gain, before_calibration, phases)
                if status or 2.0 * time.perf_counter() - began > solver.clock.deadline:
                    return Status.MAX_TIME
        return None

    @property
    def _drops_calibration(self) -> bool:
        """Whether the first calibration can be left out where held-out rows say so."""
        return self.update.calibrates and self.solver.n_models == 1

    def model(self, n_stages: int, keeps_calibration: bool = True) -> StagewiseModel:
        """What the first so many stages make, the calibration of the last among them or not."""
        stages = tuple(self.done[:n_stages])
        if not keeps_calibration:
            stages = (*stages[:-1], replace(stages[-1], calibration=None))
        return StagewiseModel(tuple(self.blocks.drawn[: 1 + max(stage.block for stage in stages)]), stages)

    # -- one stage --------------------------------------------------------------------------------------------------

    def _fit_block(self, index: int, visit: int, phases: _Phases) -> None:
        block, xp, update = self.blocks.drawn[index], self.xp, self.update
        features = features_of(self.problem.rows, block)
        with phases("gram", features):
            equations, cross, mean = self._read(index, features)
        if self.solver.chooses_alpha and not self.number and not index:
            with phases("solve", features):
                if not self.solver.n_stages:
                    self._choose_alpha(features, equations, cross, mean)
                elif not self.update.weighs_rows:
                    equations.decompose()
        alpha = self.problem.alpha
        previous = self.coefficients.of(index, block) if update.additive else None
        if previous is not None:
            cross -= alpha * previous
        with phases("solve"):
            wide = equations.solve(cross, mean, alpha)
            coef, intercept = (xp.astype(part, features.dtype, copy=False) for part in wide)
            self._keep(index, equations, visit)
        square = self.coefficients.along(previous, coef)
        with phases("update", features):
            gains = ((rows, chunk.matmat(coef) + intercept) for rows, chunk in self._chunks(features))
            length = update.move(self.state, gains, lambda length: 0.5 * alpha * square(length))
        if length != 1.0:
            coef, intercept = length * coef, length * intercept
        if update.additive:
            self.coefficients.add(index, block, coef, square(length))
        self.problem.n_passes += 2
        self.done.append(Stage(index, coef, intercept))

    def _choose_alpha(self, features: Rows, equations: Equations, cross: Array, mean: Array) -> None:
        """Leave-one-out errors of the first block choose the penalty, and its share of all features scales it.

        The kernels of T blocks add up to T times that of one, so T times the penalty is the same model; and one visit
        of T blocks with it stops gradient descent, for many blocks, where ridge regression on one would. Chosen on the
        residuals of each block instead, the penalty of every block but the first is infinite wherever rows are few:
        what is left over after fitting them holds no signal that leave-one-out could see.
        """
        problem, share = self.problem, equations.share

        def residual(rows: slice) -> Array:
            state = self.state[rows, :]
            return self.update.residual(state, problem.targets.dense(rows, state, self.xp)) / share

        responses = Responses(problem, features, cross / share, mean / share, residual)
        problem.alpha = equations.best_alpha(responses) * max(self.blocks.n_components / features.n_features, 1.0)

    def _calibrate(self, phases: _Phases) -> float:
        """The objective before calibration; nan where there is none."""
        with phases("update"):
            between = self.update.loss(self.state, self.problem.weight)
            calibration = self.update.calibrate(self.state)
        if calibration is None:
            return NAN
        last = self.done[-1]
        self.done[-1] = Stage(last.block, last.coef, last.intercept, calibration)
        return between

    def _read(self, index: int, features: Rows) -> tuple[Equations, Array, Array]:
        """The normal equations of a block, and Σ s x rᵀ / S and Σ s r / S of its features x and the residuals r."""
        problem, xp = self.problem, self.xp
        known = self.equations.get(index)
        weight, heavy = problem.weight, None
        if self.update.weighs_rows:
            curvature = self.update.row_weight(self.state)
            weight = curvature if weight is None else curvature * weight
            heavy = heavy_rows(to_numpy(weight))
        sums = MomentSums(features) if known is None else None
        cross = features.zeros((features.n_features, problem.n_outputs), dtype=xp.float64)
        mean = features.zeros((problem.n_outputs,), dtype=xp.float64)
        for rows, chunk in self._chunks(features):
            if sums is not None and heavy is None:
                sums.add(chunk, None if weight is None else weight[rows])
            residual = self._residual(rows)
            chunk.rmatmat(residual, cross)
            mean += xp.sum(residual, axis=0, dtype=xp.float64)
        if sums is not None and heavy is not None:
            step = self._step(features)
            for chosen in (heavy[start : start + step] for start in range(0, len(heavy), step)):
                self._check_time()
                sums.add(features.take(chosen), xp.take(weight, features.asarray(chosen, xp.int64), axis=0))
        if sums is not None:
            known = NormalEquations.of(sums.result(), problem)
        assert known is not None
        return known, cross / problem.total_weight, mean / problem.total_weight

    def _residual(self, rows: slice) -> Array:
        """s_i r_i of a block of rows."""
        state, weight = self.state[rows, :], self.problem.weight
        residual = self.update.residual(state, self.problem.targets.dense(rows, state, self.xp))
        return residual if weight is None else residual * weight[rows][:, None]

    def _gradient(self) -> Array:
        rows = self.problem.rows
        total = rows.zeros((rows.n_features, self.problem.n_outputs), dtype=self.xp.float64)
        for part, block, _ in self.problem.blocks():
            block.rmatmat(self._residual(part), total)
        self.problem.n_passes += 1
        return total

    def _chunks(self, features: Rows) -> Iterator[tuple[slice, Rows]]:
        for rows, chunk in features.blocks(self._step(features)):
            self._check_time()
            yield rows, chunk

    def _step(self, features: Rows) -> int:
        return features.rows_per_block(self.problem.n_outputs, GRAM_BLOCK_BYTES)

    def _check_time(self) -> None:
        if self.problem.on_block is not None:
            self.problem.on_block()

    def _keep(self, index: int, equations: Equations, visit: int) -> None:
        if self.update.weighs_rows or self.blocks.redraws or visit + 1 == self.solver.max_iter:
            self.equations.pop(index, None)
        elif sum(kept.n_bytes for kept in self.equations.values()) + equations.n_bytes <= FACTOR_BYTES:
            self.equations[index] = equations

    # -- what the loop is told ----------------------------------------------------------------------------------------

    def _iterate(self, gain: float, before: float, phases: _Phases) -> Iterate:
        solver, n_done = self.solver, len(self.done)
        solver.n_stages += 1
        held_out_loss, keeps_calibration = None, True
        if solver.judge is not None:
            held_out_loss, keeps_calibration = solver.judge(self.update, self._average())
        penalty = 0.5 * self.problem.alpha * self.coefficients.square
        return Iterate(
            lambda: (*solver.finished, self.model(n_done, keeps_calibration)),
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
            },
            state=solver.state,
        )

    def _average(self) -> Array:
        """The predictions, averaged with those of the models before."""
        others, number = self.solver.finished_states, self.number
        return self.state if others is None or not number else (others + self.state) / (number + 1)


class _Phases:
    """Seconds per phase; making features is a phase of its own wherever it happens."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("generate", "gram", "solve", "update"), 0.0)

    def __call__(self, phase: str, features: Rows | None = None) -> _Phases:
        self._phase, self._features = phase, features
        return self

    def __enter__(self) -> None:
        self._begun, self._generated = time.perf_counter(), getattr(self._features, "seconds", 0.0)

    def __exit__(self, *_: object) -> None:
        generating = getattr(self._features, "seconds", 0.0) - self._generated
        self.seconds["generate"] += generating
        self.seconds[self._phase] += time.perf_counter() - self._begun - generating
