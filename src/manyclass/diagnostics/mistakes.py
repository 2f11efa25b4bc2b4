"""Which classes are confused, and with which others."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from manyclass.data import Rows
from manyclass.data.labels import Labels
from manyclass.data.penalty import RidgeSpectrum, best
from manyclass.data.rows import to_numpy
from manyclass.diagnostics.correlation import ResponseCorrelation
from manyclass.features.base import response_columns

JUDGED, FOLDS = 3000, 10
"""Most rows whose labels are predicted by cross-validation, and its folds."""
KEPT = 100
"""Pairs of classes, those most often confused."""


@dataclass(frozen=True)
class Mistakes:
    """Errors of predicted labels; classes by their numbers."""

    n_rows: int  # that were predicted
    error: float  # share of the rows, or of the entries of the indicator matrix, that are wrong
    rows: tuple[int, ...]  # of each class
    missed: tuple[int, ...]  # false negatives of each class
    added: tuple[int, ...]  # false positives of each class
    pairs: tuple[tuple[int, int, int], ...] = ()  # the most frequent (class, predicted class, rows), in this order

    @classmethod
    def of(cls, truth: np.ndarray, predicted: np.ndarray, n_classes: int) -> Self:
        """From class numbers, or from indicator matrices."""
        wrong = (truth > 0) != (predicted > 0) if truth.ndim == 2 else truth != predicted
        error = float(wrong.mean())
        if truth.ndim == 2:
            counts = [mask.sum(axis=0) for mask in (truth > 0, wrong & (truth > 0), wrong & (predicted > 0))]
        else:
            counts = [np.bincount(codes, minlength=n_classes) for codes in (truth, truth[wrong], predicted[wrong])]
        rows, missed, added = (tuple(count.tolist()) for count in counts)
        if truth.ndim == 2:
            return cls(len(truth), error, rows, missed, added)
        pairs, times = np.unique(truth[wrong] * n_classes + predicted[wrong], return_counts=True)
        first = np.argsort(-times, kind="stable")[:KEPT]
        columns = (column[first].tolist() for column in (pairs // n_classes, pairs % n_classes, times))
        return cls(len(truth), error, rows, missed, added, tuple(zip(*columns, strict=True)))

    def worst(self) -> list[int]:
        """Classes by the share of their rows that are missed, the largest first; those without rows are left out."""
        share = [missed / max(rows, 1) for missed, rows in zip(self.missed, self.rows, strict=True)]
        seen = [place for place, rows in enumerate(self.rows) if rows]
        return sorted(seen, key=lambda place: (-share[place], -self.missed[place]))


def left_out(correlation: ResponseCorrelation, rows: Rows, labels: Labels) -> Mistakes:
    """The mistakes of a linear model by tenfold cross-validation, from the decomposition of `correlation`.

    The model is exact least squares without a tenth of the rows. As its prediction of a class between two others is
    never the largest, classes are predicted by a linear discriminant analysis of its predictions of the other tenths,
    which is equivalent to one of the columns themselves (Hastie, Tibshirani and Buja, 1994).
    """
    guide = to_numpy(labels.guide)
    Y = response_columns(guide)
    mean = Y.mean(axis=0)
    scale = np.sqrt(np.mean((Y - mean) ** 2, axis=0))
    covariance = correlation.covariance * np.where(scale > 0, scale, 1.0)
    spectrum = RidgeSpectrum(correlation.eigenvalues, covariance, float(rows.n_rows))
    rng = np.random.default_rng(0)
    index = np.sort(rng.permutation(rows.n_rows)[:JUDGED])
    centred = rows.take(index).shifted(rows.mean())
    Z, R = centred.matmat(correlation.spectrum.components.T), (Y - mean)[index]
    alphas = spectrum.grid(rows.precision)
    alpha = best(alphas, spectrum.leave_one_out(alphas, [(Z, R, None)], rows.precision))
    fold, predicted = rng.permutation(len(index)) % FOLDS, np.empty_like(guide[index])
    present, codes = np.unique(guide[index], return_inverse=True)
    for out in (fold == number for number in np.unique(fold)):
        coef, intercept = spectrum.coefficients_without(alpha, Z[out], R[out])
        if labels.codes is None:
            predicted[out] = Z[out] @ coef + (mean + intercept) > 0.5
        else:
            # Distances need no more dimensions than the rank of the predictions, which may be small for many classes.
            F = Z @ (coef @ np.linalg.qr(coef.T)[0])
            predicted[out] = present[_discriminant_analysis(F[out], F[~out], codes[~out], len(present))]
    return Mistakes.of(guide[index], predicted, labels.n_classes)


def _discriminant_analysis(F: np.ndarray, fitted: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The classes of rows F by linear discriminant analysis of the rows `fitted`, whose classes are `codes`."""
    n_rows, n_columns = fitted.shape
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    means = np.zeros((n_classes, n_columns))
    np.add.at(means, codes, fitted)
    means /= np.maximum(counts, 1.0)[:, None]
    within = fitted - means[codes]
    scatter = within.T @ within / max(n_rows, 1)
    # Shrunk towards a sphere where columns are many for the rows. As indicators sum to 1, it would be singular without.
    scatter += np.eye(n_columns) * (np.trace(scatter) / max(n_rows, 1) + 1e-12)
    inverse = np.linalg.inv(scatter)
    with np.errstate(divide="ignore"):
        log_prior = np.log(counts / max(n_rows, 1))
    scores = F @ inverse @ means.T - 0.5 * np.sum((means @ inverse) * means, axis=1) + log_prior
    return np.asarray(np.argmax(scores, axis=1))
