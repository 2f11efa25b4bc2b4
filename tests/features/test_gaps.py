"""Numbers that are missing are guessed from the others of their row."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.preprocessing import StandardScaler

from manyclass.features import TableEncoder, gaps
from manyclass.features.gaps import Guesses


@pytest.fixture
def holed(rng):
    """Columns that tell much of each other, and the same with holes."""
    X = StandardScaler().fit_transform(load_breast_cancer().data)
    return X, np.where(rng.random(X.shape) < 0.15, np.nan, X)


def error(X, holed, filled):
    return np.sqrt(np.mean((filled - X)[np.isnan(holed)] ** 2))


def test_guesses_are_as_good_as_those_of_scikit_learn(holed, monkeypatch):
    monkeypatch.setattr(gaps, "EXPLAINED", 0.0)  # which guesses any column
    X, some = holed
    found = Guesses.learned(some[:400], np.ones(400), 400).fill(some[400:])
    theirs = IterativeImputer(max_iter=5, random_state=0).fit(some[:400]).transform(some[400:])
    mean = np.where(np.isnan(some[400:]), 0.0, some[400:])
    assert error(X[400:], some[400:], found) < 1.15 * error(X[400:], some[400:], theirs)
    assert error(X[400:], some[400:], found) < 0.6 * error(X[400:], some[400:], mean)
    assert_array_equal(found[~np.isnan(some[400:])], some[400:][~np.isnan(some[400:])])


def test_sweeps_end_at_the_mean_given_the_other_numbers(rng, monkeypatch):
    A = rng.standard_normal((6, 6))
    covariance = A @ A.T + np.eye(6)
    inverse = np.linalg.inv(covariance)
    coef = -inverse / np.diag(inverse)
    np.fill_diagonal(coef, 0.0)
    mean, x = rng.standard_normal(6), rng.standard_normal((1, 6))
    x[0, [1, 4]] = np.nan
    far = np.full(6, 1e9)
    monkeypatch.setattr(gaps, "SWEEPS", 500)
    filled = Guesses(mean, coef, -far, far).fill(x)
    known = [0, 2, 3, 5]
    among = covariance[np.ix_(known, known)]
    expected = mean[[1, 4]] + covariance[np.ix_([1, 4], known)] @ np.linalg.solve(among, x[0, known] - mean[known])
    assert_allclose(filled[0, [1, 4]], expected, rtol=1e-8)


def test_guesses_of_a_row_depend_on_that_row_alone(holed):
    _, some = holed
    encoder = TableEncoder().fit(some)
    whole = encoder.transform(some)
    for row in range(5):
        assert_allclose(encoder.transform(some[row : row + 1]), whole[row : row + 1], atol=1e-12)
    assert not np.isnan(whole).any()


def test_a_column_of_which_others_tell_little_gets_its_mean(rng):
    X = rng.standard_normal((400, 3))
    X[:, 1] = X[:, 0] + 0.5 * X[:, 1]
    X[:, 2] = X[:, 0] + 2.0 * X[:, 2]
    X = np.where(rng.random(X.shape) < 0.1, np.nan, StandardScaler().fit_transform(X))
    found = Guesses.learned(X, np.ones(400), 400)
    filled = found.fill(X)
    assert len(np.unique(filled[np.isnan(X[:, 2]), 2])) == 1
    assert len(np.unique(filled[np.isnan(X[:, 1]), 1])) > 20


def test_nothing_is_beyond_the_range_of_its_column(rng):
    X = rng.standard_normal((300, 1)) @ np.ones((1, 3)) + 0.01 * rng.standard_normal((300, 3))
    X[::5, 2] = np.nan
    found = Guesses.learned(X, np.ones(300), 300)
    filled = found.fill(np.array([[50.0, 50.0, np.nan]]))
    assert filled[0, 2] == np.nanmax(X[:, 2])


def test_the_noise_of_few_rows_is_not_followed(holed):
    X, some = holed
    filled = Guesses.learned(some[:40], np.ones(40), 40).fill(some[300:])
    assert error(X[300:], some[300:], filled) < 0.75  # about 1 by their mean, or without a ridge


def test_the_mean_has_to_do_where_there_is_nothing_to_guess_from(holed, monkeypatch):
    _, some = holed
    assert TableEncoder().fit(some[:, :1]).guesses_ is None
    assert TableEncoder().fit(np.nan_to_num(some)).guesses_ is None
    nothing = TableEncoder().fit(some).transform(np.full((1, 30), np.nan))
    assert_allclose(nothing[0, ::2], TableEncoder().fit(some).guesses_.mean, atol=0.2)
    assert Guesses.learned(np.where(np.eye(20, 3000) > 0, np.nan, 1.0), np.ones(20), 20) is None  # by its inverses
    monkeypatch.setattr(gaps, "MOST_FLOPS", 1e3)
    encoder = TableEncoder().fit(some)
    assert encoder.guesses_ is None
    assert_array_equal(encoder.transform(some)[np.isnan(some[:, 0]), 0], 0.0)


def test_constant_columns_and_columns_of_gaps(rng):
    frame = pd.DataFrame({"a": rng.standard_normal(50), "same": 3.0, "none": np.nan, "c": "x"})
    frame["b"] = frame["a"].where(np.arange(50) % 4 > 0) * 2.0
    found = TableEncoder().fit_transform(frame)
    assert not np.isnan(found).any()
    names = TableEncoder().fit(frame).get_feature_names_out().tolist()
    assert np.corrcoef(found[:, names.index("a")], found[:, names.index("b")])[0, 1] > 0.95
