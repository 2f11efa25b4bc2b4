"""Squared hinges beside softmax, where no features are generated."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss

from manyclass import AutoClassifier, SDCAClassifier
from manyclass.estimators.automatic.scores import learn_temperature


def long_texts(rng, n=500, k=10, n_words=2000):
    """Which words are in texts of very different length, by Zipf's law; a tenth or so of each are of its class."""
    of_words = 1.0 / np.arange(3, n_words + 3)
    of_words /= of_words.sum()
    y, topics = rng.integers(0, k, n), np.stack([rng.dirichlet(60.0 * of_words) for _ in range(k)])
    lengths = np.exp(4.5 + rng.standard_normal(n)).astype(int) + 5
    shares = 0.85 * of_words + 0.15 * topics[y]
    counts = [rng.multinomial(size, share) for size, share in zip(lengths, shares, strict=True)]
    return sp.csr_array((np.stack(counts) > 0).astype(float)), y


def test_they_tell_texts_of_different_length_apart_better_than_softmax(few):
    model = AutoClassifier(random_state=0).fit(*long_texts(np.random.default_rng(2)))
    best = {}
    for row in model.leaderboard_:
        best[row["estimator"]] = max(best.get(row["estimator"], 0.0), row["accuracy"])
    assert best["SDCAClassifier"] > best["GLMClassifier"] + 0.01


@pytest.mark.parametrize("several", [False, True])
def test_they_are_tried_of_sparse_rows_of_one_class(few, rng, several):
    X, y = sp.random_array((80, 40), density=0.05, rng=rng, format="csr"), np.arange(80) % 3
    model = AutoClassifier(random_state=0).fit(X, np.eye(3, dtype=int)[y] if several else y)
    assert ("SDCAClassifier" in {row["estimator"] for row in model.leaderboard_}) != several


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_temperature_is_the_one_that_tells_the_given_rows_best(rng, n_classes):
    y = rng.integers(0, n_classes, 600)
    X = rng.standard_normal((n_classes, 5))[y] + rng.standard_normal((600, 5))
    model = SDCAClassifier(loss="squared_hinge").fit(X[:200], y[:200])
    labels = model.predict(X[200:])
    learn_temperature(model, X[200:], y[200:])
    np.testing.assert_array_equal(model.predict(X[200:]), labels)

    def loss(factor):
        link, model.calibration_ = model.calibration_, model.calibration_ * factor
        try:
            return log_loss(y[200:], model.predict_proba(X[200:]))
        finally:
            model.calibration_ = link

    assert loss(1.0) < min(loss(0.95), loss(1.05))


def test_rows_of_classes_that_the_model_does_not_know_say_nothing_of_its_temperature(rng):
    X, y = rng.standard_normal((90, 3)), np.arange(90) % 3
    model = SDCAClassifier(loss="squared_hinge").fit(X[:60][y[:60] < 2], y[:60][y[:60] < 2])
    learn_temperature(model, X, y)
    known = model.calibration_
    model.set_params(calibrate=None)
    learn_temperature(model, X[y < 2], y[y < 2])
    np.testing.assert_array_equal(model.calibration_, known)
