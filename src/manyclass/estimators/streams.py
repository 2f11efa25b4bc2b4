"""Labels and weights of rows that come in chunks or are partly held out, as the stochastic solvers take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyclass.data.design import Array
from manyclass.estimators.encoding import Labels, encode
from manyclass.solvers.subgradient.kernel import Targets, Weights


def chunk_labels(y: Any, known: Any, classes: Any, estimator_name: str) -> Labels:
    """Labels of one chunk, encoded by the labels of the whole stream.

    Parameters
    ----------
    known : array of shape (n_classes,) or None
        The labels of the stream; None before the first chunk.
    classes : array-like or None
        What the caller says they are.

    Raises
    ------
    ValueError
        If the labels are not announced before the first chunk, change later, or y holds others.
    """
    announced = None if classes is None else np.unique(classes)
    if getattr(y, "ndim", 1) == 2:
        labels = encode(y, estimator_name)
        expected = announced if known is None else known
        if not labels.is_multilabel:
            raise ValueError("A 2-D y must be an indicator matrix of 0 and 1, one column per label.")
        if expected is not None and len(expected) != len(labels.classes):
            raise ValueError(f"y has {len(labels.classes)} label columns, but {len(expected)} were announced before.")
        return labels
    if known is None:
        if announced is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that will occur.")
        known = announced
    elif announced is not None and not np.array_equal(announced, known):
        raise ValueError(f"`classes={classes!r}` is not the same as on the last call to partial_fit: {known!r}.")
    if len(known) < 2:
        raise ValueError(f"{estimator_name} needs at least two classes, but `classes` holds only {known!r}.")
    y = np.asarray(y)
    codes = np.searchsorted(known, y)
    unseen = known[np.minimum(codes, len(known) - 1)] != y
    if unseen.any():
        raise ValueError(f"y holds the label {y[unseen][0]!r}, which is not among `classes`: {known!r}.")
    return Labels(known, codes, None)


def targets_of(labels: Labels) -> Targets:
    """Labels as the compiled loops read them."""
    nothing = np.zeros((0, 0), dtype=np.int8)
    if labels.indicator is not None:
        sign = np.where(np.asarray(labels.indicator) > 0, 1, -1).astype(np.int8)
        return Targets(np.zeros(0, dtype=np.int64), sign, 0)
    codes = np.ascontiguousarray(labels.codes, dtype=np.int64)
    return Targets(codes, nothing, 1 if labels.is_binary else 0)


def n_outputs_of(labels: Labels) -> int:
    return 1 if labels.is_binary else len(labels.classes)


def weights_of(weight: Array | None, kept: np.ndarray | None = None) -> Weights:
    """Weights relative to their mean over the rows that are fitted.

    Raises
    ------
    ValueError
        If all of those are zero.
    """
    if weight is None:
        return Weights(np.empty(0), 1.0)
    values = weight.astype(np.float64)
    mean = float(np.mean(values if kept is None else values[kept]))
    if not mean > 0:
        raise ValueError("All rows left after holding some out have weight zero; set early_stopping=False.")
    return Weights(values, 1.0 / mean)
