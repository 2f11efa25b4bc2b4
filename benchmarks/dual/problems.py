"""The data sets of the dual benchmarks, as they are in the folder that MANYCLASS_DATA names, or files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import data, text
from benchmarks.data import Rows


def two_largest(X: Any, y: np.ndarray) -> Rows:
    """The rows of the two most frequent classes."""
    classes, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, classes[np.argsort(-counts)[:2]])
    return X[kept], y[kept]


def even_or_odd() -> Rows:
    X, y = data.mnist()
    return X.astype(np.float64), y % 2


TWO_CLASSES: dict[str, Callable[[], Rows]] = {
    **{name: lambda name=name: rows(name) for name in ("a9a", "w8a", "adult")},  # type: ignore[misc]
    "kddcup": lambda: two_largest(*rows("kddcup")),
    "mnist": even_or_odd,
}


def rows(name: str) -> Rows:
    """Training rows of a text set as they are; of any other set or file as float64, CSR where they are sparse."""
    if name in text.PROBLEMS:
        return text.load(name)[:2]
    X, y = data.rows(name)
    data.check_one_label(name, y)
    return sparse.csr_matrix(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64), y


def two_classes(name: str) -> Rows:
    """A set with two classes, or the two largest classes of a file."""
    return TWO_CLASSES[name]() if name in TWO_CLASSES else two_largest(*rows(name))


def signs(y: np.ndarray) -> np.ndarray:
    """−1 and 1 for two classes."""
    return np.where(y == np.unique(y)[1], 1.0, -1.0)


def standardised(X: Any) -> np.ndarray:
    """Dense columns of mean 0 and variance 1; constant ones of 0."""
    X = np.asarray(X, dtype=np.float64)
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
