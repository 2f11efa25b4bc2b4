"""What responses are like: of several sizes, few, hardly told by any column, or by very many."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from manyclass import SDCARegressor, StagewiseRegressor
from manyclass.choice.features import COLUMNS, IN_UNITS, SAMPLED_ROWS, columns_suffice
from manyclass.estimators.stagewise import FOURIER, FOURIER_IN_UNITS


def outputs_of_different_kinds(rng):
    X = rng.uniform(-2, 2, (500, 3))
    Y = np.c_[np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(500), X[:, 1] + rng.standard_normal(500), X[:, 2]]
    return X[:300], Y[:300], X[300:], Y[300:]


@pytest.mark.parametrize("options", [{}, {"early_stopping": True, "block_size": 64}])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_unit_of_an_output_is_that_of_its_predictions_and_of_no_other(options, weighted, rng):
    X, Y, X_test, _ = outputs_of_different_kinds(rng)
    Y[:, 2] = 0.1  # whose standard deviation is rounding
    weight = rng.integers(0, 3, len(X)) if weighted else None
    model = StagewiseRegressor(n_components=256, random_state=0, **options)
    predicted = clone(model).fit(X, Y, weight).predict(X_test)
    assert_allclose(predicted[:, 2], 0.1, rtol=1e-9)
    for unit in (2.0 ** np.array([40, 0, -3]), 2.0 ** np.array([0, -900, 400])):
        assert_array_equal(clone(model).fit(X, Y * unit, weight).predict(X_test), predicted * unit)


def test_outputs_of_rows_without_weight_are_of_no_unit(rng):
    X, Y, X_test, _ = outputs_of_different_kinds(rng)
    model, weight = StagewiseRegressor(n_components=128, random_state=0), np.repeat([1.0, 0.0], 150)
    other = np.where(weight[:, None] > 0, Y, 1e3 * Y)
    found = [clone(model).fit(X, given, weight).predict(X_test) for given in (Y, other)]
    assert_array_equal(*found)


def test_a_small_output_is_predicted_beside_a_large_one(rng):
    X, Y, X_test, Y_test = outputs_of_different_kinds(rng)
    large = [1.0, 1e3, 1.0]
    model = StagewiseRegressor(n_components=512, random_state=0).fit(X, Y * large)
    error = np.mean((model.predict(X_test) / large - Y_test) ** 2, axis=0)
    assert error[0] < 0.2 * Y_test[:, 0].var()


def test_columns_that_gain_with_more_rows_as_what_is_generated_does_need_not_be_better():
    errors = {COLUMNS: 0.995, "RandomFourierFeatures": 1.0}
    assert columns_suffice(errors, SAMPLED_ROWS + 1) and not columns_suffice(errors, SAMPLED_ROWS)
    assert not columns_suffice({COLUMNS: 1.0, "RandomFourierFeatures": 0.9}, SAMPLED_ROWS + 1)


def test_nothing_is_drawn_for_wide_sparse_rows_that_tell_nothing(rng):
    X = sp.random_array((600, 10_000), density=0.003, format="csr", rng=rng)
    model = StagewiseRegressor(n_components=512, random_state=0).fit(X, rng.standard_normal(600))
    assert min(model.choice_["errors"].values()) > 0.95
    assert model.choice_["features"] == "columns"


def spoilt(y, value):
    y = y.astype(object if isinstance(value, str) else np.float64)
    y[3] = value
    return y


@pytest.mark.parametrize(
    "regressor", [StagewiseRegressor(n_components=16), SDCARegressor()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize(
    ("dtype", "made", "message"),
    [
        (np.float64, lambda y: spoilt(y, np.nan), "drop these rows, or fill it in"),
        (np.float64, lambda y: spoilt(y, "much"), "'much'.*or use a classifier"),
        (np.float64, lambda y: np.arange(20).astype("datetime64[D]"), "dates or times.*make numbers"),
        (np.float64, lambda y: spoilt(y, 1e200), r"1e\+200, too large to compute with: scale y\."),
        (np.float32, lambda y: spoilt(y, 1e60), r"1e\+60.*: scale y, or make X float64"),
    ],
)
def test_responses_that_are_no_numbers_are_refused_in_a_sentence(regressor, dtype, made, message, rng):
    X, y = rng.standard_normal((20, 2)).astype(dtype), rng.standard_normal(20)
    with pytest.raises(ValueError, match=message):
        clone(regressor).fit(X, made(y))


@pytest.mark.parametrize("library", ["torch", "polars"])
def test_missing_responses_of_other_libraries_are_named(library, rng):
    library = pytest.importorskip(library)
    X, y = rng.standard_normal((20, 2)), spoilt(rng.standard_normal(20), np.nan)
    held = (library.asarray(X), library.asarray(y)) if hasattr(library, "asarray") else (X, library.Series(y))
    with pytest.raises(ValueError, match="drop these rows, or fill it in"):
        StagewiseRegressor(n_components=16).fit(*held)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "columns", "responses", "way"),
    [
        ("squared", 1e-4, 1.0, "scale X"),
        ("huber", 1.0, 1e6, "scale y or X"),
        ("epsilon_insensitive", 1.0, 1e6, "scale y or X"),
    ],
)
def test_a_penalty_that_holds_all_predictions_back_is_told(loss, columns, responses, way, intercept, rng):
    X = rng.standard_normal((100, 3))
    y = X @ np.array([1.0, -1.0, 0.5])
    model = SDCARegressor(loss, alpha=1e-4, fit_intercept=intercept)
    with pytest.warns(UserWarning, match=f"alpha=0.0001 holds predictions to.*lower it, or {way}"):
        model.fit(columns * X, responses * y)
    predicted = model.predict(columns * X) - model.intercept_
    assert np.sqrt(np.mean(predicted**2)) <= 0.05 * responses * np.std(y) * 1.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(X, y)
        clone(model).fit(X, np.zeros(100))  # there is nothing to tell


@pytest.mark.filterwarnings("ignore:SDCARegressor")  # absolute errors take long to the last digits
@pytest.mark.parametrize("loss, epsilon", [("huber", 1.0), ("epsilon_insensitive", 0.1)])
def test_losses_for_outliers_end_where_all_other_rows_are_fitted(rng, loss, epsilon):
    X = rng.standard_normal((400, 5))
    y = X @ [1.0, -2.0, 3.0, 0.5, 0.0] + 0.5 * rng.standard_normal(400) + 20.0
    spoilt = y.copy()
    spoilt[:4] = {"huber": 1e7, "epsilon_insensitive": 1e6}[loss]
    model = SDCARegressor(loss, epsilon=epsilon).fit(X[:300], spoilt[:300])
    assert model.score(X[300:], y[300:]) > 0.95


def test_what_is_generated_is_compared_with_columns_in_the_units_in_which_it_is_taken(rng, monkeypatch):
    """Where its own units are better, but not by so much that they are taken."""
    X, Y, _, _ = outputs_of_different_kinds(rng)
    errors = {COLUMNS: 0.52, IN_UNITS: 0.515, FOURIER: 0.58, FOURIER_IN_UNITS: 0.525}
    monkeypatch.setattr("manyclass.estimators.stagewise.errors_of_representations", lambda *_: errors)
    monkeypatch.setattr("manyclass.estimators.stagewise.better_bandwidths", lambda *_: {})
    assert StagewiseRegressor(n_components=16).fit(X, Y).choice_["features"] == COLUMNS
    errors[FOURIER_IN_UNITS] = 0.4
    assert StagewiseRegressor(n_components=16).fit(X, Y).choice_["features"] == FOURIER_IN_UNITS
