"""Stochastic subgradient steps: losses against finite differences, the paper's algorithms line by line, its bound."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import Design
from manyclass.solvers import Status
from manyclass.solvers.subgradient.draws import draw, make_draws
from manyclass.solvers.subgradient.kernel import Targets, Weights
from manyclass.solvers.subgradient.losses import LOSSES, exp_in_place, residual
from manyclass.solvers.subgradient.pegasos import Plan, State, Stopping, Stream, as_rows, solve, warm_offset
from tests.oracles import pegasos as oracle

JOINT = ["log_loss", "hinge", "perceptron"]
ALPHA = 0.05


def problem(seed=0, n=40, d=6, k=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    y = np.argmax(X @ rng.standard_normal((d, k)) + 0.5 * rng.standard_normal((n, k)), axis=1)
    y[:k] = np.arange(k)
    return X, y


def stream(X, y, plan, k=4, offset=0.0, weights=None, dtype=np.float64, seed=0):
    design = Design(X.astype(dtype))
    draws = make_draws(design.n_rows, seed, plan.replace)
    state = State.zero(design.n_features, k, dtype, plan, offset)
    values = Weights(np.empty(0), 1.0) if weights is None else Weights(weights, 1 / weights.mean())
    targets = Targets(y.astype(np.int64), np.zeros((0, 0), dtype=np.int8), 0)
    return Stream(as_rows(design), targets, values, draws, plan, state)


def run(X, y, plan, n_draws, **options):
    one = stream(X, y, plan, **options)
    one.advance(n_draws)
    return one.state


def batches(draws, n_steps, size):
    return [[draw(draws, t * size + a) for a in range(size)] for t in range(n_steps)]


def evaluate(key, z, y):
    """ℓ, ℓ − gᵀz and g as the compiled loop gets them."""
    loss = LOSSES[key]
    k = len(z)
    g, sign = np.full(k, np.nan), np.where(np.arange(k) == y, 1.0, -1.0)
    value, bound = residual(loss.code, z.copy(), k, y, sign, np.empty(k, dtype=np.int64), g)
    return value, bound, g


# -- losses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", LOSSES)
def test_losses_and_their_subgradients(key, rng):
    for _ in range(30):
        z = 2 * rng.standard_normal(5)
        y = int(rng.integers(5))
        value, bound, g = evaluate(key, z, y)
        assert value == pytest.approx(oracle.loss(*key, z, y), rel=1e-12, abs=1e-14)
        steps = 1e-6 * np.eye(5)
        slopes = [(oracle.loss(*key, z + h, y) - oracle.loss(*key, z - h, y)) / 2e-6 for h in steps]
        np.testing.assert_allclose(g, slopes, atol=1e-6)
        assert bound == pytest.approx(value - g @ z, abs=1e-12)


@pytest.mark.parametrize("key", LOSSES)
def test_subgradients_lie_below_the_loss_at_kinks_too(key, rng):
    for z in (np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.5, 0.5, -0.5, 0.5])):
        for y in range(4):
            value, _, g = evaluate(key, z, y)
            for _ in range(20):
                other = z + rng.standard_normal(4)
                assert oracle.loss(*key, other, y) >= value + g @ (other - z) - 1e-12


@pytest.mark.parametrize("key", LOSSES)
def test_scores_of_any_size_give_finite_subgradients(key):
    for size in (1e3, 1e30, 1e150):
        for z in (np.array([size, -size, 0.0]), np.array([-size, size, size])):
            for y in range(3):
                value, bound, g = evaluate(key, z, y)
                assert np.isfinite(g).all() and value >= 0 and not np.isnan(bound)


def test_exponentials_are_those_of_numpy(rng):
    z = -np.concatenate([rng.random(1000) * 700, [0.0, 1e-300, 1e-9, 699.9]])
    found = z.copy()
    exp_in_place(found, len(z), np.empty(len(z), dtype=np.int64))
    np.testing.assert_allclose(found, np.exp(z), rtol=1e-15)


@pytest.mark.parametrize("key", LOSSES)
def test_loss_at_zero(key):
    assert LOSSES[key].at_zero(7) == pytest.approx(oracle.loss(*key, np.zeros(7), 2))


# -- draws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 17, 64, 1000])
def test_each_epoch_draws_every_row_once(n):
    draws = make_draws(n, 3, replace=False)
    epochs = [[draw(draws, e * n + i) for i in range(n)] for e in range(3)]
    assert all(sorted(epoch) == list(range(n)) for epoch in epochs)
    if n > 10:
        assert epochs[0] != epochs[1] != epochs[2] and epochs[0] != sorted(epochs[0])


@pytest.mark.parametrize("replace", [True, False])
def test_draws_are_even_in_every_place(replace):
    """The first draw of many seeds falls on every row equally often: a χ² within five standard deviations."""
    n, seeds = 20, 4000
    for position in (0, 13):
        counts = np.bincount([draw(make_draws(n, s, replace), position) for s in range(seeds)], minlength=n)
        chi2 = ((counts - seeds / n) ** 2 / (seeds / n)).sum()
        assert abs(chi2 - (n - 1)) < 5 * np.sqrt(2 * (n - 1))


def test_draws_keep_to_the_rows_given():
    index = np.array([3, 5, 8])
    draws = make_draws(10, 0, False, index)
    assert sorted(draw(draws, i) for i in range(3)) == [3, 5, 8]


# -- steps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("k", [4, 9])
def test_every_iterate_is_the_papers(name, batch_size, replace, k):
    """Algorithm 1 with the updates of Algorithms 2 to 4, from the huge first steps on; of 9 classes few take a step."""
    X, y = problem(k=k)
    plan = Plan(
        LOSSES[name, "joint"], ALPHA, batch_size, average=False, offset=0.0, fit_intercept=False, replace=replace
    )
    one = stream(X, y, plan, k=k)
    chosen = batches(one.draws, 30, batch_size)
    expected = oracle.algorithm_1(name, X, y, k, ALPHA, chosen)
    for W in expected[1:]:
        one.advance(batch_size)
        np.testing.assert_allclose(one.state.parameters()[0], W, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize("offset, power", [(0.0, 2.0), (7.5, 2.0), (3.0, 0.0)])
@pytest.mark.parametrize("k", [4, 9])
def test_the_lazy_average_is_the_plain_one(name, offset, power, k):
    X, y = problem(1, k=k)
    plan = Plan(LOSSES[name, "joint"], ALPHA, 2, average=True, power=power, offset=offset, fit_intercept=False)
    one = stream(X, y, plan, k=k, offset=offset)
    iterates = oracle.algorithm_1(name, X, y, k, ALPHA, batches(one.draws, 50, 2), offset)[1:]
    one.advance(100)
    emphasis = (np.arange(1, 51) + offset) ** power
    plain = np.einsum("t,tdk->dk", emphasis, iterates) / emphasis.sum()
    np.testing.assert_allclose(one.state.parameters()[0], plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["log_loss", "hinge"])
@pytest.mark.parametrize("average", [True, False])
def test_projection_keeps_iterates_in_the_ball_and_their_average_plain(name, average):
    """Against the steps of the oracle, each followed by a projection."""
    X, y = problem(2)
    X = 20 * X  # so that the projection is active
    loss = LOSSES[name, "joint"]
    plan = Plan(loss, ALPHA, 1, average=average, offset=0.0, project=True, fit_intercept=False)
    one = stream(X, y, plan)
    radius = np.sqrt(loss.at_zero(4) / ALPHA)
    W, projected = np.zeros((6, 4)), []
    for t, (i,) in enumerate(batches(one.draws, 40, 1), start=1):
        W = (t - 1) / t * W + oracle.step(name, W, X[i], y[i], 1 / (ALPHA * t))
        W *= min(1.0, radius / np.linalg.norm(W))
        projected.append(W)
    one.advance(40)
    expected = np.average(projected, axis=0, weights=np.arange(1, 41) ** 2.0) if average else W
    np.testing.assert_allclose(one.state.parameters()[0], expected, rtol=1e-7, atol=1e-9)
    assert max(np.linalg.norm(V) for V in projected) == pytest.approx(radius)


@pytest.mark.parametrize("key", LOSSES)
@pytest.mark.parametrize("average", [True, False])
def test_dense_and_sparse_rows_take_the_same_steps(key, average):
    X, y = problem(3)
    plan = Plan(LOSSES[key], ALPHA, 2, average=average, offset=30.0)
    results = [
        run(rows, y, plan, 120, offset=30.0).parameters()
        for rows in (X, sp.csr_array(X), sp.csr_array(X, dtype=np.float64)[np.arange(len(X))])
    ]
    for W, b in results[1:]:
        np.testing.assert_allclose(W, results[0][0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(b, results[0][1], rtol=1e-10, atol=1e-12)


def test_wide_indices_take_the_same_steps():
    X, y = problem(3)
    narrow = sp.csr_array(X)
    wide = sp.csr_array((narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)), X.shape)
    plan = Plan(LOSSES["log_loss", "joint"], ALPHA, 1, offset=30.0)
    first, second = (run(rows, y, plan, 80, offset=30.0).parameters()[0] for rows in (narrow, wide))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("key", [key for key in LOSSES if key[1] == "ovr"])
def test_columns_do_not_know_of_each_other(key):
    """One-vs-rest over k classes is k binary fits on the same draws: K-Pegasos and K-binaryLR."""
    X, y = problem(4)
    plan = Plan(LOSSES[key], ALPHA, 2, offset=10.0)
    together = run(X, y, plan, 100, offset=10.0).parameters()[0]
    for c in range(4):
        one = stream(X, y, plan, k=1, offset=10.0)
        sign = np.where(y == c, 1, -1).astype(np.int8)[:, None]
        one.targets = Targets(np.zeros(0, dtype=np.int64), sign, 0)
        one.advance(100)
        np.testing.assert_allclose(one.state.parameters()[0][:, 0], together[:, c], rtol=1e-9, atol=1e-11)


def test_pauses_change_nothing():
    X, y = problem(5)
    plan = Plan(LOSSES["log_loss", "joint"], ALPHA, 3, offset=5.0)
    whole = run(X, y, plan, 90, offset=5.0)
    pieces = stream(X, y, plan, offset=5.0)
    for part in (30, 3, 27, 30):
        pieces.advance(part)
    np.testing.assert_array_equal(whole.parameters()[0], pieces.state.parameters()[0])


def test_weights_are_repetition_in_expectation():
    """The step of a row of weight 3 is that of three draws of it: over an epoch from W = 0, where g does not move."""
    X, y = problem(6, n=12)
    weights = np.array([1.0, 3.0, 2.0] * 4)
    plan = Plan(LOSSES["log_loss", "joint"], ALPHA, average=False, offset=0.0, fit_intercept=False, replace=True)
    repeated = np.repeat(np.arange(12), weights.astype(int))

    def mean_first_step(rows, weights, n):
        steps = [run(X[rows], y[rows], plan, 1, weights=weights, seed=s).parameters()[0] for s in range(n)]
        return np.mean(steps, axis=0), np.std(steps, axis=0) / np.sqrt(n)

    (first, first_error), (second, second_error) = (
        mean_first_step(np.arange(12), weights, 3000),
        mean_first_step(repeated, None, 3000),
    )
    assert (np.abs(first - second) < 5 * np.hypot(first_error, second_error) + 1e-12).all()


# -- convergence -------------------------------------------------------------------------------------------------------


def best_objective(name, X, y):
    """An upper bound on F*: the best average of a long run with the intercept left out."""
    plan = Plan(LOSSES[name, "joint"], ALPHA, average=True, offset=50.0, fit_intercept=False)
    W = run(X, y, plan, 400_000, offset=50.0).parameters()[0]
    return oracle.objective(name, "joint", X, y, ALPHA, W)


@pytest.mark.parametrize("name", ["log_loss", "hinge"])
def test_theorem_2(name):
    """Mean over t of f⁽ᵗ⁾(W⁽ᵗ⁻¹⁾) − F* ≤ (1/2T) Σ ‖v⁽ᵗ⁾‖²/(λt) with ‖v⁽ᵗ⁾‖ ≤ 2 √2 R, so that f(W⁽ᵗ⁰⁾) at random t₀,
    and hence the plain average, is within 4 R² (1 + log T)/(λ T) in expectation. v includes λW (Lemma 1)."""
    X, y = problem(7)
    best = best_objective(name, X, y)
    R2 = (X**2).sum(axis=1).max()
    plan = Plan(LOSSES[name, "joint"], ALPHA, average=True, power=0.0, offset=0.0, fit_intercept=False, replace=True)
    for T in (100, 1000, 10_000):
        gaps = [
            oracle.objective(name, "joint", X, y, ALPHA, run(X, y, plan, T, seed=s).parameters()[0]) - best
            for s in range(10)
        ]
        assert -1e-3 < np.mean(gaps) <= 4 * R2 * (1 + np.log(T)) / (ALPHA * T)


@pytest.mark.parametrize("key", [key for key in LOSSES if key[0] != "perceptron"])
def test_the_lower_bound_is_one(key):
    """After whole epochs D ≤ F(W, b) for any W at the present intercept."""
    X, y = problem(8)
    plan = Plan(LOSSES[key], ALPHA, fit_intercept=False)
    one = stream(X, y, plan, offset=warm_offset(plan, float((X**2).sum(axis=1).mean())))
    gaps = []
    for _ in range(200):
        one.advance(len(X))
        value = oracle.objective(*key, X, y, ALPHA, *one.state.parameters())
        gaps.append(value - one.state.lower_bound())
        assert gaps[-1] >= -1e-10
    assert gaps[-1] < 0.1 * LOSSES[key].at_zero(4)


def test_the_warm_offset_bounds_the_first_step():
    for loss in LOSSES.values():
        plan = Plan(loss, ALPHA)
        first_step = 1 / (ALPHA * (1 + warm_offset(plan, 3.0)))
        assert first_step <= (1 if not loss.bounded else 4) / (loss.curvature * 3.0)


def test_squared_losses_do_not_run_away_on_long_rows():
    X, y = problem(9)
    X = X * np.logspace(0, 2, len(X))[:, None]
    for key in (("squared_hinge", "joint"), ("squared_hinge", "ovr")):
        plan = Plan(LOSSES[key], 1e-4)
        offset = warm_offset(plan, float((X**2).sum(axis=1).mean()))
        one = stream(X, y, plan, offset=offset)
        solution, _ = solve(one, 60 * len(X), Stopping())
        assert solution.status is Status.COMPLETED
        objective = oracle.objective(*key, X, y, 1e-4, solution.coef, solution.intercept)
        assert objective < LOSSES[key].at_zero(4)


def test_time_limit():
    X, y = problem(0)
    one = stream(X, y, Plan(LOSSES["hinge", "joint"], ALPHA, offset=1.0), offset=1.0)
    solution, _ = solve(one, 10**12, Stopping(max_time=0.05))
    assert solution.status is Status.MAX_TIME and solution.history[-1].seconds < 5
