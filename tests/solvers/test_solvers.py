"""Every solver on every loss, against one slow oracle, and what each promises on the way."""

from itertools import pairwise

import numpy as np
import pytest

from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, as_rows
from manyclass.fit import Status
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.solvers import SOLVERS
from manyclass.solvers.quasi_newton import KEPT, MEMORY, InverseHessian
from tests import problems

TIGHT = 1e-8
"""A gap that float64 leaves room for: objectives are known to about 1e-15, lengths of steps to the root of it."""


def run(F, solver, curvature=None, start=None, **limits):
    solver = SOLVERS[solver]
    kind = CURVATURES[curvature or ("second-moment" if solver.needs_majorizer else "kronecker")]
    return problems.run(F, solver, kind, start, **limits)


@pytest.fixture(scope="module", params=[(loss, fit) for loss in SMOOTH_LOSSES for fit in (True, False)], ids=str)
def solved(request):
    loss, fit_intercept = request.param
    F, *_ = problems.problem(loss, fit_intercept=fit_intercept)
    return F, problems.optimum(loss, fit_intercept)


@pytest.mark.parametrize("solver", SOLVERS)
def test_reaches_the_optimum_of_the_oracle_by_gaps_that_bound_the_error(solved, solver):
    F, (least, W, b) = solved
    found = run(F, solver, tol=TIGHT, max_iter=20_000)
    # Where the loss has kinks, a search along gradients may end a little before the gap is closed.
    stalls = found.status is Status.STALLED and "gradient" in solver
    assert stalls or found.status is Status.CONVERGED
    assert found.history[-1].objective == pytest.approx(least, rel=1e-6)
    for record in found.history:
        assert record.objective - least <= record.duality_gap * F.zero_value + 1e-9
    # (alpha/2) ‖W − W*‖² ≤ F − F* ≤ gap · F(zero model), as the penalty is strongly convex.
    coef, intercept = found.model
    reached = 100 * TIGHT if stalls else TIGHT
    assert found.duality_gap <= reached
    assert np.linalg.norm(coef - W) <= (2 * reached * F.zero_value / F.alpha) ** 0.5 + 1e-5
    # A softmax leaves the common level of the intercepts free.
    np.testing.assert_allclose(intercept - intercept.mean(), b - b.mean(), atol=2e-3 * max(1, np.abs(b).max()))


@pytest.mark.parametrize("curvature", ["second-moment", "diagonal"])
@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
def test_majorize_never_rises(loss, curvature, alpha):
    F, *_ = problems.problem(loss, alpha=alpha, center=CURVATURES[curvature].center)
    values = [r.objective for r in run(F, "majorize", curvature, tol=0.0, max_iter=60).history]
    assert len(values) == 60
    assert all(b <= a + 1e-12 for a, b in pairwise(values))


@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_majorize_obeys_theorem_1(loss):
    """F(W_t) − F* ≤ 2L‖W*‖²_Σ/(t + 4) from zero, for alpha = 0 and without intercept (*Least Squares Revisited*)."""
    X, codes, _ = problems.rows(n=300)
    F = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES[loss], 0.0, fit_intercept=False)
    best = run(F, "newton-cg", tol=1e-14, max_iter=500)
    least, W = best.history[-1].objective, best.model[0]
    size = np.trace(W.T @ (X.T @ X / len(X)) @ W)
    history = run(F, "majorize", start=np.zeros((5, 3)), tol=0.0, max_iter=100).history
    for t, record in enumerate(history):
        assert record.objective - least <= 2 * F.loss.lipschitz * size / (t + 4) + 1e-9


@pytest.mark.parametrize("solver", ["quasi-newton", "newton-cg"])
@pytest.mark.parametrize("loss", ["squared", "softmax", "logistic"])
def test_line_searches_never_let_the_objective_rise(solver, loss):
    F, *_ = problems.problem(loss, alpha=1e-4)
    values = [r.objective for r in run(F, solver, tol=1e-10, max_iter=300).history]
    assert all(b <= a * (1 + 1e-7) for a, b in pairwise(values))


@pytest.mark.parametrize("solver", ["quasi-newton", "newton-cg", "accelerated"])
def test_units_of_the_features_do_not_matter_without_a_penalty(solver, rng):
    """The curvature makes the path invariant to any invertible map of X at alpha = 0."""
    X, codes, _ = problems.rows(n=400)
    mixed = X @ rng.standard_normal((5, 5))
    histories = []
    for data in (X, mixed):
        F = Problem(as_rows(data), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 0.0)
        histories.append(run(F, solver, tol=1e-6, max_iter=400))
    a, b = histories
    assert a.status is b.status is Status.STATIONARY
    assert [r.objective for r in a.history] == pytest.approx([r.objective for r in b.history], rel=1e-5)


def test_float32_converges_to_the_float64_optimum():
    exact, rounded = (problems.problem("softmax", alpha=1e-3, dtype=t)[0] for t in (np.float64, np.float32))
    a, b = run(exact, "quasi-newton", tol=1e-8), run(rounded, "quasi-newton", tol=1e-5)
    assert b.model[0].dtype == np.float32
    assert b.history[-1].objective == pytest.approx(a.history[-1].objective, rel=1e-4)


def test_a_gap_out_of_reach_of_float32_is_reported():
    F, *_ = problems.problem("softmax", alpha=1e-6, dtype=np.float32)
    found = run(F, "quasi-newton", tol=1e-15, max_iter=2000)
    assert found.status in (Status.STALLED, Status.MAX_ITER)
    assert "raise" in str(found.status)


@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_are_kept_and_the_best_model_returned(solver):
    F, *_ = problems.problem("softmax", alpha=1e-6)
    found = run(F, solver, tol=0.0, max_iter=5)
    assert found.status is Status.FINISHED and len(found.history) == 5
    timed = run(F, solver, tol=0.0, max_iter=10**9, max_time=0.05)
    assert timed.status in (Status.MAX_TIME, Status.STALLED)
    theta = F.pack(*timed.model)
    assert F.value_and_gradient(theta).value <= F.zero_value


@pytest.mark.parametrize("solver", SOLVERS)
def test_degenerate_rows(solver):
    """Constant, duplicated and all-zero columns; more columns than rows; a single row a class; no penalty."""
    rng = np.random.default_rng(0)
    column = rng.standard_normal((4, 1))
    X = np.hstack([column, column, np.ones((4, 1)), np.zeros((4, 1)), 1e6 * rng.standard_normal((4, 4))])
    for alpha in (0.0, 1e-8, 1.0):
        F = Problem(as_rows(X), ClassTargets(np.array([0, 1, 2, 0]), 3), SMOOTH_LOSSES["softmax"], alpha)
        found = run(F, solver, tol=1e-4, max_iter=200)
        assert np.isfinite(found.model[0]).all() and np.isfinite(found.model[1]).all()
        assert found.history[-1].objective <= F.zero_value


def test_the_constant_model_is_returned_when_nothing_can_be_learned():
    X = np.zeros((6, 3))
    F = Problem(as_rows(X), ClassTargets(np.array([0, 0, 0, 1, 1, 2]), 3), SMOOTH_LOSSES["softmax"], 1e-3)
    found = run(F, "quasi-newton", tol=1e-8)
    assert found.status is Status.CONVERGED and not found.model[0].any()
    P = F.loss.mean(found.model[1][None, :].copy(), F.xp)[0]
    np.testing.assert_allclose(P, [1 / 2, 1 / 3, 1 / 6], atol=1e-3)


@pytest.mark.parametrize("refreshes", [False, True])
@pytest.mark.parametrize("n_pairs", [0, 1, 4, MEMORY, MEMORY + 3])
def test_the_inverse_of_lbfgs_is_that_of_the_two_loops(n_pairs, refreshes, rng):
    """Nocedal and Wright, Algorithm 7.4, written out, with the last pair's scale of H⁻¹."""
    F, *_ = problems.problem("softmax")
    curvature = CURVATURES["kronecker"].build(F, np.random.default_rng(0))
    theta = F.constant_model()
    found, pairs, before = InverseHessian(F, curvature), [], F.value_and_gradient(theta)
    for _ in range(n_pairs):
        step = 0.3 * rng.standard_normal(theta.shape)
        theta = theta + step
        now = F.value_and_gradient(theta)
        found.add(step, now, before)
        pairs.append((step, now.gradient - before.gradient))
        before = now
    if refreshes:  # and one more pair, of which what was known before is of the new curvature
        curvature.refresh(F, theta, F.value_and_gradient(theta, with_row_weight=True).row_weight)
        found.renew()
        step = 0.3 * rng.standard_normal(theta.shape)
        now = F.value_and_gradient(theta + step)
        found.add(step, now, before)
        pairs, before = [*pairs[-KEPT:], (step, now.gradient - before.gradient)], now
    q, weights, pairs = before.gradient, [], pairs[-MEMORY:]
    for s, y in reversed(pairs):
        weights.append((s * q).sum() / (s * y).sum())
        q = q - weights[-1] * y
    q = curvature.solve(q)
    if pairs:
        s, y = pairs[-1]
        q = q * (s * y).sum() / (y * curvature.solve(y)).sum()
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        q = q + (weight - (y * q).sum() / (s * y).sum()) * s
    np.testing.assert_allclose(found.product(before.gradient), q, rtol=1e-8, atol=1e-10 * np.abs(q).max())
