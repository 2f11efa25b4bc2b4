"""The penalty that stagewise estimators choose, whatever the copies and weights of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from manyclass import StagewiseClassifier, StagewiseRegressor
from manyclass.choice.features import IN_UNITS
from manyclass.features import (
    FeatureSubset,
    RandomFourierFeatures,
)
from manyclass.fit import Status
from manyclass.fit.run import OutOfTime
from manyclass.stagewise import UPDATES


@pytest.mark.parametrize("loss", sorted(UPDATES))
def test_alpha_is_chosen_and_its_model_is_that_of_the_number(divided_digits, loss):
    X, X_test, y = divided_digits[0][:400], divided_digits[1], divided_digits[2][:400]
    options = {"n_components": 300, "block_size": 100, "loss": loss}
    model = StagewiseClassifier(**options).fit(X, y)
    assert model.alpha_ > 0
    given = StagewiseClassifier(**options, alpha=model.alpha_).fit(X, y)
    assert_allclose(model.decision_function(X_test), given.decision_function(X_test), atol=1e-3)


def test_a_block_of_constants_does_not_choose_the_penalty(rng):
    X = np.c_[np.full(300, 0.1), rng.standard_normal((300, 4))]
    y = X @ np.arange(5.0) + rng.standard_normal(300)
    options = {"features": FeatureSubset(), "n_components": 5, "block_size": 1, "max_iter": 5}
    first = StagewiseRegressor(**options).fit(X, y)
    last = StagewiseRegressor(**options).fit(X[:, 1:], y)
    assert_allclose(first.alpha_ / 5, last.alpha_ / 4, rtol=1e-6)


def checkerboard(n, seed):
    X = np.random.default_rng(seed).uniform(0, 6, size=(n, 2)).astype(np.float32)
    return X, np.floor(X).astype(int).sum(axis=1) % 3


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_the_penalty_is_that_of_all_blocks_together(loss, monkeypatch):
    (X, y), (X_test, y_test) = checkerboard(6000, 0), checkerboard(4000, 1)
    features = RandomFourierFeatures(bandwidth=2.0)
    model = StagewiseClassifier(features, loss=loss, n_components=1024, block_size=128, random_state=0)
    chosen = clone(model).fit(X, y)
    weighted = clone(model).fit(X, y, sample_weight=np.full(len(y), 1e-3))
    monkeypatch.setattr(StagewiseClassifier, "_trials", lambda *_: None)
    of_the_first = model.fit(X, y)
    assert chosen.alpha_ < 0.5 * of_the_first.alpha_
    for model in (chosen, weighted):  # not always of one penalty, where two leave the same loss
        assert model.score(X_test, y_test) > of_the_first.score(X_test, y_test) + 0.004


def test_trials_hold_the_sum_of_their_losses_back_as_the_fit_does_that_of_all_rows(monkeypatch):
    X, y = checkerboard(1500, 0)
    made, make = [], StagewiseClassifier._trials
    monkeypatch.setattr(StagewiseClassifier, "_trials", lambda *given: made.append(make(*given)) or made[-1])
    model = StagewiseClassifier(loss="softmax", n_components=256, block_size=64, random_state=0).fit(X, y)
    tried = made[0].fits[0].problem
    tenths = np.log10(tried.alpha * tried.total_weight / (model.alpha_ * len(y)))  # of the last trial
    assert_allclose(tenths, np.round(tenths), atol=1e-9)


def test_more_features_than_rows_do_not_overfit(divided_digits):
    X, X_test, y, y_test = divided_digits
    model = StagewiseClassifier(n_components=512, block_size=256).fit(X[:256], y[:256])
    interpolating = StagewiseClassifier(n_components=512, block_size=256, alpha=1e-9).fit(X[:256], y[:256])
    assert model.score(X_test, y_test) > interpolating.score(X_test, y_test)


@pytest.mark.parametrize(("kind", "times"), [("regressor", 6), ("calibrated", 2)])
def test_generated_features_of_rows_given_several_times_are_those_of_each_once(kind, times):
    """A copy that is left in tells generated features what the row that is left out holds."""
    rng = np.random.default_rng(1)
    X, scores = rng.standard_normal((600, 10)), rng.standard_normal((10, 4))
    options = {"n_components": 512, "random_state": 0}
    if kind == "regressor":
        model = StagewiseRegressor(RandomFourierFeatures(), **options)
        y = X @ scores[:, 0] + np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(600)
    else:
        model = StagewiseClassifier(RandomFourierFeatures(), loss="calibrated", **options)
        y = (X @ scores + rng.gumbel(size=(600, 4))).argmax(axis=1)
    i = np.tile(np.arange(300), times)
    once = clone(model).fit(X[:300], y[:300])
    weighted = clone(model).fit(X[:300], y[:300], np.full(300, float(times)))
    many = clone(model).fit(X[i], y[i])
    wanted = once.score(X[300:], y[300:])
    assert weighted.score(X[300:], y[300:]) == pytest.approx(wanted, abs=0.01)
    assert many.score(X[300:], y[300:]) == pytest.approx(wanted, abs=0.05)


def test_weights_above_one_are_no_rows_where_all_of_a_row_is_left_out():
    """Generalised cross-validation, for which 1200 rows would be enough where 600 are not."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((800, 8))
    y = X @ rng.standard_normal(8) + np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(800)
    plain, weighted = (
        StagewiseRegressor(RandomFourierFeatures(), n_components=200, block_size=200, random_state=0).fit(
            X[:600], y[:600], weight
        )
        for weight in (None, np.full(600, 2.0))
    )
    assert weighted.alpha_ == pytest.approx(plain.alpha_, rel=1e-6)


def test_copies_are_found_among_tensors(rng):
    torch = pytest.importorskip("torch")
    X, i = rng.standard_normal((300, 8)), np.tile(np.arange(300), 2)
    y = np.where(rng.random(300) < 0.7, np.digitize(X[:, 0], [-0.5, 0.5]), rng.integers(0, 3, 300))
    model = StagewiseClassifier(RandomFourierFeatures(), loss="calibrated", n_components=200, random_state=0)
    once, twice = (clone(model).fit(torch.as_tensor(X[some]), torch.as_tensor(y[some])).alpha_ for some in (i[:300], i))
    assert twice == pytest.approx(once, rel=1e-3)


@pytest.mark.parametrize("seconds", [1.0, 1e9])
def test_little_time_leaves_least_squares_on_the_columns_and_much_time_does_not(seconds, rng, monkeypatch):
    X, y = rng.standard_normal((300, 5)), rng.integers(3, size=300)
    X[:, :3] += 2.0 * np.eye(3)[y]
    X[:, 3] *= 1e3

    def out_of_time(self, task):
        raise OutOfTime

    # So that a penalty is chosen once more, of other columns.
    chosen = {"features": IN_UNITS, "representation": "moments", "errors": {}}
    monkeypatch.setattr(StagewiseClassifier, "_choice", lambda self, task: chosen)
    usual = StagewiseClassifier(random_state=0).fit(X, y)
    if seconds == 1.0:
        monkeypatch.setattr(StagewiseClassifier, "_choice", out_of_time)
    model = StagewiseClassifier(random_state=0, max_time=seconds).fit(X, y)
    if seconds == 1.0:
        assert (
            model.status_ is Status.MAX_TIME
            and model.alpha_ != usual.alpha_
            and model.alpha_ > 0.0
            and model.coef_.shape == (3, 5)
        )
        assert model.score(X, y) > 0.7
    else:
        assert_array_equal(model.decision_function(X), usual.decision_function(X))
        assert model.alpha_ == usual.alpha_ and model.status_ == usual.status_
