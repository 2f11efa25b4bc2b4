"""Least squares for a whole path of penalties: one decomposition for all rows, one for each fold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from array_api_compat import array_namespace

from manyclass.data import Moments
from manyclass.data.penalty import RidgeSpectrum
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, present_rows
from manyclass.fit.folds import Fold
from manyclass.model import Problem
from manyclass.model.sums import rotated, squares_of


@dataclass(frozen=True)
class RidgePath:
    """The minimum of (1/2S) Σ s_i ‖y_i − b − Wᵀx_i‖² + (alpha/2) ‖W‖² for every alpha, from the moments of the rows."""

    moments: Moments
    fit_intercept: bool

    @cached_property
    def spectrum(self) -> RidgeSpectrum:
        moments, given = self.moments, self.fit_intercept
        cross = moments.cross(fit_intercept=given)
        return RidgeSpectrum.of(moments.factor(fit_intercept=given), cross, moments.weight, given)

    def coefficients(self, alphas: Sequence[Array | float]) -> Iterator[tuple[Array, Array]]:
        """W and b at each alpha, which is one for all outputs, or an array of one for each.

        Vectors are as large as the moments, and are read once for as many penalties as `GRAM_BLOCK_BYTES` hold.
        """
        spectrum, moments, xp = self.spectrum, self.moments, array_namespace(self.spectrum.vectors)
        d, k = (int(size) for size in spectrum.cross.shape)
        step = max(int(GRAM_BLOCK_BYTES / (8.0 * max(d * k, 1))), 1)
        for first in range(0, len(alphas), step):
            rotated = [spectrum.coefficients(alpha) for alpha in alphas[first : first + step]]
            found = spectrum.vectors @ xp.concat(rotated, axis=1)
            for place in range(len(rotated)):
                coef = found[:, place * k : (place + 1) * k]
                yield coef, moments.target_mean - moments.mean @ coef if self.fit_intercept else moments.y * 0

    def generalised_cross_validation(self, alphas: np.ndarray, problem: Problem) -> np.ndarray:
        """As `RidgeSpectrum.generalised_cross_validation`, of shape (n_alphas, n_outputs)."""
        mean = self.moments.target_mean if self.fit_intercept else self.moments.y * 0
        total, n = problem.sum(_squares, mean), problem.effective_rows(problem.weight)
        return self.spectrum.generalised_cross_validation(alphas, total / problem.total_weight, n)

    def left_out_scores(self, alphas: np.ndarray, problem: Problem) -> Iterator[tuple[int, slice, Array]]:
        """(place in `alphas`, which rows, their scores under the models that have not seen them), exactly."""
        xp, rows, spectrum = problem.xp, problem.rows, self.spectrum
        center = problem.feature_mean if self.fit_intercept else 0.0 * self.moments.x
        mean = self.moments.target_mean if self.fit_intercept else 0.0 * self.moments.y
        like = rows.zeros((0,), dtype=xp.float64)
        for part, Z, weight in rotated(problem, spectrum.vectors, center, GRAM_BLOCK_BYTES):
            Y = problem.targets.dense(part, like, xp)
            for place, error, _ in spectrum.left_out_errors(alphas, [(Z, Y - mean, weight)], rows.precision):
                problem.on_block()
                yield place, part, Y - error


def moments_by_fold(problem: Problem, folds: list[Fold]) -> tuple[Moments, list[Moments]]:
    """The moments of all rows, and of those that each fold fits: what a fold leaves out is subtracted.

    Where the folds divide the rows, every row is read once.
    """
    rows = problem.rows
    if not folds:
        return problem.sum(_moments), []
    judging = [_moments(problem.taken(fold.index)) if fold.is_complement else None for fold in folds]
    times = np.zeros(rows.n_rows)
    for fold in folds:
        if fold.is_complement:
            np.add.at(times, fold.index, 1.0)
    if len(folds) > 1 and np.all(times[present_rows(rows.n_rows, problem.weight)] == 1.0):
        full = Moments.zeros(rows.n_features, problem.targets.n_outputs, like=rows.zeros((0, rows.n_features)))
        for part in judging:
            full = full.merge(part) if part is not None else full
    else:
        full = problem.sum(_moments)
    return full, [
        _moments(problem.variant(weight=fold.weight)) if part is None else full.without(part)
        for fold, part in zip(folds, judging, strict=True)
    ]


def _moments(part: Problem) -> Moments:
    return Moments.of(part.rows, part.targets, part.weight)


def _squares(part: Problem, mean: Array) -> Array:
    """Σ s (y − mean)² of each output."""
    like = part.rows.zeros((0,), dtype=part.xp.float64)
    return squares_of(part, lambda where: part.targets.dense(where, like, part.xp) - mean, mean * 0)
