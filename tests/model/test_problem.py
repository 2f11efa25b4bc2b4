import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, DenseRows, MatrixTargets, SparseRows, as_rows
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.model.duality import duality_gap
from manyclass.solvers import SOLVERS
from tests import problems
from tests.oracles import glm as oracle

every_loss = pytest.mark.parametrize("loss", SMOOTH_LOSSES)


@every_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("size", [1.0, 50.0])  # scores that are exponentiated as they are, and others
def test_value_and_gradient_against_the_oracle(loss, fit_intercept, center, size, rng):
    F, X, Y, s = problems.problem(loss, fit_intercept=fit_intercept, center=center)
    W, b = size * rng.standard_normal((5, 3)), size * rng.standard_normal(3) * fit_intercept
    found = F.value_and_gradient(F.pack(W, b))
    value, gradient_W, gradient_b = oracle.objective(loss, X, Y, s, F.alpha, W, b)
    assert found.value == pytest.approx(value, rel=1e-12)
    # In theta the intercept is that of the centred model, which moves with W.
    centred = gradient_W - np.outer(F.center, gradient_b)
    np.testing.assert_allclose(F.penalised(found.gradient), centred if fit_intercept else gradient_W, atol=1e-10)
    np.testing.assert_allclose(found.mean_residual, gradient_b, atol=1e-12)


@every_loss
@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_gradient_by_five_point_stencil(loss, seed):
    rng = np.random.default_rng(seed)
    F, *_ = problems.problem(loss, seed=seed)
    theta, D, h = rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), 1e-4
    f = [F.value_and_gradient(theta + t * h * D).value for t in (-2, -1, 1, 2)]
    numeric = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
    # Sparsemax has kinks in its gradient, where a stencil is only accurate to first order.
    assert numeric == pytest.approx((F.value_and_gradient(theta).gradient * D).sum(), rel=1e-3, abs=1e-5)


@every_loss
def test_blocks_and_storage_do_not_matter(loss, rng, monkeypatch):
    theta = rng.standard_normal((6, 3))
    reference = problems.problem(loss)[0].value_and_gradient(theta)
    for kind in (DenseRows, SparseRows):
        monkeypatch.setattr(kind, "rows_per_block", lambda self, *_: 7)
    for sparse in (False, True):
        found = problems.problem(loss, sparse=sparse)[0].value_and_gradient(theta)
        assert found.value == pytest.approx(reference.value, rel=1e-12)
        np.testing.assert_allclose(found.gradient, reference.gradient, atol=1e-11)


@every_loss
def test_weights_repeat_rows(loss, rng):
    X, codes, _ = problems.rows()
    times = rng.integers(0, 3, len(X))
    theta = rng.standard_normal((6, 3))
    weighted = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES[loss], 0.1, weight=times.astype(float))
    repeated = Problem(
        as_rows(np.repeat(X, times, 0)), ClassTargets(np.repeat(codes, times), 3), SMOOTH_LOSSES[loss], 0.1
    )
    a, b = weighted.value_and_gradient(theta), repeated.value_and_gradient(theta)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-12)


def test_parameters_survive_packing(rng):
    F, *_ = problems.problem()
    W, b = rng.standard_normal((5, 3)), rng.standard_normal(3)
    back = F.coefficients(F.pack(W, b))
    np.testing.assert_allclose(back[0], W)
    np.testing.assert_allclose(back[1], b)


@every_loss
def test_zero_and_constant_models(loss):
    F, X, Y, s = problems.problem(loss)
    zero = F.value_and_gradient(np.zeros((6, 3)))
    assert F.zero_value == pytest.approx(zero.value, rel=1e-12)
    np.testing.assert_allclose(F.zero_gradient, zero.gradient, atol=1e-12)
    constant = F.value_and_gradient(F.constant_model())
    share = 1 / (1 + s.sum())
    assert np.abs(constant.mean_residual).max() <= share
    np.testing.assert_allclose(
        F.cross_covariance, (X - F.center).T @ (s[:, None] * (Y - F.target_mean)) / s.sum(), atol=1e-12
    )


@every_loss
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_duality_gap_is_the_objective_less_that_of_the_dual_point(loss, center, offset, rng, monkeypatch):
    monkeypatch.setattr("manyclass.data.pieces.PIECE", 6)
    F, X, Y, s = problems.problem(loss, center=center)
    W, b = rng.standard_normal((F.rows.n_features, 3)), offset * rng.standard_normal(3)
    theta = F.pack(W, b)
    found = F.value_and_gradient(theta)
    P = F.loss.mean(X @ W + b, F.xp)
    n = F.n_independent
    share, towards = F.loss.domain.blend((s @ P / s.sum()).reshape(n, -1), (s @ Y / s.sum()).reshape(n, -1), F.xp)
    of_column, q = np.repeat(share, 3 // n), towards.reshape(1, -1) + 0 * P
    G = X.T @ (s[:, None] * ((1 - of_column) * P + of_column * q - Y)) / s.sum()

    def conjugate(points):
        return np.array([F.loss.conjugate(part, F.xp) @ s / s.sum() for part in np.split(points, n, axis=1)])

    conjugates = conjugate(Y) - (1 - share) * conjugate(P) - share * conjugate(q)
    dual = conjugates.sum() - (G * G).sum() / (2 * F.alpha)
    assert duality_gap(F, theta, found) == pytest.approx(found.value - dual, rel=1e-8)


@every_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_duality_gap_bounds_the_suboptimality_and_closes(loss, fit_intercept, center, rng):
    F, *_ = problems.problem(loss, fit_intercept=fit_intercept, center=center)
    least, W, b = problems.optimum(loss, fit_intercept)
    for size in (0.0, 1e-3, 0.1, 1.0, 10.0):
        theta = F.pack(W + size * rng.standard_normal(W.shape), b + size * fit_intercept * rng.standard_normal(3))
        found = F.value_and_gradient(theta)
        gap = duality_gap(F, theta, found)
        assert gap >= found.value - least - 1e-9
    theta = F.pack(W, b)
    assert duality_gap(F, theta, F.value_and_gradient(theta)) < 1e-5
    F.alpha = 0.0
    assert duality_gap(F, theta, F.value_and_gradient(theta)) == np.inf


@every_loss
def test_float32_stays_and_scores_of_ten_thousand_are_finite(loss):
    F, *_ = problems.problem(loss, dtype=np.float32)
    theta = np.full((6, 3), 1e4, np.float32) * np.array([1, -1, 0], np.float32)
    with np.errstate(over="raise", invalid="raise"):
        found = F.value_and_gradient(theta, with_row_weight=True)
    assert found.gradient.dtype == np.float32
    assert np.isfinite(found.value) and np.isfinite(found.gradient).all() and np.isfinite(found.row_weight).all()


def test_float32_sparse_is_never_filled(rng):
    """A matrix that would take 80 GB dense."""
    X = sp.random_array((20_000, 1_000_000), density=1e-6, format="csr", rng=rng, dtype=np.float32)
    F = Problem(as_rows(X), ClassTargets(rng.integers(0, 2, 20_000), 2), SMOOTH_LOSSES["softmax"], 1e-3)
    F.centred = False
    assert F.value_and_gradient(F.constant_model()).gradient.shape == (1_000_001, 2)


def test_the_variance_of_sparse_columns_counts_their_zeros(rng):
    X = rng.standard_normal((40, 4)) * (rng.random((40, 4)) < 0.4) + [0.0, 0.0, 0.0, 5.0]
    weight, targets = rng.random(40), MatrixTargets(rng.standard_normal((40, 1)))
    r = weight / weight.sum()
    for rows in (DenseRows(X), SparseRows(sp.csr_array(X))):
        found = Problem(rows, targets, SMOOTH_LOSSES["squared"], 0.1, weight=weight).feature_variance
        np.testing.assert_allclose(found, r @ (X - r @ X) ** 2)


def far_away(offset, dtype, seed=0, n=3000, d=4):
    """Rows of unit variance at `offset`, and their weights and classes."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + offset).astype(dtype)
    return X, np.argmax((X - offset) @ rng.standard_normal((d, 3)) + rng.gumbel(size=(n, 3)), axis=1), rng.random(n)


@every_loss
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
@pytest.mark.parametrize("weighted", [True, False])
def test_far_from_the_origin_float32_rows_have_the_gradient_of_float64(loss, offset, weighted):
    X, codes, s = far_away(offset, np.float32)
    absent, present = SMOOTH_LOSSES[loss].label_values or (0.0, 1.0)
    Y = absent + (present - absent) * np.eye(3)[codes]
    weight = s if weighted else None
    found, exact = (
        Problem(
            as_rows(X.astype(dtype)), MatrixTargets(Y.astype(dtype)), SMOOTH_LOSSES[loss], 0.1,
            weight=None if weight is None else weight.astype(dtype),
        )
        for dtype in (np.float32, np.float64)
    )  # fmt: skip
    W = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32).astype(np.float64)
    b = -W.T @ X.mean(axis=0, dtype=np.float64)
    near = found.value_and_gradient(found.pack(W.astype(np.float32), b))
    value, gradient_W, gradient_b = oracle.objective(
        loss, X.astype(np.float64), Y, np.ones(len(X)) if weight is None else weight, 0.1, W, b
    )
    mean = np.average(X.astype(np.float64), axis=0, weights=weight)
    scale = np.abs(gradient_W - np.outer(mean, gradient_b)).max()
    assert near.value == pytest.approx(value, rel=1e-3)
    np.testing.assert_allclose(near.gradient[:-1], gradient_W - np.outer(mean, gradient_b), atol=1e-3 * scale)
    np.testing.assert_allclose(near.mean_residual, gradient_b, atol=1e-3)
    wide = exact.value_and_gradient(exact.pack(W, b))
    np.testing.assert_allclose(near.gradient, wide.gradient, atol=2e-3 * scale)


def test_the_pilot_is_that_of_rows_that_count():
    """Rows without weight may lie anywhere."""
    X, codes, _ = far_away(0.0, np.float32)
    X[::2] += 1e5
    weight = np.tile(np.array([0, 1], np.float32), len(X) // 2)
    F = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 0.1, weight=weight)
    assert F.shift is None
    X[1::2] += 1e5
    F = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 0.1, weight=weight)
    np.testing.assert_allclose(F.shift, 1e5, rtol=1e-5)


def test_an_intercept_of_shifted_rows_is_mapped_back(rng):
    X, codes, _ = far_away(1e3, np.float64)
    F = Problem(as_rows(X.astype(np.float32)), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 0.1)
    assert F.shift is not None
    W, b = rng.standard_normal((4, 3)), rng.standard_normal(3)
    shifted = F.rows.dense() @ W + b
    np.testing.assert_allclose(X.astype(np.float32) @ W + F.unshifted(W, b), shifted, atol=1e-2)


def test_without_an_intercept_the_origin_stays_where_it_is():
    X, codes, _ = far_away(1e3, np.float32)
    F = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 0.1, fit_intercept=False)
    assert F.shift is None


@pytest.mark.parametrize("loss", ["softmax", "sparsemax"])
def test_no_rounding_is_left_along_a_common_shift_of_the_classes(loss, rng):
    """The penalty alone curves F there, so a metric divides what is left by alpha: near the minimum it would be all."""
    X, codes, _ = problems.rows(n=2000)
    X, targets = X * np.array([1e3, 1.0, 1.0, 1.0, 1e-2]), ClassTargets(codes, 3)
    F = Problem(as_rows(X), targets, SMOOTH_LOSSES[loss], 1e-5)
    coef, intercept = problems.run(F, SOLVERS["newton"], CURVATURES["hessian"], None, tol=1e-6, max_iter=100).model
    narrow = Problem(as_rows(X.astype(np.float32)), targets, SMOOTH_LOSSES[loss], 1e-5)
    theta = narrow.pack(coef.astype(np.float32), intercept.astype(np.float32))
    of_loss = narrow.value_and_gradient(theta).gradient.astype(np.float64)[:-1] - 1e-5 * theta[:-1]
    assert np.abs(of_loss.sum(axis=1)).max() < 8 * np.finfo(np.float32).eps * np.abs(of_loss).max()


@pytest.mark.parametrize("constant", [7.0, 0.1, 1e5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_has_the_gradient_of_its_penalty_alone(constant, dtype, rng):
    X, codes, _ = problems.rows(n=3000)
    X = np.c_[X, np.full(len(X), constant)].astype(dtype)
    F = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 1e-3)
    theta = rng.standard_normal((7, 3)).astype(dtype)
    gradient = F.value_and_gradient(theta).gradient
    np.testing.assert_allclose(gradient[5], 1e-3 * theta[5], rtol=1e-6)
    assert not F.cross_covariance[5].any() and (gradient[:5] != 0).all()
    if F.shift is None:  # else it is 0 anyway
        F.centred = False  # then it takes part in what the intercept does
        assert np.abs(F.cross_covariance[5]).max() > 0


@pytest.mark.parametrize("n", [300, 10_000, 100_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [as_rows, lambda X: as_rows(sp.csr_array(X))], ids=["dense", "sparse"])
def test_rounding_is_no_variance_however_many_numbers_are_added(form, dtype, n, rng):
    X = np.broadcast_to(np.concatenate([[1.0], rng.uniform(0.01, 1.0, 20)]), (n, 21)).astype(dtype)
    X[:, 0] += 0.1 * rng.standard_normal(n)
    F = Problem(form(X / 8), ClassTargets(np.arange(n) % 2, 2), SMOOTH_LOSSES["softmax"], 0.0)
    F.rows, F.shift = form(X / 8), None  # as the rows are where no column lies far from the origin
    assert F.feature_variance[0] == pytest.approx(0.01 / 64, rel=0.3)
    assert not F.feature_variance[1:].any()


def test_a_label_that_all_or_no_rows_have_has_a_finite_intercept():
    Y = np.c_[np.zeros(20), np.ones(20), np.arange(20) % 2]
    F = Problem(as_rows(np.arange(40.0).reshape(20, 2)), MatrixTargets(Y), SMOOTH_LOSSES["logistic"], 0.1)
    assert np.isfinite(F.constant_model()).all()


def test_a_variant_with_other_targets_has_their_outputs(rng):
    F, _, Y, s = problems.problem("logistic")
    other = F.variant(targets=MatrixTargets(Y[:, :2]))
    whole = F.constant_model()
    np.testing.assert_allclose(other.constant_model(), whole[:, :2])
    assert other.variant(weight=s).value_and_gradient(other.constant_model()).gradient.shape == whole[:, :2].shape
