"""Rows of weight 0 are as rows that are not there."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import CalibratedLeastSquaresClassifier, ClassMoments, Moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e6, 1e12, 1e20])
def test_a_response_of_no_weight_costs_moments_no_digits(dtype, size, rng):
    X = rng.standard_normal((500, 3)).astype(dtype)
    Y, weight = X.astype(np.float64) @ np.array([[1.0], [2.0], [3.0]]), np.ones(500)
    Y[0], weight[0] = size, 0.0
    coef, _ = Moments.zeros(3, 1).partial_fit(X, Y, weight).solve(0.0)
    np.testing.assert_allclose(coef[:, 0], [1.0, 2.0, 3.0], rtol=1e-5)


def test_responses_far_from_the_origin_cost_moments_of_float32_no_digits(rng):
    X = rng.standard_normal((500, 3)).astype(np.float32)
    Y = 1e8 + X.astype(np.float64) @ np.array([[1.0], [2.0], [3.0]])
    coef, _ = Moments.zeros(3, 1).partial_fit(X, Y).solve(0.0)
    np.testing.assert_allclose(coef[:, 0], [1.0, 2.0, 3.0], rtol=1e-5)


def test_they_take_no_places_among_the_rows_that_are_kept(rng):
    X, y = rng.standard_normal((800, 4)), rng.integers(0, 3, 800)
    X[y == 1] += 1.0
    weight = np.where(np.arange(800) % 4 == 0, 1.0, 0.0)
    some, all_rows = (CalibratedLeastSquaresClassifier(kept_rows=300) for _ in range(2))
    for part in (slice(0, 400), slice(400, 800)):
        told = part.start + np.flatnonzero(weight[part])
        some.partial_fit(X[told], y[told], classes=np.arange(3))
        all_rows.partial_fit(X[part], y[part], sample_weight=weight[part], classes=np.arange(3))
    np.testing.assert_allclose(all_rows.predict_proba(X), some.predict_proba(X), atol=1e-10)


def test_no_rows_at_all_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="y holds no labels"):
        ClassMoments.of(np.zeros((0, 2)), [])


def test_sparse_responses_are_those_of_their_array(rng):
    X, Y = rng.standard_normal((30, 2)), (rng.random((30, 3)) > 0.7).astype(float)
    dense, sparse = (Moments.zeros(2, 3).partial_fit(X, given).solve(0.1)[0] for given in (Y, sp.csr_array(Y)))
    np.testing.assert_array_equal(dense, sparse)
