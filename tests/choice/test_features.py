"""What says whether columns are used as they are, or each in its own unit."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier, GLMClassifierCV, StagewiseClassifier
from manyclass.choice.features import (
    IN_UNITS,
    UNLIKE,
    advice,
    column_units,
    errors_of_representations,
    others_cost_more,
    usual_rows,
)
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.data.generated import in_units
from manyclass.model import SMOOTH_LOSSES, Problem


def _problem(X, weight=None):
    rows = as_rows(X)
    targets = ClassTargets(np.arange(X.shape[0]) % 2, 2)
    return Problem(rows, targets, SMOOTH_LOSSES["softmax"], 0.1, weight=weight)


def _sparse(rng, n, d, density):
    return np.where(rng.random((n, d)) < density, np.abs(rng.standard_normal((n, d))), 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [None, 2.0])
def test_rows_in_units_are_the_same_in_every_kind_of_rows(rng, dtype, shift):
    X, unit = _sparse(rng, 50, 7, 0.4).astype(dtype), 10.0 ** np.arange(-3.0, 4.0)
    for held in (X, sp.csr_array(X)):
        rows = as_rows(held)
        given = rows if shift is None else rows.shifted(np.full(7, shift))
        W = rng.standard_normal((7, 3)).astype(dtype)
        wanted = (X - (shift or 0.0)) / unit @ W
        assert_allclose(in_units(given, unit).matmat(W), wanted, rtol=1e-4, atol=1e-3 * np.abs(wanted).max())


def test_rare_columns_are_not_small_ones_and_those_of_hardly_any_row_tell_nothing(rng):
    X = _sparse(rng, 2000, 40, 10.0 ** rng.uniform(-2, 0, 40))
    X[:, 0] = 0.0
    X[0, 0] = 1e4
    assert column_units(_problem(sp.csr_array(X))) is None
    X[:, 1] *= 1e3
    unit = column_units(_problem(sp.csr_array(X)))
    others = np.delete(unit, 1)
    assert unit[1] > 100 * np.median(unit) and others.max() < UNLIKE * others.min()


def test_units_of_full_columns_are_their_deviations_however_they_are_held(rng):
    X = rng.standard_normal((300, 3)) * [1.0, 20.0, 1.0] + [5.0, 0.0, 0.0]
    weight = rng.random(300) + 0.5
    assert_allclose(column_units(_problem(X, weight)), column_units(_problem(sp.csr_array(X), weight)), rtol=1e-6)


@pytest.mark.parametrize("estimator", [CalibratedLeastSquaresClassifier, StagewiseClassifier])
def test_a_sparse_column_in_other_units_does_not_hide_the_others(rng, estimator):
    X = _sparse(rng, 900, 20, 0.3).astype(np.float32)
    y = (X @ rng.standard_normal((20, 4))).argmax(axis=1)
    apart = X * np.where(np.arange(20) == 3, np.float32(1e5), np.float32(1.0))
    alike, unlike = (
        estimator(random_state=0).fit(sp.csr_array(Z[:400]), y[:400]).score(sp.csr_array(Z[400:]), y[400:])
        for Z in (X, apart)
    )
    assert unlike > alike - 0.06


def test_what_gains_more_with_more_rows_is_compared_by_nearly_as_many():
    """A link on the columns is judged by tenths of the rows left out, as least squares is by single ones."""
    rng = np.random.default_rng(3)
    X = _sparse(rng, 700, 70, 0.1)
    scores = X @ rng.standard_normal((70, 8))
    y = (scores + 0.1 * scores.std() * rng.gumbel(size=scores.shape)).argmax(axis=1)
    model = StagewiseClassifier(random_state=0).fit(X, y)
    assert model.choice_["features"] == "columns with a link"
    assert model.choice_["errors"]["columns with a link"] < 0.97 * model.choice_["errors"]["columns"]


@pytest.mark.parametrize("empty", [False, True])
def test_units_belong_to_their_columns_where_others_are_empty(rng, empty):
    X = _sparse(rng, 500, 12, 0.3)
    X[:, 8:12] *= not empty
    X[:, 5] *= 1e4
    y = np.argmax(X[:, :3] + 0.3 * rng.standard_normal((500, 3)), axis=1)
    targets = ClassTargets(y, 3)

    def errors(X):
        problem = Problem(as_rows(sp.csr_array(X.astype(np.float32))), targets, SMOOTH_LOSSES["softmax"], 0.1)
        return errors_of_representations(problem, column_units(problem))[IN_UNITS]

    assert errors(X) == errors(X[:, :8]) if empty else errors(X) < 0.6


@pytest.mark.parametrize(
    "make", [GLMClassifier, GLMClassifierCV, CalibratedLeastSquaresClassifier, StagewiseClassifier], ids=str
)
@pytest.mark.parametrize("unit", [1.0, 1e5])
def test_a_column_far_from_the_origin_beside_empty_ones(rng, make, unit):
    X = _sparse(rng, 400, 20, 0.3)
    X[:, 8:12], X[:, 3] = 0.0, 2000.0 + rng.standard_normal(400)
    X[:, 5] *= unit
    y = np.argmax(X[:, :3] + 0.3 * rng.standard_normal((400, 3)), axis=1)
    held = sp.csr_array(X.astype(np.float32))
    assert make().fit(held, y).score(held, y) == pytest.approx(make().fit(X, y).score(X, y), abs=0.03)


def test_columns_of_sparse_rows_keep_their_precision_and_are_not_advised_on(rng):
    X = sp.csr_array(_sparse(rng, 200, 5, 0.5).astype(np.float32))
    assert in_units(as_rows(X), np.arange(1.0, 6.0)).dtype == np.float32
    X = sp.csr_array(X.toarray() * np.float32([1, 1, 1, 1, 1e5]))
    assert column_units(_problem(X)) is not None and advice(_problem(X)) == ""
    assert "StandardScaler" in advice(_problem(X.toarray()))


def _classes(rng, n):
    y = rng.integers(0, 5, n)
    return 1.5 * rng.standard_normal((5, 12))[y] + rng.standard_normal((n, 12)), y


@pytest.mark.parametrize(("dtype", "n_wild"), [(np.float32, 10), (np.float64, 3)])
def test_a_few_rows_in_other_units_do_not_decide_what_calibrated_least_squares_fits(dtype, n_wild, rng):
    """Each would take a direction of W."""
    X, y = _classes(rng, 1100)
    X, X_test, y, y_test = X[:400].astype(dtype), X[400:].astype(dtype), y[:400], y[400:]
    usual = CalibratedLeastSquaresClassifier().fit(X[n_wild:], y[n_wild:]).score(X_test, y_test)
    X[:n_wild] *= 1e4
    model = CalibratedLeastSquaresClassifier().fit(X, y)
    assert model.choice_["rows"] == "in usual units"
    assert model.score(X_test, y_test) > usual - 0.03
    assert CalibratedLeastSquaresClassifier(model.alpha_, max_iter=2).fit(X, y).choice_["rows"] == "all"


@pytest.mark.parametrize("kind", ["chance", "no class without", "usual", "weightless", "labels"])
def test_rows_in_other_units_are_fitted_to_where_they_cost_no_errors(kind, rng):
    X, y = _classes(rng, 400)
    weight = None
    if kind != "usual":
        X[:20] *= 1e4
    if kind == "chance":
        y = rng.integers(0, 5, 400)
    if kind == "no class without":
        y[:20], y[20:] = 5, y[20:]
    if kind == "weightless":
        weight = np.where(np.arange(400) < 20, 0.0, 1.0)
    targets = ClassTargets(y, 6, (0.0, 1.0))
    if kind == "labels":
        targets = MatrixTargets(np.eye(6)[y])
    problem = Problem(as_rows(X), targets, SMOOTH_LOSSES["squared"], 0.0, weight=weight)
    assert not others_cost_more(problem, usual_rows(problem))
