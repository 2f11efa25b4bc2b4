"""Truths about every loss of the registry: a new loss is tested without a line here, but needs one in the oracle."""

import numpy as np
import pytest
from array_api_compat import numpy as xp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from manyclass.model import SMOOTH_LOSSES
from tests.oracles import glm as oracle

every_loss = pytest.mark.parametrize("loss", SMOOTH_LOSSES.values(), ids=SMOOTH_LOSSES)
scores = arrays(np.float64, (4, 3), elements=st.floats(-8, 8, width=32))


def potential(loss, Z):
    return loss.potential_and_mean(Z.copy(), xp)[0]


@every_loss
@given(Z=scores, D=scores)
@settings(max_examples=50, deadline=None)
def test_mean_is_the_gradient_of_the_potential(loss, Z, D):
    h = 1e-5
    slope = (potential(loss, Z + h * D) - potential(loss, Z - h * D)) / (2 * h)
    np.testing.assert_allclose(slope, (loss.mean(Z.copy(), xp) * D).sum(1), atol=1e-3)


@every_loss
def test_hessian_product_is_the_derivative_of_the_mean(loss, rng):
    Z, D, h = rng.standard_normal((50, 3)), rng.standard_normal((50, 3)), 1e-6
    P = loss.mean(Z.copy(), xp)
    numeric = (loss.mean(Z + h * D, xp) - loss.mean(Z - h * D, xp)) / (2 * h)
    np.testing.assert_allclose(loss.hessian_product(P, D, xp), numeric, atol=1e-7)
    weight = rng.random(50)
    H = np.zeros((3, 3))
    for i in range(50):
        H += weight[i] * np.stack([loss.hessian_product(P[i : i + 1], e[None], xp)[0] for e in np.eye(3)])
    v, u = loss.hessian(P, xp)
    np.testing.assert_allclose(np.diag(weight @ v) - (0 if u is None else (weight[:, None] * u).T @ u), H, atol=1e-12)
    np.testing.assert_allclose(loss.hessian_trace(P, xp) @ weight, np.trace(H))


@every_loss
@given(Z=scores)
@settings(max_examples=50, deadline=None)
def test_fenchel_equality_holds_at_the_mean(loss, Z):
    P = loss.mean(Z.copy(), xp)
    np.testing.assert_allclose(potential(loss, Z) + loss.conjugate(P, xp), (P * Z).sum(1), atol=1e-9)


@every_loss
@given(U=scores, V=scores)
@settings(max_examples=100, deadline=None)
def test_lipschitz_constant_holds(loss, U, V):
    moved = np.linalg.norm(loss.mean(U.copy(), xp) - loss.mean(V.copy(), xp), axis=1)
    assert (moved <= loss.lipschitz * np.linalg.norm(U - V, axis=1) * (1 + 1e-9) + 1e-12).all()


@every_loss
def test_lipschitz_constant_is_tight(loss):
    """Some points reach it, so no step of a majorizer is shorter than it must be."""
    U = np.zeros((1, 2))
    D = np.array([[1e-4, -1e-4]]) if loss.label_values is None else np.array([[1e-4, 0.0]])
    moved = np.linalg.norm(loss.mean(U + D, xp) - loss.mean(U.copy(), xp))
    assert moved == pytest.approx(loss.lipschitz * np.linalg.norm(D), rel=1e-3)


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_ten_thousand_do_not_overflow(loss, dtype):
    Z = np.array([[1e4, -1e4, 0], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4 - 1]], dtype=dtype)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        Z = loss.normalise(Z, xp)
        value, P = loss.potential_and_mean(Z.copy(), xp)
        assert np.isfinite(value).all() and np.isfinite(P).all()
        assert np.isfinite(loss.conjugate(P, xp)).all()
    assert P.dtype == dtype and value.dtype == dtype


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_square_of_a_probability_is_denormal(loss, dtype):
    """Products with such numbers take ten to fifty times as long."""
    reach = -np.log(np.finfo(dtype).smallest_subnormal)
    Z = np.concatenate([np.zeros((500, 1)), np.linspace(-reach, 0, 500)[:, None]], axis=1).astype(dtype)
    P = loss.mean(Z, xp)
    square = P * P
    assert not ((P != 0) & (square < np.finfo(dtype).smallest_normal)).any()


@every_loss
def test_matches_the_row_by_row_oracle(loss, rng):
    Z, codes = 3 * rng.standard_normal((20, 4)), rng.integers(0, 4, 20)
    Y = np.eye(4)[codes]
    value, P = loss.potential_and_mean(loss.normalise(Z.copy(), xp), xp)
    losses = value - (Y * loss.normalise(Z.copy(), xp)).sum(1) + loss.conjugate(Y, xp)
    for i in range(20):
        expected, gradient = oracle.loss(loss.name, Z[i], Y[i])
        assert losses[i] == pytest.approx(expected, abs=1e-10)
        np.testing.assert_allclose(P[i] - Y[i], gradient, atol=1e-10)
    assert (losses >= -1e-12).all()


@every_loss
def test_scores_invert_the_mean(loss):
    mean = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(loss.mean(loss.scores(mean, xp)[None].copy(), xp)[0], mean)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_that_is_fitted_leaves_no_residual(dtype):
    """Where penalties are tiny nearly all rows are such, and a rounding for each of them is all that a gradient has."""
    Z = np.zeros((1000, 10), dtype=dtype)
    Z[:, 3] = np.linspace(40.0, 80.0, 1000)
    _, P = SMOOTH_LOSSES["softmax"].potential_and_mean(Z, np)
    assert (P[:, 3] == 1.0).all()
