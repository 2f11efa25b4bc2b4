from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from manyclass import ClassMoments, Moments
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.stagewise.streamed import in_units

D, K = 6, 3


def data(seed=0, n=80, d=D, k=K, offset=2.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, d)) + offset, rng.standard_normal((n, k))
    return X.astype(dtype), Y.astype(dtype), rng.random(n) + 0.1


def centred(moments):
    """The same sums around the origin of the first column block, so that different pilots can be compared."""
    return moments.around(np.zeros(len(moments.pilot)), np.zeros(len(moments.target_pilot)))


def assert_same(a, b, rtol=1e-9):
    a, b = centred(a), centred(b)
    for field in (field for field in fields(Moments) if field.compare):
        x, y = getattr(a, field.name), getattr(b, field.name)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(), err_msg=field.name)


@given(st.integers(0, 80), st.integers(0, 2**31), st.booleans())
@settings(max_examples=40, deadline=None)
def test_moments_form_a_group(cut, seed, weighted):
    X, Y, s = data(seed)
    s = s if weighted else None
    part = lambda rows: (X[rows], Y[rows], None if s is None else s[rows])  # noqa: E731
    whole = Moments.zeros(D, K).partial_fit(X, Y, s)
    first, second = (
        Moments.zeros(D, K).partial_fit(*part(slice(cut))),
        Moments.zeros(D, K).partial_fit(*part(slice(cut, None))),
    )
    assert_same(first.merge(second), whole)
    assert_same(second.merge(first), whole)
    whole.forget(*part(slice(cut, None)))
    assert_same(whole, first, rtol=1e-8) if cut else None
    assert whole.n == cut


def exact(X, Y, s):
    """Means and central second moments by the definition, in float64."""
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    x, y = np.average(X, axis=0, weights=s), np.average(Y, axis=0, weights=s)
    X, Y = X - x, Y - y
    return x, y, (X * s[:, None]).T @ X / s.sum(), (X * s[:, None]).T @ Y / s.sum()


def assert_exact(moments, X, Y, s, tolerance):
    x, y, covariance, cross = exact(X, Y, s)
    np.testing.assert_allclose(moments.mean, x, atol=tolerance)
    np.testing.assert_allclose(moments.target_mean, y, atol=tolerance)
    np.testing.assert_allclose(moments.covariance, covariance, atol=tolerance)
    np.testing.assert_allclose(moments.cross_covariance, cross, atol=tolerance)
    assert moments.weight == pytest.approx(s.sum(), rel=1e-5) and moments.n == len(X)


@given(
    cuts=st.lists(st.integers(1, 299), min_size=1, max_size=4, unique=True),
    offsets=st.lists(st.sampled_from([0.0, 1.0, -1e3, 1e3]), min_size=D, max_size=D),
    dtype=st.sampled_from([np.float32, np.float64]),
    sparse=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=25, deadline=None)
def test_columns_far_from_the_origin_cost_no_digits_however_rows_come_and_go(cuts, offsets, dtype, sparse, seed):
    """Unit variance a thousand standard deviations away: covariances keep what the dtype of the rows has."""
    X, Y, s = data(seed, n=300, offset=np.array(offsets), dtype=dtype)
    rng = np.random.default_rng(seed)
    extra_X, extra_Y, extra_s = data(seed + 1, n=50, offset=np.array(offsets), dtype=dtype)
    held = (lambda A: sp.csr_array(A)) if sparse else np.asarray
    parts = np.split(rng.permutation(300), sorted(cuts))
    tolerance = 1e-4 if dtype == np.float32 else 1e-7
    added = Moments.zeros(D, K)
    merged = Moments.zeros(D, K)
    for part in parts:
        added.partial_fit(held(X[part]), Y[part], s[part])
        merged = merged.merge(Moments.zeros(D, K).partial_fit(held(X[part]), Y[part], s[part]))
    assert_exact(added, X, Y, s, tolerance)
    assert_exact(merged, X, Y, s, tolerance)
    added.partial_fit(held(extra_X), extra_Y, extra_s).forget(held(extra_X), extra_Y, extra_s)
    assert_exact(added, X, Y, s, tolerance)
    # Other rows came first, and took their pilot with them.
    elsewhere = Moments.zeros(D, K).partial_fit(held(extra_X), extra_Y, extra_s).partial_fit(held(X), Y, s)
    assert_exact(elsewhere.forget(held(extra_X), extra_Y, extra_s), X, Y, s, tolerance)
    assert_exact(Moments.of(as_rows(held(X)), MatrixTargets(Y), s.astype(dtype)), X, Y, s, tolerance)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_solution_is_ridge_regression(fit_intercept, kind):
    X, Y, s = data()
    moments = Moments.of(as_rows(kind(X)), MatrixTargets(Y), s)
    factor = moments.factor(fit_intercept=fit_intercept)
    for alpha in (0.03, 1.0):
        ridge = Ridge(alpha=alpha * s.sum(), fit_intercept=fit_intercept, solver="cholesky", tol=1e-12).fit(X, Y, s)
        for held in (None, factor):
            coef, intercept = moments.solve(alpha, fit_intercept=fit_intercept, factor=held)
            np.testing.assert_allclose(coef.T, ridge.coef_, rtol=1e-8)
            np.testing.assert_allclose(intercept, ridge.intercept_, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_float32_rows_with_a_large_mean_have_the_coefficients_of_float64(kind):
    """Uncentred float32 products would be off by more than the coefficients themselves."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((20_000, 20)) + 1000).astype(np.float32)
    coef = rng.uniform(1, 5, (20, 1))
    Y = (X.astype(np.float64) - 1000) @ coef + 0.1 * rng.standard_normal((20_000, 1)) + 7
    moments = Moments.zeros(20, 1)
    for part in range(0, 20_000, 5000):
        moments.partial_fit(kind(X[part : part + 5000]), Y[part : part + 5000].astype(np.float32))
    best = np.linalg.lstsq(np.c_[X.astype(np.float64) - 1000, np.ones(len(X))], Y)[0]
    found, intercept = moments.solve(0.0)
    np.testing.assert_allclose(found, best[:-1], atol=1e-3)
    assert float(intercept[0] + 1000 * found.sum()) == pytest.approx(float(best[-1, 0]), abs=1e-3 * 7)


def test_dependent_columns_give_the_solution_of_minimum_norm():
    X, Y, _ = data(d=4)
    doubled = np.hstack([X, X, np.ones((80, 1))])
    coef, intercept = Moments.zeros(9, K).partial_fit(doubled, Y).solve(alpha=0.0)
    centred = doubled - doubled.mean(0)
    expected = np.linalg.pinv(centred) @ (Y - Y.mean(0))
    np.testing.assert_allclose(coef, expected, atol=1e-10)
    np.testing.assert_allclose(intercept, Y.mean(0) - doubled.mean(0) @ expected, atol=1e-9)


def test_weights_repeat_rows():
    X, Y, _ = data()
    times = np.arange(80) % 3
    weighted = Moments.zeros(D, K).partial_fit(X, Y, times)
    repeated = Moments.zeros(D, K).partial_fit(np.repeat(X, times, 0), np.repeat(Y, times, 0))
    repeated.n = weighted.n
    assert_same(weighted, repeated)


def test_float32_blocks_are_summed_in_float64():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 3)).astype(np.float32) + 10
    moments = Moments.of(as_rows(X), ClassTargets(np.zeros(200_000, np.int64), 2))
    wide = X.astype(np.float64)
    assert moments.xx.dtype == np.float64
    np.testing.assert_allclose(moments.second_moment * len(X), wide.T @ wide, rtol=2e-6)


def test_one_hot_targets_count_classes():
    X, _, _ = data()
    codes = np.arange(80) % K
    moments = centred(Moments.of(as_rows(X), ClassTargets(codes, K)))
    np.testing.assert_allclose(moments.xy, X.T @ np.eye(K)[codes])
    np.testing.assert_allclose(moments.y, np.bincount(codes))
    assert moments.yy == pytest.approx(80)


def test_what_does_not_fit_is_refused():
    moments = Moments.zeros(D, K)
    X, Y, s = data()
    with pytest.raises(ValueError, match="do not fit moments of 6 features and 3 outputs"):
        moments.partial_fit(X[:, :5], Y)
    with pytest.raises(ValueError, match="to take rows out use forget"):
        moments.partial_fit(X, Y, -s)
    with pytest.raises(ValueError, match="use the same columns"):
        moments.merge(Moments.zeros(5, K))
    with pytest.raises(ValueError, match="add rows with partial_fit"):
        moments.solve(1.0)
    with pytest.raises(ValueError, match="one non-negative number per row"):
        moments.partial_fit(X, Y, s[:5])
    for rows, targets, weight in ((X * np.nan, Y, s), (X, Y + np.inf, s), (X, Y, s * np.inf)):
        with pytest.raises(ValueError, match="hold NaN or infinity"):
            moments.partial_fit(rows, targets, weight)
    assert moments.n == 0 and not moments.xx.any()
    with pytest.raises(ValueError, match="must not be negative"):
        moments.partial_fit(X, Y.tolist(), s.tolist()).solve(-1.0)
    frame = pytest.importorskip("pandas").DataFrame(X)
    with pytest.raises(TypeError, match=r"not DataFrame; convert them with numpy\.asarray"):
        moments.partial_fit(frame, Y)
    with pytest.raises(ValueError, match="hold NaN or infinity"):
        ClassMoments.of(X * np.nan, np.arange(len(X)) % 2)


def test_columns_divided_by_their_units_have_the_moments_of_such_rows():
    X, Y, s = data(offset=1e3)
    unit = np.logspace(-2, 2, D)
    found = in_units(Moments.zeros(D, K).partial_fit(X, Y, s), unit)
    assert_same(found, Moments.zeros(D, K).partial_fit(X / unit, Y, s), 1e-8)


@pytest.mark.parametrize("place", [700, 7000 - 700])
def test_the_origin_is_looked_for_on_enough_rows_to_see_what_varies_rarely(place):
    X = np.zeros((7000, 1200), dtype=np.float32)
    X[:, 0] = 1000.0
    X[place, 0] = 1001.0
    pilot = as_rows(X).pilot()
    assert pilot is not None and pilot[0] == pytest.approx(1000.0, abs=0.1)
