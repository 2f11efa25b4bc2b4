"""Which classes are hard to tell, and from which others."""

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
"""Rows that are left out of least squares, so many parts in turn, to see what they are taken for."""
KEPT = 100
"""Pairs of classes, those most often confused."""


@dataclass(frozen=True)
class Mistakes:
    """What rows are taken for whose labels are known; classes by their numbers."""

    n_rows: int  # that were judged
    error: float  # share of the rows, or of the cells of several labels, that are wrong
    rows: tuple[int, ...]  # of each class
    missed: tuple[int, ...]  # those of them that are not taken for it
    added: tuple[int, ...]  # other rows that are
    pairs: tuple[tuple[int, int, int], ...] = ()  # the most frequent (class, taken for, rows), the largest first

    @classmethod
    def of(cls, truth: np.ndarray, predicted: np.ndarray, n_classes: int) -> Self:
        """From class numbers, or from indicator matrices."""
        wrong = (truth > 0) != (predicted > 0) if truth.ndim == 2 else truth != predicted
        error = float(wrong.mean())
        if truth.ndim == 2:
            counts = [one.sum(axis=0) for one in (truth > 0, wrong & (truth > 0), wrong & (predicted > 0))]
        else:
            counts = [np.bincount(one, minlength=n_classes) for one in (truth, truth[wrong], predicted[wrong])]
        rows, missed, added = (tuple(one.tolist()) for one in counts)
        if truth.ndim == 2:
            return cls(len(truth), error, rows, missed, added)
        pairs, times = np.unique(truth[wrong] * n_classes + predicted[wrong], return_counts=True)
        first = np.argsort(-times, kind="stable")[:KEPT]
        named = np.column_stack([pairs[first] // n_classes, pairs[first] % n_classes, times[first]])
        return cls(len(truth), error, rows, missed, added, tuple((true, told, n) for true, told, n in named.tolist()))

    def worst(self) -> list[int]:
        """Classes by the share of their rows that are missed, the largest first; those without rows are left out."""
        share = [missed / max(rows, 1) for missed, rows in zip(self.missed, self.rows, strict=True)]
        seen = [place for place, rows in enumerate(self.rows) if rows]
        return sorted(seen, key=lambda place: (-share[place], -self.missed[place]))


def left_out(found: ResponseCorrelation, rows: Rows, labels: Labels) -> Mistakes:
    """What a linear model takes rows for that it has not seen, a tenth at a time, from the decomposition that is there.

    Least squares, in which a class that lies between two others is never the largest; so predictions of the exact model
    without a tenth of the rows are told apart by linear discriminants of those of the other tenths, which makes of
    least squares what discriminants are on the columns themselves (Hastie, Tibshirani and Buja, 1994).
    """
    guide = to_numpy(labels.guide)
    Y = response_columns(guide)
    mean = Y.mean(axis=0)
    scale = np.sqrt(np.mean((Y - mean) ** 2, axis=0))
    spectrum = RidgeSpectrum(found.eigenvalues, found.covariance * np.where(scale > 0, scale, 1.0), float(rows.n_rows))
    rng = np.random.default_rng(0)
    index = np.sort(rng.permutation(rows.n_rows)[:JUDGED])
    centred = rows.take(index).shifted(rows.mean())
    Z, R = centred.matmat(found.spectrum.components.T), (Y - mean)[index]
    alphas = spectrum.grid(rows.precision)
    alpha = best(alphas, spectrum.leave_one_out(alphas, [(Z, R, None)], rows.precision))
    part, told = rng.permutation(len(index)) % FOLDS, np.empty_like(guide[index])
    seen, codes = np.unique(guide[index], return_inverse=True)
    for out in (part == one for one in np.unique(part)):
        coef, intercept = spectrum.coefficients_without(alpha, Z[out], R[out])
        if labels.codes is None:
            told[out] = Z[out] @ coef + (mean + intercept) > 0.5
        else:
            # Distances need no more axes than predictions have, of which thousands of classes may have few.
            F = Z @ (coef @ np.linalg.qr(coef.T)[0])
            told[out] = seen[_discriminated(F[out], F[~out], codes[~out], len(seen))]
    return Mistakes.of(guide[index], told, labels.n_classes)


def _discriminated(F: np.ndarray, known: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The class of the nearest mean of the rows that are known, by the distances within their classes."""
    n_rows, n_columns = known.shape
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    means = np.zeros((n_classes, n_columns))
    np.add.at(means, codes, known)
    means /= np.maximum(counts, 1.0)[:, None]
    within = known - means[codes]
    scatter = within.T @ within / max(n_rows, 1)
    # Towards a sphere where the columns are many for the rows; never singular, as indicators sum to 1.
    scatter += np.eye(n_columns) * (np.trace(scatter) / max(n_rows, 1) + 1e-12)
    inverse = np.linalg.inv(scatter)
    with np.errstate(divide="ignore"):
        share = np.log(counts / max(n_rows, 1))
    scores = F @ inverse @ means.T - 0.5 * np.sum((means @ inverse) * means, axis=1) + share
    return np.asarray(np.argmax(scores, axis=1))
