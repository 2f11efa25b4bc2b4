"""Scores of candidates, and of averages of them, on rows that they were not fitted to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from manyclass.data.rows import to_numpy
from manyclass.estimators.calibration import best_slope

EVIDENCE_BYTES = 1 << 25
"""The log-probabilities of a model on the rows that judge it are kept if they take no more than this."""
MOST_FOR_TEMPERATURE = 2000
"""Rows that a temperature is learned from, at most."""
THRESHOLDS = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)
"""Thresholds for the prediction of a label: if labels are rare, 1/2 misses many of them."""


class Score(NamedTuple):
    """Weighted means over the rows that judge; for several labels per row, over their cells."""

    accuracy: float
    log_loss: float
    losses: np.ndarray  # of each row
    weights: np.ndarray  # of each row
    cells: np.ndarray | None = None  # for several labels per row: accuracy and micro-averaged F1 score, by threshold
    evidence: np.ndarray | None = None  # log-probabilities, of shape (n_rows, n_classes)


def score(model: Any, X: Any, y: np.ndarray, classes: np.ndarray, weight: np.ndarray | None = None) -> Score:
    """The score of a model; probabilities are clipped as in scikit-learn's ``log_loss``."""
    labels, P = map(to_numpy, model._labels_and_probabilities(X))
    least, P = float(np.finfo(P.dtype).eps), np.asarray(P, dtype=np.float64)
    if y.ndim == 1 and P.shape[1] < len(classes):
        P, known = np.zeros((len(y), len(classes))), P
        P[:, np.searchsorted(classes, model.classes_)] = known
    return _score(labels, np.clip(P, least, 1.0 - least), y, classes, weight)


def learn_temperature(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None = None) -> None:
    """Give a model probabilities, at the temperature with the least log loss on the rows that judge it.

    As that is a single number, the rows still judge fairly. Only the final model learns it by five more fits.
    """
    codes = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    index = np.flatnonzero(np.asarray(model.classes_)[codes] == y)
    index = np.random.default_rng(0).permutation(index)[:MOST_FOR_TEMPERATURE]
    scores = np.asarray(to_numpy(model.decision_function(X)), dtype=np.float64).reshape(len(y), -1)
    Z = scores[index] if scores.shape[1] > 1 else np.hstack([np.zeros((len(index), 1)), scores[index]])
    weights, n_outputs = np.ones(len(index)) if weight is None else weight[index], scores.shape[1]

    def loss(log_slope: float) -> float:
        told = log_softmax(Z * np.exp(log_slope), axis=1)[np.arange(len(index)), codes[index]]
        return -float(np.average(told, weights=weights))

    model.set_params(calibrate="temperature")
    slope = best_slope(loss, Z) if len(index) else 1.0
    model.calibration_ = np.stack([np.full(n_outputs, slope), np.zeros(n_outputs)])


def mean_score(scores: list[Score], y: np.ndarray, classes: np.ndarray) -> Score:
    """The score of the model whose log-probabilities are, up to a constant for each row, the mean of theirs."""
    held = [one.evidence for one in scores if one.evidence is not None]
    evidence = np.asarray(np.mean(held, axis=0, dtype=np.float64))
    P = np.clip(softmax(evidence, axis=1), np.finfo(np.float64).eps, 1.0)
    return _score(classes[evidence.argmax(axis=1)], P, y, classes, scores[0].weights)


def _score(labels: np.ndarray, P: np.ndarray, y: np.ndarray, classes: np.ndarray, weight: np.ndarray | None) -> Score:
    right, cells = labels == y, None
    weights = np.ones(len(y)) if weight is None else weight
    if y.ndim == 2:
        cells = _cells(labels, P, y, weights)
        losses = -np.where(y > 0, np.log(P), np.log(1.0 - P)).mean(axis=1)
        right = right.mean(axis=1)
    else:
        losses = -np.log(P[np.arange(len(y)), np.searchsorted(classes, y)])
    accuracy, log_loss = (float(np.average(values, weights=weights)) for values in (right, losses))
    # Half precision is enough for numbers between -37 and 0, of which a mean is taken.
    evidence = np.log(P).astype(np.float16) if y.ndim == 1 and 2 * P.size <= EVIDENCE_BYTES else None
    return Score(accuracy, log_loss, losses, weights, cells, evidence)


def _cells(labels: np.ndarray, P: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Accuracy and micro-averaged F1 score at each of `THRESHOLDS`; F1 is 0 if no label is present or predicted."""
    present, found = y > 0, []
    for threshold in THRESHOLDS:
        predicted = labels > 0 if threshold == THRESHOLDS[0] else P > threshold
        counts = ((predicted & present).sum(axis=1), predicted.sum(axis=1), present.sum(axis=1))
        right, guessed, there = (float(weights @ count) for count in counts)
        wrong = guessed + there - 2.0 * right
        found.append((1.0 - wrong / (weights.sum() * y.shape[1]), 2.0 * right / max(guessed + there, 1e-300)))
    return np.transpose(found)
