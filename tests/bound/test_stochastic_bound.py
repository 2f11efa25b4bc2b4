import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.bound import DenseInverse, LowRank, StochasticBound
from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.fit import Clock, OutOfTime, Run, Status
from manyclass.model import LOSSES, Problem
from manyclass.solvers import SOLVERS
from tests import problems
from tests.covering import in_turn
from tests.oracles.stochastic_bound import stochastic_bound


def problem(n=300, d=4, k=3, *, alpha=1e-2, seed=0, sparse=False, loss="softmax", weight=None, fit_intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(0.5, -0.5, d) * (rng.random((n, d)) < (0.3 if sparse else 1))
    codes = np.argmax(2 * X @ rng.standard_normal((d, k)) + rng.gumbel(size=(n, k)), axis=1)
    targets = ClassTargets(codes, k) if loss == "softmax" else MatrixTargets(np.eye(k)[codes][:, 1:])
    rows = as_rows(sp.csr_array(X) if sparse else X)
    F = Problem(rows, targets, LOSSES[loss], alpha, weight=weight, fit_intercept=fit_intercept)
    F.centred = False
    return F, X, codes


def run(F, curvature, passes, **options):
    """The solver after so many passes, and their records."""
    solver = StochasticBound(F, curvature, rng=np.random.default_rng(0), **options)
    return solver, Run(Clock(), max_iter=passes)(solver.iterates(), lambda: None).history


def theta_after(F, curvature, passes, **options):
    return run(F, curvature, passes, **options)[0].theta


def optimum(F):
    curvature = CURVATURES["partition-bound"]
    return problems.run(F, SOLVERS["newton-cg"], curvature, tol=1e-14, max_iter=500).history[-1].objective


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("block_rows", "within"), [(1, 1e-10), (3, 1e-5), (None, 1e-4), (40, 1e-3)])
def test_is_algorithm_2_of_the_paper(fit_intercept, block_rows, within):
    """Rows one at a time give the printed algorithm to rounding, blocks to the square of their share; φ = Mμ."""
    F, X, codes = problem(fit_intercept=fit_intercept)
    n = len(X)
    rows = np.c_[X, np.ones(n)] if fit_intercept else X
    penalised = np.ones(rows.shape[1])
    penalised[4:] = 0
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(n) for _ in range(2)])
    curvature = DenseInverse(F)
    theta, phi, mu, M = stochastic_bound(rows, codes, 3, F.alpha, order, curvature.prior, penalised=penalised)
    np.testing.assert_allclose(phi.ravel(), M @ mu.ravel(), rtol=1e-8, atol=1e-10)  # the listing's φ telescopes
    np.testing.assert_allclose(
        theta_after(F, curvature, 2, block_rows=block_rows), theta, atol=within * np.abs(theta).max()
    )
    np.testing.assert_allclose(curvature.M / n, M, atol=within * 1e2 * np.abs(M).max())


def test_phi_is_m_mu_all_along():
    F, *_ = problem(n=120)
    solver, seen = StochasticBound(F, DenseInverse(F), block_rows=1), []

    def compare(ahead):
        expected = np.linalg.solve(solver.curvature.matrix(), solver.mu.ravel())
        seen.append(np.abs(solver.phi.ravel() - expected).max())

    F.on_block = compare
    next(solver.iterates())
    assert len(seen) >= 100 and max(seen) < 1e-9 * np.abs(solver.theta).max() + 1e-9


def test_a_row_of_weight_zero_is_no_row():
    weight = np.ones(200)
    weight[150:] = 0
    F, X, _ = problem(n=200, weight=weight)
    X = X.copy()
    X[150:] += 100.0
    moved = Problem(as_rows(X), F.targets, F.loss, F.alpha, weight=weight)
    moved.centred = False
    one, other = (theta_after(P, DenseInverse(P), 2, block_rows=1) for P in (F, moved))
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("make", [DenseInverse, lambda F: LowRank(F, 3)])
def test_sparse_rows_mean_the_same(loss, make):
    F, X, _ = problem(sparse=True, loss=loss)
    dense = Problem(as_rows(X), F.targets, F.loss, F.alpha)
    dense.centred = False
    np.testing.assert_allclose(theta_after(F, make(F), 2), theta_after(dense, make(dense), 2), atol=1e-8)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("refresh", [False, True])
def test_low_rank_with_all_directions_is_full_rank(loss, refresh):
    """Nothing is absorbed while rank is not exceeded, except B' of each row, which is zero for single labels."""
    F, *_ = problem(n=60, d=3, k=2, loss=loss)
    if loss == "softmax":  # B has rank one for two classes as well
        assert F.n_outputs == 2
    full, low = (theta_after(F, C, 3, refresh=refresh, block_rows=3) for C in (DenseInverse(F), LowRank(F, 50)))
    np.testing.assert_allclose(full, low, atol=1e-6)


@pytest.mark.parametrize(("alpha", "rank"), in_turn([0.0, 1e-4, 0.1], [None, 2]))
def test_steps_that_grow_never_lose_what_was_reached(rank, alpha):
    """With rows of weight 10⁷ times others and scores that saturate, where too long a step would be the end."""
    weight = np.where(np.arange(200) % 7 == 0, 1e4, 1e-3)
    F, *_ = problem(n=200, weight=weight, alpha=alpha)
    curvature = DenseInverse(F) if rank is None else LowRank(F, rank)
    values = np.array([r.objective for r in run(F, curvature, 60, refresh=True, eta=3.0)[1]])
    assert np.isfinite(values).all() and values[-1] < 1.001 * values.min() < values[3]
    rises = np.diff(values) > 1e-6 * values[:-1]  # below that it is at rest, and rounding decides
    assert rises.mean() < 0.1  # only steps that need no trial may raise F, and hardly ever do


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("refresh", [False, True])
def test_approaches_the_optimum(loss, refresh):
    F, *_ = problem(loss=loss, alpha=0.03)
    best = optimum(F)
    values = np.array([r.objective for r in run(F, DenseInverse(F), 40, refresh=refresh)[1]])
    assert values.min() - best >= -1e-9
    if refresh:
        assert values[-1] - best < 1e-5 and values[20] - best < 0.05 * (values[5] - best)  # linearly
    else:
        assert values[:12].min() - best < 0.05  # as published: near it soon, and not for good
        assert 1e-7 < values[-1] - best < 0.2


def test_drift_of_the_inverse_stays_at_rounding_over_50_passes():
    F, *_ = problem(n=200, alpha=1e-5)
    curvature = DenseInverse(F)
    curvature.tidy = lambda: None  # without any refactoring
    run(F, curvature, 50)
    H = curvature.matrix()
    drift = np.abs(curvature.M @ H - np.eye(len(H))).max()
    assert drift < 1e-6
    np.testing.assert_array_equal(curvature.M, curvature.M.T)
    del curvature.tidy
    curvature.tidy()
    rounding = len(H) * np.finfo(float).eps * np.linalg.cond(H)
    assert np.abs(curvature.M @ H - np.eye(len(H))).max() < rounding


@pytest.mark.parametrize("n_blocks", [1, 100, 380])
def test_what_was_done_when_time_ran_out_is_a_model(n_blocks):
    """Also within the first pass: rows that were seen count."""
    F, *_ = problem(n=300)
    left = iter(range(n_blocks))

    def out_of_time(ahead):
        if next(left, None) is None:
            raise OutOfTime

    F.on_block = out_of_time
    solver = StochasticBound(F, DenseInverse(F), block_rows=1)
    outcome = Run(Clock())(solver.iterates(), lambda: None)
    assert outcome.status is Status.MAX_TIME
    assert outcome.n_passes == pytest.approx(n_blocks / 300) and outcome.n_iter == n_blocks // 300
    assert np.isfinite(outcome.model[0]).all() and np.abs(outcome.model[0]).max() > 0


def test_without_time_for_a_single_row_there_is_no_model():
    F, *_ = problem()
    clock = Clock(max_time=0.0)
    F.on_block = clock.check
    outcome = Run(clock)(StochasticBound(F, DenseInverse(F)).iterates(), lambda: "fallback")
    assert outcome.model == "fallback" and outcome.status is Status.MAX_TIME and outcome.history == []


def test_looking_at_the_objective_is_no_pass():
    F, *_ = problem()
    assert [record.n_passes for record in run(F, DenseInverse(F), 3, refresh=True)[1]] == [1, 2, 3]


def test_classes_in_a_random_order_lead_to_the_same_optimum():
    F, *_ = problem(alpha=0.03)
    fixed, shuffled = (run(F, DenseInverse(F), 40, refresh=True, shuffle_classes=s)[1] for s in (False, True))
    assert fixed[0].objective != shuffled[0].objective
    assert shuffled[-1].objective == pytest.approx(fixed[-1].objective, abs=1e-5)
