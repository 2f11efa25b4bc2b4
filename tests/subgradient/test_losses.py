"""Compiled losses and subgradients: against the losses written out, finite differences and `model.losses`."""

import array_api_compat.numpy as xp
import numpy as np
import pytest
from numba import njit

from manyclass.data import ClassTargets
from manyclass.model import LOSSES as MODEL_LOSSES
from manyclass.subgradient.losses import LOSSES, exp_in_place, residual
from tests.oracles import pegasos as oracle


@njit
def compiled(loss, z, n, label, sign, bits, g):
    return residual(loss, z, n, label, sign, bits, g)


def evaluate(name, z, y):
    """ℓ, ℓ − gᵀz and g as the compiled loop gets them."""
    k = len(z)
    g, sign = np.full(k, np.nan), np.where(np.arange(k) == y, 1.0, -1.0)
    value, bound = compiled(LOSSES[name], z.copy(), k, y, sign, np.empty(k, dtype=np.int64), g)
    return value, bound, g


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_subgradients(name, rng):
    for _ in range(30):
        z = 2 * rng.standard_normal(5)
        y = int(rng.integers(5))
        value, bound, g = evaluate(name, z, y)
        assert value == pytest.approx(oracle.loss(name, z, y), rel=1e-12, abs=1e-14)
        steps = 1e-6 * np.eye(5)
        slopes = [(oracle.loss(name, z + h, y) - oracle.loss(name, z - h, y)) / 2e-6 for h in steps]
        np.testing.assert_allclose(g, slopes, atol=1e-6 * (1 + np.abs(g).max()))
        assert bound == pytest.approx(value - g @ z, abs=1e-12 * (1 + value))


@pytest.mark.parametrize("name", LOSSES)
def test_the_compiled_loss_is_that_of_the_model(name, rng):
    """The same name is the same objective everywhere."""
    loss, Z, codes = MODEL_LOSSES[name], 2 * rng.standard_normal((50, 5)), rng.integers(0, 5, 50)
    targets = ClassTargets(codes, 5, loss.label_values or (0.0, 1.0))
    found = [evaluate(name, z, y)[0] for z, y in zip(Z, codes, strict=True)]
    np.testing.assert_allclose(found, loss.values(Z.copy(), slice(0, 50), targets, xp), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_subgradients_lie_below_the_loss_at_kinks_too(name, rng):
    for z in (np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.5, 0.5, -0.5, 0.5])):
        for y in range(4):
            value, _, g = evaluate(name, z, y)
            for _ in range(20):
                other = z + rng.standard_normal(4)
                assert oracle.loss(name, other, y) >= value + g @ (other - z) - 1e-12


@pytest.mark.parametrize("name", LOSSES)
def test_scores_of_any_size_give_finite_subgradients(name):
    for size in (1e3, 1e30, 1e150):
        for z in (np.array([size, -size, 0.0]), np.array([-size, size, size])):
            for y in range(3):
                value, bound, g = evaluate(name, z, y)
                assert np.isfinite(g).all() and value >= 0 and not np.isnan(bound)


def test_exponentials_are_those_of_numpy(rng):
    z = -np.concatenate([rng.random(1000) * 700, [0.0, 1e-300, 1e-9, 699.9]])
    found = z.copy()
    njit(lambda *given: exp_in_place(*given))(found, len(z), np.empty(len(z), dtype=np.int64))
    np.testing.assert_allclose(found, np.exp(z), rtol=1e-15)
