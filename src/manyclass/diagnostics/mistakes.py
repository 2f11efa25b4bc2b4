"""Which classes are hard to tell, and from which others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.data import Rows
from manyclass.data.labels import Labels
from manyclass.data.penalty import Spectrum, best
from manyclass.data.rows import to_numpy
from manyclass.diagnostics.correlation import ResponseCorrelation, responses

JUDGED = 3000
"""Rows that are left out of least squares, each in its turn, to see what they are taken for."""
KEPT = 100
"""Pairs of classes, those most often confused."""


@dataclass(frozen=True)
class Mistakes:
    """What rows are taken for whose labels are known; classes by their numbers.

    Attributes
    ----------
    n_rows : int
        Rows that were judged.
    error : float
        Share of the rows, or of the cells of several labels, that are wrong.
    rows, missed, added : tuple of int
        Of each class: its rows, those of them that are not taken for it, and other rows that are.
    pairs : tuple of (class, taken for, rows)
        The most frequent ones, the largest first; none for several labels per row.
    """

    n_rows: int
    error: float
    rows: tuple[int, ...]
    missed: tuple[int, ...]
    added: tuple[int, ...]
    pairs: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def of(cls, truth: np.ndarray, predicted: np.ndarray, n_classes: int) -> Mistakes:
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
    """What a linear model of all of `rows` but one takes that one for, from the decomposition that is there.

    Least squares, in which a class that lies between two others is never the largest; so its predictions, each exactly
    that of the model of the other rows, are told apart by linear discriminants, which makes of least squares what
    discriminants are on the columns themselves (Hastie, Tibshirani and Buja, 1994).
    """
    guide = to_numpy(labels.guide)
    Y = responses(guide)
    mean = Y.mean(axis=0)
    scale = np.sqrt(np.mean((Y - mean) ** 2, axis=0))
    spectrum = Spectrum(found.eigenvalues, found.covariance * np.where(scale > 0, scale, 1.0), float(rows.n_rows))
    index = np.sort(np.random.default_rng(0).permutation(rows.n_rows)[:JUDGED])
    centred = rows.take(index).shifted(rows.mean())
    Z, R = centred.matmat(found.spectrum.components.T), (Y - mean)[index]
    alphas = spectrum.grid(rows.precision)
    errors = spectrum.leave_one_out(alphas, [(Z, R, None)], rows.precision)
    F = Y[index] - spectrum.left_out(best(alphas, errors), Z, R, precision=rows.precision)
    if labels.codes is None:
        return Mistakes.of(guide[index], F > 0.5, labels.n_classes)
    seen, codes = np.unique(guide[index], return_inverse=True)
    return Mistakes.of(guide[index], seen[_discriminated(F, codes)], labels.n_classes)


def _discriminated(F: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The class of the nearest mean, by the distances within classes; a row is left out of the mean of its own."""
    n_rows, n_columns = F.shape
    counts = np.bincount(codes).astype(np.float64)
    means = np.zeros((len(counts), n_columns))
    np.add.at(means, codes, F)
    means /= counts[:, None]
    within = F - means[codes]
    others = np.maximum(counts[codes] - 1.0, 1.0)
    scatter = within.T @ within / n_rows
    # Towards a sphere where the columns are many for the rows; never singular, as indicators sum to 1.
    scatter += np.eye(n_columns) * (np.trace(scatter) / n_rows + 1e-12)
    inverse = np.linalg.inv(scatter)

    def scores(given: Any, mean: Any, share: Any) -> Any:
        return given - 0.5 * np.sum((mean @ inverse) * mean, axis=1) + np.log(share / n_rows)

    table = scores(F @ inverse @ means.T, means, counts)
    own = means[codes] - within / others[:, None]
    table[np.arange(n_rows), codes] = scores(np.sum((F @ inverse) * own, axis=1), own, others)
    return np.asarray(np.argmax(table, axis=1))
