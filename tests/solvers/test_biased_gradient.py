"""The search in the plane, and what equation 23 of *Homotopic Initialization* promises."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.fit import Status
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.solvers import SOLVERS
from manyclass.solvers.plane import PlaneSearch
from tests import problems


def run(F, solver, curvature="identity", **limits):
    return problems.run(F, SOLVERS[solver], CURVATURES[curvature], **limits)


def plane(F, rng):
    shape = F.constant_model().shape
    return [rng.standard_normal(shape) for _ in range(3)]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_values_and_slopes_in_the_plane_are_those_of_the_objective(loss, fit_intercept, rng):
    F, *_ = problems.problem(loss, fit_intercept=fit_intercept)
    theta, first, second = plane(F, rng)
    search = PlaneSearch(F, theta, [first, second])
    t = np.array([0.3, -0.2])
    value, slope = search.value_and_slope(t)
    there = F.value_and_gradient(theta + 0.3 * first - 0.2 * second)
    assert value == pytest.approx(there.value, rel=1e-10)
    np.testing.assert_allclose(slope, [np.sum(there.gradient * first), np.sum(there.gradient * second)], rtol=1e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_the_point_found_is_the_lowest_of_the_plane(loss, rng):
    F, *_ = problems.problem(loss)
    theta, *directions = plane(F, rng)
    search = PlaneSearch(F, theta, directions)
    found = search.value_and_slope(search.lowest())[0]
    least = minimize(lambda t: search.value_and_slope(t)[0], [0, 0], method="Nelder-Mead", tol=1e-10).fun
    assert found <= least + 1e-4 * (search.value_and_slope(np.zeros(2))[0] - least)


def test_one_direction_given_twice_is_one_direction(rng):
    F, *_ = problems.problem("softmax")
    theta, direction, _ = plane(F, rng)
    one = PlaneSearch(F, theta, [direction])
    two = PlaneSearch(F, theta, [direction, -2 * direction])
    assert two.value_and_slope(two.lowest())[0] == pytest.approx(one.value_and_slope(one.lowest())[0], rel=1e-6)


@pytest.mark.parametrize("solver", ["gradient", "biased-gradient"])
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_the_objective_never_rises(solver, loss):
    F, *_ = problems.problem(loss)
    values = [record.objective for record in run(F, solver, tol=0.0, max_iter=60).history]
    assert all(b <= a + 1e-12 for a, b in pairwise(values))


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_a_biased_step_is_never_worse_than_a_plain_one_from_the_same_point(loss, rng):
    F, *_ = problems.problem(loss, fit_intercept=False)
    theta = 0.1 * rng.standard_normal(F.constant_model().shape)
    metric, evaluation = CURVATURES["identity"](F, rng), F.value_and_gradient(theta)
    lowest = {}
    for solver in ("gradient", "biased-gradient"):
        directions = SOLVERS[solver].directions(F, metric, evaluation)
        search = PlaneSearch(F, theta, directions)
        lowest[solver] = search.value_and_slope(search.lowest())[0]
    assert lowest["biased-gradient"] <= lowest["gradient"] * (1 + 1e-6)


def test_the_first_steps_agree_as_both_directions_do():
    """At zero without intercept the gradient is g(0)-shifted E[xy]; for the squared loss exactly −E[xyᵀ]."""
    X, codes, _ = problems.rows(n=200)
    F = Problem(
        as_rows(X), MatrixTargets(2 * np.eye(3)[codes] - 1), SMOOTH_LOSSES["squared"], 1e-3, fit_intercept=False
    )
    a, b = (run(F, solver, tol=0.0, max_iter=2).history for solver in ("gradient", "biased-gradient"))
    assert a[1].objective == pytest.approx(b[1].objective, rel=1e-8)


def test_gaussian_rows_with_a_saturated_link_are_fitted_faster():
    """Where the response saturates, plain steps turn away from E[xy], the direction of the optimum (Lemma 13)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 8)) * np.logspace(0, -1, 8)
    codes = (X @ np.full(8, 4.0) + rng.logistic(size=1000) > 0).astype(int)
    n_iter = {}
    for solver in ("gradient", "biased-gradient"):
        F = Problem(as_rows(X), ClassTargets(codes, 2), SMOOTH_LOSSES["softmax"], 1e-6, fit_intercept=False)
        found = run(F, solver, tol=1e-3, max_iter=5000)
        assert found.status is Status.CONVERGED
        n_iter[solver] = found.n_iter
    assert n_iter["biased-gradient"] < n_iter["gradient"]
