"""Partition bounds on planes of directions: what a step by them promises, in any metric and without any matrix."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyclass.curvature import CURVATURES
from manyclass.curvature.partition_bound import bound_curvature
from manyclass.data import Rows
from manyclass.fit import Status
from manyclass.solvers import SOLVERS, plane
from manyclass.solvers.plane import PartitionPlane
from tests import problems
from tests.covering import every_pair, in_turn

METRICS = [name for name, kind in CURVATURES.items() if not kind.majorizes]
LOSSES = ["softmax", "logistic"]


def directions(F, rng, n=2):
    """Random, and without the common shift of the intercepts, to which a softmax is blind and the matrix is not."""
    found = rng.standard_normal((n, *F.constant_model().shape)).astype(F.rows.dtype)
    if F.fit_intercept and F.loss.name == "softmax":
        found[:, -1] -= found[:, -1].mean(axis=1, keepdims=True)
    return list(found)


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(
    ("loss", "sparse", "weighted", "fit_intercept", "dtype"),
    every_pair(LOSSES, [False, True], [False, True], [False, True], [np.float64, np.float32]),
)
def test_the_bound_on_a_plane_is_that_of_the_matrix(loss, sparse, weighted, fit_intercept, dtype, holds, rng):
    F, *_ = problems.problem(loss, sparse=sparse, weighted=weighted, fit_intercept=fit_intercept, dtype=dtype)
    theta, *along = directions(F, rng, 3)
    H, D = bound_curvature(F, theta), np.stack([one.ravel() for one in along]).astype(np.float64)
    found = PartitionPlane(F, theta, along, holds=holds).bound()
    np.testing.assert_allclose(found, D @ H @ D.T, rtol=1e-9 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(("loss", "weighted"), in_turn(LOSSES, [True, False]))
def test_the_bound_is_that_of_all_rows_and_classes_however_many_are_taken_at_once(
    loss, weighted, holds, rng, monkeypatch
):
    F, *_ = problems.problem(loss, weighted=weighted)
    theta, *along = directions(F, rng, 3)
    whole = PartitionPlane(F, theta, along).bound()
    monkeypatch.setattr(Rows, "rows_per_block", lambda *_: 7)
    monkeypatch.setattr(plane, "ROWS_TOGETHER", 20)
    monkeypatch.setattr(plane, "OUTPUTS_TOGETHER", 2)
    np.testing.assert_allclose(PartitionPlane(F, theta, along, holds=holds).bound(), whole, rtol=1e-12)


@pytest.mark.parametrize(("loss", "fit_intercept"), in_turn(LOSSES, [True, False]))
@given(seed=st.integers(0, 10_000), reach=st.floats(1e-2, 1e2), size=st.floats(0, 10))
@settings(max_examples=25, deadline=None)
def test_the_quadratic_touches_and_dominates(loss, fit_intercept, seed, reach, size):
    rng = np.random.default_rng(seed)
    F, *_ = problems.problem(loss, seed=seed % 7, fit_intercept=fit_intercept)
    theta, *along = directions(F, rng, 3)
    there = PartitionPlane(F, size * theta, along)
    value, slope = there.value_and_slope(np.zeros(2))
    bound = there.bound()
    for t in reach * rng.standard_normal((3, 2)):
        above = value + slope @ t + 0.5 * t @ bound @ t
        assert there.value_and_slope(t)[0] <= above + 1e-9 * max(1.0, abs(above))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_falls_at_least_as_much_as_the_bound(loss, rng, monkeypatch):
    """However long the first attempt, which may raise it by orders of magnitude, or hardly lower it."""
    monkeypatch.setattr(plane, "BOUND_STEPS", 1)  # others would lower it further
    F, *_ = problems.problem(loss)
    theta, *along = directions(F, rng, 3)
    there = PartitionPlane(F, theta, along)
    value, slope = there.value_and_slope(np.zeros(2))
    promised = 0.5 * slope @ np.linalg.solve(there.bound(), slope)
    for relaxation in np.logspace(0, 4, 200):
        t, relaxed = there.descended(value, slope, relaxation)
        assert there.value_and_slope(t)[0] <= value - promised * (1 - 1e-9)
        assert relaxed >= 1


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(
    ("metric", "loss", "alpha", "dtype"),
    every_pair(METRICS, LOSSES, [0.0, 1e-6, 0.1, 10.0], [np.float64, np.float32]),
)
def test_the_objective_never_rises(metric, loss, alpha, dtype, holds):
    F, *_ = problems.problem(loss, alpha=alpha, dtype=dtype)
    F.memory_limit = None if holds else 1.0
    outcome = problems.run(F, SOLVERS["majorize"], CURVATURES[metric], tol=1e-12, max_iter=40)
    values = [record.objective for record in outcome.history]
    assert len(values) > 3
    rounding = (1e-12 if dtype == np.float64 else 1e-6) * F.zero_value
    assert all(b <= a + rounding for a, b in pairwise(values))


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize(("loss", "fit_intercept"), every_pair(LOSSES, [True, False]))
def test_reaches_the_optimum_of_the_oracle(loss, fit_intercept, holds):
    F, *_ = problems.problem(loss, fit_intercept=fit_intercept)
    F.memory_limit = None if holds else 1.0
    least, W, _ = problems.optimum(loss, fit_intercept)
    found = problems.run(F, SOLVERS["majorize"], CURVATURES["kronecker"], tol=1e-8, max_iter=5000)
    assert found.status is Status.CONVERGED
    assert found.history[-1].objective == pytest.approx(least, rel=1e-6)
    assert np.linalg.norm(found.model[0] - W) <= (2e-8 * F.zero_value / F.alpha) ** 0.5 + 1e-5


@pytest.mark.parametrize("metric", ["kronecker", "jacobi"])
def test_takes_far_fewer_steps_than_the_minimum_of_the_whole_bound(metric):
    """Which is what the published method goes to, at the price of a matrix of all parameters."""
    steps = {}
    for name in ("partition-bound", metric):
        F, *_ = problems.problem(alpha=1e-3)
        steps[name] = problems.run(F, SOLVERS["majorize"], CURVATURES[name], tol=1e-6, max_iter=5000).n_iter
    assert steps[metric] < steps["partition-bound"] / 2


def test_a_step_costs_two_passes():
    """And one more where the metric is weighted anew, by the curvature of the rows."""
    F, *_ = problems.problem()
    outcome = problems.run(F, SOLVERS["majorize"], CURVATURES["jacobi"], tol=0.0, max_iter=5)
    passes = np.diff([record.n_passes for record in outcome.history])
    np.testing.assert_array_equal(passes, [1.5, 2, 2, 3])


def test_time_is_looked_at_between_blocks_of_scores(rng):
    F, *_ = problems.problem()
    theta, *along = directions(F, rng, 3)
    there, calls = PartitionPlane(F, theta, along), []
    F.on_block = lambda *ahead: calls.append(1)
    there.bound()
    there.value_and_slope(np.zeros(2))
    assert len(calls) == 2


def test_no_scale_turns_the_order_of_scores_round():
    """That of an opposite model would be below 0."""
    F, *_ = problems.problem("softmax")
    W = F.value_and_gradient(F.constant_model()).gradient[:-1]  # uphill
    b = np.zeros(F.n_outputs)
    assert plane.of_lowest_scale(F, W, b)[0] is W
    assert np.vdot(plane.of_lowest_scale(F, -W, b)[0], -W) > 0
