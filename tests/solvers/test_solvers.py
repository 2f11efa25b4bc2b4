"""Every solver on every loss, against one slow oracle, and what each promises on the way."""

from itertools import pairwise

import numpy as np
import pytest

from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.fit import Status
from manyclass.model import SMOOTH_LOSSES, Evaluation, Problem
from manyclass.solvers import SOLVERS, newton_cg
from manyclass.solvers.base import iterate
from manyclass.solvers.lbfgs import KEPT, MEMORY, InverseHessian
from manyclass.solvers.line_search import STEEP, Step, backtrack, stretched
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
        found = run(F, solver, tol=1e-4, max_iter=60)
        assert np.isfinite(found.model[0]).all() and np.isfinite(found.model[1]).all()
        assert found.history[-1].objective <= F.zero_value


def test_the_constant_model_is_returned_when_nothing_can_be_learned():
    X = np.zeros((6, 3))
    F = Problem(as_rows(X), ClassTargets(np.array([0, 0, 0, 1, 1, 2]), 3), SMOOTH_LOSSES["softmax"], 1e-3)
    found = run(F, "quasi-newton", tol=1e-8)
    assert found.status is Status.CONVERGED and not found.model[0].any()
    P = F.loss.mean(found.model[1][None, :].copy(), F.xp)[0]
    np.testing.assert_allclose(P, [1 / 2, 1 / 3, 1 / 6], atol=1e-3)


def two_loops(pairs, gradient, solve):
    """Nocedal and Wright, Algorithm 7.4, written out, with the last pair's scale of H⁻¹; pairs of zeros are none."""
    pairs, q, weights = [(s, y) for s, y in pairs if (s * y).sum() > 0], gradient, []
    for s, y in reversed(pairs):
        weights.append((s * q).sum() / (s * y).sum())
        q = q - weights[-1] * y
    q = solve(q)
    if pairs:
        s, y = pairs[-1]
        q = q * (s * y).sum() / (y * solve(y)).sum()
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        q = q + (weight - (y * q).sum() / (s * y).sum()) * s
    return q


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("refreshes", [False, True])
@pytest.mark.parametrize("n_pairs", [0, 1, 4, MEMORY, MEMORY + 3])
def test_the_inverse_of_lbfgs_is_that_of_the_two_loops(n_pairs, refreshes, loss, rng):
    """Of all columns together, or of each where they are independent, some of which may not have moved."""
    F, *_ = problems.problem(loss)
    curvature = CURVATURES["kronecker"](F, np.random.default_rng(0))
    theta = F.constant_model()
    found, pairs, before = InverseHessian(F, curvature), [], F.value_and_gradient(theta)

    def moved(theta, step):
        now = F.value_and_gradient(theta + step)
        taken = None if F.n_independent == 1 else rng.random(F.n_independent) < 0.7
        last = now
        if taken is not None:
            gradient = np.where(taken, now.gradient, before.gradient)
            last = Evaluation(now.value, now.of_each, gradient, now.mean_residual)
        return Step(theta + step if taken is None else theta + taken * step, last, 1.0, step, now, taken)

    for number in range(n_pairs):
        move = 0.3 * rng.standard_normal(theta.shape)
        move[:, 0] *= loss == "softmax" or number % 3 != 2
        step = moved(theta, move)
        found.add(step, before)
        pairs.append((move, step.seen.gradient - before.gradient))
        theta, before = step.theta, step.evaluation
    if refreshes:  # and one more pair, of which what was known before is of the new curvature
        curvature.refresh(F, theta, F.value_and_gradient(theta, with_row_weight=True).row_weight)
        found.renew()
        move = 0.3 * rng.standard_normal(theta.shape)
        step = moved(theta, move)
        found.add(step, before)
        pairs, before = [*pairs[-KEPT:], (move, step.seen.gradient - before.gradient)], step.evaluation
    pairs, expected = pairs[-MEMORY:], np.empty_like(theta)
    for column in [slice(None)] if loss == "softmax" else range(3):

        def solve(part, column=column):
            whole = np.zeros_like(theta)
            whole[:, column] = part
            return curvature.solve(whole)[:, column]

        of_column = [(s[:, column], y[:, column]) for s, y in pairs]
        expected[:, column] = two_loops(of_column, before.gradient[:, column], solve)
    np.testing.assert_allclose(found.solve(before.gradient), expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_independent_problems_that_would_rise_stay_where_they_are(fit_intercept, rng):
    F, *_ = problems.problem("logistic", fit_intercept=fit_intercept)
    theta = 0.1 * rng.standard_normal((F.rows.n_features + fit_intercept, 3))
    before = F.value_and_gradient(theta)
    size = np.array([0.01, 1e4, 0.01])
    step = backtrack(F, theta, before, -size * before.gradient, apart=True)
    np.testing.assert_array_equal(step.taken, [True, False, True])
    np.testing.assert_array_equal(step.theta[:, 1], theta[:, 1])
    there = F.value_and_gradient(step.theta)
    for name in ("value", "of_each", "gradient", "mean_residual"):
        np.testing.assert_allclose(getattr(step.evaluation, name), getattr(there, name), rtol=1e-10, atol=1e-14)
    assert (there.of_each[[0, 2]] < before.of_each[[0, 2]]).all() and there.value < before.value
    assert backtrack(F, theta, before, 1e4 * before.gradient, apart=True) is None


@pytest.mark.parametrize("curvature", ["jacobi", "identity", "kronecker"])
def test_labels_take_about_as_many_passes_together_as_the_slowest_alone(curvature):
    """Columns whose scales lie far apart would spoil each other's pairs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12)) @ np.diag(np.logspace(0, -1, 12)) @ rng.standard_normal((12, 12))
    Z = X @ rng.standard_normal((12, 8)) * np.logspace(-1, 2, 8)
    Y = (Z + rng.logistic(size=Z.shape) > 1.0).astype(float)

    def passes(columns):
        F = Problem(as_rows(X), MatrixTargets(Y[:, columns]), SMOOTH_LOSSES["logistic"], 1e-4)
        found = problems.run(F, SOLVERS["quasi-newton"], CURVATURES[curvature], tol=1e-6, max_iter=500)
        assert found.status is Status.CONVERGED
        return found.history[-1].n_passes

    assert passes(range(8)) <= 1.5 * max(passes([column]) for column in range(8)) + 5


def test_no_label_waits_for_the_steps_of_another():
    """Each has a length of its own, so together they take about as many iterations as the slowest by itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((44, 45)) * 10.0 ** rng.uniform(-3.0, 3.0, 45)
    weight, Y = 10.0 ** rng.uniform(-3.0, 3.0, 44), 1.0 * (rng.random((44, 14)) < rng.uniform(0.1, 0.6, 14))

    def iterations(columns):
        F = Problem(as_rows(X), MatrixTargets(Y[:, columns]), SMOOTH_LOSSES["logistic"], 1e-6, weight=weight)
        found = problems.run(F, SOLVERS["newton"], CURVATURES["hessian"], tol=1e-3, max_iter=500)
        assert found.status is Status.CONVERGED
        return found.history[-1].n_iter

    assert iterations(range(14)) <= 1.5 * max(iterations([column]) for column in range(14))


@pytest.fixture
def separable(rng):
    """Rows that a linear model tells apart, so that a small penalty lets it grow far beyond the first Newton step."""
    X = rng.standard_normal((300, 4))
    return Problem(as_rows(X), ClassTargets(np.argmax(X[:, :3], axis=1), 3), SMOOTH_LOSSES["softmax"], 1e-4)


def test_a_stretched_step_ends_lower_and_where_the_slope_is_gentle(separable):
    F, theta = separable, separable.constant_model()
    before = F.value_and_gradient(theta)
    direction = -CURVATURES["hessian"](F, np.random.default_rng(0)).solve(before.gradient)
    step = backtrack(F, theta, before, direction)
    found = stretched(F, theta, before, direction, step)
    assert found.length > step.length == 1.0 and found.evaluation.value < step.evaluation.value
    np.testing.assert_allclose(found.theta, theta + found.length * direction)
    left = F.inner(found.evaluation.gradient, direction) / F.inner(before.gradient, direction)
    assert left <= STEEP
    assert stretched(F, theta, before, direction, found) is found


def test_newton_makes_no_hessian_twice(separable):
    """The first is that of the constant model, at which it starts: each of the others comes with a step."""
    looks = []
    kind = CURVATURES["hessian"]

    class Counted(kind):
        def _matrix(self, problem, theta):
            looks.append(theta)
            return super()._matrix(problem, theta)

    found = problems.run(separable, SOLVERS["newton"], Counted, None, tol=TIGHT, max_iter=50)
    assert found.status is Status.CONVERGED
    assert len(looks) == found.n_iter - 1
    assert len({look.tobytes() for look in looks}) == len(looks)


def test_few_steps_of_newton_lead_to_the_minimum_of_separable_rows(separable):
    found = run(separable, "newton", "hessian", tol=1e-3, max_iter=50)
    assert found.status is Status.CONVERGED and found.n_iter <= 7


def test_bound_majorization_bounds_anew_at_each_step(rng):
    F, *_ = problems.problem("softmax", alpha=1e-3)
    start = theta = rng.standard_normal((6, 3))
    history = problems.run(
        F, SOLVERS["majorize"], CURVATURES["partition-bound"], start=start, tol=0.0, max_iter=4
    ).history
    bound, wanted = CURVATURES["partition-bound"](F, rng), []
    for _ in range(4):
        here = F.value_and_gradient(theta)
        wanted.append(here.value)
        bound.refresh(F, theta)
        theta = theta - bound.solve(here.gradient)
    assert [r.objective for r in history] == pytest.approx(wanted, rel=1e-12)


def test_a_step_that_fails_on_a_sample_is_tried_on_more_rows(monkeypatch, rng):
    X = rng.standard_normal((3000, 4))
    y = np.argmax(3 * X[:, :3] + rng.gumbel(size=(3000, 3)), axis=1)
    F = Problem(as_rows(X), ClassTargets(y, 3), SMOOTH_LOSSES["softmax"], 1e-4)
    given, failing = newton_cg.backtrack, [True, True]
    monkeypatch.setattr(newton_cg, "backtrack", lambda *a, **o: None if failing and failing.pop() else given(*a, **o))
    found = problems.run(F, SOLVERS["newton-cg"], CURVATURES["kronecker"], tol=1e-6, max_iter=100)
    assert found.status is Status.CONVERGED and not failing


@pytest.mark.parametrize(("n_iter", "asked", "expected"), [(0, None, 5), (20, None, 5), (80, None, 20), (80, 1, 1)])
def test_the_longer_a_fit_without_a_penalty_takes_the_more_steps_have_to_have_gained_nothing(
    n_iter, asked, expected, rng
):
    F = Problem(
        as_rows(rng.standard_normal((30, 3))), ClassTargets(np.arange(30) % 2, 2), SMOOTH_LOSSES["softmax"], 0.0
    )
    theta = F.rows.zeros((4, 2))
    told = iterate(F, CURVATURES["identity"](F, rng), theta, F.value_and_gradient(theta), n_iter, looks_back=asked)
    assert told.looks_back == expected and told.reached is Status.STATIONARY
