"""Algorithm 3 of *Least Squares Revisited*: stagewise regression over blocks of generated features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from manyclass import GLMClassifier, StagewiseClassifier
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.data.rows import BLOCK_BYTES
from manyclass.features import FeatureSubset, RandomFourierFeatures
from manyclass.fit import Status
from manyclass.model import LOSSES, Problem
from manyclass.model.sets import Box
from manyclass.model.sums import squares_of
from manyclass.stagewise import UPDATES
from manyclass.stagewise.judges import Score
from manyclass.stagewise.solver import sums_of_block
from manyclass.stagewise.updates import LONGEST, lowest
from tests.covering import every_pair
from tests.stagewise.run import Fit, targets_of


def problem(n=150, d=4, k=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    return X, np.argmax(np.sin(X @ rng.standard_normal((d, k))) + 0.3 * rng.gumbel(size=(n, k)), axis=1)


def solve(X, y, loss="squared", generator=None, targets=None, **options):
    generator = (generator or RandomFourierFeatures(random_state=0)).fit(X, y)
    targets = targets_of(y, 3, loss) if targets is None else targets
    return Fit(X, targets, loss, generator, **options)


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
    for module in ("solver", "updates"):
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


@pytest.mark.parametrize("weighted", [True, False])
def test_the_curvature_of_labels_that_share_nothing_has_the_sums_of_theirs(weighted, rng):
    scores, s = 3.0 * rng.standard_normal((40, 6)) - np.arange(6.0), rng.random(40) if weighted else None
    P = Problem(
        as_rows(rng.standard_normal((40, 2))), MatrixTargets(np.ones((40, 6))), LOSSES["logistic"], 1e-3, weight=s
    )
    update, p = UPDATES["logistic"](P), 1.0 / (1.0 + np.exp(-scores))
    of_rows, of_labels = update.row_weight(scores), update.output_weight(scores, s)
    s = np.ones(40) if s is None else s
    product = of_rows[:, None] * of_labels / of_labels.mean()
    # Of each label the sum over the rows is in units of that of the mean label.
    assert_allclose(product.sum(axis=1), (p * (1 - p)).sum(axis=1))
    assert_allclose((s[:, None] * product).sum(axis=0), (s[:, None] * p * (1 - p)).sum(axis=0))


@pytest.mark.parametrize("n_equal", [2, 60])
def test_a_label_that_is_given_several_times_is_fitted_as_once(n_equal):
    X, y = problem(n=300)
    label = (y == 0).astype(float)[:, None]
    once = solve(X, y, "logistic", targets=MatrixTargets(label))
    several = solve(X, y, "logistic", targets=MatrixTargets(np.repeat(label, n_equal, axis=1)))
    assert_allclose(several.scores(X), np.repeat(once.scores(X), n_equal, axis=1), rtol=1e-6, atol=1e-9)


def some_labels(rng, n_rare, n_common, n_rows=1500):
    X = rng.standard_normal((n_rows, 6))
    scores = X @ rng.standard_normal((6, n_rare + n_common)) + rng.gumbel(size=(n_rows, n_rare + n_common))
    return X, (scores > np.repeat([6.0, 0.0], [n_rare, n_common])).astype(float)


@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_several_visits_reach_what_each_label_would_by_itself(rng, alpha):
    """A step divided by the curvature of its label, with the penalty on all alike, stalled: rare labels overshot."""
    X, Y = some_labels(rng, 20, 20)
    fit = solve(X, None, "logistic", targets=MatrixTargets(Y), alpha=alpha, n_components=96, block_size=32, max_iter=8)
    each = [GLMClassifier(alpha=alpha, loss="logistic", tol=1e-7).fit(fit.features(X), y) for y in Y.T.astype(int)]
    least = sum(one.history_[-1].objective for one in each)
    assert fit.history[-1].objective <= least + 2e-3 * Y.shape[1] * np.log(2)


def test_many_rare_labels_are_fitted_nearly_as_well_as_by_themselves(rng):
    """One row weight that bounds the sum of their curvatures left them at probabilities of a half."""
    X, Y = some_labels(rng, 80, 0)
    Y = Y[:, Y[:1000].any(axis=0)]
    options = {"alpha": 1e-3, "loss": "logistic", "n_components": 512, "block_size": 128, "random_state": 0}

    def loss(Y):
        P = StagewiseClassifier(**options).fit(X[:1000], Y[:1000].astype(int)).predict_proba(X[1000:])
        return log_loss(Y[1000:].ravel(), (P if Y.ndim > 1 else P[:, 1]).ravel())

    alone = np.mean([loss(Y[:, label]) for label in range(0, Y.shape[1], 8)])
    assert loss(Y[:, ::8]) < 1.1 * alone
    assert loss(Y) < 1.1 * np.mean([loss(Y[:, start : start + 8]) for start in range(0, Y.shape[1], 8)])


def test_rows_without_weight_do_not_decide_which_are_read(rng):
    """They had made those that hold nearly all of the weight, 80 of 100 here, seem few enough to read no others."""
    X, y, weight = rng.standard_normal((200, 3)), np.arange(200) % 2, np.repeat([1.0, 0.0], 100)
    state = np.zeros((200, 2))
    state[80:, 0] = 5.6  # decided, but for the last per cent of the weight

    def moments(part):
        stage = Problem(as_rows(X[part]), ClassTargets(y[part], 2), LOSSES["softmax"], 0.0, weight=weight[part])
        return sums_of_block(stage, state[part], lambda stage: UPDATES["softmax"](stage), with_moments=True)[-1]

    assert_allclose(moments(slice(200)).second_moment, moments(slice(100)).second_moment, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_lengths_are_where_convex_functions_are_lowest(seed):
    rng = np.random.default_rng(seed)
    steep, place = rng.uniform(0.1, 20.0, 40), rng.uniform(-0.5, 1.5 * LONGEST, 40)

    def derivatives(length):
        return np.tanh(steep * (length - place)), steep / np.cosh(np.clip(steep * (length - place), -300, 300)) ** 2

    expected = np.clip(place, 0.0, LONGEST)
    assert_allclose(lowest(derivatives, 40), expected, rtol=0.03, atol=0.03)


def test_no_length_is_taken_that_raises_a_function(rng):
    """A step just beyond a kink, where slope and curvature are both large, is short, and high up."""
    places, steep = rng.uniform(0.01, LONGEST, 500), 10.0 ** rng.uniform(-2, 5, 500)
    falls, rises = 10.0 ** rng.uniform(-3, 0, 500), 10.0 ** rng.uniform(-1, 6, 500)

    def value(length):
        return -falls * length + rises / steep * np.logaddexp(0, steep * (length - places))

    def derivatives(length):
        share = 1 / (1 + np.exp(-np.clip(steep * (length - places), -700, 700)))
        return -falls + rises * share, rises * steep * share * (1 - share)

    begun = value(np.zeros(500))
    gained, falling = begun - value(lowest(derivatives, 500)), derivatives(np.zeros(500))[0] < 0
    assert (gained >= -1e-12).all()
    assert np.mean(gained[falling] > 0) > 0.9


def test_a_rare_label_beside_common_ones_is_fitted_nearly_as_by_itself():
    """With one step for all it would come as far as these allow: to 1.27 times the loss that it has alone."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((600, 4))
        rare = (X[:, :1] + 0.5 * rng.standard_normal((600, 1)) > 2.2).astype(float)
        common = (X @ rng.standard_normal((4, 20)) + rng.standard_normal((600, 20)) > 0).astype(float)
        alone, beside = (
            solve(X, np.arange(600) % 3, "logistic", targets=MatrixTargets(Y), block_size=20, n_components=200)
            for Y in (rare, np.hstack([rare, common]))
        )
        losses = [np.mean(np.logaddexp(0, z) - rare[:, 0] * z) for z in (alone.scores(X)[:, 0], beside.scores(X)[:, 0])]
        ratios.append(losses[1] / losses[0])
    assert np.mean(ratios) < 1.18


@pytest.mark.parametrize(
    ("loss", "errors", "expected"),
    [
        (0.9, 0.21, True),  # clearly less loss and a few errors less
        (1.0, 0.21, False),  # a few errors less may be luck
        (0.9, 0.22, False),
        (0.9, 0.23, False),  # learns the noise
        (1.1, 0.10, True),  # by more than a standard error
    ],
)
def test_calibration_is_kept_for_fewer_errors_clearly_or_with_less_loss(loss, errors, expected):
    assert Score(loss, errors, 400.0).predicts_better(Score(1.0, 0.22, 400.0)) is expected
