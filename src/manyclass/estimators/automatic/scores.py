"""How candidates are judged by rows that they were not fitted to, and what several would say together."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.metrics import f1_score

from manyclass.data.rows import to_numpy

EVIDENCE_BYTES = 1 << 25
"""Up to which it is kept what a model says of the rows that judge it."""


class Score(NamedTuple):
    """Means over rows; of several labels per row, over their cells."""

    accuracy: float
    log_loss: float
    losses: np.ndarray  # of each row
    weights: np.ndarray  # in the means
    f1: float = math.nan  # of the labels that are present, where there are several per row
    evidence: np.ndarray | None = None  # log-probabilities


def score(model: Any, X: Any, y: np.ndarray, classes: np.ndarray, weight: np.ndarray | None = None) -> Score:
    """Probabilities are kept from 0 and 1 as in scikit-learn's ``log_loss``."""
    labels, P = map(to_numpy, model._labels_and_probabilities(X))
    least, P = float(np.finfo(P.dtype).eps), np.asarray(P, dtype=np.float64)
    if y.ndim == 1 and P.shape[1] < len(classes):
        P, known = np.zeros((len(y), len(classes))), P
        P[:, np.searchsorted(classes, model.classes_)] = known
    return _score(labels, np.clip(P, least, 1.0 - least), y, classes, weight)


def mean_score(scores: list[Score], y: np.ndarray, classes: np.ndarray) -> Score:
    """Of the model whose scores are the mean of theirs, which are log-probabilities but for what classes share."""
    held = [one.evidence for one in scores if one.evidence is not None]
    evidence = np.asarray(np.mean(held, axis=0, dtype=np.float64))
    P = np.clip(softmax(evidence, axis=1), np.finfo(np.float64).eps, 1.0)
    return _score(classes[evidence.argmax(axis=1)], P, y, classes, scores[0].weights)


def _score(labels: np.ndarray, P: np.ndarray, y: np.ndarray, classes: np.ndarray, weight: np.ndarray | None) -> Score:
    right, f1 = labels == y, math.nan
    if y.ndim == 2:
        f1 = float(f1_score(y, labels, average="micro", sample_weight=weight, zero_division=0.0))
        losses = -np.where(y > 0, np.log(P), np.log(1.0 - P)).mean(axis=1)
        right = right.mean(axis=1)
    else:
        losses = -np.log(P[np.arange(len(y)), np.searchsorted(classes, y)])
    weights = np.ones(len(y)) if weight is None else weight
    accuracy, log_loss = (float(np.average(values, weights=weights)) for values in (right, losses))
    # Half precision is enough for numbers between -37 and 0, of which a mean is taken.
    evidence = np.log(P).astype(np.float16) if y.ndim == 1 and 2 * P.size <= EVIDENCE_BYTES else None
    return Score(accuracy, log_loss, losses, weights, f1, evidence)
