"""The default penalty by the errors of some rows that are left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from manyclass.choice.frame import occurring
from manyclass.choice.methods import Shape, choose
from manyclass.choice.relay import in_turn
from manyclass.data import ClassTargets
from manyclass.data.memory import room_for
from manyclass.data.penalty import SEEN, best, path_of_rows
from manyclass.data.rows import present_rows, to_numpy
from manyclass.data.summary import row_keys
from manyclass.data.targets import MatrixTargets
from manyclass.fit import Clock, OutOfTime, Run, Status
from manyclass.model import Problem
from manyclass.model.losses import Loss, ResponseLoss, SmoothLoss

MOST_ROWS = 1e6
"""More rows lower no penalty any further."""
ROWS_OF_CLASS = 16
"""Rows left out, for each class, at least: of fewer rows a class hardly has a mean."""
SAMPLE_BYTES = 1 << 28
"""Of the rows left out, in float64, at most."""
CLEARLY = 2.0
"""Standard errors by which sums of errors of unseen rows have to differ."""
LEAST = 1e-12
"""The smallest penalty, relative to the sum of the variances: columns may differ in size by a factor of a million."""
REWEIGHTED = 5
"""Paths of least squares with weights by the residuals of the one before; after five, weights hardly move."""
TOLERANCE, MOST_STEPS = 1e-2, 100
"""Of the fits to half of the sample."""


def penalty_left_out(problem: Problem, usual: float) -> float:
    """The penalty next to `usual` that is as good as the best, by squared errors of m rows left out, for n rows.

    It is λ h m/n. λ is that of least squares on labels of 0 and 1, which has a curvature of 1. h is that of the loss at
    the mean label, as the mean over directions: p (1 − p) of logistic regression, 1/k of softmax where classes are as
    frequent; or 2 if the loss has kinks, as (y − z)² has for y = ±1. n is a million at most. Equal rows are left out
    together; m and n are numbers of different rows: in the sample, and in all if further rows are as often new as those
    are that the sample has once. Errors are as good if their sum over the sample is larger by no more than two standard
    errors, as each row differs.

    A penalty above `usual` also has to have clearly smaller squared errors of probabilities, where fits to one half of
    the sample predict the other: least squares asks for a large one where it explains little, as beside wild rows, and
    a smooth loss may explain more. Losses of real responses need no such fits. For φ(r) beside the squared one, rows
    weigh φ'(r)/r in least squares, by their residuals r when left out, h is the mean weight, and errors are sums of φ.
    """
    try:
        problem.on_block()
        sample = Sample.of(problem)
        if not sample.curvature > 0:
            return usual
        problem.on_block(Shape.of(sample.part).seconds_of_rotation)
    except OutOfTime:  # what is left is for the fit
        return usual
    found = sample.next_to(usual)
    if found <= usual or problem.loss.quadratic or isinstance(problem.loss, ResponseLoss):
        return found
    smooth = isinstance(problem.loss, SmoothLoss)
    return found if smooth and sample.errs_less(found, usual) else usual


@dataclass(frozen=True)
class Sample:
    """Some rows of a problem, in float64, so that the penalty does not depend on the dtype.

    Of many classes it has a few, so that each has `ROWS_OF_CLASS` rows, and as few of many labels or real responses.
    `responses` are labels of 0 and 1, or real ones, which the squared loss has in units of their standard deviations.
    `same` numbers the different rows, `weight` is at most 1, and n as in `penalty_left_out`.
    """

    part: Problem
    responses: np.ndarray
    weight: np.ndarray
    same: np.ndarray
    n: float

    @classmethod
    def of(cls, problem: Problem) -> Sample:
        index, responses = _rows_of(problem)
        n_rows = len(present_rows(problem.rows.n_rows, problem.rows.place.gather(problem.weight)))
        part, _ = occurring(problem.taken(index))
        part = part.variant(rows=part.rows.typed(problem.xp.float64))
        weight = np.ones(len(index)) if part.weight is None else to_numpy(part.weight).astype(np.float64)
        _, same, copies = np.unique(row_keys(part.rows), return_inverse=True, return_counts=True)
        share_new = np.count_nonzero(copies == 1) / len(index)
        n = min(len(copies) + share_new * (n_rows - len(index)), MOST_ROWS)
        return cls(part, responses.astype(np.float64), weight / weight.max(), same, n)

    @property
    def curvature(self) -> float:
        return _mean_curvature(self.part.loss, np.average(self.responses, axis=0, weights=self.weight))

    def next_to(self, usual: float) -> float:
        """The penalty next to `usual` at which least squares is as good as at its best."""
        part, responses, weight = self._merged()
        curvature, told = self.curvature, weight
        for _ in range(REWEIGHTED if isinstance(part.loss, ResponseLoss) else 1):
            alphas, aim, residuals = _path(part, responses, told / told.max())
            if isinstance(part.loss, ResponseLoss):
                told = weight * part.loss.weight(residuals(aim), np).mean(axis=1)
                curvature = float(told.sum() / weight.sum())
                if not curvature > 0:
                    return usual

        unit = curvature * len(weight) / self.n
        given, least = usual / unit, weight * _errors_of(part.loss, residuals(aim))
        between = alphas[(alphas - given) * (alphas - aim) <= 0]
        for alpha in (given, *between[np.argsort(np.abs(np.log(between / given)))]):
            more = weight * _errors_of(part.loss, residuals(alpha)) - least
            if more.sum() <= CLEARLY * math.sqrt(more @ more):
                return usual if alpha == given else float(alpha * unit)
        return usual

    def _merged(self) -> tuple[Problem, np.ndarray, np.ndarray]:
        """Each row once, with the mean responses and the weight of its copies."""
        _, first = np.unique(self.same, return_index=True)
        together = csr_array((self.weight, (self.same, np.arange(len(self.same)))))
        weight = np.asarray(together.sum(axis=1))
        return self.part.taken(first), together @ self.responses / weight[:, None], weight / weight.max()

    def errs_less(self, larger: float, smaller: float) -> bool:
        """Whether rows of one half, under a fit to the other half, have clearly smaller errors at the `larger`."""
        half = np.random.default_rng(0).permutation(self.same.max() + 1)[self.same] % 2
        less = np.zeros(self.same.max() + 1)
        for fitted, judging in ((half == 0, half == 1), (half == 1, half == 0)):
            if not (judging.any() and fitted.any()):
                return False
            scale = self.n / len(np.unique(self.same[fitted]))
            of_both = [
                self._errors(np.flatnonzero(fitted), np.flatnonzero(judging), scale * one) for one in (larger, smaller)
            ]
            if of_both[0] is None or of_both[1] is None:
                return False
            np.add.at(less, self.same[judging], self.weight[judging] * (of_both[1] - of_both[0]))
        return bool(less.sum() > CLEARLY * math.sqrt(less @ less))

    def _errors(self, fitted: np.ndarray, judging: np.ndarray, alpha: float) -> np.ndarray | None:
        """Squared errors of the probabilities of rows that judge; None if the minimum is far away."""
        problem, judges = self._labelled(fitted), self.part.taken(judging)
        problem.alpha = alpha
        iterates = in_turn(choose(problem, TOLERANCE), problem, np.random.default_rng(0), None, lambda _: None)
        outcome = Run(Clock(), TOLERANCE, MOST_STEPS)(iterates, lambda: None)
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if outcome.status is not Status.CONVERGED:
            return None
        W, b = outcome.model
        scores = judges.scores(judges.rows, W, judges.unshifted(W, b, back=True))
        errors = to_numpy(judges.loss.mean(scores, judges.xp)) - self.responses[judging]
        return np.asarray(np.sum(errors**2, axis=1))

    def _labelled(self, index: np.ndarray) -> Problem:
        """Some rows of the sample, with as many classes as the sample has."""
        part, responses = self.part.taken(index), self.responses[index]
        weight = part.rows.asarray(self.weight[index], part.xp.float64)
        if isinstance(part.targets, ClassTargets):
            codes = part.rows.asarray(responses.argmax(axis=1), part.xp.int64)
            return part.variant(targets=ClassTargets(codes, responses.shape[1]), weight=weight)
        return part.variant(targets=MatrixTargets(part.rows.asarray(responses, part.xp.float64)), weight=weight)


def _path(
    part: Problem, responses: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, float, Callable[[float], np.ndarray]]:
    """Penalties of least squares, the best of them, and the sizes of the residuals of rows left out at any."""
    R, of_rows = (part.rows.asarray(array, part.xp.float64) for array in (responses, weight))
    alphas, errors, left_out = path_of_rows(part.rows, R, of_rows, fit_intercept=part.fit_intercept, least=LEAST)
    return alphas, best(alphas, errors), lambda alpha: np.abs(to_numpy(left_out(alpha)))


def _errors_of(loss: Loss, residual: np.ndarray) -> np.ndarray:
    """Errors of each row, by the sizes of its residuals."""
    return np.asarray((loss.of_residual(residual, np) if isinstance(loss, ResponseLoss) else residual**2).sum(axis=1))


def _mean_curvature(loss: Loss, share: np.ndarray) -> float:
    if loss.quadratic or isinstance(loss, ResponseLoss):
        return float(len(share) > 0)
    if not isinstance(loss, SmoothLoss):
        return 2.0 * float(np.any((share > 0.0) & (share < 1.0)))
    n_directions = len(share) - loss.domain.exclusive  # a shift of all classes changes nothing
    return float(loss.hessian_trace(share[None, :], np)[0]) / max(n_directions, 1)


def _rows_of(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows of a `Sample`, and their `responses`."""
    room = min(SAMPLE_BYTES, 0.25 * room_for(problem.memory_limit))
    most = int(np.clip(room * problem.rows.itemsize / (8.0 * max(problem.rows.row_bytes, 1.0)), 2, SEEN))
    n_classes = problem.n_outputs if isinstance(problem.targets, ClassTargets) else 1
    index = problem.sample(max(most, n_classes * ROWS_OF_CLASS))
    targets, rng, most_outputs = problem.targets.take(index), np.random.default_rng(0), max(most // ROWS_OF_CLASS, 2)
    if not isinstance(targets, ClassTargets):
        Y = to_numpy(targets.dense(slice(None), problem.rows.zeros((0,)), problem.xp))
        if problem.loss.quadratic:
            Y = Y / np.maximum(Y.std(axis=0), 1e-300)
        elif not isinstance(problem.loss, ResponseLoss):
            Y = Y > 0
        return index, Y[:, np.sort(rng.permutation(np.flatnonzero((Y != Y[:1]).any(axis=0)))[:most_outputs])]
    codes = to_numpy(targets.codes)
    kept = rng.permutation(np.unique(codes))[:most_outputs]
    places = np.sort(rng.permutation(np.flatnonzero(np.isin(codes, kept)))[:most])
    classes, codes = np.unique(codes[places], return_inverse=True)
    return index[places], codes[:, None] == np.arange(len(classes))
