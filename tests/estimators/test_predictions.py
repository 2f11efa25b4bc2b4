"""Scores and probabilities of many rows."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier, SDCAClassifier
from manyclass.data.rows import BLOCK_BYTES


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (GLMClassifier(), 250_000),
        (GLMClassifier(loss="logistic"), 100_000),
        (SDCAClassifier(loss="hinge", calibrate="sigmoid", max_iter=1), 50_000),
        (CalibratedLeastSquaresClassifier(max_iter=1, early_stopping=False), 100_000),
    ],
    ids=lambda given: type(given).__name__,
)
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "decision_function"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scores_and_probabilities_need_no_second_array_of_their_size(rng, model, n, method):
    X = rng.standard_normal((n, 4)).astype(np.float32)
    given = getattr(clone(model).fit(X[:600], np.arange(600) % 60), method)
    given(X[:600])
    tracemalloc.start()
    try:
        made = given(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < made.nbytes + 12 * BLOCK_BYTES
    np.testing.assert_allclose(made[-600:], given(X[-600:]), rtol=1e-3, atol=1e-5)
