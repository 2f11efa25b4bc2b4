from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from manyclass import Moments
from manyclass.data import ClassTargets, Design, MatrixTargets


def data(seed=0, n=80, d=6, k=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 2, rng.standard_normal((n, k)), rng.random(n) + 0.1


def assert_same(a, b, rtol=1e-9):
    for field in fields(Moments):
        x, y = getattr(a, field.name), getattr(b, field.name)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(), err_msg=field.name)


@given(st.integers(0, 80), st.integers(0, 2**31), st.booleans())
@settings(max_examples=40, deadline=None)
def test_moments_form_a_group(cut, seed, weighted):
    X, Y, s = data(seed)
    s = s if weighted else None
    part = lambda rows: (X[rows], Y[rows], None if s is None else s[rows])  # noqa: E731
    whole = Moments.zeros(6, 3).update(X, Y, s)
    first, second = Moments.zeros(6, 3).update(*part(slice(cut))), Moments.zeros(6, 3).update(*part(slice(cut, None)))
    assert_same(first.merge(second), whole)
    assert_same(second.merge(first), whole)
    whole.downdate(*part(slice(cut, None)))
    assert_same(whole, first, rtol=1e-8) if cut else None
    assert whole.n == cut


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_solution_is_ridge_regression(fit_intercept, kind):
    X, Y, s = data()
    alpha = 0.03
    moments = Moments.of(Design(kind(X)), MatrixTargets(Y), s)
    coef, intercept = moments.solve(alpha, fit_intercept=fit_intercept)
    ridge = Ridge(alpha=alpha * s.sum(), fit_intercept=fit_intercept, solver="cholesky", tol=1e-12).fit(X, Y, s)
    np.testing.assert_allclose(coef.T, ridge.coef_, rtol=1e-8)
    np.testing.assert_allclose(intercept, ridge.intercept_, rtol=1e-7, atol=1e-12)


def test_dependent_columns_give_the_solution_of_minimum_norm():
    X, Y, _ = data(d=4)
    doubled = np.hstack([X, X, np.ones((80, 1))])
    coef, intercept = Moments.zeros(9, 3).update(doubled, Y).solve(alpha=0.0)
    centred = doubled - doubled.mean(0)
    expected = np.linalg.pinv(centred) @ (Y - Y.mean(0))
    np.testing.assert_allclose(coef, expected, atol=1e-10)
    np.testing.assert_allclose(intercept, Y.mean(0) - doubled.mean(0) @ expected, atol=1e-9)


def test_weights_repeat_rows():
    X, Y, _ = data()
    times = np.arange(80) % 3
    weighted = Moments.zeros(6, 3).update(X, Y, times)
    repeated = Moments.zeros(6, 3).update(np.repeat(X, times, 0), np.repeat(Y, times, 0))
    repeated.n = weighted.n
    assert_same(weighted, repeated)


def test_float32_blocks_are_summed_in_float64():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 3)).astype(np.float32) + 10
    moments = Moments.of(Design(X), ClassTargets(np.zeros(200_000, np.int64), 2))
    exact = X.astype(np.float64).T @ X.astype(np.float64)
    assert moments.xx.dtype == np.float64
    np.testing.assert_allclose(moments.xx, exact, rtol=2e-6)


def test_one_hot_targets_count_classes():
    X, _, _ = data()
    codes = np.arange(80) % 3
    moments = Moments.of(Design(X), ClassTargets(codes, 3))
    np.testing.assert_allclose(moments.xy, X.T @ np.eye(3)[codes])
    np.testing.assert_allclose(moments.y, np.bincount(codes))
    assert moments.yy == 80


def test_what_does_not_fit_is_refused():
    moments = Moments.zeros(6, 3)
    X, Y, s = data()
    with pytest.raises(ValueError, match="do not fit moments of 6 features and 3 outputs"):
        moments.update(X[:, :5], Y)
    with pytest.raises(ValueError, match="to take rows out use downdate"):
        moments.update(X, Y, -s)
    with pytest.raises(ValueError, match="use the same columns"):
        moments.merge(Moments.zeros(5, 3))
    with pytest.raises(ValueError, match="add rows with update"):
        moments.solve(1.0)
    assert moments.n == 0 and not moments.xx.any()
