import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.special import logsumexp, softmax

from manyclass.bound import kernels as compiled
from manyclass.curvature.class_bounds import CLASS_BOUNDS, class_bound, curving
from manyclass.model import SMOOTH_LOSSES
from tests.oracles.log_linear import log_linear_bound


def log_partition(theta, features, measure):
    return logsumexp(features @ theta, b=measure)


def matrix(loss, Z):
    """B of each row, of shape (n_rows, n_outputs, n_outputs)."""
    k = Z.shape[1]
    a, b = CLASS_BOUNDS[loss].pairs(k)
    B = np.zeros((len(Z), k, k))
    B[:, a, b] = B[:, b, a] = CLASS_BOUNDS[loss].weights(Z, np)
    return B


scale = st.floats(-3, 3).map(lambda e: 10.0**e)


@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 5), scale, scale, st.booleans())
@settings(max_examples=100, deadline=None)
def test_touches_and_dominates_for_any_features_and_measure(seed, n, p, features_scale, theta_scale, tied):
    """Theorem 1, over scales up to 10³, with impossible outcomes and with a = z at some step."""
    rng = np.random.default_rng(seed)
    F = features_scale * rng.standard_normal((n, p))
    h = rng.exponential(size=n) ** 3 * (rng.random(n) < 0.8)
    h[rng.integers(n)] = 1.0
    if tied:  # identical outcomes: the second meets a = z
        F[1:2], h[1:2], h[0] = F[0], 1.0, 1.0
    theta = theta_scale * rng.standard_normal(p)
    bound = log_linear_bound(theta, F, h)
    assert bound.log_z == pytest.approx(log_partition(theta, F, h), rel=1e-12)
    P = softmax(np.where(h > 0, F @ theta + np.log(np.where(h > 0, h, 1)), -np.inf))
    np.testing.assert_allclose(bound.gradient, P @ F, rtol=1e-8, atol=1e-10 * features_scale)
    assert np.linalg.eigvalsh(bound.curvature).min() >= -1e-9 * features_scale**2
    for reach in (1e-3, 1.0, 10.0, 1e3):
        step = reach * rng.standard_normal(p) / features_scale
        there, above = log_partition(theta + step, F, h), bound.log_value(step)
        assert above >= there - 1e-10 * max(1.0, abs(there), abs(bound.log_z), abs(above))


@pytest.mark.parametrize("size", [1e-8, 1e-4, 9.9e-4, 1.01e-3, 1.0, 30.0, 700.0, 1e6, np.inf])
def test_curving_is_even_bounded_and_smooth(size):
    beta = curving(np.array([size, -size]), np)
    assert beta[0] == beta[1] and 0 <= beta[0] <= 0.25
    if np.isfinite(size):
        exact = np.float64(np.tanh(np.longdouble(size) / 2) / (2 * np.longdouble(size)))
        assert beta[0] == pytest.approx(exact, rel=1e-12)
    assert curving(np.array(0.0), np) == 0.25


def test_two_equal_outcomes_have_the_curvature_of_the_logistic_bound():
    bound = log_linear_bound([0.0], [[0.0], [2.0]])
    assert bound.curvature[0, 0] == pytest.approx(0.25 * 4) and np.exp(bound.log_z) == pytest.approx(2)


def test_less_curvature_would_not_dominate():
    """The bound is tight: for two outcomes it touches again at the mirror point, and 1 % less curvature crosses."""
    F, theta = np.array([[0.0], [1.0]]), np.array([2.0])
    bound = log_linear_bound(theta, F)
    mirror = np.array([-4.0])
    assert bound.log_value(mirror) == pytest.approx(log_partition(theta + mirror, F, np.ones(2)), rel=1e-12)
    assert bound.log_value(mirror) - 0.005 * bound.curvature[0, 0] * 16 < log_partition(theta + mirror, F, np.ones(2))


@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(1, 4), scale)
@settings(max_examples=100, deadline=None)
def test_structured_form_is_the_general_one(seed, k, d, size):
    """B ⊗ xxᵀ equals Algorithm 1 on f(x, y) = e_y ⊗ x, ties and decided classes included."""
    rng = np.random.default_rng(seed)
    x, W = rng.standard_normal(d), size * rng.standard_normal((d, k))
    W[:, k - 1] = W[:, 0]  # a tie
    features = np.stack([np.outer(x, np.eye(k)[y]).ravel() for y in range(k)])
    general = log_linear_bound(W.ravel(), features).curvature
    structured = np.kron(np.outer(x, x), matrix("softmax", (x @ W)[None])[0])
    np.testing.assert_allclose(structured, general, atol=1e-9 * np.abs(general).max() + 1e-14)


@given(st.integers(0, 2**31), st.integers(1, 8), scale, st.sampled_from(sorted(CLASS_BOUNDS)))
@settings(max_examples=100, deadline=None)
def test_class_bound_dominates_in_score_space(seed, k, size, loss):
    rng = np.random.default_rng(seed)
    Z, U = size * rng.standard_normal((20, k)), rng.choice([1e-2, 1.0, 1e3]) * rng.standard_normal((20, k))
    B = matrix(loss, Z)
    assert np.linalg.eigvalsh(B).min() > -1e-12 and np.isfinite(B).all()
    if SMOOTH_LOSSES[loss].domain.exclusive:
        np.testing.assert_allclose(B.sum(2), 0, atol=1e-12)
    potential = {"softmax": lambda Z: logsumexp(Z, axis=1), "logistic": lambda Z: np.logaddexp(0, Z).sum(1)}[loss]
    mean = {"softmax": lambda Z: softmax(Z, axis=1), "logistic": lambda Z: np.exp(-np.logaddexp(0, -Z))}[loss]
    bound = potential(Z) + (mean(Z) * U).sum(1) + 0.5 * np.einsum("na,nab,nb->n", U, B, U)
    assert (bound >= potential(Z + U) - 1e-9 * (1 + np.abs(bound) + np.abs(potential(Z)))).all()


def test_classes_in_another_order_bound_as_well():
    rng = np.random.default_rng(0)
    F, theta, order = rng.standard_normal((5, 3)), rng.standard_normal(3), [3, 1, 4, 0, 2]
    one, other = log_linear_bound(theta, F), log_linear_bound(theta, F[order])
    np.testing.assert_allclose(one.gradient, other.gradient)
    assert np.abs(one.curvature - other.curvature).max() > 1e-3  # two different bounds, both valid


def test_a_loss_without_partition_function_is_refused():
    with pytest.raises(ValueError, match="second-moment"):
        class_bound("sparsemax")


@njit
def bound_of_scores(z, softmax, scale, order, p, C):
    compiled.bound_of_scores(z, softmax, scale, order, p, C)


@pytest.mark.parametrize("loss", sorted(CLASS_BOUNDS))
def test_the_compiled_bound_is_that_of_the_arrays(loss, rng):
    k = 5
    Z = rng.standard_normal((40, k)) * 10.0 ** rng.integers(-6, 3, (40, 1))
    B, P, rank = matrix(loss, Z), SMOOTH_LOSSES[loss].mean(Z.copy(), np), k - 1 if loss == "softmax" else k
    for z, expected, mean in zip(Z, B, P, strict=True):
        p, C = np.empty(k), np.empty((rank, k))
        bound_of_scores(z, loss == "softmax", 2.0, np.arange(k), p, C)
        np.testing.assert_allclose(C.T @ C, 4.0 * expected, atol=1e-12)
        np.testing.assert_allclose(p, mean, atol=1e-12)


def test_the_compiled_bound_takes_classes_in_any_order(rng):
    z, order = rng.standard_normal(5), rng.permutation(5)
    p, C = np.empty(5), np.empty((4, 5))
    bound_of_scores(z, True, 1.0, order, p, C)
    expected = log_linear_bound(z, np.eye(5)[order])
    np.testing.assert_allclose(p, expected.gradient, atol=1e-12)
    np.testing.assert_allclose(C.T @ C, expected.curvature, atol=1e-12)


@pytest.mark.parametrize("loss", CLASS_BOUNDS)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 6), scale)
@settings(max_examples=50, deadline=None)
def test_along_moves_no_matrix_is_needed(loss, seed, k, n_together, size):
    """uᵀBv of each row for pairs of moves, decided classes included, is that of the matrix B, in whatever pieces the
    classes come."""
    rng = np.random.default_rng(seed)
    Z, *moves = rng.standard_normal((4, 5, k))
    pieces = [[one[:, start : start + n_together].T for one in (size * Z, *moves)] for start in range(0, k, n_together)]
    found, B = CLASS_BOUNDS[loss].along(iter(pieces), len(moves), np), matrix(loss, size * Z)
    for i, u in enumerate(moves):
        assert len(found[i]) == i + 1
        for j, v in enumerate(moves[: i + 1]):
            expected = np.einsum("na,nab,nb->n", u, B, v)
            np.testing.assert_allclose(found[i][j], expected, rtol=1e-9, atol=1e-12)
