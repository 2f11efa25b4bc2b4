"""Probabilities of least squares: at the temperature that rows which were not fitted to ask for."""

import pickle
import warnings

import array_api_compat.numpy as xp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from manyclass import StagewiseClassifier
from manyclass.choice.features import LeftOut
from manyclass.estimators.learned_link import link_of_squared
from manyclass.features import RandomFourierFeatures
from manyclass.model.sets import Box, Simplex

SMALL = {"loss": "squared", "n_components": 256, "block_size": 64, "random_state": 0}


def digits(n, noise=0.0, seed=0):
    """Of which least squares are less sure than they could be; and some labels are wrong."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))[:n]
    return X[order], np.where(rng.random(n) < noise, rng.integers(0, 10, n), y[order])


@pytest.mark.parametrize(
    "options",
    [{}, {"features": RandomFourierFeatures()}, {"early_stopping": True}, {"n_models": 2}, {"n_components": 64}],
    ids=str,
)
def test_they_are_better_than_a_projection_wherever_the_rows_come_from(options):
    X, y = digits(1400, noise=0.1)
    model = StagewiseClassifier(**SMALL | options).fit(X[:800], y[:800])
    P, Z = model.predict_proba(X[800:]), model.decision_function(X[800:])
    assert_allclose(P, softmax(Z / model.temperature_, axis=1), atol=1e-12)
    assert_array_equal(P.argmax(axis=1), model.predict(X[800:]))
    least = min(log_loss(y[800:], softmax(Z / one, axis=1)) for one in np.logspace(-2, 1, 60))
    projected = Simplex().project((1.0 + Z) / 2.0, xp)
    assert log_loss(y[800:], P) < min(least + 0.05, 0.9 * log_loss(y[800:], 0.995 * projected + 0.0005))


def test_many_classes_are_told_with_less_doubt():
    X, y = load_digits(return_X_y=True)
    model = StagewiseClassifier(n_components=1024, random_state=0).fit(X[:600], y[:600])
    assert model.loss_ == "squared"
    assert log_loss(y[600:], model.predict_proba(X[600:])) < 0.2
    *_, last = model.staged_predict_proba(X[600:])
    assert_allclose(last, model.predict_proba(X[600:]), atol=1e-8)


def test_two_classes_and_several_labels_have_a_logistic_link():
    X, y = digits(600)
    binary = StagewiseClassifier(**SMALL).fit(X, y > 3)
    assert_allclose(binary.predict_proba(X)[:, 1], expit(binary.decision_function(X) / binary.temperature_))
    Y = np.stack([y > 3, y % 2 > 0], axis=1).astype(int)
    several = StagewiseClassifier(**SMALL).fit(X, Y)
    assert_allclose(several.predict_proba(X), expit(several.decision_function(X) / several.temperature_))


def test_rare_labels_of_which_a_projection_tells_more_keep_it():
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.0, 0.02, (400, 100))
    shares[:, 0] = 0.5
    Y = np.where(rng.random((400, 100)) < shares, 1.0, -1.0)
    slope, doubt = link_of_squared(LeftOut(2.0 * shares - 1.0, Y, None), Box())
    assert slope is None and 0 < doubt < 1e-3


def test_rows_that_are_all_right_make_no_probability_of_1():
    Y = 2.0 * np.eye(4)[np.arange(200) % 4] - 1.0
    slope, _ = link_of_squared(LeftOut(0.5 * Y, Y, None), Simplex())
    P = softmax(slope * 0.5 * Y, axis=1).max(axis=1)
    assert slope is not None and np.all(P < 1 - 1e-3) and np.all(P > 0.99)


def test_rows_of_no_weight_say_nothing_and_one_of_weight_2_is_two(rng):
    Y = 2.0 * np.eye(10)[rng.integers(0, 10, 60)] - 1.0
    Z = -0.8 + 0.2 * Y + 0.2 * rng.standard_normal(Y.shape)
    weight = np.where(np.arange(60) < 30, 2.0, np.arange(60) % 2)
    some = np.repeat(np.arange(60), weight.astype(int))
    found, expected = (
        link_of_squared(LeftOut(*one), Simplex())[0] for one in ((Z, Y, weight), (Z[some], Y[some], None))
    )
    assert found == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("options", [{"alpha": 1e-3}, {"features": RandomFourierFeatures(), "block_size": 256}])
def test_without_such_rows_no_class_has_probability_0(options):
    X, y = digits(600)
    model = StagewiseClassifier(**SMALL | options).fit(X[:200], y[:200])
    assert not hasattr(model, "temperature_") and model.predict_proba(X).min() > 1e-4


def test_what_was_learned_is_of_the_last_fit_and_in_files(tmp_path):
    X, y = digits(600)
    model = StagewiseClassifier(**SMALL).fit(X, y)
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(model))
    other = pickle.loads(path.read_bytes())
    assert other.temperature_ == model.temperature_
    assert_allclose(other.predict_proba(X), model.predict_proba(X))
    assert not hasattr(model.set_params(loss="softmax").fit(X, y), "temperature_")


def test_without_time_for_a_stage_probabilities_are_class_shares():
    X, y = digits(1200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = StagewiseClassifier(**SMALL, max_time=1e-4).fit(X, y)
    assert_allclose(model.predict_proba(X[:1]), [np.bincount(y) / len(y)], atol=1e-6)


def test_more_scores_than_are_needed_are_not_read(monkeypatch):
    seen = []
    monkeypatch.setattr("manyclass.estimators.learned_link.FEWEST_ROWS", 50)
    monkeypatch.setattr("manyclass.estimators.learned_link.MOST_SCORES", 90)

    def link(left_out, *known):
        seen.append(len(left_out.scores))
        return link_of_squared(left_out, *known)

    monkeypatch.setattr("manyclass.estimators.learned_link.link_of_squared", link)
    X, y = digits(600)
    StagewiseClassifier(**SMALL).fit(X, y)
    assert set(seen) == {50}
