"""Fits of the rows in parts, beside those of all rows."""

import numpy as np

from manyclass.data.parted import parted
from tests.execution.threads import Threads

N, D, K, CUTS = 300, 6, 4, (70, 70, 210)
"""One part is empty."""


def cut(values):
    return [values[start:stop] for start, stop in zip((0, *CUTS), (*CUTS, N), strict=True)]


def fit_parts(model, X, y, sample_weight=None):
    with parted(Threads, cut(X), cut(y), None if sample_weight is None else cut(sample_weight), "It") as held:
        return model.fit(*held)


def assert_same(one, other, X, atol=1e-6):
    """Coefficients, and scores up to the shift that a softmax does not see."""
    np.testing.assert_allclose(one.coef_, other.coef_, atol=atol)
    scores = [model.decision_function(X).reshape(X.shape[0], -1) for model in (one, other)]
    if one.loss_ in ("softmax", "sparsemax"):
        scores = [Z - Z.mean(axis=1, keepdims=Z.shape[1] > 1) if Z.shape[1] > 1 else Z for Z in scores]
    np.testing.assert_allclose(*scores, atol=atol * 10)
