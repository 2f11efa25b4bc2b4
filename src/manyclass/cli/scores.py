"""How good a model is on labelled rows, computed block by block so that no n×k matrix is held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    f1_score,
    hamming_loss,
    log_loss,
    precision_recall_fscore_support,
    zero_one_loss,
)

from manyclass.cli.modelfile import Model

_BLOCK = 1 << 22


@dataclass(frozen=True)
class Scores:
    """Figures by name, those of each class, and what the reader should know about them."""

    n_rows: int
    figures: dict[str, float | None]
    per_class: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)


def blocks(method: Callable[[Any], NDArray[Any]], X: Any, n_outputs: int) -> Iterator[NDArray[Any]]:
    """``method(X)`` over consecutive blocks of rows."""
    step = max(1, _BLOCK // max(X.shape[1], n_outputs))
    for start in range(0, X.shape[0], step):
        yield method(X[start : start + step])


def score(model: Model, X: Any, y: NDArray[Any]) -> Scores:
    """Evaluate on rows whose labels are known.

    For classes: the error (share of rows whose class is wrong) and the log loss (mean of −log of the
    probability of the row's class). For several labels per row: the Hamming loss (share of wrong cells), the
    subset error (share of rows with any wrong label), the log loss per cell, and F1 over cells and per label.
    """
    predicted = np.concatenate(list(blocks(model.estimator.predict, X, len(model.schema.labels))))
    return _score_labels(model, X, y, predicted) if model.schema.multilabel else _score_classes(model, X, y, predicted)


def _score_classes(model: Model, X: Any, y: NDArray[Any], predicted: NDArray[Any]) -> Scores:
    classes = model.schema.classes
    known = np.isin(y, classes)
    unseen = np.unique(y[~known])
    notes = []
    if len(unseen):
        shown = ", ".join(f"'{label}'" for label in unseen[:3]) + (" …" if len(unseen) > 3 else "")
        notes.append(
            f"{int((~known).sum())} rows have labels that the model was not fitted on ({shown}): "
            "they count as errors and are left out of the log loss"
        )
    loss = None
    if model.has_probabilities and known.any():
        total, start = 0.0, 0
        for block in blocks(model.estimator.predict_proba, X, len(classes)):
            rows = slice(start, start + len(block))
            start += len(block)
            if known[rows].any():
                probabilities = block[known[rows]].astype(np.float64)
                # float32 probabilities do not sum to one closely enough for scikit-learn.
                probabilities /= probabilities.sum(axis=1, keepdims=True)
                total += log_loss(y[rows][known[rows]], probabilities, labels=classes, normalize=False)
        loss = total / int(known.sum())
    labels = np.concatenate([classes, unseen])
    columns = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=0)
    figures = {
        "error": float(np.mean(predicted != y)),
        "log_loss": loss,
        "macro_f1": float(np.mean(columns[2])),
    }
    return Scores(len(y), figures, _table(labels, columns), notes)


def _score_labels(model: Model, X: Any, y: NDArray[Any], predicted: NDArray[Any]) -> Scores:
    loss = None
    if model.has_probabilities:
        total, start = 0.0, 0
        for block in blocks(model.estimator.predict_proba, X, len(model.schema.labels)):
            truth = y[start : start + len(block)].ravel()
            start += len(block)
            total += log_loss(truth, block.astype(np.float64).ravel(), labels=[0, 1], normalize=False)
        loss = total / y.size
    columns = precision_recall_fscore_support(y, predicted, zero_division=0, average=None)
    figures = {
        "hamming_loss": float(hamming_loss(y, predicted)),
        "subset_error": float(zero_one_loss(y, predicted)),
        "log_loss": loss,
        "micro_f1": float(f1_score(y, predicted, average="micro", zero_division=0)),
        "macro_f1": float(f1_score(y, predicted, average="macro", zero_division=0)),
    }
    return Scores(len(y), figures, _table(model.schema.labels, columns))


def _table(labels: Any, columns: Any) -> list[dict[str, Any]]:
    names = ("precision", "recall", "f1", "support")
    return [
        {"label": label.item() if hasattr(label, "item") else label, **dict(zip(names, row, strict=True))}
        for label, *row in zip(labels, *(column.tolist() for column in columns), strict=True)
    ]


NAMES = {
    "error": "error",
    "log_loss": "log loss",
    "hamming_loss": "Hamming loss",
    "subset_error": "subset error",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
}
_SHARES = {"error", "hamming_loss", "subset_error"}


def described(figures: dict[str, float | None]) -> list[tuple[str, str]]:
    """Name and value of every figure there is, for people."""
    return [
        (NAMES[name], f"{100 * value:.2f} %" if name in _SHARES else f"{value:.4f}")
        for name, value in figures.items()
        if value is not None
    ]
