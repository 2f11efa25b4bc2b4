import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.curvature import CURVATURES
from manyclass.curvature.hessian import hessian_matrix
from manyclass.curvature.kronecker import ClassFactor, Kronecker
from manyclass.curvature.sampling import RowSample, heaviest, uniform_sample, weighted_sample
from manyclass.data import ClassTargets, as_rows
from manyclass.data.targets import MatrixTargets
from manyclass.model import SMOOTH_LOSSES, Problem
from tests import problems

PAIRS = [(name, loss) for name, c in CURVATURES.items() for loss in SMOOTH_LOSSES if problems.serves(name, loss)]


@pytest.mark.parametrize(("name", "loss"), PAIRS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_inverse_is_symmetric_positive_definite(name, loss, fit_intercept):
    kind = CURVATURES[name]
    F, *_ = problems.problem(loss, center=kind.center, fit_intercept=fit_intercept)
    curvature = kind(F, np.random.default_rng(0))
    shape = (5 + fit_intercept, 3)
    inverse = np.stack([curvature.solve(e.reshape(shape)).ravel() for e in np.eye(int(np.prod(shape)))])
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-6, atol=1e-9 * np.abs(inverse).max())
    assert np.linalg.eigvalsh(inverse).min() > 0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_second_moment_is_the_centred_one(fit_intercept):
    F, X, _, s = problems.problem("softmax", alpha=0.1, fit_intercept=fit_intercept)
    curvature = CURVATURES["second-moment"](F, np.random.default_rng(0))
    centred = X - F.center
    H = 0.5 * (centred.T * s) @ centred / s.sum() + 0.1 * np.eye(5)
    G = np.random.default_rng(0).standard_normal((5 + fit_intercept, 3))
    np.testing.assert_allclose(F.penalised(curvature.solve(G)), np.linalg.solve(H, F.penalised(G)), rtol=1e-8)
    if fit_intercept:
        np.testing.assert_allclose(curvature.solve(G)[-1], G[-1] / 0.5)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_kronecker_is_exact_where_all_rows_curve_alike(loss, rng):
    """At the zero model ∇²Φ is the same for every row, and then A ⊗ Σ + alpha·I is the Hessian itself."""
    F, X, _, s = problems.problem(loss, alpha=0.1)
    curvature = Kronecker(F, rng)
    curvature.refit(F, RowSample(None, None), np.zeros((6, 3)))
    scale = {"squared": 1.0, "logistic": 0.25}[loss]
    centred = X - F.center
    H = scale * (centred.T * s) @ centred / s.sum() + 0.1 * np.eye(5)
    G = rng.standard_normal((6, 3))
    np.testing.assert_allclose(curvature.solve(G)[:-1], np.linalg.solve(H, G[:-1]), rtol=1e-7)
    np.testing.assert_allclose(curvature.solve(G)[-1], G[-1] / scale, rtol=1e-7)


def test_softmax_kronecker_matches_the_hessian_on_gradients(rng):
    F, X, _, s = problems.problem("softmax", alpha=0.1)
    curvature = Kronecker(F, rng)
    curvature.refit(F, RowSample(None, None), np.zeros((6, 3)))
    A = np.eye(3) / 3 - np.ones((3, 3)) / 9
    centred = X - F.center
    H = np.kron((centred.T * s) @ centred / s.sum(), A) + 0.1 * np.eye(15)
    G = rng.standard_normal((6, 3))
    G -= G.mean(1, keepdims=True)  # as every gradient of a softmax
    np.testing.assert_allclose(curvature.solve(G)[:-1].ravel(), np.linalg.solve(H, G[:-1].ravel()), rtol=1e-6)


def test_refresh_at_a_point_helps_newton(rng):
    """Near the optimum H⁻¹ of the refreshed curvature is closer to the true inverse than the one built at zero."""
    from manyclass.solvers.newton_cg import HessianProduct

    F, *_ = problems.problem("softmax", alpha=0.05)
    curvature = Kronecker(F, rng)
    theta = 2 * rng.standard_normal((6, 3))
    hessian = HessianProduct.at(F, theta, RowSample(None, None))
    true = np.stack([hessian.product(e.reshape(6, 3)).ravel() for e in np.eye(18)])

    def condition():
        inverse = np.stack([curvature.solve(e.reshape(6, 3)).ravel() for e in np.eye(18)])
        values = np.sort(np.linalg.eigvals(inverse @ true).real)[2:]  # without the free shift of the scores
        return values.max() / values.min()

    before = condition()
    curvature.refresh(F, theta, F.value_and_gradient(theta, with_row_weight=True).row_weight)
    assert condition() < before


def test_uniform_sample_is_unbiased_and_complete_when_small(rng):
    F, *_ = problems.problem()
    assert uniform_sample(F, 50, rng).index is None
    sample = uniform_sample(F, 20, rng)
    assert len(set(sample.index)) == 20 and sample.scale.sum() == pytest.approx(60)


def test_the_heaviest_rows_hold_nearly_all_of_the_weight(rng):
    np.testing.assert_array_equal(heaviest(np.array([0.0, 3.0, 1e-9, 5.0, 0.0, 0.0])), [3, 1])
    weight = rng.random(1000)
    rows = heaviest(weight)
    assert 0.99 <= weight[rows].sum() / weight.sum() < 0.99 + weight[rows].min() / weight.sum()


def test_weighted_sample_keeps_the_heavy_rows(rng):
    weight = np.r_[np.full(10, 100.0), np.full(990, 1e-3)]
    sample = weighted_sample(weight, 20, rng)
    assert sample.scale is None and set(range(10)) <= set(sample.index) and len(sample.index) <= 30
    spread = rng.random(1000) + 0.5
    estimates = [weighted_sample(spread, 100, np.random.default_rng(i)) for i in range(200)]
    totals = [(spread[e.index] * e.scale).sum() for e in estimates]
    assert np.mean(totals) == pytest.approx(spread.sum(), rel=0.03)
    assert np.mean([len(e.index) for e in estimates]) == pytest.approx(100, rel=0.1)


def test_wide_sparse_data_need_no_dense_factor(rng):
    X = sp.random_array((500, 100_000), density=1e-3, format="csr", rng=rng)
    F = Problem(as_rows(X), ClassTargets(rng.integers(0, 3, 500), 3), SMOOTH_LOSSES["softmax"], 1e-3)
    F.centred = False
    step = CURVATURES["diagonal"](F, rng).solve(F.zero_gradient)
    assert np.isfinite(step).all() and F.value_and_gradient(-step).value < F.zero_value


def test_a_hessian_of_all_rows_is_the_hessian():
    F, *_ = problems.problem("softmax", alpha=0.1)
    rng = np.random.default_rng(0)
    G = rng.standard_normal((6, 3))
    theta = rng.standard_normal((6, 3))
    exact, sampled = (CURVATURES[name](F, rng) for name in ("hessian", "sampled-hessian"))
    for curvature in (exact, sampled):
        curvature.refresh(F, theta, np.ones(F.rows.n_rows))
    np.testing.assert_allclose(sampled.solve(G), exact.solve(G))


@pytest.mark.parametrize("shape", [(4, 3), (2, 7), (3, 1)])  # features and outputs
@pytest.mark.parametrize("block_bytes", [1 << 10, 32 << 20])
def test_a_hessian_is_how_the_gradient_changes(shape, block_bytes, monkeypatch):
    """However many outputs there are for the features, and blocks of the rows."""
    monkeypatch.setattr("manyclass.curvature.hessian.GRAM_BLOCK_BYTES", block_bytes)
    rng, (d, k) = np.random.default_rng(0), shape
    X, y = rng.standard_normal((90, d)), np.arange(90) % max(k, 2)
    targets = ClassTargets(y, max(k, 2)) if k > 1 else MatrixTargets(y[:, None])
    loss = SMOOTH_LOSSES["softmax" if k > 1 else "logistic"]
    F = Problem(as_rows(X), targets, loss, 0.1, weight=rng.uniform(0.5, 2.0, 90))
    theta, step = rng.standard_normal((2, d + 1, k))
    H = hessian_matrix(F, theta)
    ahead, behind = (F.value_and_gradient(theta + sign * 1e-5 * step).gradient for sign in (1.0, -1.0))
    change = (ahead - behind) / 2e-5
    np.testing.assert_allclose((H @ step.ravel()).reshape(d + 1, k), change, rtol=1e-6, atol=1e-8)


def test_a_column_that_the_sample_missed_is_not_flat():
    rng = np.random.default_rng(0)
    n, k = 100_000, 3
    X = rng.standard_normal((n, 3))
    X[:, 2] = 0.0
    X[rng.choice(n, 8, replace=False), 2] = 100.0
    F = Problem(as_rows(X), ClassTargets(rng.integers(0, k, n), k), SMOOTH_LOSSES["softmax"], 1e-6)
    F.centred = True
    sampled = CURVATURES["sampled-hessian"](F, rng)
    assert sampled.sample.index is not None and not X[sampled.sample.index, 2].any()
    exact = CURVATURES["hessian"](F, rng)
    G = np.zeros((4, k))
    G[2, 0], G[2, 1] = 1.0, -1.0
    one, other = (float((curvature.solve(G) * G).sum()) for curvature in (sampled, exact))
    assert 0.3 < one / other < 3.0


def test_the_hessian_of_few_parameters_is_looked_at_in_more_rows_each_time_up_to_a_limit():
    """However often a path of penalties looks at it."""
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((20_000, 3)), rng.integers(0, 3, 20_000)
    F = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 1e-6)
    sampled, theta, looked = CURVATURES["sampled-hessian"](F, rng), F.constant_model(), []
    weight = F.value_and_gradient(theta, with_row_weight=True).row_weight
    for _ in range(6):
        looked.append(len(sampled.sample.index))
        sampled.refresh(F, theta, weight)
    np.testing.assert_allclose(looked, [1000, 2000, 4000, 8000, 8000, 8000], rtol=0.1)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_diagonal_is_that_of_cauchys_inequality(fit_intercept, rng):
    F, X, _, s = problems.problem("softmax", alpha=0.1, center=False, fit_intercept=fit_intercept)
    size = np.abs(np.c_[X, np.ones((len(X), int(fit_intercept)))])
    D = 0.5 * (s * size.sum(axis=1)) @ size / s.sum()
    D[:5] += 0.1
    found = CURVATURES["diagonal"](F, rng).solve(np.ones((5 + fit_intercept, 3)))
    np.testing.assert_allclose(found[:, 0], 1.0 / D, rtol=1e-12)


def test_features_that_a_sample_misses_are_not_taken_for_flat(rng):
    """Three rows of 20 000 have the last feature, and the sample of rows behind the curvature has none of these."""
    n = 20_000
    X = np.c_[rng.standard_normal((n, 3)), np.zeros(n)]
    X[:3, 3] = 5.0
    codes = rng.integers(0, 3, n)
    codes[:3] = 0
    F = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 0.0)
    sample = RowSample(np.arange(3, n, 4), np.full(len(range(3, n, 4)), n / len(range(3, n, 4))), is_uniform=True)
    step = Kronecker(F, rng)
    step.refit(F, sample)
    exact = Kronecker(F, rng)
    exact.refit(F, RowSample(None, None))
    ratio = np.abs(step.solve(F.zero_gradient)[3]).max() / np.abs(exact.solve(F.zero_gradient)[3]).max()
    assert 0.5 < ratio < 2.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_diagonal_metric_is_that_of_the_mean_hessian_about_the_centre_of_the_rows_that_count(
    form, fit_intercept, rng
):
    """It is the Hessian itself, but for what couples classes, where columns are uncorrelated with these weights."""
    n, d = 400, 3
    signs = np.array([[(i >> j) % 2 for j in range(d)] for i in range(2**d)]) * 2.0 - 1.0
    X = np.tile(signs, (n // 2**d, 1)) * [1.0, 10.0, 0.1] + [3.0, 0.0, 1.0]
    X[: n // 2] *= 1000.0  # which do not count
    weight = np.where(np.arange(n) < n // 2, 0.0, 0.25)
    targets, loss = ClassTargets(np.arange(n) % 2, 2), SMOOTH_LOSSES["softmax"]
    F = Problem(as_rows(form(X)), targets, loss, 0.01, fit_intercept=fit_intercept)
    curvature = CURVATURES["jacobi"](F, rng)
    curvature.refresh(F, F.constant_model(), weight)
    gradient = rng.standard_normal((d + fit_intercept, 2))
    Z = X - F.feature_mean if fit_intercept else X
    Z = np.c_[Z, np.ones((n, int(fit_intercept)))]
    hessian = (Z * weight[:, None]).T @ Z / n / 2  # the mean of two outputs
    if not fit_intercept:
        hessian = np.diag(np.diag(hessian))
    hessian[:d, :d] += 0.01 * np.eye(d)
    np.testing.assert_allclose(curvature.solve(gradient), np.linalg.solve(hessian, gradient), rtol=2e-3)


def test_columns_of_rows_that_no_longer_count_keep_their_unit(rng):
    X = np.c_[rng.standard_normal((200, 2)), np.repeat([0.0, 1.0], 100)]
    F = Problem(as_rows(X), ClassTargets(np.arange(200) % 2, 2), SMOOTH_LOSSES["softmax"], 1e-3)
    curvature = CURVATURES["jacobi"](F, rng)
    curvature.refresh(F, F.constant_model(), np.r_[np.full(100, 0.1), np.zeros(100)])
    step = curvature.solve(np.eye(4)[:, 2:3] * [[1.0, -1.0]])[2, 0]
    assert step == pytest.approx(1.0 / (0.025 * 0.25 + 1e-3), rel=1e-6)


@pytest.mark.parametrize(
    "sums", [[1.0, 1e-9, 1e-9], [3.0, 1.0, 1.0], [1.0, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
)
def test_classes_of_rounding_alone_have_a_metric(sums):
    """Where all rows are decided 1 − p of the largest class is rounded to more than all that is left of the others."""
    problem = Problem(as_rows(np.eye(3)), ClassTargets(np.arange(3), 3), SMOOTH_LOSSES["softmax"], 1e-3)
    with np.errstate(all="raise"):
        a = ClassFactor(problem).finish(np.array(sums)).a
    assert np.isfinite(a).all() and (a > 0).all()


def test_classes_of_very_different_size_are_solved_for():
    p = np.array([0.998, 0.0015, 0.0005])
    problem = Problem(as_rows(np.eye(3)), ClassTargets(np.arange(3), 3), SMOOTH_LOSSES["softmax"], 1e-3)
    a = ClassFactor(problem).finish(p * (1 - p)).a
    floor = np.maximum(p * (1 - p) / np.sum(p * (1 - p)), 0.1 / 3)
    assert np.all(a * (1 - a / a.sum()) <= 1.5 * floor) and np.all(a >= floor)
