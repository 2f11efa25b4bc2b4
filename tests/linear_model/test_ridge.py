"""`RidgeClassifierCV` beside scikit-learn's, which decomposes in float64."""

import numpy as np
import pytest
from sklearn import linear_model

from manyclass.linear_model import RidgeClassifierCV


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-4), (np.float32, 2e-2)])
@pytest.mark.parametrize(("n", "d"), [(60, 2000), (60, 59)])
def test_rows_that_are_interpolated_are_left_out_as_if_the_penalty_were_none(dtype, accuracy, n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(dtype)
    y = (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)
    alphas = [1e-8, 1e-4, 1.0, 1e3] if d > n else [1.0, 1e3]
    ours = RidgeClassifierCV(alphas=alphas, store_cv_results=True).fit(X, y)
    theirs = linear_model.RidgeClassifierCV(alphas=alphas, store_cv_results=True).fit(X.astype(np.float64), y)
    errors = [one.cv_results_.reshape(n, -1).mean(axis=0) for one in (ours, theirs)]
    np.testing.assert_allclose(*errors, rtol=accuracy)
    assert ours.alpha_ == theirs.alpha_


def test_rows_in_float32_some_of_which_lie_far_away_have_the_scores_of_scikit_learn(rng):
    X = rng.standard_normal((700, 20))
    y = (X @ rng.standard_normal(20) + rng.standard_normal(700) > 0).astype(int)
    X += 1000.0
    X[:4] *= 100.0
    ours, theirs = RidgeClassifierCV([1.0]), linear_model.RidgeClassifierCV([1.0])
    assert ours.fit(X.astype(np.float32), y).best_score_ == pytest.approx(theirs.fit(X, y).best_score_, rel=0.01)
    assert (ours.predict(X[4:]) == theirs.predict(X[4:])).mean() > 0.99
