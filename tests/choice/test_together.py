"""Folds side by side, against each by itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification
from sklearn.model_selection import KFold, ShuffleSplit

from manyclass import GLMClassifierCV
from manyclass.choice.together import HessianOfEach, Together
from manyclass.curvature import CURVATURES, Hessian
from manyclass.model.duality import duality_gap
from tests.problems import problem

LOSSES = ["softmax", "logistic", "sparsemax"]
RATIOS = [1.3, 0.7, 1.0]


def side_by_side(loss="softmax", **options):
    """Three problems with weights of their own, of which each leaves rows out; and parameters of each."""
    options = {"weighted": False, "dtype": np.float32} | options
    one, X, _, _ = problem(loss, **options)
    one.centred = True
    rng = np.random.default_rng(1)
    weights = [(rng.random(len(X)) < 0.7) * rng.uniform(0.5, 2.0, len(X)) for _ in RATIOS]
    ratios = iter(RATIOS)
    together = Together(one, [one.rows.asarray(weight) for weight in weights], lambda weight: next(ratios))
    size = X.shape[1] + one.fit_intercept
    theta = one.rows.asarray(rng.standard_normal((size, 3 * one.n_outputs)) / 5)
    return together, theta


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_objectives_gradients_and_gaps_are_those_of_each(loss, fit_intercept, sparse):
    together, theta = side_by_side(loss, fit_intercept=fit_intercept, sparse=sparse, dtype=np.float64)
    found = together.value_and_gradient(theta)
    gaps = duality_gap(together, theta, found)
    values = 0.0
    for place, (part, own) in enumerate(zip(together.penalised_parts, together.of_each(theta), strict=True)):
        expected = part.value_and_gradient(own)
        values += expected.value
        np.testing.assert_allclose(together.of_each(found.gradient)[place], expected.gradient, atol=1e-10)
        assert gaps[place] == pytest.approx(duality_gap(part, own, expected), rel=1e-8)
        W, b = together.models(*together.coefficients(theta))[place]
        for mine, theirs in zip((W, b), part.coefficients(own), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert found.value == pytest.approx(values)
    np.testing.assert_allclose(together.pack(*together.coefficients(theta)), theta, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_a_problem_leaves_out_tell_it_nothing(loss):
    together, theta = side_by_side(loss, dtype=np.float64)
    left_out = np.flatnonzero(np.asarray(together.weight)[:, 0] == 0)
    before = together.value_and_gradient(theta)
    together.rows.X[left_out] *= -3.0
    after = together.value_and_gradient(theta)
    assert len(left_out) > 5
    np.testing.assert_allclose(*(together.of_each(one.gradient)[0] for one in (before, after)), atol=1e-14)
    assert not np.allclose(*(together.of_each(one.gradient)[1] for one in (before, after)))


@pytest.mark.parametrize("curvature", ["kronecker", "jacobi", "sampled-hessian"])
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_metric_solves_for_gradients_side_by_side_as_for_each(curvature, loss, fit_intercept):
    together, theta = side_by_side(loss, fit_intercept=fit_intercept, dtype=np.float64)
    metric = CURVATURES[curvature](together.parts[0], np.random.default_rng(0))
    expected = np.concatenate([metric.solve(one) for one in together.of_each(theta)], axis=1)
    np.testing.assert_allclose(metric.solve(theta), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_hessians_side_by_side_are_those_of_each(loss, fit_intercept):
    together, theta = side_by_side(loss, fit_intercept=fit_intercept, dtype=np.float64)
    gradient = together.value_and_gradient(theta).gradient
    each = HessianOfEach(together, np.random.default_rng(0))
    each.refresh(together, theta)
    solved = each.solve(gradient)
    for place, (part, own) in enumerate(zip(together.penalised_parts, together.of_each(theta), strict=True)):
        alone = Hessian(part, np.random.default_rng(0))
        alone.refresh(part, own)
        expected = alone.solve(together.of_each(gradient)[place])
        np.testing.assert_allclose(together.of_each(solved)[place], expected, rtol=1e-6, atol=1e-9)


WAYS = {
    "by Newton's method": (HessianOfEach, "pays", staticmethod(lambda problem: True)),
    "in a shared metric": (HessianOfEach, "pays", staticmethod(lambda problem: False)),
}
SETS = {
    "classes": lambda: load_iris(return_X_y=True),
    "two classes": lambda: tuple(part[:100] for part in load_iris(return_X_y=True)),
    "sparse": lambda: (sp.csr_array(load_digits().data[:300] / 16), load_digits().target[:300]),
    "labels": lambda: make_multilabel_classification(n_samples=120, n_features=5, n_classes=3, random_state=0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), ShuffleSplit(2, random_state=0)])
def test_scores_are_those_of_folds_one_after_the_other(way, name, cv, monkeypatch):
    X, y = SETS[name]()
    if name == "sparse" and way == "by Newton's method":
        X = X[:, 20:26]
    options = {"alphas": np.logspace(0, -3, 4), "cv": cv, "tol": 1e-9}
    monkeypatch.setattr(Together, "pays", staticmethod(lambda problem, weights: False))
    apart = GLMClassifierCV(**options).fit(X, y)
    monkeypatch.setattr(Together, "pays", staticmethod(lambda problem, weights: True))
    monkeypatch.setattr(*WAYS[way])
    together = GLMClassifierCV(**options).fit(X, y)
    np.testing.assert_allclose(together.scores_, apart.scores_, rtol=1e-4, atol=1e-6)
    assert together.alpha_ == apart.alpha_
    assert together.n_passes_ < 0.7 * apart.n_passes_


def test_folds_that_are_slow_together_are_finished_one_by_one(monkeypatch):
    X, y = load_iris(return_X_y=True)
    options = {"alphas": np.logspace(0, -3, 4), "cv": 3, "tol": 1e-9}
    expected = GLMClassifierCV(**options).fit(X, y)
    monkeypatch.setattr(HessianOfEach, "pays", staticmethod(lambda problem: False))
    monkeypatch.setattr("manyclass.solvers.quasi_newton.BEFORE_NEWTON", 3)
    np.testing.assert_allclose(GLMClassifierCV(**options).fit(X, y).scores_, expected.scores_, rtol=1e-4)
