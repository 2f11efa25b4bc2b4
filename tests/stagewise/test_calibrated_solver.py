"""Algorithm 2 of *Least Squares Revisited*: stagewise regression over one block, the original columns."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.features import FeatureSubset
from manyclass.fit import Status
from manyclass.fit.run import OutOfTime
from manyclass.model import LOSSES, Problem
from manyclass.model.calibrator import Calibrator
from manyclass.model.sets import Box, Simplex
from manyclass.stagewise import UPDATES
from manyclass.stagewise.solver import LONGEST_STEP
from tests.stagewise.run import Fit


def problem(n=200, d=6, k=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    y = np.argmax(X @ rng.standard_normal((d, k)) + rng.gumbel(size=(n, k)), axis=1)
    return X, y


def solve(X, targets, **options):
    return Fit(X, targets, "calibrated", **{"max_iter": 100, **options})


def squared_error(P, Y, weight=None):
    return np.average(0.5 * np.sum((P - Y) ** 2, axis=1), weights=weight)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.0, 1e-6, 1e-2, 10.0]),
    st.sampled_from([(1,), (1, 2, 3), (1, np.exp), (2,)]),
    st.booleans(),
    st.sampled_from(["plain", "weights", "duplicated column", "wide", "constant column"]),
)
def test_squared_error_never_rises_nor_at_any_half_step_of_length_1(seed, alpha, basis, multilabel, variant):
    rng = np.random.default_rng(seed)
    X, y = problem(n=15 if variant == "wide" else 80, d=20 if variant == "wide" else 5, seed=seed)
    if variant == "duplicated column":
        X = np.hstack([X, X[:, :1]])
    if variant == "constant column":
        X[:, 0] = 3.0
    targets, domain, Y = ClassTargets(y, 4), Simplex(), np.eye(4)[y]
    if multilabel:
        Y = (rng.random((len(y), 3)) < 0.4).astype(float)
        targets, domain = MatrixTargets(Y), Box()
    weight = rng.random(len(y)) if variant == "weights" else None
    fit = solve(
        X, targets, alpha=alpha, basis=basis, domain=domain, weight=weight, max_iter=15, fit_intercept=bool(seed % 2)
    )
    error = squared_error(0.0, Y, weight)
    slack = 1e-9 * error
    for record in fit.history:
        if record["length"] == 1.0:
            assert record["before_calibration"] <= error + slack
        assert record.objective <= min(record["before_calibration"], error) + slack
        error = record.objective


def test_theorem_2_without_noise():
    # The inverse link h(p) = a·p + c·p³ lies in the span of the basis; its slope is between a and a + 3c.
    rng = np.random.default_rng(0)
    n, k, a, c = 400, 3, 1.0, 2.0
    P = rng.dirichlet(np.full(k, 0.7), n)
    inverse_link = a * P + c * P**3 - (a / k + c / k**3)
    X = inverse_link @ rng.standard_normal((k, 8))
    fit = solve(X, MatrixTargets(P), alpha=0.0, fit_intercept=False, max_iter=200)
    kappa = (a + 3 * c) / a
    for t, record in enumerate(fit.history, 1):
        assert 2 * record.objective <= 22 * k * kappa**2 / t
    # The bound only says something after hundreds of steps; the truth is far below it.
    assert fit.history[-1].objective < 1e-2 * fit.history[0]["before_calibration"]


def test_first_half_step_is_least_squares():
    X, y = problem()
    fit = solve(X, ClassTargets(y, 4), alpha=0.0, max_iter=1)
    A = np.hstack([X, np.ones((len(X), 1))])
    expected = np.linalg.lstsq(A, np.eye(4)[y], rcond=None)[0]
    assert_allclose(fit.stages[0].coef, expected[:-1], atol=1e-9)
    assert_allclose(fit.stages[0].intercept, expected[-1], atol=1e-9)
    assert fit.n_passes == 2


def slow_algorithm_2(X, Y, alpha, lengths):
    n = len(Y)
    A = np.hstack([X, np.ones((n, 1))])
    penalty = n * alpha * np.diag([1.0] * X.shape[1] + [0.0])
    P = np.zeros_like(Y)
    for length in lengths:
        V = P + length * A @ np.linalg.solve(A.T @ A + penalty, A.T @ (Y - P))
        U = np.hstack([V, V**2, V**3, np.ones((n, 1))])
        scores = U @ np.linalg.lstsq(U, Y, rcond=None)[0]
        P = project_slowly(scores)
    return P


def project_slowly(V):
    """Bisection on the threshold of each row."""
    low, high = V.min(axis=1) - 1.0, V.max(axis=1)
    for _ in range(200):
        middle = (low + high) / 2
        is_low = np.maximum(V - middle[:, None], 0).sum(axis=1) > 1
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return np.maximum(V - low[:, None], 0)


def test_agrees_with_a_slow_transcription_of_the_paper():
    X, y = problem()
    fit = solve(X, ClassTargets(y, 4), alpha=0.01, max_iter=6)
    lengths = [record["length"] for record in fit.history]
    # The calibrator's trace of a ridge is all that differs.
    assert_allclose(fit.predictions(X), slow_algorithm_2(X, np.eye(4)[y], 0.01, lengths), atol=1e-3)


def test_longer_steps_leave_less_error_than_twice_as_many_of_the_paper():
    X, y = load_digits(return_X_y=True)
    X /= 16.0
    fit = solve(X, ClassTargets(y, 10), alpha=0.05, max_iter=12)
    lengths = [record["length"] for record in fit.history]
    halved = [i for i, (before, after) in enumerate(pairwise(lengths)) if after < 2 * before]
    assert lengths[:3] == [1.0, 2.0, 4.0] and halved
    first = halved[0] + 1
    assert min(lengths) == 1.0 and max(lengths[first : first + 5]) == lengths[first]
    published = slow_algorithm_2(X, np.eye(10)[y], 0.05, 24 * [1.0])
    assert fit.history[-1].objective < squared_error(published, np.eye(10)[y])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_that_change_nothing_do_not_grow_for_ever(dtype):
    """Of float32 the cube of 2⁴³ is infinite, and what that gives is no number."""
    y = np.arange(60) % 3
    fit = solve(np.ones((60, 2), dtype=dtype), ClassTargets(y, 3), alpha=0.0, max_iter=150, tol=0)
    assert max(record["length"] for record in fit.history) <= LONGEST_STEP
    assert_allclose(fit.predictions(np.ones((1, 2), dtype=dtype)), np.full((1, 3), 1 / 3), atol=0.1)


def test_generated_columns_in_one_block_are_the_original_ones():
    X, y = problem()
    columns = FeatureSubset().fit(X)
    one = solve(X, ClassTargets(y, 4), max_iter=8)
    two = solve(X, ClassTargets(y, 4), max_iter=8, generator=columns, block_size=6)
    for mine, theirs in zip(one.stages, two.stages, strict=True):
        assert_allclose(mine.coef, theirs.coef, atol=1e-10)
    assert_allclose(two.predictions(X), one.predictions(X), atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_replay_gives_the_training_predictions(dtype, offset):
    X, y = problem(dtype=dtype)
    X += dtype(offset)
    fit = solve(X, ClassTargets(y, 4), max_iter=10)
    predicted = fit.predictions(X)
    assert predicted.dtype == dtype
    error = squared_error(predicted, np.eye(4)[y])
    assert error == pytest.approx(fit.history[-1].objective, rel=1e-9 if dtype == np.float64 else 1e-4)


def test_far_from_the_origin_float32_rows_lose_nothing():
    X, y = problem(n=2000, dtype=np.float32)
    near, far = (solve(X + np.float32(shift), ClassTargets(y, 4), max_iter=10) for shift in (0.0, 1024.0))
    assert_allclose(far.objectives(), near.objectives(), rtol=1e-2)


def test_sparse_rows_equal_dense_rows():
    X, y = problem()
    X *= np.random.default_rng(1).random(X.shape) < 0.4
    dense = solve(X, ClassTargets(y, 4), max_iter=5)
    sparse = solve(sp.csr_array(X), ClassTargets(y, 4), max_iter=5)
    assert_allclose(sparse.objectives(), dense.objectives(), rtol=1e-9)


def test_weights_are_repetitions():
    X, y = problem()
    weight = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
    repeat = weight.astype(int)
    weighted = solve(X, ClassTargets(y, 4), weight=weight, max_iter=5)
    repeated = solve(np.repeat(X, repeat, axis=0), ClassTargets(np.repeat(y, repeat), 4), max_iter=5)
    for one, two in zip(weighted.stages, repeated.stages, strict=True):
        assert_allclose(one.coef, two.coef, atol=1e-7)


@pytest.mark.parametrize("namespace", ["torch", "array_api_strict"])
def test_other_namespaces(namespace):
    xp = pytest.importorskip(namespace)
    X, y = problem()
    here = solve(X, ClassTargets(y, 4), max_iter=4)
    there = solve(xp.asarray(X), ClassTargets(xp.asarray(y), 4), max_iter=4)
    assert_allclose(there.objectives(), here.objectives(), rtol=1e-8)
    assert type(there.predictions(xp.asarray(X))) is type(xp.asarray(X))


def test_stops_when_nothing_is_gained():
    X, y = problem()
    fit = solve(X, ClassTargets(y, 4), tol=1e-3, max_iter=1000)
    assert fit.status is Status.SETTLED
    gains = -np.diff(fit.objectives()) / squared_error(0.0, np.eye(4)[y])
    assert gains[-1] <= 1e-3
    assert (gains[:-1] > 1e-3).all()


def test_a_rise_of_the_error_is_no_convergence(monkeypatch):
    X, y = problem()
    errors = iter(
        [1.0, 0.5, 0.4, 0.6, 0.6, 0.6, 0.6, 0.5, 0.5]
    )  # of zero, then before and after calibration: the second twice
    monkeypatch.setattr("manyclass.stagewise.updates.CalibratedLeastSquares.loss", lambda *_: next(errors))
    fit = solve(X, ClassTargets(y, 4), tol=1e-3, max_iter=3)
    assert len(fit.history) == 3
    assert fit.status is Status.MAX_ITER


def of_targets(targets, weight=None):
    return Problem(as_rows(np.zeros((len(targets.codes), 1))), targets, LOSSES["calibrated"], 0.0, weight=weight)


def test_the_clock_is_asked_whether_there_is_time_for_another_block():
    """Between blocks of rows, with what the last one took: of all rows at once, 10 s of max_time were 33."""
    rng, n, asked = np.random.default_rng(0), 3000, []
    given = of_targets(ClassTargets(rng.integers(0, 3, n), 3))
    given.on_block = lambda ahead=0.0: asked.append(ahead)
    Calibrator((2, 3), Simplex()).fit(given, rng.random((n, 3)))
    assert len(asked) >= 3 and all(ahead > 0.0 for ahead in asked[1:])


def test_identity_is_always_in_the_basis():
    assert Calibrator((2, 3), Simplex()).basis[0] == 1
    V = np.random.default_rng(0).random((50, 3))
    targets = ClassTargets(np.arange(50) % 3, 3)
    fitted = Calibrator((2,), Simplex()).fit(of_targets(targets), V)
    U = np.hstack([V, V**2, np.ones((50, 1))])
    expected = U @ np.linalg.lstsq(U, np.eye(3)[np.arange(50) % 3], rcond=None)[0]
    assert_allclose(Calibrator((2,), Simplex()).scores(V, fitted, as_rows(V).xp), expected, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_fewer_rows_than_functions_each_output_has_functions_of_its_own(weighted):
    rng = np.random.default_rng(1)
    n, k, basis = 40, 20, (1, 2, 3)
    V, codes = rng.random((n, k)), rng.integers(0, k, n)
    weight = rng.random(n) + 0.1 if weighted else None
    calibrator = Calibrator(basis, Simplex())
    fitted = calibrator.fit(of_targets(ClassTargets(codes, k), weight), V)
    root = np.ones((n, 1)) if weight is None else np.sqrt(weight)[:, None]
    scores = calibrator.scores(V, fitted, as_rows(V).xp)
    for j in range(k):
        U = np.stack([V[:, j], V[:, j] ** 2, V[:, j] ** 3, np.ones(n)], axis=1)
        best = U @ np.linalg.lstsq(root * U, root[:, 0] * (codes == j), rcond=None)[0]
        assert_allclose(scores[:, j], best, atol=1e-4)


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("n", [4, 500])
def test_functions_of_nearly_constant_predictions_survive_float32(n, spread):
    rng = np.random.default_rng(0)
    V = (0.3 + spread * rng.standard_normal((n, 3))).astype(np.float32)
    calibrator, given = Calibrator((1, 2, 3), Box()), of_targets(ClassTargets(rng.integers(0, 3, n), 3))
    fitted = calibrator.fit(given.variant(rows=given.rows.typed(np.float32)), V)
    exact = calibrator.scores(V.astype(np.float64), tuple(part.astype(np.float64) for part in fitted), as_rows(V).xp)
    assert_allclose(calibrator.scores(V, fitted, as_rows(V).xp), exact, atol=2e-4)


def test_no_gram_matrix_is_asked_for_that_does_not_fit(monkeypatch):
    monkeypatch.setattr("manyclass.data.memory.free_memory", lambda: 0.0)
    V = np.random.default_rng(0).random((50, 3))
    coef, _ = Calibrator((1, 2), Simplex()).fit(of_targets(ClassTargets(np.arange(50) % 3, 3)), V)
    assert coef.shape == (2, 3)


def test_out_of_time_while_calibrating_least_squares_is_the_model(monkeypatch):
    X, y = problem()
    plain = solve(X, ClassTargets(y, 4), max_iter=1)

    def fit(*_):
        raise OutOfTime

    monkeypatch.setattr("manyclass.model.calibrator.Calibrator.fit", fit)
    cut = solve(X, ClassTargets(y, 4), max_iter=5)
    assert cut.status is Status.MAX_TIME and len(cut.history) == 1
    assert cut.model.stages[0].calibration is None
    assert_allclose(cut.model.stages[0].coef, plain.model.stages[0].coef)


def test_labels_without_probability_are_those_that_the_projection_leaves_without():
    """Before calibration predictions are on no simplex: a little above 0 is none where others are below."""
    F = Problem(as_rows(np.zeros((3, 1))), ClassTargets(np.array([1, 1, 1]), 4), LOSSES["calibrated"], 0.0)
    update = UPDATES["calibrated"](F, Calibrator((1, 2, 3), Simplex()))
    state = np.array([[1.3, 0.05, -0.2, -0.15], [0.7, 0.3, 0.0, 0.0], [0.6, 0.5, -0.05, -0.05]])
    assert update.errors(state, None) == pytest.approx((1.0, 1 / 3))
    assert update.errors(state, np.array([1.0, 0.0, 3.0])) == pytest.approx((1.0, 1 / 4))
    several = Problem(F.rows, MatrixTargets(np.array([[1.0], [0.0], [0.0]])), LOSSES["calibrated"], 0.0)
    update = UPDATES["calibrated"](several, Calibrator((1, 2, 3), Box()))
    assert update.errors(np.array([[-0.1], [1.2], [0.4]]), None) == pytest.approx((2 / 3, 2 / 3))


def test_steps_are_not_longer_where_there_is_no_room_for_what_they_make(monkeypatch):
    X, y = problem()
    long = [record.details["length"] for record in solve(X, ClassTargets(y, 4), max_iter=4).history]
    monkeypatch.setattr("manyclass.stagewise.solver.room_for", lambda limit: 8.0 * 4 * len(X) - 1.0)
    short = [record.details["length"] for record in solve(X, ClassTargets(y, 4), max_iter=4).history]
    assert max(long) > 1.0 and set(short) == {1.0}
