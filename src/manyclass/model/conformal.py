"""Prediction sets from how well rows fit their own labels under models that have not seen them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from manyclass.model.sums import in_copies


@dataclass(frozen=True)
class Conformity:
    """How well rows of known labels fit these, to be compared with new rows.

    A new row's label is in its set where it fits at least as well as all but a share 1 − coverage of the rows known
    (Vovk, Gammerman and Shafer, 2005; with the probability of the label Sadinle, Lei and Wasserman, 2019, whose sets
    are the smallest on average). With leave-one-out scores every row serves both ends (the jackknife; Barber, Candès,
    Ramdas and Tibshirani, 2021): nothing is kept aside, and the coverage holds as far as leaving out a row changes the
    models of others little.

    `fit` is that of each row to its label; with several labels, to the one that it fits the least, and infinity with
    none. `by_class` has fit and weight of the rows of each class.
    """

    fit: np.ndarray
    weight: np.ndarray
    by_class: list[Any]

    @classmethod
    def of(cls, support: np.ndarray, truth: np.ndarray, weight: np.ndarray | None) -> Self:
        """From the support that each row gives to each class.

        Support is probabilities or scores; the truth is class numbers, or the indicator matrix of several labels.
        """
        weight = np.ones(len(support)) if weight is None else weight.astype(np.float64)
        if truth.ndim == 1:
            applies = np.arange(support.shape[1]) == truth[:, None]
        else:
            applies = truth > 0
        fit = np.where(applies, support, np.inf).min(axis=1)
        by_class = [(support[own, j], weight[own]) for j, own in enumerate(applies.T)]
        return cls(fit, weight, by_class)

    def thresholds(self, coverage: float, *, by_class: bool) -> np.ndarray:
        """The least support of a class that is in the set, of shape (n_classes,)."""
        if by_class:
            return np.array([_threshold(fit, weight, coverage) for fit, weight in self.by_class])
        return np.full(len(self.by_class), _threshold(self.fit, self.weight, coverage))


def _threshold(fit: np.ndarray, weight: np.ndarray, coverage: float) -> float:
    """The fit that all but a share 1 − coverage of the rows, a new one included, reach; −∞ where these are too few."""
    kept = weight > 0
    order = np.argsort(fit[kept], kind="stable")
    fit, weight = fit[kept][order], weight[kept][order]
    weight = in_copies(weight)  # as a new row is one, which fits worse than the first of a row's copies
    below = np.cumsum(weight) - weight + 1.0 <= (1.0 - coverage) * (weight.sum() + 1.0) * (1.0 + 1e-12)
    count = int(below.sum())
    return float(fit[count - 1]) if count else -np.inf
