"""Probabilities for losses that have none, learned from the scores of rows that were left out of fits."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from manyclass.choice.methods import Shape
from manyclass.data.labels import unmistakable
from manyclass.data.penalty import OF_MEDIAN
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.data.units import in_other_units
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import LinearClassifier
from manyclass.fit import Outcome, Status
from manyclass.fit.folds import folds, known_to_fold, of_known
from manyclass.model import SMOOTH_LOSSES
from manyclass.model.losses.base import mean_loss
from manyclass.model.sigmoids import constant_sigmoids, fit_sigmoids
from manyclass.model.sums import gain_and_error, in_copies

N_FOLDS = 5
PASSES, FEWEST_ROWS, SECONDS_OF_LINK = 40, 1000, 4e-7
"""Least passes that a fit is expected to take; least rows that a link is learned from (but at most a fifth of all, if
they are kept aside); and seconds of learning a link, per row and output."""

DIGITS = {"xatol": 1e-9}

CALIBRATE: dict[str, list[Any]] = {"calibrate": [StrOptions({"sigmoid", "temperature"}), None]}


class CrossCalibrated(LinearClassifier):
    """Fits five more models, each without a fifth of the rows, and learns a link from the scores of those rows.

    A model that is cut short has scores on another scale. So if `max_time` is not enough for five more fits, the model
    itself leaves out a tenth of the rows, and the link is learned from its scores of these.

    `calibration_` has the slopes and offsets by which scores become those of the link, the logistic function of each
    column ("sigmoid", and with several labels) or the softmax of all ("temperature").
    """

    calibrate: str | None
    tol: float
    calibration_: np.ndarray
    _aside: np.ndarray

    @property
    def _has_probabilities(self) -> bool:
        return self.calibrate is not None or super()._has_probabilities

    @property
    def _link(self) -> str:
        if self.calibrate is None:
            return self.loss_
        return "softmax" if self.calibrate == "temperature" and not self.multilabel_ else "logistic"

    def _before_link(self, scores: Array) -> Array:
        if self.calibrate is None:
            return scores
        xp = array_namespace(scores)  # of the rows to predict, whatever those were that the model was fitted to
        link = xp.asarray(self.calibration_, dtype=scores.dtype, device=device(scores))
        return scores * link[0, :] + link[1, :]

    def _calibrate(self, task: Task) -> Task:
        """Learn the link, and give the task of the model itself. To be called within the run, as it takes time."""
        if task.saved is not None:  # the checkpoint has restored the link
            return self._without_aside(task)
        self.__dict__.pop("_aside", None)
        if self.calibrate is None:
            self.__dict__.pop("calibration_", None)
            return task
        n_outputs, left = task.problem.n_outputs, task.clock.left
        self.calibration_ = np.stack([np.ones(n_outputs), np.zeros(n_outputs)])
        # Half of the time is for the model itself.
        is_enough = N_FOLDS * PASSES * Shape.of(task.problem).seconds_of_pass() < 0.5 * left
        left_out = self._left_out(task) if is_enough else None
        if left_out is None:
            self._aside = _aside(task, 0.05 * left / (SECONDS_OF_LINK * n_outputs))
            task.clock.set_aside = SECONDS_OF_LINK * n_outputs * len(self._aside)
        else:
            judging, index = _sampled(task, 0.1 * left / (SECONDS_OF_LINK * n_outputs))
            Z, has_seen = (array[index] for array in left_out)
            if self._link == "softmax":  # a sigmoid per class also learns from rows of classes that a fold has not seen
                weight = of_known(None if judging.weight is None else to_numpy(judging.weight), has_seen)
                judging = replace(judging, weight=None if weight is None else judging.rows.asarray(weight))
            self.calibration_ = self._fitted_link(judging, Z)
        return self._without_aside(task)

    def _without_aside(self, task: Task) -> Task:
        index, weight = vars(self).get("_aside"), task.problem.weight
        if index is None:
            return task
        kept = task.rows.asarray(np.isin(np.arange(task.rows.n_rows), index, invert=True))
        return replace(task, problem=task.problem.variant(weight=kept if weight is None else weight * kept))

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        super()._store_outcome(self._without_aside(task), outcome)
        index = self.__dict__.pop("_aside", None)
        if index is not None and len(index):
            judging = _taken(task, index)
            self.calibration_ = self._fitted_link(judging, to_numpy(self._scores(judging.rows)).astype(np.float64))

    def _left_out(self, task: Task) -> tuple[np.ndarray, np.ndarray] | None:
        """Scores of each row by the model of the other folds, and whether that has seen the class of the row.

        None if one of these models is cut short.
        """
        share = None if self.max_time is None else 0.5 * self.max_time / N_FOLDS
        options = self.get_params(deep=False) | {"calibrate": None, "class_weight": None, "max_time": share}
        Z = np.zeros((task.rows.n_rows, task.problem.n_outputs))
        y, has_seen = unmistakable(to_numpy(task.encoded.guide)), np.ones(task.rows.n_rows, dtype=bool)
        try:
            parts = folds(N_FOLDS, task.rows, None, task.encoded.strata, task.weight)
        except ValueError as error:
            raise ValueError(
                f"calibrate={self.calibrate!r} leaves one part of {N_FOLDS} out at a time, and there are too few "
                "rows of positive weight that differ; leave it None, or give more rows."
            ) from error
        for fold in parts:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = type(self)(**options).fit(task.rows, y, fold.weight)
            if model.status_ is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if model.status_ is Status.MAX_TIME:
                return None
            Z[fold.index] = to_numpy(fold.scores(task.rows, model.coef_.T, model.intercept_))
            if y.ndim == 1:
                has_seen[fold.index] = known_to_fold(y, fold)
        return Z, has_seen

    def _fitted_link(self, task: Task, Z: np.ndarray) -> np.ndarray:
        """The slopes and offsets of the least log loss, on rows in the units of most: one other may cost more."""
        sample = np.random.default_rng(0).permutation(present_rows(task.rows.n_rows, task.weight))[:OF_MEDIAN]
        usual = ~in_other_units(task.rows, task.rows.take(np.sort(sample)))
        weight = task.rows.weights(task.weight) * task.rows.asarray(usual)
        if not usual.all() and bool(task.rows.xp.any(weight > 0)):
            task, Z = replace(task, weight=weight), np.where(usual[:, None], Z, 0.0)
        targets, n_outputs, xp = task.encoded.targets(task.rows, (0.0, 1.0)), Z.shape[1], task.rows.xp
        if self.calibrate == "sigmoid":  # Platt's, whose prior counts keep slopes finite where classes are separable
            Y = targets.dense(slice(None), Z[:0], xp)
            weight = None if task.weight is None else in_copies(to_numpy(task.weight).astype(np.float64))
            return self._sigmoids(Z, Y, weight)
        link = SMOOTH_LOSSES[self._link]
        if n_outputs == 1 and link.column_loss is not None:
            link = SMOOTH_LOSSES[link.column_loss]

        def loss(log_slope: float) -> float:
            return mean_loss(link, targets, task.weight, [(slice(None), Z * np.exp(log_slope))], xp)

        slope = best_slope(loss, Z)
        if slope > self._steepest:
            losses, others = (link.values(Z * factor, slice(None), targets, xp) for factor in (slope, self._steepest))
            weight = None if task.weight is None else to_numpy(task.weight).astype(np.float64)
            slope = slope if _is_clearly_less(losses, others, weight) else self._steepest
        return np.stack([np.full(n_outputs, slope), np.zeros(n_outputs)])

    def _sigmoids(self, Z: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Slope and offset of each column; constant probabilities if the slope is negative, or if it is so steep that
        the scores differ by no more than the error that `tol` allows, without a clear gain in log loss."""
        links, constant = fit_sigmoids(Z, Y, weight), constant_sigmoids(Y, weight)
        for j in np.flatnonzero((links[0] < 0) | (links[0] > self._steepest)):
            sign = np.where(Y[:, j] > 0, -1.0, 1.0)
            of_link, of_constant = (np.logaddexp(0.0, sign * (a[j] * Z[:, j] + b[j])) for a, b in (links, constant))
            if links[0, j] < 0 or not _is_clearly_less(of_link, of_constant, weight):
                links[:, j] = constant[:, j]
        return links

    @property
    def _steepest(self) -> float:
        """The slope that makes an error of `tol` in a score as large as ½."""
        return 0.5 / max(self.tol, 1e-12)


def best_slope(loss: Callable[[float], float], Z: np.ndarray) -> float:
    """The slope of the least loss, between one that makes scores negligible and one that makes differences decisive.

    It is found to all digits that rounding leaves, so that a weight of 2 is the same as the row given twice.
    """
    low, high = (-np.log(max(float(size), 1e-30)) for size in (np.sqrt(np.mean(Z**2)), np.std(Z)))
    return float(np.exp(minimize_scalar(loss, bounds=(low - 8.0, high + 8.0), method="bounded", options=DIGITS).x))


def _sampled(task: Task, n_rows: float) -> tuple[Task, Any]:
    """The task of a random sample of about so many rows, with one of each class at least; and their numbers."""
    if max(n_rows, FEWEST_ROWS) >= task.rows.n_rows:
        return task, slice(None)
    present = present_rows(task.rows.n_rows, task.weight)
    n_drawn = min(int(max(n_rows, FEWEST_ROWS)), len(present))
    index = np.sort(np.random.default_rng(0).choice(present, n_drawn, replace=False))
    index = np.union1d(index, _first_of_each(task, present))
    return _taken(task, index), index


def _aside(task: Task, n_rows: float) -> np.ndarray:
    """The numbers of the rows to keep aside: `n_rows`, but at most a tenth, or `FEWEST_ROWS` if that is more.

    The first row of each class is not among them, so the model sees every class.
    """
    present = present_rows(task.rows.n_rows, task.problem.weight)
    free, n = np.setdiff1d(present, _first_of_each(task, present)), len(present)
    most = min(max(FEWEST_ROWS, min(n_rows, n // 10)), n // 5, len(free))
    return np.sort(np.random.default_rng(0).choice(free, int(most), replace=False))


def _first_of_each(task: Task, present: np.ndarray) -> np.ndarray:
    """The first of these rows of each class."""
    strata = task.encoded.strata
    return np.arange(0) if strata is None else present[np.unique(strata[present], return_index=True)[1]]


def _taken(task: Task, index: np.ndarray) -> Task:
    weight = None if task.weight is None else task.weight[index]
    return replace(task, rows=task.rows.take(index), encoded=task.encoded.take(index), weight=weight)


def _is_clearly_less(losses: np.ndarray, others: np.ndarray, weight: np.ndarray | None) -> bool:
    """Whether the mean loss is lower by more than two standard errors of the difference."""
    mean, error = gain_and_error(np.asarray(others) - np.asarray(losses), weight)
    return mean > 2.0 * error
