"""Numbers that are missing, guessed from the others of their row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

ROUNDS, SWEEPS = 3, 8
"""Of guesses while regressions are learned, each from the guesses of the last; and over the columns of a row, whose
guesses depend on each other."""
EXPLAINED = 0.5
"""Of the variance of a column, by the others: where less is, the mean is the guess, which steps tell from numbers."""
MOST_FLOPS, OF_INVERSES = 2e9, 0.1
"""Multiplications of all sweeps over all rows, each of about a nanosecond: with more columns the mean has to do. And
the share of that which those of an inverse take."""


@dataclass(frozen=True)
class Guesses:
    """x_j ≈ m_j + Σ_i≠j (x_i − m_i) c_ij, the linear regression of each column on all others, within its range.

    Where that explains less than half of the variance of a column, it is m_j alone.

    All regressions come from one inverse of the covariance, P: c_ij = −P_ij / P_jj. Where several numbers of a row are
    missing, a sweep guesses them in turn, each from what the others are now (Gauss and Seidel), which ends at their
    mean given the numbers that are there.
    """

    mean: np.ndarray
    coef: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def learned(cls, X: np.ndarray, weight: np.ndarray, n_rows: int) -> Self | None:
        """From some of `n_rows` rows, whose columns are in standard deviations from their mean, NaN where they are
        missing; None where the mean, which is 0, has to do."""
        is_missing, p = np.isnan(X), X.shape[1]
        n_missing = np.count_nonzero(is_missing) * n_rows / max(len(X), 1)
        n_flops = 2.0 * SWEEPS * n_missing * p + OF_INVERSES * 2.0 * ROUNDS * float(p) ** 3
        if p < 2 or not is_missing.any() or n_flops > MOST_FLOPS:
            return None
        of_means = np.where(is_missing, 0.0, X)
        found = cls(np.zeros(p), np.zeros((p, p)), of_means.min(axis=0), of_means.max(axis=0))
        for _ in range(ROUNDS):
            filled = found.fill(X)
            mean = np.average(filled, axis=0, weights=weight)
            centred = filled - mean
            covariance = (centred * weight[:, None]).T @ centred / weight.sum()
            # Of few rows regressions on many columns would follow their noise.
            ridge = max(p / max(len(X), weight.sum()), 1e-6)
            inverse = np.linalg.inv(covariance + ridge * np.eye(p))
            coef = -inverse / np.diag(inverse)
            np.fill_diagonal(coef, 0.0)
            unexplained = 1.0 / np.diag(inverse) - ridge
            coef[:, unexplained > (1.0 - EXPLAINED) * np.diag(covariance)] = 0.0
            found = cls(mean, coef, found.low, found.high)
        return found

    def fill(self, X: np.ndarray) -> np.ndarray:
        """The rows with guesses where they lack numbers; those of a row depend on that row alone."""
        is_missing = np.isnan(X)
        filled = np.where(is_missing, self.mean, X)
        places = [(j, np.flatnonzero(is_missing[:, j])) for j in np.flatnonzero(is_missing.any(axis=0))]
        for _ in range(SWEEPS):
            for j, rows in places:
                guess = self.mean[j] + (filled[rows] - self.mean) @ self.coef[:, j]
                filled[rows, j] = np.clip(guess, self.low[j], self.high[j])
        return filled
