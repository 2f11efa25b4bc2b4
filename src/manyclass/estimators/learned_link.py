"""Probabilities from the scores of least squares, by a link that is learned from held-out rows."""

import math
from typing import Any, ClassVar

import array_api_compat.numpy as xp
import numpy as np

from manyclass.choice.features import LeftOut
from manyclass.data import MatrixTargets, Rows
from manyclass.data.rows import Array, to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.calibration import FEWEST_ROWS, best_slope
from manyclass.estimators.stagewise_base import StagewiseClassifierBase
from manyclass.fit import Clock, Outcome
from manyclass.fit.folds import known_to_others, of_known
from manyclass.model import LOSSES, SMOOTH_LOSSES, Problem
from manyclass.model.losses.base import mean_loss
from manyclass.model.sets import ConvexSet
from manyclass.model.sums import gain_and_error, in_copies
from manyclass.stagewise.judges import StageScore
from manyclass.stagewise.updates import NONE

MOST_SCORES = 2e5
"""A link is learned from at most so many scores, but from no fewer than `FEWEST_ROWS` rows."""


class LearnedLink(StagewiseClassifierBase):
    """A classifier whose squared loss has probabilities by a softmax at a learned temperature, or by a projection.

    Both are learned from predictions of rows by models that were not fitted to them. These are the held-out rows; or
    the rows that compare penalties of generated features; or the rows that are left out in turn to choose the features.
    If there are none, probabilities are projections, and their even share is learned from the rows of the fit.
    """

    _learned: tuple[float | None, float] | None  # by `link_of_squared`
    _link_proof: ClassVar[float] = 0.0
    """The link is taken if its log loss is so many standard errors below that of the projection."""

    @property
    def temperature_(self) -> float:
        """The divisor of the scores of the squared loss before the link, if they have one."""
        slope, _ = vars(self).get("_learned") or (None, 0.0)
        if slope is None:
            raise AttributeError("There is temperature_ where scores of the squared loss have a link.")
        return float(1.0 / slope)

    @property
    def _link(self) -> str:
        if not hasattr(self, "temperature_"):
            return self.loss_
        return "logistic" if self.multilabel_ else "softmax"

    @property
    def _doubt(self) -> float:
        learned = vars(self).get("_learned")
        return super()._doubt if learned is None else learned[1]

    def _before_link(self, scores: Array) -> Array:
        return scores / self.temperature_ if hasattr(self, "temperature_") else scores

    @property
    def _learns_link(self) -> bool:
        return self.loss_ == "squared"

    def _link_of(self, left_out: LeftOut) -> tuple[float | None, float]:
        """`link_of_squared`, for scores and labels in the units of this loss.

        Only the unit has to be changed, not the origin: scores of independent columns are relative to the midpoint, and
        with exclusive classes neither a softmax nor a projection depends on a common shift of the scores.
        """
        absent, present = LOSSES[self.loss_].label_values or (-1.0, 1.0)
        unit = 0.5 * (present - absent)
        scaled = LeftOut(left_out.scores / unit, left_out.labels - absent, left_out.weight)
        slope, doubt = link_of_squared(scaled, self._domain, self._link_proof)
        return None if slope is None else slope / unit, doubt

    def _learn_link(self, left_out: LeftOut, seen: np.ndarray | None = None) -> None:
        Z, Y, weight = left_out
        if self._domain.exclusive:
            codes = Y.argmax(axis=1)
            weight = of_known(weight, known_to_others(codes, weight) if seen is None else seen[codes])
        if Y.size > MOST_SCORES:  # enough for a single number
            n_rows = min(max(int(MOST_SCORES / Y.shape[1]), FEWEST_ROWS), len(Y))
            index = np.random.default_rng(0).choice(len(Y), n_rows, replace=False)
            Z, Y, weight = Z[index], Y[index], None if weight is None else weight[index]
        if weight is None or weight.any():
            self._learned = self._link_of(LeftOut(Z, Y, weight))

    def _learn_from(self, problem: Problem, scored: Array, scores: Array) -> None:
        Y = to_numpy(problem.targets.dense(slice(None), scores, problem.xp))
        weight: Any = to_numpy(scored).astype(np.float64)
        seen = None if problem.weight is None else np.any(Y[to_numpy(problem.weight) > 0] > 0, axis=0)
        index = np.flatnonzero(weight > 0)
        self._learn_link(LeftOut(to_numpy(scores)[index].astype(np.float64), Y[index], weight[index]), seen)

    def _task(self, rows: Rows, encoded: Any, weight: Any, clock: Clock) -> Task:
        self.__dict__.pop("_learned", None)
        return super()._task(rows, encoded, weight, clock)

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        super()._store_outcome(task, outcome)
        if not (self._learns_link and outcome.history):  # the constant model has the class shares by projection
            self.__dict__.pop("_learned", None)
            return
        problem, held_out = task.problem, task.held_out
        if held_out is None and vars(self).get("_learned") is not None:
            return
        index = problem.sample(FEWEST_ROWS)
        if held_out is not None:
            problem = problem.variant(weight=held_out.scored)
            index = problem.sample(10 * FEWEST_ROWS)
        elif task.clock.left <= 0:
            index = index[:1]
        part = problem.taken(index)
        scores = self._scores(part.rows)
        Y = to_numpy(part.targets.dense(slice(None), scores, part.xp))
        weight = None if part.weight is None else to_numpy(part.weight).astype(np.float64)
        learned = self._link_of(LeftOut(to_numpy(scores).astype(np.float64), Y, weight))
        self._learned = learned if held_out is not None else (None, learned[1])


def link_of_squared(left_out: LeftOut, domain: ConvexSet, proof: float = 0.0) -> tuple[float | None, float]:
    """The best map from left-out scores of least squares, on labels −1 and 1, to probabilities: (slope, doubt).

    Probabilities are softmax(slope · z), or of the logistic function if columns are independent, with the slope of the
    least log loss. The slope is None if (1 + z)/2, projected onto probabilities, has less log loss (as with hundreds of
    rare labels), or no more than `proof` standard errors of the difference above it. Then a share of the probabilities
    is even: doubt = (m + 1)/(n + 2) if m of n labels have probability 0 by projection.

    The slope is fitted to smoothed labels, as for a model without errors on n labels. So if all rows are predicted
    right, probabilities are as near to 1 as so many rows can show, and not nearer.
    """
    Z, present = left_out.scores, left_out.labels > 0
    weight, Y = np.ones(len(Z)) if left_out.weight is None else left_out.weight, present.astype(np.float64)
    n_rows = float(in_copies(weight).sum())
    n_classes, n = Y.shape[1] if domain.exclusive else 2, n_rows * (1 if domain.exclusive else Y.shape[1])
    link, even = SMOOTH_LOSSES["softmax" if domain.exclusive else "logistic"], 1.0 / n_classes
    smoothed = MatrixTargets(Y + (even - Y) / (n + 2.0))

    def loss(log_slope: float) -> float:
        return mean_loss(link, smoothed, weight, [(slice(None), Z * np.exp(log_slope))], xp)

    slope = best_slope(loss, Z)
    P = domain.project(0.5 * (1.0 + Z), xp)
    own = (P * Y).sum(axis=1, keepdims=True) if domain.exclusive else np.where(present, P, 1.0 - P)
    unforeseen = float(np.average(np.mean(own <= NONE, axis=1), weights=weight))
    doubt = StageScore(math.nan, math.nan, n, unforeseen).doubt
    projected = -np.log(own + doubt * (even - own)).sum(axis=1)
    linked = link.values(Z * slope, slice(None), MatrixTargets(Y), xp)
    mean, error = gain_and_error(projected - linked, weight)
    return (slope if mean >= proof * error else None), doubt
