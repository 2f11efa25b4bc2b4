import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import manyclass.model.objective as module
from manyclass.data import ClassTargets, Design
from manyclass.model import LINKS, Objective
from tests import problems
from tests.oracles import glm as oracle

every_link = pytest.mark.parametrize("link", LINKS)


@every_link
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_value_and_gradient_against_the_oracle(link, fit_intercept, center, rng):
    F, X, Y, s = problems.objective(link, fit_intercept=fit_intercept, center=center)
    W, b = rng.standard_normal((5, 3)), rng.standard_normal(3) * fit_intercept
    found = F.value_and_gradient(F.pack(W, b))
    value, gradient_W, gradient_b = oracle.objective(link, X, Y, s, F.alpha, W, b)
    assert found.value == pytest.approx(value, rel=1e-12)
    # In theta the intercept is that of the centred model, which moves with W.
    centred = gradient_W - np.outer(F.center, gradient_b)
    np.testing.assert_allclose(F.penalised(found.gradient), centred if fit_intercept else gradient_W, atol=1e-10)
    np.testing.assert_allclose(found.mean_residual, gradient_b, atol=1e-12)


@every_link
@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_gradient_by_five_point_stencil(link, seed):
    rng = np.random.default_rng(seed)
    F, *_ = problems.objective(link, seed=seed)
    theta, D, h = rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), 1e-4
    f = [F.value_and_gradient(theta + t * h * D).value for t in (-2, -1, 1, 2)]
    numeric = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
    # Sparsemax has kinks in its gradient, where a stencil is only accurate to first order.
    assert numeric == pytest.approx((F.value_and_gradient(theta).gradient * D).sum(), rel=1e-3, abs=1e-5)


@every_link
def test_blocks_and_storage_do_not_matter(link, rng, monkeypatch):
    theta = rng.standard_normal((6, 3))
    reference = problems.objective(link)[0].value_and_gradient(theta)
    monkeypatch.setattr(module, "BLOCK_BYTES", 1)
    monkeypatch.setattr(Design, "rows_per_block", lambda self, *_: 7)
    for sparse in (False, True):
        found = problems.objective(link, sparse=sparse)[0].value_and_gradient(theta)
        assert found.value == pytest.approx(reference.value, rel=1e-12)
        np.testing.assert_allclose(found.gradient, reference.gradient, atol=1e-11)


@every_link
def test_weights_repeat_rows(link, rng):
    X, codes, _ = problems.rows()
    times = rng.integers(0, 3, len(X))
    theta = rng.standard_normal((6, 3))
    weighted = Objective(Design(X), ClassTargets(codes, 3), LINKS[link], 0.1, sample_weight=times.astype(float))
    repeated = Objective(Design(np.repeat(X, times, 0)), ClassTargets(np.repeat(codes, times), 3), LINKS[link], 0.1)
    a, b = weighted.value_and_gradient(theta), repeated.value_and_gradient(theta)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-12)


def test_parameters_survive_packing(rng):
    F, *_ = problems.objective()
    W, b = rng.standard_normal((5, 3)), rng.standard_normal(3)
    back = F.unpack(F.pack(W, b))
    np.testing.assert_allclose(back[0], W)
    np.testing.assert_allclose(back[1], b)


@every_link
def test_zero_and_constant_models(link):
    F, X, Y, s = problems.objective(link)
    zero = F.value_and_gradient(np.zeros((6, 3)))
    assert F.zero_value == pytest.approx(zero.value, rel=1e-12)
    np.testing.assert_allclose(F.zero_gradient, zero.gradient, atol=1e-12)
    constant = F.value_and_gradient(F.constant_model())
    share = 1 / (1 + s.sum())
    assert np.abs(constant.mean_residual).max() <= share
    np.testing.assert_allclose(
        F.cross_covariance, (X - F.center).T @ (s[:, None] * (Y - F.target_mean)) / s.sum(), atol=1e-12
    )


@every_link
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_duality_gap_bounds_the_suboptimality_and_closes(link, fit_intercept, center, rng):
    F, X, Y, s = problems.objective(link, fit_intercept=fit_intercept, center=center)
    least, W, b = oracle.minimum(link, X, Y, s, F.alpha, fit_intercept)
    for size in (0.0, 1e-3, 0.1, 1.0, 10.0):
        theta = F.pack(W + size * rng.standard_normal(W.shape), b + size * fit_intercept * rng.standard_normal(3))
        found = F.value_and_gradient(theta)
        gap = F.duality_gap(theta, found)
        assert gap >= found.value - least - 1e-9
    theta = F.pack(W, b)
    assert F.duality_gap(theta, F.value_and_gradient(theta)) < 1e-5
    F.alpha = 0.0
    assert F.duality_gap(theta, F.value_and_gradient(theta)) == np.inf


@every_link
def test_float32_stays_and_scores_of_ten_thousand_are_finite(link):
    F, *_ = problems.objective(link, dtype=np.float32)
    theta = np.full((6, 3), 1e4, np.float32) * np.array([1, -1, 0], np.float32)
    with np.errstate(over="raise", invalid="raise"):
        found = F.value_and_gradient(theta, with_row_weight=True)
    assert found.gradient.dtype == np.float32
    assert np.isfinite(found.value) and np.isfinite(found.gradient).all() and np.isfinite(found.row_weight).all()


def test_float32_sparse_is_never_filled(rng):
    """A matrix that would take 80 GB dense."""
    X = sp.random_array((20_000, 1_000_000), density=1e-6, format="csr", rng=rng, dtype=np.float32)
    F = Objective(Design(X), ClassTargets(rng.integers(0, 2, 20_000), 2), LINKS["softmax"], 1e-3, center=False)
    assert F.value_and_gradient(F.constant_model()).gradient.shape == (1_000_001, 2)
