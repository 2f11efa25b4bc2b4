"""Normal equations from second moments and from products with the rows are the same equations."""

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from manyclass.data import MatrixTargets, Moments, as_rows, penalty
from manyclass.data.rows import to_numpy
from manyclass.model import LOSSES, Problem
from manyclass.stagewise import UPDATES, equations
from manyclass.stagewise.equations import NormalEquations, ProductEquations, Residuals


def build(weighted, fit_intercept, n=40, d=12):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5) + 0.3
    Y = (X @ rng.standard_normal((d, 3)) + rng.standard_normal((n, 3)) > 0.5).astype(float)
    weight = rng.random(n) + 0.1 if weighted else None
    rows = as_rows(sp.csr_array(X))
    problem = Problem(rows, MatrixTargets(Y), LOSSES["squared"], 0.0, weight=weight, fit_intercept=fit_intercept)
    s = np.ones(n) if weight is None else weight
    cross, mean = X.T @ (s[:, None] * Y) / s.sum(), s @ Y / s.sum()
    responses = Residuals(problem, cross, mean, s.sum(), np.zeros_like(Y), UPDATES["squared"], 1.0)
    return (
        NormalEquations.of(Moments.of(rows, weight=weight), problem),
        ProductEquations(problem, np.random.default_rng(1).permutation(n)),
        responses,
    )


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_products_solve_what_a_factor_solves(monkeypatch, weighted, fit_intercept):
    monkeypatch.setattr(equations, "ACCURACY", 1e-9)
    moments, products, responses = build(weighted, fit_intercept)
    for one, two in zip(
        moments.solve(responses.cross, responses.mean, 1e-2),
        products.solve(responses.cross, responses.mean, 1e-2),
        strict=True,
    ):
        assert_allclose(two, one, atol=1e-7)
    # A sample of all rows tells what all rows tell.
    assert products.best_alpha(responses) == pytest.approx(moments.best_alpha(responses), rel=1e-6)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_where_a_sample_tells_nothing_it_judges_fits_to_all_others(monkeypatch, weighted, fit_intercept):
    monkeypatch.setattr(equations, "ACCURACY", 1e-9)
    monkeypatch.setattr(equations, "path_of_rows", lambda *_, **__: (np.ones(2), np.ones((2, 3)), None))
    _, _, responses = build(weighted, fit_intercept, n=400)
    problem, sample = responses.stage, np.random.default_rng(1).permutation(400)[:60]
    X, Y = problem.rows.X.toarray(), problem.targets.Y
    s = np.ones(400) if problem.weight is None else problem.weight
    rest = s.copy()
    rest[sample] = 0.0
    x, y = (rest @ part / rest.sum() * fit_intercept for part in (X, Y))
    second, cross = (
        (X - x).T @ (rest[:, None] * (X - x)) / rest.sum(),
        (X - x).T @ (rest[:, None] * (Y - y)) / rest.sum(),
    )

    def error(alpha):
        coef = np.linalg.solve(second + alpha * np.eye(len(second)), cross)
        return s[sample] @ (Y[sample] - y - (X[sample] - x) @ coef) ** 2

    alphas = np.trace(second) * 10.0 ** -np.arange(8)
    expected = penalty.best(alphas, np.array([error(alpha) for alpha in alphas]))
    assert expected < 0.2 * alphas[0]
    assert ProductEquations(problem, sample).best_alpha(responses) == pytest.approx(expected, rel=1e-6)
    # Of few rows it would take too many away; there they tell what they can.
    assert ProductEquations(problem, np.arange(101)).best_alpha(responses) != pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("curvature", [None, 1.0])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_steps_by_rows_are_those_by_columns(monkeypatch, curvature, weighted, fit_intercept):
    """Where rows are fewer, vectors are as long as these; a row of weight 0 counts for nothing."""
    monkeypatch.setattr(equations, "ACCURACY", 1e-2)
    _, products, responses = build(weighted, fit_intercept, n=30, d=90)
    problem = responses.stage
    if weighted:
        problem.weight[:7] = 0.0
        s = problem.weight[:, None]
        X, Y = problem.rows.dense(), problem.targets.Y
        responses = replace(responses, cross=X.T @ (s * Y) / s.sum(), mean=(s * Y).sum(axis=0) / s.sum())
        products = ProductEquations(problem.variant(weight=s[:, 0]), np.arange(30))
    if curvature:
        products = products.weighed(np.random.default_rng(3).random(30) + 0.1)
    given = [responses.cross, responses.mean, 1e-2]
    residuals = problem.targets.Y * (1.0 if problem.weight is None else problem.weight[:, None])
    shapes, gram = [], ProductEquations._gram

    def seen(self, Z):
        shapes.append(Z.shape)
        return gram(self, Z)

    monkeypatch.setattr(ProductEquations, "_gram", seen)
    by_rows = products.solve_residuals(lambda: residuals, *given)
    assert 3 < len(shapes) < 100 and set(shapes) == {(30, 3)}
    for one, two in zip(products.solve(*given), by_rows, strict=True):
        assert_allclose(two, one, rtol=1e-6, atol=1e-9)


def test_steps_by_rows_take_any_array():
    rng = np.random.default_rng(0)
    X, Y, weight = rng.standard_normal((30, 90)), rng.standard_normal((30, 3)), rng.random(30)
    found = []
    for array in (np.asarray, array_api_strict.asarray):
        problem = Problem(as_rows(array(X)), MatrixTargets(array(Y)), LOSSES["squared"], 0.0, weight=array(weight))
        mean = array(weight @ Y / weight.sum())
        solve = ProductEquations(problem, np.arange(30)).solve_residuals
        found.append(solve(lambda array=array: array(weight[:, None] * Y), None, mean, 1e-2))
    for one, two in zip(*found, strict=True):
        assert_allclose(to_numpy(two), one)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_products_weighed_by_a_curvature_solve_what_a_factor_of_these_weights_solves(monkeypatch, fit_intercept):
    monkeypatch.setattr(equations, "ACCURACY", 1e-9)
    _, products, responses = build(True, fit_intercept)
    problem, curvature = responses.stage, np.random.default_rng(3).random(40)
    weighed = products.weighed(curvature)
    factor = NormalEquations.of(Moments.of(problem.rows, weight=curvature * problem.weight), problem)
    assert weighed.share == pytest.approx(factor.share)
    for one, two in zip(
        factor.solve(responses.cross, responses.mean, 1e-2),
        weighed.solve(responses.cross, responses.mean, 1e-2),
        strict=True,
    ):
        assert_allclose(two, one, atol=1e-7)
    # Those of another curvature are of these weights times it, not of both.
    assert weighed.weighed(np.ones(40)).share == pytest.approx(1.0)


def test_random_sums_of_many_responses_choose_the_penalty_that_all_of_them_choose(monkeypatch):
    rng = np.random.default_rng(2)
    X, label = rng.standard_normal((300, 12)), rng.integers(0, 60, 300)
    X = X + rng.standard_normal((60, 12))[label]
    Y = np.eye(60)[label]
    problem = Problem(as_rows(X), MatrixTargets(Y), LOSSES["squared"], 0.0)
    responses = Residuals(problem, X.T @ Y / 300, Y.mean(axis=0), 300.0, 0 * Y, UPDATES["squared"], 1.0)
    known = NormalEquations.of(Moments.of(problem.rows), problem)
    monkeypatch.setattr(penalty, "ROWS_PER_DIRECTION", 1e9)
    exact = known.best_alpha(responses)
    monkeypatch.setattr(penalty, "SUMS", 30)
    sketched = responses.sketched()
    assert sketched.cross.shape == (12, 30) and sketched.residual(problem, 0 * Y, slice(0, 7)).shape == (7, 30)
    # A grid of two penalties per decade.
    assert 0.3 <= known.best_alpha(responses) / exact <= 3.2
