"""The data sets of the dual benchmarks, as they are in the folder that MANYCLASS_DATA names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import data, text
from manyclass.data.readers import read

Rows = tuple[Any, np.ndarray]


def libsvm(name: str) -> Rows:
    """X as float64 CSR, y as in the file."""
    found = read(data.data_dir() / "libsvm" / f"{name}.gz")
    return sparse.csr_matrix(found.X, dtype=np.float64), np.asarray(found.y)


def table(name: str) -> Rows:
    """X as float64, codes of categories as they are, y as in the file."""
    found = read(data.data_dir() / "tabular" / f"{name}.tsv.gz", target="target")
    return np.asarray(found.X, dtype=np.float64), np.asarray(found.y)


def two_largest(X: Any, y: np.ndarray) -> Rows:
    """The rows of the two most frequent classes."""
    classes, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, classes[np.argsort(-counts)[:2]])
    return X[kept], y[kept]


def even_or_odd() -> Rows:
    X, y = data.mnist()
    return X.astype(np.float64), y % 2


TWO_CLASSES: dict[str, Callable[[], Rows]] = {
    "a9a": lambda: libsvm("a9a"),
    "w8a": lambda: libsvm("w8a"),
    "adult": lambda: table("adult"),
    "kddcup": lambda: two_largest(*table("kddcup")),
    "mnist": even_or_odd,
}


def signs(y: np.ndarray) -> np.ndarray:
    """−1 and 1 for two classes."""
    return np.where(y == np.unique(y)[1], 1.0, -1.0)


def standardised(X: Any) -> np.ndarray:
    """Dense columns of mean 0 and variance 1; constant ones of 0."""
    X = np.asarray(X, dtype=np.float64)
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def text_rows(name: str) -> Rows:
    X, y, _, _ = text.load(name)
    return X, y
