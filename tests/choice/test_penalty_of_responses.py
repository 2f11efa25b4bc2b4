"""The default penalty of losses of real responses."""

import numpy as np
import pytest

from manyclass import SDCARegressor
from manyclass.model.losses import RESPONSE_LOSSES

ROBUST = ["huber", "epsilon_insensitive"]


def told_by_small_columns(rng, n=1500, d=30):
    spread = np.logspace(0, -2, d)
    X = rng.standard_normal((n, d)) * spread
    return X, X @ (rng.standard_normal(d) / spread) + 0.1 * rng.standard_normal(n)


def unexplained(model, X, y, half):
    return np.median(abs(model.fit(X[half:], y[half:]).predict(X[:half]) - y[:half])) / np.median(abs(y[:half]))


@pytest.mark.parametrize("loss", RESPONSE_LOSSES)
def test_columns_that_are_small_are_heard(loss, rng):
    X, y = told_by_small_columns(rng)
    assert unexplained(SDCARegressor(loss), X, y, 500) < 0.04
    assert unexplained(SDCARegressor(loss, alpha=1e-4), X, y, 500) > 0.06


@pytest.mark.parametrize("loss", ROBUST)
def test_responses_may_be_in_any_unit(loss, rng):
    """What a row far from its prediction costs grows with its distance, and what coefficients cost with its square."""
    X = rng.standard_normal((600, 10))
    y = 1e6 * (X @ rng.standard_normal(10) + 0.01 * rng.standard_normal(600))
    assert unexplained(SDCARegressor(loss), X, y, 200) < 0.02
    with pytest.warns(UserWarning, match="holds predictions"):
        assert unexplained(SDCARegressor(loss, alpha=1e-4), X, y, 200) > 0.9


@pytest.mark.parametrize("loss", ROBUST)
def test_responses_far_from_all_others_do_not_choose_it(loss, rng):
    X, y = told_by_small_columns(rng)
    y[500::20] += 300.0
    assert unexplained(SDCARegressor(loss), X, y, 500) < 0.15
    assert unexplained(SDCARegressor("squared"), X, y, 500) > 1.0


def test_where_nothing_costs_anything_it_is_the_usual_one(rng):
    X = rng.standard_normal((600, 10))
    model = SDCARegressor("epsilon_insensitive", epsilon=300.0)
    with pytest.warns(UserWarning, match="lie within epsilon"):
        model.fit(X, X[:, 0])
    assert model.alpha_ == pytest.approx(1e-4, rel=0.2)


@pytest.mark.parametrize("loss", RESPONSE_LOSSES)
def test_weights_are_slopes_over_residuals(loss):
    one, r = RESPONSE_LOSSES[loss](0.5), np.array([0.2, 0.7, 3.0])
    slope = (one.of_residual(r + 1e-6, np) - one.of_residual(r - 1e-6, np)) / 2e-6
    np.testing.assert_allclose(one.weight(r, np), slope / r, rtol=1e-6)
    assert one.weight(np.zeros(1), np) == (loss == "huber")
