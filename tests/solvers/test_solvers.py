"""Every solver on every link, against one slow oracle, and what each promises on the way."""

from itertools import pairwise

import numpy as np
import pytest

from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, Design
from manyclass.model import LINKS, Objective
from manyclass.solvers import SOLVERS, Monitor, Status
from tests import problems
from tests.oracles import glm as oracle


def run(F, solver, curvature=None, start=None, **monitor):
    solver = SOLVERS[solver]
    kind = CURVATURES[curvature or ("second-moment" if solver.needs_majorizer else "kronecker")]
    return solver.solve(F, kind.build(F, np.random.default_rng(0)), start, Monitor(**monitor))


@pytest.fixture(scope="module", params=[(link, fit) for link in LINKS for fit in (True, False)], ids=str)
def solved(request):
    link, fit_intercept = request.param
    F, X, Y, s = problems.objective(link, fit_intercept=fit_intercept)
    return F, oracle.minimum(link, X, Y, s, F.alpha, fit_intercept)


@pytest.mark.parametrize("solver", SOLVERS)
def test_reaches_the_optimum_of_the_oracle(solved, solver):
    F, (least, W, b) = solved
    found = run(F, solver, tol=1e-9, max_iter=20_000)
    assert found.status is Status.CONVERGED
    assert found.history[-1].objective == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(found.coef, W, atol=1e-3 * np.abs(W).max())
    # A softmax leaves the common level of the intercepts free.
    np.testing.assert_allclose(
        found.intercept - found.intercept.mean(), b - b.mean(), atol=2e-3 * max(1, np.abs(b).max())
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("link", LINKS)
def test_certificate_bounds_the_error_at_every_pass(solver, link):
    F, X, Y, s = problems.objective(link)
    least = oracle.minimum(link, X, Y, s, F.alpha)[0]
    for record in run(F, solver, tol=1e-6, max_iter=300).history:
        assert record.objective - least <= record.certificate * F.zero_value + 1e-9


@pytest.mark.parametrize("curvature", ["second-moment", "diagonal"])
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
def test_majorize_never_rises(link, curvature, alpha):
    F, *_ = problems.objective(link, alpha=alpha, center=CURVATURES[curvature].center)
    values = [r.objective for r in run(F, "majorize", curvature, tol=-1.0, max_iter=200).history]
    assert len(values) == 200
    assert all(b <= a + 1e-12 for a, b in pairwise(values))


@pytest.mark.parametrize("link", LINKS)
def test_majorize_obeys_theorem_1(link):
    """F(W_t) − F* ≤ 2L‖W*‖²_Σ/(t + 4) from zero, for alpha = 0 and without intercept (*Least Squares Revisited*)."""
    X, codes, _ = problems.rows(n=300)
    F = Objective(Design(X), ClassTargets(codes, 3), LINKS[link], 0.0, fit_intercept=False)
    best = run(F, "newton-cg", tol=1e-14, max_iter=500)
    least, W = best.history[-1].objective, best.coef
    size = np.trace(W.T @ (X.T @ X / len(X)) @ W)
    history = run(F, "majorize", start=np.zeros((5, 3)), tol=-1.0, max_iter=100).history
    for t, record in enumerate(history):
        assert record.objective - least <= 2 * F.link.lipschitz * size / (t + 4) + 1e-9


@pytest.mark.parametrize("solver", ["quasi-newton", "newton-cg"])
@pytest.mark.parametrize("link", ["identity", "softmax", "logistic"])
def test_line_searches_never_let_the_objective_rise(solver, link):
    F, *_ = problems.objective(link, alpha=1e-4)
    values = [r.objective for r in run(F, solver, tol=1e-10, max_iter=300).history]
    assert all(b <= a * (1 + 1e-7) for a, b in pairwise(values))


@pytest.mark.parametrize("solver", ["quasi-newton", "newton-cg", "accelerated"])
def test_units_of_the_features_do_not_matter_without_a_penalty(solver, rng):
    """The curvature makes the path invariant to any invertible map of X at alpha = 0."""
    X, codes, _ = problems.rows(n=400)
    mixed = X @ rng.standard_normal((5, 5))
    histories = []
    for data in (X, mixed):
        F = Objective(Design(data), ClassTargets(codes, 3), LINKS["softmax"], 0.0)
        histories.append(run(F, solver, tol=1e-6, max_iter=400))
    a, b = histories
    assert a.status is b.status is Status.CONVERGED
    assert [r.objective for r in a.history] == pytest.approx([r.objective for r in b.history], rel=1e-5)


def test_float32_converges_to_the_float64_optimum():
    exact, rounded = (problems.objective("softmax", alpha=1e-3, dtype=t)[0] for t in (np.float64, np.float32))
    a, b = run(exact, "quasi-newton", tol=1e-8), run(rounded, "quasi-newton", tol=1e-5)
    assert b.coef.dtype == np.float32
    assert b.history[-1].objective == pytest.approx(a.history[-1].objective, rel=1e-4)


def test_a_certificate_out_of_reach_of_float32_is_reported():
    F, *_ = problems.objective("softmax", alpha=1e-6, dtype=np.float32)
    found = run(F, "quasi-newton", tol=1e-15, max_iter=2000)
    assert found.status in (Status.STALLED, Status.MAX_ITER)
    assert "raise" in str(found.status)


@pytest.mark.parametrize("solver", SOLVERS)
def test_limits_are_kept_and_the_best_model_returned(solver):
    F, *_ = problems.objective("softmax", alpha=1e-6)
    found = run(F, solver, tol=-1.0, max_iter=5)
    assert found.status is Status.MAX_ITER and found.n_passes <= 7
    timed = run(F, solver, tol=-1.0, max_iter=10**9, max_time=0.05)
    assert timed.status in (Status.MAX_TIME, Status.STALLED)
    theta = F.pack(timed.coef, timed.intercept)
    assert F.value_and_gradient(theta).value <= F.zero_value


@pytest.mark.parametrize("solver", SOLVERS)
def test_degenerate_rows(solver):
    """Constant, duplicated and all-zero columns; more columns than rows; a single row a class; no penalty."""
    rng = np.random.default_rng(0)
    column = rng.standard_normal((4, 1))
    X = np.hstack([column, column, np.ones((4, 1)), np.zeros((4, 1)), 1e6 * rng.standard_normal((4, 4))])
    for alpha in (0.0, 1e-8, 1.0):
        F = Objective(Design(X), ClassTargets(np.array([0, 1, 2, 0]), 3), LINKS["softmax"], alpha)
        found = run(F, solver, tol=1e-4, max_iter=200)
        assert np.isfinite(found.coef).all() and np.isfinite(found.intercept).all()
        assert found.history[-1].objective <= F.zero_value


def test_the_constant_model_is_returned_when_nothing_can_be_learned():
    X = np.zeros((6, 3))
    F = Objective(Design(X), ClassTargets(np.array([0, 0, 0, 1, 1, 2]), 3), LINKS["softmax"], 1e-3)
    found = run(F, "quasi-newton", tol=1e-8)
    assert found.status is Status.CONVERGED and not found.coef.any()
    P = F.link.mean(found.intercept[None, :].copy(), F.xp)[0]
    np.testing.assert_allclose(P, [1 / 2, 1 / 3, 1 / 6], atol=1e-3)
