"""Dual coordinate ascent against slow oracles, and what it promises on the way."""

import math
import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.dual import Limits, ascend, kernels
from manyclass.dual.ascent import _Ascent, start_state
from manyclass.dual.losses import DUAL_LOSSES as LOSSES
from manyclass.fit import Clock, OutOfTime, Run, Status
from tests.covering import every_pair, in_turn
from tests.dual.given import EPSILON, JOINT, problem, small, solve, targets
from tests.oracles import dual as oracle

ALPHAS = (1e-12, 1e-6, 1.0, 1e8)
CASES = ("duplicates", "zero rows", "wide", "one row", "all zero")


@pytest.mark.parametrize(("name", "fit_intercept"), in_turn(LOSSES, [True, False]))
def test_reaches_the_optimum_of_the_oracle(name, fit_intercept):
    X, codes, weight = small(n=25)
    y = targets(name, codes)
    found = solve(problem(name, X, y, 0.05, weight=weight, fit_intercept=fit_intercept), tol=1e-7)
    least = oracle.minimum(name, X, y, weight, 0.05, fit_intercept, EPSILON)
    assert found.status is Status.CONVERGED
    value = oracle.objective(name, X, y, weight, 0.05, found.model.coef, found.model.intercept, EPSILON)
    assert value == pytest.approx(found.history[-1].objective, rel=1e-10)
    assert value == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize(("name", "fit_intercept"), in_turn(LOSSES, [True, False], start=1))
def test_every_measured_gap_brackets_the_optimum(name, fit_intercept):
    X, codes, weight = small(2)
    y = targets(name, codes)
    built = problem(name, X, y, 0.02, weight=weight, fit_intercept=fit_intercept)
    best = solve(built, tol=1e-8).history[-1].objective
    zero = start_state(built).zero_value
    history = solve(built, measure_every=1, tol=1e-5, max_iter=5000).history
    for record in history:
        assert record.duality_gap >= 0
        assert record["dual"] <= best + 1e-7 * zero
        assert record["primal"] >= best - 1e-7 * zero
        assert record.objective - best <= record.duality_gap * zero + 1e-12
    assert all(b.duality_gap <= a.duality_gap for a, b in pairwise(history))
    assert history[-1].duality_gap <= 1e-5


@pytest.mark.parametrize("name", ["squared", "hinge", "squared_hinge", "logistic", "huber", "crammer_singer"])
def test_without_intercept_no_step_lowers_the_dual(name):
    X, codes, _ = small(3)
    built = problem(name, X, targets(name, codes), 0.01, fit_intercept=False)
    duals = [record["dual"] for record in solve(built, measure_every=1, tol=0.0, max_iter=200).history]
    assert all(b >= a - 1e-12 for a, b in pairwise(duals))


@pytest.mark.parametrize(
    ("homotopy", "weighted", "fit_intercept"), every_pair([False, True, 4], [True, False], [True, False])
)
def test_ridge_solves_the_normal_equations(weighted, fit_intercept, homotopy):
    """W* = (X̃ᵀSX̃ + alpha·S·I)⁻¹X̃ᵀSỸ to 1e-8 in float64 (*Homotopic Initialization*, eq. 2)."""
    X, codes, weight = small(n=200)
    s = weight if weighted else np.ones(len(X))
    Y = targets("squared", codes)
    found = solve(
        problem("squared", X, Y, 0.02, weight=weight if weighted else None, fit_intercept=fit_intercept),
        homotopy,
        tol=1e-24,
        max_iter=6000,
    )
    mean_x, mean_y = (s @ X / s.sum(), s @ Y / s.sum()) if fit_intercept else (0.0, 0.0)
    Xc, Yc = X - mean_x, Y - mean_y
    W = np.linalg.solve(Xc.T @ (s[:, None] * Xc) + 0.02 * s.sum() * np.eye(4), Xc.T @ (s[:, None] * Yc))
    np.testing.assert_allclose(found.model.coef, W, rtol=1e-8, atol=1e-10)
    b = mean_y - mean_x @ W if fit_intercept else 0.0
    np.testing.assert_allclose(found.model.intercept, b, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.model.dual, Yc - Xc @ W, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_coef_is_what_the_dual_variables_say(name):
    X, codes, weight = small(4)
    weight[3] = 0.0
    built = problem(name, X, targets(name, codes), 0.1, weight=weight)
    found = solve(built, max_iter=7, tol=0.0)
    share, mean = built.share / found.model.alpha, built.share @ X
    np.testing.assert_allclose(found.model.coef, (X - mean).T @ (share[:, None] * found.model.dual), atol=1e-12)


HELD = [(np.float64, np.int32), (np.float32, np.int32), (np.float64, np.int64)]
"""Numbers and indices; loops are compiled anew for each pair, which takes many seconds."""


@pytest.mark.parametrize(("name", "held"), in_turn(LOSSES, HELD))
def test_sparse_rows_are_dense_rows(name, held):
    dtype, index = held
    X, codes, weight = small(5)
    X = np.where(np.abs(X) > 0.7, X, 0).astype(dtype)
    S = sp.csr_array(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    y = targets(name, codes)
    dense, sparse = (solve(problem(name, rows, y, 0.05, weight=weight), max_iter=20, tol=0.0) for rows in (X, S))
    np.testing.assert_allclose(sparse.model.coef, dense.model.coef, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sparse.model.intercept, dense.model.intercept, rtol=1e-9, atol=1e-11)
    assert sparse.duality_gap == pytest.approx(dense.duality_gap, rel=1e-6, abs=1e-13)


def test_entries_given_twice_count_as_their_sum():
    X, codes, _ = small(6)
    twice = sp.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.tile(np.repeat(np.arange(4), 2), 40), np.arange(0, 321, 8)), shape=(40, 4)
    )
    assert not twice.has_canonical_format
    y = targets("hinge", codes)
    a, b = (solve(problem("hinge", rows, y, 0.05), tol=1e-8) for rows in (X, twice))
    np.testing.assert_allclose(a.model.coef, b.model.coef, atol=1e-10)
    assert twice.nnz == 320  # the user's matrix is untouched


@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_and_fortran_rows(order):
    X, codes, _ = small(7)
    rows = np.array(X, order=order)
    rows.setflags(write=False)
    y = targets("squared_hinge", codes)
    a, b = (solve(problem("squared_hinge", r, y, 0.05), max_iter=30) for r in (X, rows))
    np.testing.assert_array_equal(a.model.coef, b.model.coef)


@pytest.mark.parametrize(("k", "name"), in_turn([2, 7, 8, 9, 17], ["squared", "squared_hinge"]))
def test_outputs_share_a_pass_and_nothing_else(name, k):
    """Any number of outputs together gives what each gives alone."""
    X, codes, _ = small(8, k=k)
    y = targets(name, codes, k)
    together = solve(problem(name, X, y, 0.05), tol=1e-12)
    for j in range(k):
        alone = solve(problem(name, X, y[:, j : j + 1], 0.05), tol=1e-13)
        np.testing.assert_allclose(together.model.coef[:, j], alone.model.coef[:, 0], atol=3e-5)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "epsilon_insensitive", "huber", "crammer_singer"])
def test_shrinking_changes_the_visits_and_not_the_answer(name):
    X, codes, _ = small(9, n=300)
    built = problem(name, X, targets(name, codes), 0.01)
    values, visits = [], []
    for shrink in (True, False):
        state = start_state(built)
        state.set_alpha(built.alpha)
        visits.append(0)
        for _ in range(400):
            if not shrink:
                state.visit_all()
            visits[-1] += state.n_active
            state.epoch()
        terms = state.gap_terms()
        values.append((terms.primal(built.alpha), terms.dual(built.alpha)))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-3)
    assert visits[1] == 400 * 300
    assert visits[0] < visits[1]


@pytest.mark.parametrize("name", LOSSES)
def test_measuring_the_gap_changes_no_state_but_rounding(name):
    X, codes, weight = small(10)
    built = problem(name, X, targets(name, codes), 0.05, weight=weight, fit_intercept=False)
    state = start_state(built, None, 3)
    state.set_alpha(0.05)
    for _ in range(30):
        state.epoch()
    before, b = state.parameters()
    state.gap_terms()
    after, _ = state.parameters()
    np.testing.assert_allclose(after, before, atol=1e-12 * max(1, np.abs(before).max()))
    np.testing.assert_array_equal(b, 0)


@pytest.mark.parametrize("name", LOSSES)
def test_a_change_of_alpha_keeps_the_dual_point(name):
    """W = Σ s_i x_i a_iᵀ/(alpha·S): with a kept, W is multiplied by old/new, and both phases see their own."""
    X, codes, _ = small(11)
    built = problem(name, X, targets(name, codes), 0.01, fit_intercept=False)
    state = start_state(built)
    state.set_alpha(0.4)
    for _ in range(5):
        state.epoch()
    W, _ = state.parameters()
    duals = state.duals()
    state.set_alpha(0.01)
    np.testing.assert_allclose(state.parameters()[0], 40 * W)
    np.testing.assert_array_equal(state.duals(), duals)


@pytest.mark.parametrize("name", LOSSES)
def test_warm_start_at_the_optimum_stays_there(name):
    X, codes, weight = small(12)
    built = problem(name, X, targets(name, codes), 0.05, weight=weight, fit_intercept=False)
    first = solve(built, tol=1e-8)
    again = solve(built, tol=1e-7, start=(first.model.dual, first.model.intercept))
    assert again.n_iter <= 2
    coef = first.model.coef
    np.testing.assert_allclose(again.model.coef, coef, atol=1e-3 * np.abs(coef).max() + 1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_an_infeasible_warm_start_is_mended(name):
    X, codes, _ = small(13)
    built = problem(name, X, targets(name, codes), 0.05)
    wild = np.random.default_rng(0).standard_normal((40, 3)) * 10
    found = solve(built, tol=1e-6, max_iter=20_000, start=(wild, np.ones(3)), measure_every=1)
    assert found.status is Status.CONVERGED
    assert min(record["primal"] - record["dual"] for record in found.history) >= -1e-9


def test_max_time_stops_and_keeps_the_best_model():
    X, codes, _ = small(15, n=400)
    found = solve(problem("hinge", X, targets("hinge", codes), 1e-9), 5, tol=0.0, max_time=0.2, max_iter=10**9)
    assert found.status is Status.MAX_TIME
    assert found.history[-1].objective == min(record["primal"] for record in found.history)


def test_loops_that_take_long_to_compile_do_not_end_a_fit(monkeypatch):
    visit, called = kernels.visit, []

    def compiled_at_first_call(*arguments):
        if not called:
            time.sleep(1.0)
        called.append(arguments)
        return visit(*arguments)

    monkeypatch.setattr(kernels, "visit", compiled_at_first_call)
    X, codes, _ = small(16)
    assert solve(problem("softmax", X, codes, 0.01), tol=1e-3, max_time=1.9).status is Status.CONVERGED


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("case", CASES)
def test_bad_cases_end_with_an_honest_gap(name, case):
    """Every loss on every case; over the losses each case meets every alpha."""
    alpha = ALPHAS[(list(LOSSES).index(name) + CASES.index(case)) % len(ALPHAS)]
    X, codes, _ = small(16)
    if case == "duplicates":
        X, codes = np.repeat(X[:10], 4, axis=0), np.repeat(codes[:10], 4)
    elif case == "zero rows":
        X[::2] = 0
    elif case == "wide":
        X = np.random.default_rng(0).standard_normal((40, 90))
    elif case == "one row":
        X, codes = X[:1], codes[:1]
    else:
        X = np.zeros_like(X)
    y = targets(name, codes)
    if name in JOINT and case == "one row":
        y = np.array([2])
    found = solve(problem(name, X, y, alpha), tol=1e-6, max_iter=400)
    assert np.isfinite(found.model.coef).all() and np.isfinite(found.model.intercept).all()
    assert 0 <= found.duality_gap < np.inf
    weight = np.ones(len(X))
    value = oracle.objective(name, X, y, weight, alpha, found.model.coef, found.model.intercept, EPSILON)
    assert value == pytest.approx(found.history[-1].objective, rel=1e-6, abs=1e-9)
    # With one row the log losses fall to 0 as the intercept grows without end.
    unattained = case == "one row" and name in ("logistic", "softmax")
    allowed = {Status.CONVERGED, Status.STALLED} | ({Status.MAX_ITER} if alpha < 1 or unattained else set())
    assert found.status in allowed


def test_separable_rows_at_a_tiny_alpha():
    """The hard-margin limit: the gap closes although the penalty is nearly nothing."""
    X = np.array([[2.0, 0.0], [3.0, 1.0], [-2.0, 0.5], [-4.0, -1.0]])
    y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    found = solve(problem("hinge", X, y, 1e-8, fit_intercept=False), tol=1e-9)
    assert found.status is Status.CONVERGED
    assert (y * (X @ found.model.coef)).min() >= 1 - 1e-3


def test_an_alpha_that_overflows_is_refused():
    X, codes, _ = small()
    with pytest.raises(ValueError, match="too small for rows"):
        solve(problem("hinge", X * 1e150, targets("hinge", codes), 1e-30))


@pytest.mark.parametrize("name", LOSSES)
def test_the_same_seed_gives_the_same_path(name):
    X, codes, _ = small(17)
    built = problem(name, X, targets(name, codes), 0.05)
    a, b, c = (solve(built, tol=0.0, max_iter=5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.model.coef, b.model.coef)
    assert np.abs(a.model.coef - c.model.coef).max() > 0


def interrupted(built, reason, call, **options):
    """A run in which `reason` is raised before a slice of an epoch."""
    calls = iter(range(call))

    def on_block():
        if next(calls, None) is None:
            raise reason

    run = Run(Clock(), tol=0.0, max_iter=100)
    built.problem.on_block = on_block
    return run(ascend(built, [built.alpha], Limits(0.0, 100, run.clock), **options), lambda: None)


@pytest.mark.parametrize(("reason", "status"), [(OutOfTime, Status.MAX_TIME), (KeyboardInterrupt, Status.INTERRUPTED)])
@pytest.mark.parametrize("name", LOSSES)
def test_a_run_that_ends_within_its_first_epoch_leaves_a_measured_model(monkeypatch, name, reason, status):
    monkeypatch.setattr("manyclass.dual.state.SLICE", 1000)  # some rows of 4 features and 3 outputs
    X, codes, _ = small(18, n=200)
    y = targets(name, codes)
    built = problem(name, X, y, 0.05)
    found = interrupted(built, reason, call=3)
    assert found.status is status and found.n_iter == 1 and len(found.history) == 1
    assert 1 < len(np.unique(found.model.dual, axis=0)) < 200  # rows not visited are all alike
    value = oracle.objective(name, X, y, np.ones(200), 0.05, found.model.coef, found.model.intercept, EPSILON)
    assert value == pytest.approx(found.history[0].objective, rel=1e-9)
    least = solve(built, tol=1e-8).history[-1].objective
    assert value - least <= found.duality_gap * start_state(built).zero_value + 1e-9


def test_without_time_to_hand_dual_variables_over_none_are_made(monkeypatch):
    monkeypatch.setattr("manyclass.dual.ascent.COPIES", 1e15)
    X, codes, _ = small(18, n=200)
    built = problem("softmax", X, targets("softmax", codes), 0.05)
    run = Run(Clock(60.0), tol=0.0, max_iter=100)
    found = run(ascend(built, [built.alpha], Limits(0.0, 100, run.clock)), lambda: "as before")
    assert (found.model, found.status, found.n_iter) == ("as before", Status.MAX_TIME, 0)


@pytest.mark.parametrize("name", ["hinge", "softmax"])
def test_a_gap_that_takes_longer_than_there_is_time_is_not_measured(monkeypatch, name):
    monkeypatch.setattr("manyclass.dual.state.SLICE", 1000)
    monkeypatch.setattr("manyclass.dual.ascent.LOSS", 1e15)
    X, codes, _ = small(18, n=200)
    built = problem(name, X, targets(name, codes), 0.05)
    run, calls = Run(Clock(60.0), tol=0.0, max_iter=100), iter(range(3))

    def on_block():
        if next(calls, None) is None:
            raise OutOfTime

    built.problem.on_block = on_block
    found = run(ascend(built, [built.alpha], Limits(0.0, 100, run.clock)), lambda: None)
    assert found.status is Status.MAX_TIME and found.duality_gap == math.inf
    assert np.isfinite(found.model.coef).all() and len(np.unique(found.model.dual, axis=0)) > 1


def test_after_one_gap_the_next_is_expected_to_take_as_long(monkeypatch):
    monkeypatch.setattr("manyclass.dual.ascent.LOSS", 1e15)
    X, codes, _ = small(18, n=200)
    built = problem("hinge", X, targets("hinge", codes), 0.05)
    run = _Ascent(built, start_state(built), Limits(0.0, 100, Clock(60.0)), None)
    run.begin_phase(0.05)
    assert not run.can_measure()
    run.measure()
    assert run.can_measure()


def test_a_later_interruption_keeps_the_best_measured_model(monkeypatch):
    monkeypatch.setattr("manyclass.dual.state.SLICE", 1000)
    X, codes, _ = small(19, n=200)
    built = problem("hinge", X, targets("hinge", codes), 1e-4)
    found = interrupted(built, KeyboardInterrupt, call=150, measure_every=2)
    assert found.status is Status.INTERRUPTED and len(found.history) > 1
    assert found.duality_gap == min(record.duality_gap for record in found.history)


@pytest.mark.parametrize("name", ["squared", "logistic", "softmax"])
def test_slices_are_one_epoch(monkeypatch, name):
    X, codes, _ = small(20, n=200)
    built = problem(name, X, targets(name, codes), 0.01)
    whole = solve(built, tol=0.0, max_iter=5)
    monkeypatch.setattr("manyclass.dual.state.SLICE", 1000)
    np.testing.assert_allclose(solve(built, tol=0.0, max_iter=5).model.coef, whole.model.coef, rtol=1e-12, atol=1e-13)
