"""Algorithm 3 of *Least Squares Revisited*: stagewise regression over blocks of generated features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manyclass import GLMClassifier
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.data.rows import BLOCK_BYTES
from manyclass.features import FeatureSubset, RandomFourierFeatures
from manyclass.fit import Status
from manyclass.model import LOSSES, Problem
from manyclass.model.sets import Box
from manyclass.model.sums import squares_of
from manyclass.stagewise import UPDATES
from manyclass.stagewise.judges import StageScore
from manyclass.stagewise.sums import sums_of_block
from tests.covering import every_pair
from tests.stagewise.run import Fit, problem, solve, targets_of


def joint_ridge(Z, Y, alpha, weight=None, intercept=True):
    weight = np.ones(len(Z)) if weight is None else weight
    A = np.hstack([Z, np.ones((len(Z), 1))]) if intercept else Z
    penalty = alpha * weight.sum() * np.eye(A.shape[1])
    if intercept:
        penalty[-1, -1] = 0.0
    return A @ np.linalg.solve(A.T @ (weight[:, None] * A) + penalty, A.T @ (weight[:, None] * Y))


def signs(y, k=3):
    return 2.0 * np.eye(k)[y] - 1.0


@pytest.mark.parametrize(
    ("intercept", "weighted", "factor_bytes"), every_pair([True, False], [True, False], [1e9, 0.0])
)
def test_many_visits_reach_the_joint_ridge_solution(monkeypatch, intercept, weighted, factor_bytes):
    monkeypatch.setattr("manyclass.stagewise.solver.FACTOR_BYTES", factor_bytes)
    X, y = problem()
    weight = np.random.default_rng(1).random(len(X)) if weighted else None
    fit = solve(X, y, weight=weight, alpha=0.05, max_iter=150, fit_intercept=intercept)
    expected = joint_ridge(fit.features(X), signs(y), 0.05, weight, intercept)
    assert_allclose(fit.scores(X), expected, atol=1e-6)


@pytest.mark.parametrize("order", ["gradient", "frequency", "random"])
def test_subsets_in_any_order_reach_least_squares_on_all_columns(order):
    X, y = problem(d=12)
    generator = FeatureSubset(order=order, random_state=0)
    fit = solve(X, y, generator=generator, n_components=None, block_size=5, max_iter=80, alpha=0.05)
    model = GLMClassifier(0.05, loss="squared", tol=1e-12).fit(X, y)
    assert_allclose(fit.scores(X), model.decision_function(X), atol=1e-5)
    assert fit.history[-1].objective == pytest.approx(model.history_[-1].objective, rel=1e-9)
    if order == "frequency":
        coef = np.zeros((12, 3))
        for stage in fit.stages:
            coef[fit.blocks[stage.block].feature_indices_] += stage.coef
        assert_allclose(coef.T, model.coef_, atol=1e-5)


def test_one_block_is_least_squares_at_once():
    X, y = problem()
    fit = solve(X, y, block_size=40)
    assert len(fit.stages) == 1
    assert_allclose(fit.scores(X), joint_ridge(fit.features(X), signs(y), 1e-3), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from(sorted(UPDATES)),
    st.sampled_from([0.0, 1e-6, 1e-2]),
    st.booleans(),
    st.booleans(),
)
def test_objective_never_rises(seed, loss, alpha, multilabel, weighted):
    X, y = problem(seed=seed)
    rng = np.random.default_rng(seed)
    targets, domain = targets_of(y, 3, loss), None
    if multilabel and loss != "softmax":
        Y = (rng.random((len(y), 4)) < 0.4).astype(float)
        targets, domain = MatrixTargets(2.0 * Y - 1.0 if loss == "squared" else Y), Box()
    weight = rng.random(len(y)) if weighted else None
    fit = solve(X, y, loss, targets=targets, domain=domain, alpha=alpha, max_iter=3, weight=weight)
    values = fit.objectives()
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert len(values) == 12 and fit.n_iter == 3


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_newton_visits_reach_the_optimum_of_the_glm_on_all_features(loss):
    X, y = problem()
    fit = solve(X, y, loss, alpha=5e-2, max_iter=40)
    model = GLMClassifier(5e-2, loss=loss, tol=1e-9).fit(fit.features(X), y)
    assert fit.history[-1].objective == pytest.approx(model.history_[-1].objective, rel=1e-4)
    P = fit.problem.loss.mean(fit.scores(X), fit.problem.xp)
    expected = fit.problem.loss.mean(model.decision_function(fit.features(X)), fit.problem.xp)
    assert_allclose(P, expected, atol=1e-2)


@pytest.mark.parametrize("loss", sorted(UPDATES))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_the_model_gives_what_was_seen_in_training(loss, dtype, offset):
    X, y = problem(dtype=dtype)
    X += dtype(offset)
    fit = solve(X, y, loss, max_iter=2)
    rel = 1e-7 if dtype == np.float64 else 2e-3
    seen = []
    for scores in fit.staged(X):
        assert scores.dtype == dtype
        state = scores if fit.calibrator is None else fit.calibrator.domain.project(scores, fit.problem.xp)
        if len(seen) % 4 != 3:  # only after a visit are predictions calibrated
            state = scores
        seen.append(fit.update.loss(state, None))
    assert_allclose(fit.scores(X), scores, atol=1e-4 * max(1.0, np.abs(scores).max()))
    if not fit.update.additive:
        assert_allclose(seen, fit.objectives(), rtol=rel)
        return
    total = {}
    for stage in fit.stages:
        total[stage.block] = total.get(stage.block, 0) + stage.coef
    square = sum((c.astype(float) ** 2).sum() for c in total.values())
    assert seen[-1] + 0.5e-3 * square == pytest.approx(fit.history[-1].objective, rel=rel)


def test_far_from_the_origin_float32_rows_lose_nothing():
    X, y = problem(1000, dtype=np.float32)
    columns = FeatureSubset()  # random features differ, as their phases count from another origin
    near, far = (
        solve(X + np.float32(shift), y, generator=columns, block_size=3, n_components=None, max_iter=3)
        for shift in (0.0, 1024.0)
    )
    assert_allclose(far.objectives(), near.objectives(), rtol=1e-2)


def test_weights_are_repetitions():
    X, y = problem()
    repeat = np.random.default_rng(2).integers(0, 3, len(X))
    Xr, yr = np.repeat(X, repeat, axis=0), np.repeat(y, repeat)
    for loss in UPDATES:
        generator = RandomFourierFeatures(bandwidth=3.0, random_state=0)
        one = solve(X, y, loss, generator, weight=repeat.astype(float))
        two = solve(Xr, yr, loss, generator)
        if one.update.weighs_rows:  # the lightest rows are left out of the curvature, and repeated ones one by one
            assert_allclose(one.objectives(), two.objectives(), rtol=1e-3)
            continue
        for a, b in zip(one.stages, two.stages, strict=True):
            assert_allclose(a.coef, b.coef, atol=1e-6)


def test_held_out_rows_take_no_part_and_choose_the_stages():
    X, y = problem(300)
    mask = np.zeros(300)
    mask[:100] = 1.0
    options = {"n_components": 400, "alpha": 1e-9, "generator": RandomFourierFeatures(bandwidth=0.5, random_state=0)}
    held = solve(X, y, weight=1 - mask, scored=mask, patience=4, **options)
    assert held.status is Status.EARLY_STOPPED
    assert len(held.history) == len(held.stages) + 4
    assert np.argmax([r.validation_score for r in held.history]) + 1 == len(held.stages)
    alone = solve(X[100:], y[100:], **options)
    assert_allclose(alone.stages[0].coef, held.stages[0].coef, atol=1e-6)


def test_held_out_rows_judge_the_average_of_models():
    X, y = problem(300)
    mask = (np.arange(300) < 100).astype(float)
    fit = solve(X, y, weight=1 - mask, scored=mask, patience=100, n_models=2, alpha=1e-2)
    parts = [model.scores(fit.rows(X)) for model in fit.models]
    average = fit.update.loss(sum(parts) / len(parts), mask)
    assert -average == pytest.approx(max(r.validation_score for r in fit.history), rel=1e-9)


def test_models_are_fitted_one_after_the_other():
    X, y = problem()
    fit = solve(X, y, n_models=3, max_iter=2)
    assert [r["model"] for r in fit.history] == [0] * 8 + [1] * 8 + [2] * 8
    assert [len(model.stages) for model in fit.models] == [8] * 3
    assert fit.n_iter == 2 and fit.status is Status.FINISHED
    assert not np.allclose(fit.models[0].blocks[0].random_weights_, fit.models[1].blocks[0].random_weights_)


def test_the_clock_is_asked_between_residuals_of_many_outputs(rng):
    n, k = 3000, 2000
    targets = ClassTargets(np.arange(n) % k, k)
    stage = Problem(as_rows(rng.standard_normal((n, 4))), targets, LOSSES["squared"], 0.0)
    asked = []
    stage.on_block = lambda ahead=0.0: asked.append(ahead)
    sums_of_block(stage, np.zeros((n, k)), lambda problem: UPDATES["squared"](problem), with_moments=True)
    assert len(asked) >= 8 * n * k / BLOCK_BYTES
    asked.clear()
    squares = squares_of(stage, lambda part: np.ones((part.stop - part.start, k)), np.zeros(k))
    assert_allclose(squares, n)
    assert len(asked) >= 8 * n * k / BLOCK_BYTES


def test_time_limit_keeps_what_is_finished(monkeypatch):
    X, y = problem()
    generator = RandomFourierFeatures(random_state=0)
    late = solve(X, y, generator=generator, n_components=1000, max_time=1e-9)
    assert late.status is Status.MAX_TIME
    assert late.blocks == (None,)  # there was no time for a stage
    # A stage of half the time is followed by no second one, and its end is in time.
    from time import perf_counter, sleep

    original = RandomFourierFeatures.generate

    def slow(self, rows):
        sleep(0.2)
        return original(self, rows)

    monkeypatch.setattr(RandomFourierFeatures, "generate", slow)
    began = perf_counter()
    fit = solve(X, y, generator=generator, n_components=1000, max_time=1.1)  # a stage generates twice
    assert fit.status is Status.MAX_TIME
    assert 1 <= len(fit.stages) <= 2
    assert perf_counter() - began < 1.1


@pytest.mark.parametrize("where", ["generate", "callback"])
def test_interrupt_keeps_what_is_finished(where):
    X, y = problem()
    generator = RandomFourierFeatures(random_state=0).fit(X)

    def stop_at_three(record, iterate):
        if record["stage"] == 2:
            raise KeyboardInterrupt

    def stop_now(rows):
        raise KeyboardInterrupt

    if where == "generate":
        drawn, draw = [], generator.draw

        def interrupting_draw(n, rng):
            drawn.append(draw(n, rng))
            if len(drawn) == 4:
                drawn[-1].generate = stop_now
            return drawn[-1]

        generator.draw = interrupting_draw
    on_iterate = stop_at_three if where == "callback" else None
    fit = Fit(X, targets_of(y, 3, "squared"), "squared", generator, n_components=100, on_iterate=on_iterate)
    assert fit.status is Status.INTERRUPTED
    assert len(fit.stages) == 3
    whole = solve(X, y, n_components=30)
    assert_array_equal(fit.scores(X), whole.scores(X))


def test_no_block_is_ever_held_in_full(monkeypatch):
    seen = []
    original = RandomFourierFeatures.generate

    def watched(self, rows):
        seen.append(rows.n_rows)
        return original(self, rows)

    X, y = problem(2000)
    whole = solve(X, y)
    for module in ("sums", "updates"):
        monkeypatch.setattr(f"manyclass.stagewise.{module}.GRAM_BLOCK_BYTES", 64 * 10 * 8)
    monkeypatch.setattr(RandomFourierFeatures, "generate", watched)
    chunked = solve(X, y)
    assert max(seen) <= 64
    for a, b in zip(chunked.stages, whole.stages, strict=True):
        assert_allclose(a.coef, b.coef, atol=1e-9)


def test_float32_blocks_are_summed_in_float64():
    # Sums of squares in float32 would lose digits of the variance.
    rng = np.random.default_rng(0)
    X = rng.random((40_000, 3)).astype(np.float32)
    y = (X[:, 0] > 0.5).astype(int)
    narrow = solve(X, y, generator=FeatureSubset(), n_components=None, alpha=0.0)
    wide = solve(X.astype(np.float64), y, generator=FeatureSubset(), n_components=None, alpha=0.0)
    assert_allclose(narrow.stages[0].coef, wide.stages[0].coef, rtol=1e-4, atol=1e-4)


def test_curvature_of_few_heavy_rows_reaches_the_optimum_of_all():
    # Most rows are decided early: only the others are read for the curvature, and the optimum is that of all rows.
    X, y = problem(400)
    X[:300] = 3.0 * np.eye(4)[y[:300]]
    fit = solve(X, y, "softmax", alpha=1e-3, max_iter=60)
    model = GLMClassifier(1e-3, tol=1e-9).fit(fit.features(X), y)
    assert fit.history[-1].objective == pytest.approx(model.history_[-1].objective, rel=1e-2)


@pytest.mark.parametrize("loss", sorted(UPDATES))
def test_torch_rows(loss):
    torch = pytest.importorskip("torch")
    X, y = problem()
    generator = RandomFourierFeatures(bandwidth=2.0, random_state=0).fit(X)
    absent, present = (-1.0, 1.0) if loss == "squared" else (0.0, 1.0)
    targets = ClassTargets(torch.asarray(y), 3, (absent, present))
    if loss == "logistic":
        targets = MatrixTargets(torch.asarray(np.eye(3)[y]))
    here = solve(X, y, loss, generator, max_iter=2)
    there = Fit(torch.asarray(X), targets, loss, generator, max_iter=2)
    assert_allclose(there.objectives(), here.objectives(), rtol=1e-6)
    assert isinstance(there.scores(torch.asarray(X)), torch.Tensor)


@pytest.mark.parametrize(
    ("loss", "errors", "expected"),
    [
        (0.9, 0.21, True),  # clearly less loss and a few errors less
        (1.0, 0.21, False),  # a few errors less may be luck
        (0.95, 0.22, False),
        (0.95, 0.23, False),  # learns the noise
        (0.85, 0.2225, True),  # far less loss, and one error more may be luck
        (0.85, 0.23, False),
        (1.1, 0.10, True),  # by more than a standard error
    ],
)
def test_calibration_is_kept_for_fewer_errors_clearly_or_with_less_loss(loss, errors, expected):
    assert StageScore(loss, errors, 400.0).predicts_better(StageScore(1.0, 0.22, 400.0)) is expected


@pytest.mark.parametrize(("n_labels", "expected"), [(1e4, False), (1e6, True)])
def test_a_little_less_loss_counts_of_very_many_labels(n_labels, expected):
    assert StageScore(0.996, 0.0183, n_labels).predicts_better(StageScore(1.0, 0.0184, n_labels)) is expected


def test_far_less_loss_counts_only_of_many_rows_and_hardly_more_errors():
    assert not StageScore(0.5, 0.0, 10).predicts_better(StageScore(1.0, 0.0, 10))
    assert not StageScore(0.5, 0.104, 1e6).predicts_better(StageScore(1.0, 0.1, 1e6))
