"""Proximal points of dual ascent: what a pull is, which units it has, and that the gap stays that of F."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.dual import DualStart
from manyclass.dual.ascent import start_state
from manyclass.dual.losses import DUAL_LOSSES as LOSSES
from manyclass.dual.proximal import is_hard, squared_units
from manyclass.fit import Status
from tests.covering import in_turn
from tests.dual.given import EPSILON, problem, small, solve, targets
from tests.oracles import dual as oracle

UNITS = np.array([1e-3, 1.0, 30.0, 1e3])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_a_pulled_ascent_solves_the_pulled_problem(fit_intercept, sparse):
    """argmin of ridge regression + ½ Σ_j weight_j ‖W_j − Y_j‖², by its normal equations."""
    X, codes, s = small(n=60)
    y = targets("squared", codes)
    held = sp.csr_array(X) if sparse else X
    state = start_state(problem("squared", held, y, 0.01, weight=s, fit_intercept=fit_intercept))
    rng = np.random.default_rng(0)
    for _ in range(2):  # the second replaces the first
        weight, Y = rng.random(4) * UNITS, rng.standard_normal((4, 3))
        state.pull(weight, Y, np.zeros(3))
        for _ in range(3):
            state.epoch()
        Y = rng.standard_normal((4, 3))
        state.move(Y, np.zeros(3))
        for _ in range(3000):
            state.epoch()
    mean_x, mean_y = (s @ X / s.sum(), s @ y / s.sum()) if fit_intercept else (0.0, 0.0)
    Xc, yc = X - mean_x, y - mean_y
    curvature = Xc.T @ (s[:, None] * Xc) / s.sum() + np.diag(0.01 + weight)
    expected = np.linalg.solve(curvature, Xc.T @ (s[:, None] * yc) / s.sum() + weight[:, None] * Y)
    np.testing.assert_allclose(state.coef(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "fit_intercept"), in_turn(LOSSES, [True, False]))
def test_the_gap_is_that_of_the_problem_as_given(name, fit_intercept):
    X, codes, weight = small(2, n=25)
    X, y, alpha = X * [0.1, 1.0, 3.0, 10.0], targets(name, codes), 1e-3
    built = problem(name, X, y, alpha, weight=weight, fit_intercept=fit_intercept)
    assert is_hard(built)
    found = solve(built, proximal=True, measure_every=1, tol=1e-5, max_iter=5000)
    least = oracle.minimum(name, X, y, weight, alpha, fit_intercept, EPSILON)
    zero = start_state(built).zero_value
    for record in found.history:
        assert record["dual"] <= least + 1e-7 * zero and record["primal"] >= least - 1e-7 * zero
        assert record.objective - least <= record.duality_gap * zero + 1e-9
    assert all(b.duality_gap <= a.duality_gap for a, b in pairwise(found.history))
    model = found.model
    value = oracle.objective(name, X, y, weight, alpha, model.coef, model.intercept, EPSILON)
    assert value == pytest.approx(found.history[-1].objective, rel=1e-9)
    assert value == pytest.approx(least, abs=1e-3 * zero)


@pytest.mark.parametrize("name", ["squared", "logistic", "softmax", "squared_hinge"])
def test_columns_of_very_different_size_cost_few_epochs(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 12))
    codes = np.argmax(X @ rng.standard_normal((12, 3)) + rng.gumbel(size=(500, 3)), axis=1)
    built = problem(name, X * np.logspace(-3, 3, 12), targets(name, codes), 1e-4)
    found = solve(built, proximal=True, tol=1e-4, max_iter=200)
    assert found.status is Status.CONVERGED and found.history[-1]["proximal_points"] > 1
    assert solve(built, 5, tol=1e-4, max_iter=200).duality_gap > 0.1


@pytest.mark.parametrize("name", LOSSES)
def test_points_begin_where_the_last_fit_ended(name):
    X, codes, _ = small(12)
    built = problem(name, X * UNITS, targets(name, codes), 1e-3, fit_intercept=False)
    first = solve(built, proximal=True, tol=1e-5, max_iter=20_000)
    start = DualStart(first.model.dual, np.zeros(3), first.model.coef)
    again = solve(built, proximal=True, start=start, tol=1e-4, measure_every=1)
    assert again.n_iter <= max(first.n_iter / 8, 2)


def test_units_are_those_of_columns_only_where_columns_differ_in_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    X[:, 5] = 7.0
    sizes = np.logspace(-3, 3, 6)
    own = squared_units(problem("hinge", X * sizes, np.ones((300, 1)), 1e-6))
    np.testing.assert_allclose(own[:5], (X * sizes).var(axis=0)[:5])
    assert own[5] == 0.0  # a constant has no unit
    # A word of one row: in units of its own that row would be far longer than all others.
    words = (rng.random((4000, 21)) < 0.4).astype(float)
    words[:, 20] = np.arange(4000) == 7
    assert len(np.unique(squared_units(problem("hinge", sp.csr_array(words), np.ones((4000, 1)), 1e-6)))) == 1


@pytest.mark.parametrize("name, n_wild", [("hinge", 12), ("logistic", 1), ("softmax", 12), ("squared_hinge", 1)])
def test_a_few_rows_in_other_units_neither_slow_the_ascent_nor_loosen_the_bound(name, n_wild):
    X, _, weight = small(n=400, d=20)
    codes = np.argmax(X @ np.random.default_rng(1).standard_normal((20, 3)), axis=1)
    X[5 : 5 + n_wild] *= 1e5
    built = problem(name, X, targets(name, codes), 1e-3, weight=weight)
    rough, fine = (solve(built, tol=tol, max_iter=1000, proximal=True, measure_every=5) for tol in (1e-3, 1e-7))
    assert rough.status is Status.CONVERGED
    assert all(record.details["dual"] <= (1 + 1e-9) * fine.history[-1].objective for record in rough.history)


@pytest.mark.parametrize("name", ["crammer_singer", "softmax"])
def test_the_gap_of_joint_losses_is_a_bound_wherever_rows_are_written_from(name):
    X, codes, weight = small(n=400)
    minimum = solve(problem(name, X, codes, 0.1, weight=weight), tol=1e-9).history[-1].objective
    built = problem(name, X, codes, 0.1, weight=weight)
    built.center = built.feature_mean + np.array([3.0, -1.0, 2.0, 5.0])
    found = solve(built, max_iter=100, measure_every=1)
    assert all(record.details["dual"] <= (1 + 1e-8) * minimum for record in found.history)
