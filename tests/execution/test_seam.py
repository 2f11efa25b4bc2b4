"""Sums over parts are sums over rows, whatever computes them: here threads, so that every solver can be asked."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model

from manyclass import BoundMajorizationClassifier, GLMClassifier, GLMClassifierCV
from manyclass.curvature import CURVATURES
from manyclass.data.parted import parted
from manyclass.execution.base import add, n_bytes
from manyclass.linear_model import RidgeClassifier
from manyclass.solvers import SOLVERS
from tests.covering import every_pair
from tests.execution.parts import D, N, assert_same, fit_parts
from tests.execution.threads import Threads


@pytest.mark.parametrize(
    ("loss", "kind", "intercept", "weighted"),
    every_pair(
        ["softmax", "logistic", "squared", "sparsemax"], [np.asarray, sp.csr_array], [True, False], [True, False]
    ),
)
def test_equal_to_one_machine(data, loss, kind, intercept, weighted):
    X, y, weight = data
    model = GLMClassifier(alpha=1e-2, loss=loss, fit_intercept=intercept, tol=1e-13)
    weight = weight if weighted else None
    assert_same(
        fit_parts(model, kind(X), y, weight),
        GLMClassifier(**model.get_params()).fit(kind(X), y, sample_weight=weight),
        X,
    )


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_solver_works_on_parts(data, solver):
    X, y, weight = data
    X = X / X.std(axis=0)  # the gradient's own methods are here too
    model = GLMClassifier(alpha=1.0, solver=solver, tol=1e-13)
    assert_same(fit_parts(model, X, y, weight), GLMClassifier(alpha=1.0, tol=1e-13).fit(X, y, weight), X)


@pytest.mark.parametrize("curvature", sorted(CURVATURES))
def test_every_curvature_works_on_parts(data, curvature):
    X, y, weight = data
    model = GLMClassifier(alpha=1e-1, curvature=curvature, tol=1e-13)
    assert_same(fit_parts(model, X, y, weight), GLMClassifier(alpha=1e-1, tol=1e-13).fit(X, y, weight), X)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("labels", ["classes", "several"])
def test_partition_bounds_in_planes_of_parts(data, kind, labels):
    X, y, weight = data
    y = y if labels == "classes" else np.c_[y == 0, y > 1].astype(int)
    model = BoundMajorizationClassifier(alpha=1e-1, tol=1e-13)
    expected = GLMClassifier(alpha=1e-1, tol=1e-13).fit(kind(X), y, weight)
    assert_same(fit_parts(model, kind(X), y, weight), expected, X)
    with pytest.raises(TypeError, match=r"runs compiled loops over NumPy arrays .* use GLMClassifier"):
        fit_parts(BoundMajorizationClassifier("stochastic"), X, y)


def test_samples_of_rows_are_drawn_from_every_part(rng):
    """Many more rows than the curvature is estimated from."""
    X = rng.standard_normal((N * 60, 2)) + np.array([3.0, 0.0])
    y = rng.integers(0, 3, len(X)) + (X[:, 0] > 3.5)
    parts = [list(np.array_split(values, 7)) for values in (X, y)]
    for options in ({"solver": "newton-cg"}, {"curvature": "kronecker"}):
        model = GLMClassifier(alpha=1e-3, tol=1e-12, **options)
        with parted(Threads, *parts, None, "It") as held:
            model.fit(*held)
        assert_same(model, GLMClassifier(alpha=1e-3, tol=1e-12).fit(X, y), X[:100])


@pytest.mark.parametrize("offset", [1e3, 1e7])
def test_far_from_the_origin(data, offset):
    X, y, weight = data
    X = X + offset * np.arange(1, D + 1)
    model = GLMClassifier(alpha=1e-2, tol=1e-11)
    assert_same(fit_parts(model, X, y, weight), GLMClassifier(**model.get_params()).fit(X, y, weight), X, 1e-6)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 2: 0.5}])
def test_class_weights_and_names_of_classes(data, class_weight):
    X, y, weight = data
    if class_weight == "balanced":
        y = np.array(["ant", "bee", "cow", "dog"])[y]
    model = GLMClassifier(alpha=1e-2, tol=1e-13, class_weight=class_weight)
    found = fit_parts(model, X, y, weight)
    assert list(found.classes_) == list(np.unique(y))
    assert_same(found, GLMClassifier(**model.get_params()).fit(X, y, weight), X)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 2: 0.5}])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_balances_rows_of_parts_as_scikit_learn_does(data, class_weight, weighted):
    X, y, weight = data
    weight = weight * (1.0 + 3.0 * (y == 1)) if weighted else None
    found = fit_parts(RidgeClassifier(class_weight=class_weight), X, y, weight)
    theirs = linear_model.RidgeClassifier(class_weight=class_weight).fit(X, y, weight)
    np.testing.assert_allclose(found.coef_, theirs.coef_, atol=1e-8)


def test_a_part_may_weigh_nothing(data):
    X, y, weight = data
    weight = np.where(np.arange(len(y)) < len(y) // 2, 0.0, weight)
    model = GLMClassifier(alpha=1e-2, tol=1e-13)
    assert_same(fit_parts(model, X, y, weight), GLMClassifier(**model.get_params()).fit(X, y, weight), X)


def test_two_classes_several_labels_and_single_precision(data):
    X, y, weight = data
    several = np.stack([y == 0, y > 1, X[:, 0] > 0], axis=1).astype(int)
    for targets in (y > 1, several):
        model = GLMClassifier(alpha=1e-2, tol=1e-13)
        assert_same(
            fit_parts(model, X, targets, weight), GLMClassifier(alpha=1e-2, tol=1e-13).fit(X, targets, weight), X
        )
        model = GLMClassifier(alpha=1e-2, tol=1e-6)
        X32 = X.astype(np.float32)
        found = fit_parts(model, X32, targets, weight)
        assert found.coef_.dtype == np.float32
        assert_same(found, GLMClassifier(alpha=1e-2, tol=1e-6).fit(X32, targets, weight), X32, 1e-3)


def test_rows_are_held_out_in_each_part(data):
    X, y, weight = data
    found = fit_parts(GLMClassifier(alpha=1e-3, early_stopping=True), X, y, weight)
    assert found.history_[-1].validation_score < 0
    assert found.score(X, y) > GLMClassifier(alpha=1e-3).fit(X, y).score(X, y) - 0.05
    alone = [X[:1], X[1:2]], [np.array([0]), np.array([1])]
    with pytest.raises(ValueError, match="early_stopping=False"), parted(Threads, *alone, None, "It") as held:
        GLMClassifier(early_stopping=True).fit(*held)


def test_what_is_not_possible_is_refused_with_what_is(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="only one class"):
        fit_parts(GLMClassifier(), X, y * 0)
    with pytest.raises(ValueError, match="NaN"):
        fit_parts(GLMClassifier(), np.where(X > 5, np.nan, X), y)
    with pytest.raises(ValueError, match="continuous"):
        fit_parts(GLMClassifier(), X, X[:, 0])
    with pytest.raises(ValueError, match="zero"):
        fit_parts(GLMClassifier(), X, y, np.zeros(N))
    with pytest.raises(ValueError, match="features"), parted(Threads, [X, X[:, 1:]], [y, y], None, "It"):
        pass
    with pytest.raises(ValueError, match="one dtype"), parted(Threads, [X, X.astype("f4")], [y, y], None, "It"):
        pass


def test_tuples_are_added_entry_by_entry_and_arrays_counted():
    assert add((1, (2.0, np.ones(1))), (3, (4.0, np.ones(1)))) == (4, (6.0, 2.0))
    assert n_bytes([np.zeros(3), (np.zeros(2), 1.0, "name")]) == 40


@pytest.mark.parametrize("size", [1e38, 1e-40])
def test_extreme_weights_of_parts_are_refused(data, size):
    X, y, weight = data
    with pytest.raises(ValueError, match="divide their weights by the mean"):
        fit_parts(GLMClassifier(), X, y, size * weight)


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_a_column_that_all_sparse_rows_of_one_part_hold_may_be_lacking_in_others(data, loss):
    X, y, _ = data
    year = np.where(np.arange(N) == N - 1, 0.0, 2010.0 + np.arange(N) % 7)[:, None]
    rows = sp.csr_array(np.hstack([X * (X > 0), year])).astype(np.float32)
    model = GLMClassifier(alpha=1e-2, loss=loss, tol=1e-6)
    found = fit_parts(model, rows, y)
    here = GLMClassifier(**model.get_params()).fit(rows.astype(np.float64), y)
    # The row without the year is 2010 of its coefficients away from all others.
    np.testing.assert_allclose(found.decision_function(rows), here.decision_function(rows), rtol=5e-3, atol=0.05)


def test_class_weights_are_no_copies_of_rows_in_parts_either(rng):
    X, y = rng.standard_normal((N, 10)), (rng.random(N) < 0.1).astype(int)
    X[y == 1, :2] += 1.0
    for class_weight in ("balanced", {0: 1.0, 1: 20.0}):
        one = GLMClassifierCV(loss="squared", cv="gcv", class_weight=class_weight)
        parts = fit_parts(GLMClassifierCV(loss="squared", cv="gcv", class_weight=class_weight), X, y)
        assert parts.alpha_ == pytest.approx(one.fit(X, y).alpha_)
        assert_same(parts, one, X)
