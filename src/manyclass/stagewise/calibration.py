"""Calibrated least squares: *Least Squares Revisited*, Algorithm 2."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from manyclass.data.design import Array, Design, scale_rows
from manyclass.data.factor import Factor
from manyclass.data.moments import Moments
from manyclass.data.training import TrainingSet
from manyclass.model.calibration import Calibrator, Map, squared_error
from manyclass.solvers.base import Record, Status


class Step(NamedTuple):
    """One iteration of Algorithm 2: ỹ = ŷ + Wᵀx + b, then ŷ = Π(M G(ỹ) + c)."""

    coef: Array
    intercept: Array
    calibration: Map


@dataclass(frozen=True)
class CalibrationRecord(Record):
    """The state after one iteration.

    Attributes
    ----------
    objective : float
        (1/2S) Σ s_i ‖y_i − ŷ_i‖² after calibration.
    before_calibration : float
        The same for ỹ, between the half steps.
    held_out : float
        The same for ŷ on held-out rows; nan without.
    certificate : float
        Decrease of the objective in this iteration, relative to predicting zero.
    """

    before_calibration: float = float("nan")
    held_out: float = float("nan")


@dataclass(frozen=True)
class CalibratedSolution:
    steps: list[Step]
    status: Status
    history: list[CalibrationRecord]
    certificate: float
    n_passes: int


@dataclass(frozen=True)
class CalibratedLeastSquares:
    """Alternates between least squares on the residuals and calibration of the predictions.

    From ŷ⁰ = 0, step t is

        (10)  W_t = argmin_W (1/2S) Σ s_i ‖y_i − ŷ_i − Wᵀx_i − b‖² + (alpha/2) ‖W‖²,   ỹ_i = ŷ_i + W_tᵀx_i + b_t
        (11)  M_t = argmin_M Σ s_i ‖y_i − M G(ỹ_i) − c‖²,                              ŷ_i = Π(M_t G(ỹ_i) + c_t)

    with one factor of Σ̂ + alpha·I for every t. W = 0 and M G = identity are always allowed and Π moves no prediction
    away from a target, so the squared error never rises, at either half step. The predictions ŷ are the only array
    of shape (n_rows, n_outputs).

    Parameters
    ----------
    calibrator : Calibrator
    alpha : float
    fit_intercept : bool
    max_iter : int
    tol : float
        Stop when an iteration gains less than this share of the error of predicting zero.
    patience : int
        Iterations without gain on the held-out rows after which to stop.
    max_time : float, optional
        Seconds from `started`.
    callback : callable, optional
        Called with each `CalibrationRecord`.
    """

    calibrator: Calibrator
    alpha: float
    fit_intercept: bool = True
    max_iter: int = 100
    tol: float = 1e-5
    patience: int = 5
    max_time: float | None = None
    callback: Callable[[Record], Any] | None = None

    def solve(
        self,
        training: TrainingSet,
        moments: Moments,
        started: float | None = None,
    ) -> CalibratedSolution:
        """Iterate until nothing is gained.

        Parameters
        ----------
        moments : Moments
            Of the rows of `training` with their weights.
        started : float, optional
            When the fit began, by ``time.perf_counter``.
        """
        design, targets = training.design, training.targets
        sample_weight, held_out_weight = training.weight, training.held_out
        xp = design.xp
        started = time.perf_counter() if started is None else started
        S = moments.weight
        center = moments.mean if self.fit_intercept else moments.mean * 0
        precision = float(xp.finfo(design.dtype).eps)
        factor = Factor(moments.covariance if self.fit_intercept else moments.second_moment, self.alpha, precision)
        zero = max(0.5 * moments.yy / S, 1e-300)

        Y_hat = design.zeros((design.n_rows, targets.n_outputs))
        cross, mean = moments.xy / S, moments.y / S  # of the residuals, which are y at first
        steps: list[Step] = []
        history: list[CalibrationRecord] = []
        error, best, best_step, n_passes, status = zero, float("inf"), 0, 0, Status.FINISHED
        while len(steps) < self.max_iter:
            if steps:
                cross, mean = self._residual_moments(training, Y_hat, S)
                n_passes += 1
            coef = factor.solve(cross - center[:, None] * mean[None, :])
            intercept = mean - center @ coef if self.fit_intercept else mean * 0
            coef, intercept = xp.astype(coef, design.dtype), xp.astype(intercept, design.dtype)
            for rows, block in design.blocks(design.rows_per_block(targets.n_outputs)):
                Y_hat[rows, :] += block @ coef + intercept
            n_passes += 1
            between = squared_error(Y_hat, targets, sample_weight)
            calibration = self.calibrator.fit(Y_hat, targets, sample_weight)
            self.calibrator.overwrite(Y_hat, calibration)
            steps.append(Step(coef, intercept, calibration))

            before, error = error, squared_error(Y_hat, targets, sample_weight)
            held_out = float("nan") if held_out_weight is None else squared_error(Y_hat, targets, held_out_weight)
            certificate = (before - error) / zero
            seconds = time.perf_counter() - started
            record = CalibrationRecord(
                n_passes, error, certificate, seconds, before_calibration=between, held_out=held_out
            )
            history.append(record)
            if self.callback is not None:
                self.callback(record)
            if held_out < best:
                best, best_step = held_out, len(steps)
            elif held_out_weight is not None and len(steps) - best_step >= self.patience:
                status = Status.EARLY_STOPPED
                break
            if certificate <= self.tol:
                status = Status.CONVERGED
                break
            if self.max_time is not None and seconds >= self.max_time:
                status = Status.TIME_UP
                break
        if held_out_weight is not None:
            steps = steps[: max(best_step, 1)]
        return CalibratedSolution(steps, status, history, history[-1].certificate, n_passes)

    @staticmethod
    def _residual_moments(training: TrainingSet, Y_hat: Array, S: float) -> tuple[Array, Array]:
        """Σ s x rᵀ / S and Σ s r / S for r = y − ŷ, in float64."""
        design, targets, sample_weight = training.design, training.targets, training.weight
        xp = design.xp
        cross = design.zeros((design.n_features, targets.n_outputs), dtype=xp.float64)
        mean = design.zeros((targets.n_outputs,), dtype=xp.float64)
        for rows, block in design.blocks(design.rows_per_block(targets.n_outputs)):
            predicted = Y_hat[rows, :]
            residual = targets.dense(rows, predicted, xp) - predicted
            if sample_weight is not None:
                residual = scale_rows(residual, sample_weight[rows])
            cross += block.T @ residual
            mean += xp.sum(residual, axis=0, dtype=xp.float64)
        return cross / S, mean / S


def replay(design: Design, steps: list[Step], calibrator: Calibrator) -> Iterator[tuple[slice, Array, Array]]:
    """(rows, scores M G(ỹ) + c of the last step, their projection ŷ) in blocks: one product serves all steps."""
    xp, dtype = design.xp, design.dtype
    k = int(steps[0].coef.shape[1])
    coef = xp.concat([xp.astype(step.coef, dtype, copy=False) for step in steps], axis=1)
    for rows, block in design.blocks(design.rows_per_block(k * len(steps))):
        gains = block @ coef
        predicted = scores = design.zeros((int(gains.shape[0]), k))
        for t, step in enumerate(steps):
            V = predicted + gains[:, t * k : (t + 1) * k] + xp.astype(step.intercept, dtype, copy=False)
            M, c = step.calibration
            scores = calibrator.scores(V, (xp.astype(M, dtype, copy=False), xp.astype(c, dtype, copy=False)), xp)
            predicted = calibrator.domain.project(scores, xp)
        yield rows, scores, predicted
