"""Truths about every link of the registry: a new link is tested without a line here, but needs one in the oracle."""

import numpy as np
import pytest
from array_api_compat import numpy as xp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from manyclass.model import LINKS
from tests.oracles import glm as oracle

every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
scores = arrays(np.float64, (4, 3), elements=st.floats(-8, 8, width=32))


def potential(link, Z):
    return link.potential_and_mean(Z.copy(), xp)[0]


@every_link
@given(Z=scores, D=scores)
@settings(max_examples=50, deadline=None)
def test_mean_is_the_gradient_of_the_potential(link, Z, D):
    h = 1e-5
    slope = (potential(link, Z + h * D) - potential(link, Z - h * D)) / (2 * h)
    np.testing.assert_allclose(slope, (link.mean(Z.copy(), xp) * D).sum(1), atol=1e-3)


@every_link
def test_hessian_product_is_the_derivative_of_the_mean(link, rng):
    Z, D, h = rng.standard_normal((50, 3)), rng.standard_normal((50, 3)), 1e-6
    P = link.mean(Z.copy(), xp)
    numeric = (link.mean(Z + h * D, xp) - link.mean(Z - h * D, xp)) / (2 * h)
    np.testing.assert_allclose(link.hessian_product(P, D, xp), numeric, atol=1e-7)
    weight = rng.random(50)
    H = np.zeros((3, 3))
    for i in range(50):
        H += weight[i] * np.stack([link.hessian_product(P[i : i + 1], e[None], xp)[0] for e in np.eye(3)])
    np.testing.assert_allclose(link.hessian_sum(P, weight, xp), H, atol=1e-12)
    np.testing.assert_allclose(link.hessian_trace(P, xp) @ weight, np.trace(H))


@every_link
@given(Z=scores)
@settings(max_examples=50, deadline=None)
def test_fenchel_equality_holds_at_the_mean(link, Z):
    P = link.mean(Z.copy(), xp)
    np.testing.assert_allclose(potential(link, Z) + link.conjugate(P, xp), (P * Z).sum(1), atol=1e-9)


@every_link
@given(U=scores, V=scores)
@settings(max_examples=100, deadline=None)
def test_lipschitz_constant_holds(link, U, V):
    moved = np.linalg.norm(link.mean(U.copy(), xp) - link.mean(V.copy(), xp), axis=1)
    assert (moved <= link.lipschitz * np.linalg.norm(U - V, axis=1) * (1 + 1e-9) + 1e-12).all()


@every_link
def test_lipschitz_constant_is_tight(link):
    """Some points reach it, so no step of a majorizer is shorter than it must be."""
    U = np.zeros((1, 2))
    D = np.array([[1e-4, -1e-4]]) if link.label_values is None else np.array([[1e-4, 0.0]])
    moved = np.linalg.norm(link.mean(U + D, xp) - link.mean(U.copy(), xp))
    assert moved == pytest.approx(link.lipschitz * np.linalg.norm(D), rel=1e-3)


@every_link
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_ten_thousand_do_not_overflow(link, dtype):
    Z = np.array([[1e4, -1e4, 0], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4 - 1]], dtype=dtype)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        Z = link.normalise(Z, xp)
        value, P = link.potential_and_mean(Z.copy(), xp)
        assert np.isfinite(value).all() and np.isfinite(P).all()
        assert np.isfinite(link.conjugate(P, xp)).all()
    assert P.dtype == dtype and value.dtype == dtype


@every_link
def test_matches_the_row_by_row_oracle(link, rng):
    Z, codes = 3 * rng.standard_normal((20, 4)), rng.integers(0, 4, 20)
    Y = np.eye(4)[codes]
    value, P = link.potential_and_mean(link.normalise(Z.copy(), xp), xp)
    losses = value - (Y * link.normalise(Z.copy(), xp)).sum(1) + link.conjugate(Y, xp)
    for i in range(20):
        expected, gradient = oracle.loss(link.name, Z[i], Y[i])
        assert losses[i] == pytest.approx(expected, abs=1e-10)
        np.testing.assert_allclose(P[i] - Y[i], gradient, atol=1e-10)
    assert (losses >= -1e-12).all()


@every_link
def test_scores_invert_the_mean(link):
    mean = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(link.mean(link.scores(mean, xp)[None].copy(), xp)[0], mean)
