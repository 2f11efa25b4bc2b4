"""Sigmoids of many outputs: no worse than scikit-learn's of one, whatever the scores."""

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration

from manyclass.model.sigmoids import CELLS, constant_sigmoids, fit_sigmoids


def log_losses(Z, Y, w, links):
    ones, zeros = w @ Y, w @ (1 - Y)
    T = np.where(Y > 0, (ones + 1) / (ones + 2), 1 / (zeros + 2))
    t = links[0] * Z + links[1]
    return w @ (np.logaddexp(0.0, t) - T * t) / w.sum()


def theirs(Z, Y, w):
    links = [_SigmoidCalibration().fit(z, y, w) for z, y in zip(Z.T, Y.T, strict=True)]
    return -np.array([[link.a_, link.b_] for link in links]).T


@pytest.mark.parametrize("seed", range(4))
def test_no_log_loss_is_above_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 300))
    Y = (rng.random((n, 40)) < rng.choice([0.02, 0.1, 0.5, 0.9], 40)).astype(float)
    Z = rng.standard_normal((n, 40)) + rng.choice([-0.5, 0.0, 1.0, 100.0], 40) * Y  # the last are parted
    Z[:, :4] = 3.3
    Z *= 10 ** rng.uniform(-6, 6, 40)
    w = rng.random(n) * 10 ** rng.uniform(-2, 2, n)
    links = fit_sigmoids(Z, Y, w)
    assert np.isfinite(links).all()
    assert np.all(links[0, :4] == 0)
    assert np.all(log_losses(Z, Y, w, links) <= log_losses(Z, Y, w, theirs(Z, Y, w)) + 1e-9)
    np.testing.assert_allclose(constant_sigmoids(Y, w), theirs(0.0 * Z, Y, w), atol=1e-3, rtol=1e-3)


def test_an_outlier_of_the_wrong_kind_does_not_lead_astray():
    z, y = np.r_[np.linspace(-1, 1, 200), 1e6], np.r_[np.arange(200) >= 100, 0].astype(float)
    links = fit_sigmoids(z[:, None], y[:, None], None)
    assert log_losses(z[:, None], y[:, None], np.ones(201), links) < 0.7


def test_a_weight_of_two_is_a_row_given_twice_and_outputs_know_nothing_of_each_other(rng):
    n, k = 60, 2 * CELLS // 60
    Y = (rng.random((n, k)) < 0.3).astype(float)
    Z, w = rng.standard_normal((n, k)) + Y, rng.integers(1, 3, n)
    links = fit_sigmoids(Z, Y, w.astype(float))
    np.testing.assert_allclose(fit_sigmoids(np.repeat(Z, w, axis=0), np.repeat(Y, w, axis=0), None), links, rtol=1e-5)
    np.testing.assert_allclose(fit_sigmoids(Z[:, -3:], Y[:, -3:], w.astype(float)), links[:, -3:], rtol=1e-5)
