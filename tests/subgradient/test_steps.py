"""Stochastic subgradient steps: the paper's algorithms line by line, its bound, and how a run ends."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numba import typeof
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from manyclass import PegasosClassifier, SDCAClassifier
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.fit import Clock, OutOfTime, Run, Status
from manyclass.model import LOSSES as MODEL_LOSSES
from manyclass.model import Problem
from manyclass.subgradient import Schedule
from manyclass.subgradient.draws import draw, make_draws
from manyclass.subgradient.losses import LOSSES
from manyclass.subgradient.pegasos import Pegasos
from manyclass.subgradient.state import State, warm_offset
from tests.oracles import pegasos as oracle

PAPERS = ["softmax", "crammer_singer", "perceptron"]
COLUMNS = [name for name, loss in MODEL_LOSSES.items() if name in LOSSES and loss.label_values is not None]
ALPHA = 0.05


def data(seed=0, n=40, d=6, k=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    y = np.argmax(X @ rng.standard_normal((d, k)) + 0.5 * rng.standard_normal((n, k)), axis=1)
    y[:k] = np.arange(k)
    return X, y


def solver(
    name, X, y, schedule, *, k=4, alpha=ALPHA, batch_size=1, fit_intercept=False, weight=None, seed=0, targets=None
):
    rows, loss = as_rows(X), MODEL_LOSSES[name]
    targets = ClassTargets(y, k, loss.label_values or (0.0, 1.0)) if targets is None else targets
    problem = Problem(rows, targets, loss, alpha, weight=weight, fit_intercept=fit_intercept)
    draws = make_draws(rows.n_rows, seed, schedule.replace, weight)
    return Pegasos(problem, rows, draws, State.begin(problem, rows, schedule, draws), batch_size)


def run(name, X, y, schedule, n_draws, **options):
    one = solver(name, X, y, schedule, **options)
    one.advance(n_draws)
    return one.state.parameters()


def batches(draws, n_steps, size):
    return [[draw(draws, t * size + a) for a in range(size)] for t in range(n_steps)]


# -- steps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("k", [4, 9])
def test_every_iterate_is_the_papers(name, batch_size, replace, k):
    """Algorithm 1 with the updates of Algorithms 2 to 4, from the huge first steps on; of 9 classes few take a step."""
    X, y = data(k=k)
    one = solver(name, X, y, Schedule(0.0, average=False, replace=replace), k=k, batch_size=batch_size)
    expected = oracle.algorithm_1(name, X, y, k, ALPHA, batches(one.draws, 30, batch_size))
    for W in expected[1:]:
        one.advance(batch_size)
        np.testing.assert_allclose(one.state.parameters()[0], W, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("offset", [0.0, 7.5])
@pytest.mark.parametrize("k", [4, 9])
def test_the_lazy_average_is_the_plain_one(name, offset, k):
    X, y = data(1, k=k)
    one = solver(name, X, y, Schedule(offset), k=k, batch_size=2)
    iterates = oracle.algorithm_1(name, X, y, k, ALPHA, batches(one.draws, 50, 2), offset)[1:]
    one.advance(100)
    emphasis = np.arange(1, 51) * (np.arange(1, 51) + offset)
    plain = np.einsum("t,tdk->dk", emphasis, iterates) / emphasis.sum()
    np.testing.assert_allclose(one.state.parameters()[0], plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_features_of_different_size_take_steps_of_their_own(average, sparse):
    """W_j ← (1 − 1/τ_j) W_j − x_j g/(alpha τ_j), τ_j = t + offset_j, and averages with weights t·τ_j, written out."""
    X, y = data(1)
    X *= [1e-3, 1e-1, 1.0, 10.0, 1e2, 1e3]
    one = solver("softmax", sp.csr_array(X) if sparse else X, y, Schedule(average=average), alpha=1e-4)
    assert len(one.state.memory.offsets) == 6
    one.advance(60)
    offsets = one.state.memory.offsets
    seen = X**2 * warm_offset(one.problem, 1.0)
    assert np.all(offsets >= (1 - 1e-12) * seen.max(axis=0))
    W, total, mass = np.zeros((6, 4)), np.zeros((6, 4)), np.zeros(6)
    begun = solver("softmax", X, y, Schedule(average=average), alpha=1e-4).state.memory.offsets
    for t in range(1, 61):
        i = draw(one.draws, t - 1)
        # A number that would overshoot raises the offset of its feature, and makes what it has learnt smaller.
        raised = np.maximum(begun, seen[i])
        W *= np.where(t > 1, (t - 1 + begun) / (t - 1 + raised), 1.0)[:, None]
        begun = raised
        z = W.T @ X[i]
        p = np.exp(z - z.max())
        p /= p.sum()
        p[y[i]] -= 1.0
        tau = (t + begun)[:, None]
        W = W * (t - 1 + begun)[:, None] / tau - np.outer(X[i], p) / (1e-4 * tau)
        # What was before is weighed, and read, with the offsets of the end.
        total += t * (t + begun)[:, None] * W
        mass += t * (t + offsets)
    expected = total / mass[:, None] if average else W
    np.testing.assert_allclose(one.state.parameters()[0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("average", [True, False])
def test_dense_and_sparse_rows_take_the_same_steps(name, average):
    X, y = data(3)
    narrow = sp.csr_array(X)
    wide = sp.csr_array((narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)), X.shape)
    options = {"batch_size": 2, "fit_intercept": True}
    dense, *others = [
        run(name, rows, y, Schedule(30.0, average), 120, **options) for rows in (X, np.asfortranarray(X), narrow, wide)
    ]
    for W, b in others:
        np.testing.assert_allclose(W, dense[0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(b, dense[1], rtol=1e-10, atol=1e-12)


def test_dense_and_sparse_rows_have_one_loop_compiled():
    X, y = data()
    dense, sparse = (solver("softmax", rows, y, Schedule(30.0)).rows for rows in (X, sp.csr_array(X)))
    assert dense.dense and not sparse.dense and typeof(dense) == typeof(sparse)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_do_not_know_of_each_other(name):
    """One-vs-rest over k classes is k binary fits on the same draws: K-Pegasos and K-binaryLR."""
    X, y = data(4)
    absent, present = MODEL_LOSSES[name].label_values
    together = run(name, X, y, Schedule(10.0), 100, batch_size=2)[0]
    for c in range(4):
        column = MatrixTargets(np.where(y == c, present, absent)[:, None])
        W, _ = run(name, X, y, Schedule(10.0), 100, batch_size=2, targets=column)
        np.testing.assert_allclose(W[:, 0], together[:, c], rtol=1e-9, atol=1e-11)


def test_pauses_change_nothing():
    X, y = data(5)
    whole = run("softmax", X, y, Schedule(5.0), 90, batch_size=3)
    pieces = solver("softmax", X, y, Schedule(5.0), batch_size=3)
    for part in (30, 3, 27, 30):
        pieces.advance(part)
    np.testing.assert_array_equal(whole[0], pieces.state.parameters()[0])


def test_weights_are_repetition_in_expectation():
    """The step of a row of weight 3 is that of three draws of it: over an epoch from W = 0, where g does not move."""
    X, y = data(6, n=12)
    weight = np.array([1.0, 3.0, 2.0] * 4)
    repeated = np.repeat(np.arange(12), weight.astype(int))

    def mean_first_step(rows, weight, n):
        schedule = Schedule(0.0, average=False, replace=True)
        steps = [run("softmax", X[rows], y[rows], schedule, 1, weight=weight, seed=s)[0] for s in range(n)]
        return np.mean(steps, axis=0), np.std(steps, axis=0) / np.sqrt(n)

    (first, first_error), (second, second_error) = (
        mean_first_step(np.arange(12), weight, 1000),
        mean_first_step(repeated, None, 1000),
    )
    assert (np.abs(first - second) < 5 * np.hypot(first_error, second_error) + 1e-12).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("average", [True, False])
def test_another_alpha_leaves_the_model_as_it_is(name, average):
    X, y = data(2)
    one = solver(name, X, y, Schedule(3.0, average), fit_intercept=True)
    one.advance(100)
    before = one.state.parameters()
    one.state.set_alpha(7 * ALPHA)
    for old, new in zip(before, one.state.parameters(), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_a_resumed_model_is_the_one_it_was(name):
    """On rows far from the origin too, where the intercept belongs to shifted ones."""
    X, y = data(2)
    X = X + 1000
    one = solver(name, X, y, Schedule(3.0), fit_intercept=True)
    one.advance(100)
    W, b = one.state.parameters()
    other = solver(name, X, y, Schedule(3.0, average=False), fit_intercept=True)
    resumed = other.state.resume(W, b, one.state.t).parameters()
    np.testing.assert_allclose(resumed[0], W, rtol=1e-10)
    np.testing.assert_allclose(X @ resumed[0] + resumed[1], X @ W + b, rtol=1e-7, atol=1e-7)


# -- convergence -------------------------------------------------------------------------------------------------------


def best_objective(name, X, y):
    """An upper bound on F*: the best average of a long run with the intercept left out."""
    W = run(name, X, y, Schedule(50.0), 400_000)[0]
    return oracle.objective(name, X, y, ALPHA, W)


@pytest.mark.parametrize("name", ["softmax", "crammer_singer"])
def test_theorem_2(name):
    """Mean over t of f⁽ᵗ⁾(W⁽ᵗ⁻¹⁾) − F* ≤ (1/2T) Σ ‖v⁽ᵗ⁾‖²/(λt) with ‖v⁽ᵗ⁾‖ ≤ 2 √2 R, so that f(W⁽ᵗ⁰⁾) at random t₀,
    and hence the plain average, is within 4 R² (1 + log T)/(λ T) in expectation. v includes λW (Lemma 1)."""
    X, y = data(7)
    best = best_objective(name, X, y)
    R2 = (X**2).sum(axis=1).max()
    for T in (100, 1000):
        gaps = []
        for seed in range(10):
            one = solver(name, X, y, Schedule(0.0, average=False, replace=True), seed=seed)
            mean = np.zeros((X.shape[1], 4))
            for _ in range(T):
                mean += one.state.parameters()[0] / T
                one.advance(1)
            gaps.append(oracle.objective(name, X, y, ALPHA, mean) - best)
        assert -1e-3 < np.mean(gaps) <= 4 * R2 * (1 + np.log(T)) / (ALPHA * T)


@pytest.mark.parametrize("name", [name for name in LOSSES if not MODEL_LOSSES[name].scale_free])
def test_the_lower_bound_is_one(name):
    """After whole epochs D ≤ F(W, b) for any W at the present intercept."""
    X, y = data(8)
    one = solver(name, X, y, Schedule())
    gaps = []
    for _ in range(40):
        one.advance(5 * len(X))
        value = oracle.objective(name, X, y, ALPHA, *one.state.parameters())
        gaps.append(value - one.state.lower_bound())
        assert gaps[-1] >= -1e-10
    assert gaps[-1] < 0.1 * oracle.loss(name, np.zeros(4), 0)


@pytest.mark.parametrize("name", LOSSES)
def test_the_warm_offset_bounds_the_first_step(name):
    X, y = data(0)
    mean_square, loss = float((X**2).sum(axis=1).mean()), LOSSES[name]
    one = solver(name, X, y, Schedule())
    assert one.state.offset == pytest.approx(warm_offset(one.problem, mean_square))
    assert 1 / (ALPHA * (1 + one.state.offset)) <= (1 if loss.squared else 4) / (loss.curvature() * mean_square)


@pytest.mark.parametrize("name", ["squared_crammer_singer", "squared_hinge"])
def test_squared_losses_do_not_run_away_on_long_rows(name):
    X, y = data(9)
    X = X * np.logspace(0, 2, len(X))[:, None]
    one = solver(name, X, y, Schedule(), alpha=1e-4, fit_intercept=True)
    W, b = Run(Clock())(one.iterates(60), lambda: None).model
    assert oracle.objective(name, X, y, 1e-4, W, b) < oracle.loss(name, np.zeros(4), 0)


# -- how a run ends ----------------------------------------------------------------------------------------------------


def test_epochs_may_be_fractions():
    X, y = data(0)
    one = solver("hinge", X, y, Schedule())
    iterates = list(one.iterates(2.25))
    assert [iterate.n_iter for iterate in iterates] == [1, 2, 2.25]
    assert [iterate.details["steps"] for iterate in iterates] == [40, 80, 90]
    ranks = [iterate.rank for iterate in iterates]
    assert all(later < earlier for earlier, later in pairwise(ranks))


@pytest.mark.parametrize("reason", [OutOfTime, KeyboardInterrupt])
def test_a_part_of_an_epoch_is_not_lost(reason, monkeypatch):
    """What stops a run within an epoch leaves the model of the steps taken until then."""
    X, y = data(0, n=4000, d=40)
    one = solver("softmax", X, y, Schedule(1.0), batch_size=2)
    calls = []

    def stop():
        calls.append(one.state.t)
        if len(calls) == 2:
            raise reason

    one.problem.on_block = stop
    monkeypatch.setattr("manyclass.subgradient.pegasos.SLICE_WORK", 1 << 16)
    outcome = Run(Clock())(one.iterates(100), lambda: None)
    assert outcome.status is (Status.MAX_TIME if reason is OutOfTime else Status.INTERRUPTED)
    assert 0 < outcome.n_iter < 1 and calls[0] < one.state.t == calls[1]
    for found, expected in zip(outcome.model, one.state.parameters(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_limit_on_time_is_kept_after_at_least_some_steps():
    X, y = data(0)
    one = solver("crammer_singer", X, y, Schedule())
    clock = Clock(1e-9)
    one.problem.on_block = clock.check
    outcome = Run(clock)(one.iterates(10**9), lambda: None)
    assert outcome.status is Status.MAX_TIME
    assert outcome.n_iter > 0


@pytest.mark.parametrize("offset", [-1.0, np.inf, np.nan])
def test_an_offset_is_a_number_of_steps(offset):
    with pytest.raises(ValueError, match="offset"):
        Schedule(offset)


@pytest.mark.parametrize(("rows", "draws"), [(0, 5), (1, 7), (5, 0)])
def test_an_epoch_that_happens_to_lose_little_is_not_taken_for_the_minimum(rows, draws):
    rng = np.random.default_rng(rows)
    y = rng.integers(2, size=60)
    X = rng.standard_normal((60, 2)) + y[:, None]
    y = np.where(rng.random(60) < 0.2, rng.integers(2, size=60), y)
    given = {"alpha": 5e-5, "loss": "hinge"}
    best = SDCAClassifier(**given, tol=1e-4, max_iter=20000).fit(X, y)
    model = PegasosClassifier(**given, random_state=draws).fit(X, y)

    def objective(one):
        loss = np.maximum(0.0, 1.0 - np.where(y > 0, 1, -1) * one.decision_function(X)).mean()
        return loss + 0.5 * one.alpha * np.sum(one.coef_**2)

    assert model.status_ is Status.FINISHED or objective(model) - objective(best) < 5e-3


def test_so_many_epochs_as_it_takes_itself_are_all_that_is_asked_for():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PegasosClassifier(tol=1e-9).fit(X, y)
    assert model.status_ is Status.FINISHED and model.n_iter_ > 20
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        assert PegasosClassifier(tol=1e-9, max_iter=20).fit(X, y).status_ is Status.MAX_ITER
    with pytest.warns(ConvergenceWarning, match="standardise"):
        PegasosClassifier(tol=1e-9).fit(X * np.logspace(0, 4, 6), y)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("sizes", [np.ones(6), np.logspace(-3, 3, 6)])
@pytest.mark.parametrize("first", [True, False])
def test_a_row_in_other_units_does_not_shorten_the_steps_of_all_others(name, sizes, first):
    """Whether it is among the rows that say how long steps may be, or met later."""
    X, y = data(2, n=1500)
    usual = solver(name, X * sizes, y, Schedule(), alpha=1e-6)
    wild = [draw(usual.draws, 3 if first else 1400)]
    X[wild] *= 1e5
    one = solver(name, X * sizes, y, Schedule(), alpha=1e-6)
    one.advance(3000), usual.advance(3000)
    assert len(one.state.memory.offsets) == len(usual.state.memory.offsets)
    assert np.all(one.state.offsets < 2 * usual.state.offsets)
    W = one.state.parameters()[0]
    assert np.all(
        np.linalg.norm(W * sizes[:, None], axis=1) < 20 * np.abs(usual.state.parameters()[0] * sizes[:, None]).max()
    )


@pytest.mark.parametrize("loss", ["softmax", "crammer_singer", "hinge"])
@pytest.mark.parametrize("sizes", [1.0, np.logspace(-2, 2, 20)])
def test_a_row_that_outweighs_all_others_does_not_hide_what_they_tell(loss, sizes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 20)) * sizes
    y = ((X / sizes) @ rng.standard_normal((20, 4))).argmax(axis=1)
    weight = np.ones(700)
    weight[3] = 1e5
    model = PegasosClassifier(1e-7, loss=loss).fit(X[:700], y[:700], weight)
    assert model.score(X[700:], y[700:]) > 0.75


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_a_row_in_other_units_with_a_wrong_label_does_not_tell_the_scale_of_all_scores(loss):
    """By its loss alone the best factor is next to 0, or below."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 20))
    Z = X @ rng.standard_normal((20, 4))
    y = Z.argmax(axis=1)
    X[3], y[3] = 1e5 * X[3], Z[3].argmin()
    model = PegasosClassifier(1e-4, loss=loss).fit(X[:700], y[:700])
    assert model.score(X[700:], y[700:]) > 0.85
    assert log_loss(y[700:], model.predict_proba(X[700:])) < 0.5
