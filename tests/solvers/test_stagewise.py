import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manyclass.data import ClassTargets, Design, MatrixTargets, TrainingSet
from manyclass.features import FeatureSubset, RandomFourierFeatures
from manyclass.model.domains import Box, Simplex
from manyclass.solvers import Status
from manyclass.solvers.inner import INNER_UPDATES, Linear, heavy_rows
from manyclass.solvers.stages import final_states, staged_states
from manyclass.solvers.stagewise import Stagewise


def problem(n=150, d=4, k=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    return X, np.argmax(np.sin(X @ rng.standard_normal((d, k))) + 0.3 * rng.gumbel(size=(n, k)), axis=1)


def solve(X, targets, inner="linear", generator=None, weight=None, domain=None, held_out=None, **options):
    labels = None if isinstance(targets, MatrixTargets) or hasattr(targets.codes, "cpu") else targets.codes
    generator = (generator or RandomFourierFeatures(random_state=0)).fit(X, labels)
    options = {"alpha": 1e-3, "block_size": 10, "n_components": 40, **options}
    update = INNER_UPDATES[inner](domain or Simplex()) if isinstance(inner, str) else inner
    solver = Stagewise(update, **options)
    return solver.solve(TrainingSet(Design(X), targets, weight, held_out), generator, np.random.default_rng(0)), update


def features(X, solution):
    return np.hstack([block.transform(X) for block in solution.blocks])


def joint_ridge(Z, Y, alpha, weight=None, intercept=True):
    weight = np.ones(len(Z)) if weight is None else weight
    A = np.hstack([Z, np.ones((len(Z), 1))]) if intercept else Z
    penalty = alpha * weight.sum() * np.eye(A.shape[1])
    if intercept:
        penalty[-1, -1] = 0.0
    return A @ np.linalg.solve(A.T @ (weight[:, None] * A) + penalty, A.T @ (weight[:, None] * Y))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("cache_bytes", [1e9, 0.0])
def test_many_passes_reach_the_joint_ridge_solution(intercept, weighted, cache_bytes):
    X, y = problem()
    weight = np.random.default_rng(1).random(len(X)) if weighted else None
    solution, inner = solve(
        X, ClassTargets(y, 3), weight=weight, alpha=0.02, n_passes=400, cache_bytes=cache_bytes, fit_intercept=intercept
    )
    expected = joint_ridge(features(X, solution), np.eye(3)[y], 0.02, weight, intercept)
    assert_allclose(final_states(Design(X), solution.blocks, solution.stages, inner), expected, atol=1e-6)


@pytest.mark.parametrize("order", ["gradient", "frequency", "random"])
def test_subsets_in_any_order_reach_ridge_regression_on_all_columns(order):
    X, y = problem(d=12)
    generator = FeatureSubset(order=order, random_state=0)
    solution, inner = solve(
        X, ClassTargets(y, 3), generator=generator, n_components=None, block_size=5, n_passes=200, alpha=0.05
    )
    expected = joint_ridge(X, np.eye(3)[y], 0.05)
    assert_allclose(final_states(Design(X), solution.blocks, solution.stages, inner), expected, atol=1e-7)


def test_one_block_is_least_squares_at_once():
    X, y = problem()
    solution, inner = solve(X, ClassTargets(y, 3), block_size=40)
    assert len(solution.stages) == 1
    expected = joint_ridge(features(X, solution), np.eye(3)[y], 1e-3)
    assert_allclose(final_states(Design(X), solution.blocks, solution.stages, inner), expected, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from(sorted(INNER_UPDATES)),
    st.sampled_from([0.0, 1e-6, 1e-2]),
    st.booleans(),
    st.booleans(),
)
def test_objective_never_rises(seed, inner, alpha, multilabel, weighted):
    X, y = problem(seed=seed)
    rng = np.random.default_rng(seed)
    targets, domain = ClassTargets(y, 3), Simplex()
    if multilabel:
        targets, domain = MatrixTargets((rng.random((len(y), 4)) < 0.4).astype(float)), Box()
    weight = rng.random(len(y)) if weighted else None
    solution, _ = solve(X, targets, inner, domain=domain, alpha=alpha, n_passes=3, weight=weight)
    assert all(record.certificate >= -1e-9 for record in solution.history)
    assert len(solution.history) == 12


def test_softmax_passes_reach_the_optimum_of_the_glm_on_all_features():
    from manyclass import GLMClassifier

    X, y = problem()
    solution, inner = solve(X, ClassTargets(y, 3), "softmax", alpha=1e-2, n_passes=150)
    model = GLMClassifier(1e-2, tol=1e-9).fit(features(X, solution), y)
    assert solution.history[-1].objective == pytest.approx(model.history_[-1].objective, rel=1e-4)
    P = inner.probabilities(final_states(Design(X), solution.blocks, solution.stages, inner), np)
    assert_allclose(P, model.predict_proba(features(X, solution)), atol=1e-2)


def test_calibrated_passes_over_one_block_are_calibrated_least_squares_on_it():
    from manyclass import CalibratedLeastSquaresClassifier

    X, y = problem()
    solution, inner = solve(X, ClassTargets(y, 3), "calibrated", n_components=10, n_passes=4)
    model = CalibratedLeastSquaresClassifier(1e-3, max_iter=4, tol=0, early_stopping=False)
    model.fit(features(X, solution), y)
    design = Design(X)
    P = inner.probabilities(final_states(design, solution.blocks, solution.stages, inner), design.xp)
    assert_allclose(P, model.predict_proba(features(X, solution)), atol=1e-6)


def test_the_calibrated_error_never_rises():
    X, y = problem()
    solution, _ = solve(X, ClassTargets(y, 3), "calibrated", n_passes=6)
    errors = [record.objective for record in solution.history]
    assert all(np.diff(errors) <= 1e-12)


@pytest.mark.parametrize("inner", sorted(INNER_UPDATES))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_replay_is_what_was_seen_in_training(inner, dtype):
    X, y = problem(dtype=dtype)
    solution, update = solve(X, ClassTargets(y, 3), inner, n_passes=2)
    targets = ClassTargets(y, 3)
    states = staged_states(Design(X), solution.blocks, solution.stages, update)
    rel = 1e-7 if dtype == np.float64 else 2e-3
    square, seen = 0.0, []
    for state, record in zip(states, solution.history, strict=True):
        assert state.dtype == dtype
        seen.append(update.loss(state, targets, None))
        penalty = record.objective - seen[-1]
        assert penalty >= -rel * record.objective
    assert_allclose(final_states(Design(X), solution.blocks, solution.stages, update), state, atol=1e-4)
    if not update.additive:
        assert_allclose(seen, [r.objective for r in solution.history], rtol=rel)
    else:
        total = {}
        for stage in solution.stages:
            total[stage.block] = total.get(stage.block, 0) + stage.coef
        square = sum((c.astype(float) ** 2).sum() for c in total.values())
        assert seen[-1] + 0.5e-3 * square == pytest.approx(solution.history[-1].objective, rel=rel)


def test_weights_are_repetitions():
    X, y = problem()
    repeat = np.random.default_rng(2).integers(0, 3, len(X))
    Xr, yr = np.repeat(X, repeat, axis=0), np.repeat(y, repeat)
    for inner in INNER_UPDATES:
        one, _ = solve(X, ClassTargets(y, 3), inner, RandomFourierFeatures(bandwidth=3.0, random_state=0),
                       repeat.astype(float))  # fmt: skip
        two, _ = solve(Xr, ClassTargets(yr, 3), inner, RandomFourierFeatures(bandwidth=3.0, random_state=0))
        if inner == "softmax":  # the lightest rows are left out of its curvature, and repeated ones one by one
            assert [r.objective for r in one.history] == pytest.approx([r.objective for r in two.history], rel=1e-3)
            continue
        for a, b in zip(one.stages, two.stages, strict=True):
            assert_allclose(a.coef, b.coef, atol=1e-6)


def test_held_out_rows_take_no_part_and_choose_the_stages():
    X, y = problem(300)
    mask = np.zeros(300)
    mask[:100] = 1.0
    options = {"n_components": 400, "alpha": 1e-9, "patience": 4}
    generator = RandomFourierFeatures(bandwidth=0.5, random_state=0)
    held, _ = solve(X, ClassTargets(y, 3), generator=generator, weight=1 - mask, held_out=mask, **options)
    assert held.status is Status.EARLY_STOPPED
    assert len(held.history) == len(held.stages) + 4
    assert np.argmin([r.held_out for r in held.history]) + 1 == len(held.stages)
    alone, _ = solve(X[100:], ClassTargets(y[100:], 3), generator=generator, **options)
    assert_allclose(alone.stages[0].coef, held.stages[0].coef, atol=1e-6)


def test_time_limit_keeps_what_is_finished():
    X, y = problem()
    solution, _ = solve(X, ClassTargets(y, 3), n_components=1000, max_time=1e-6)
    assert solution.status is Status.TIME_UP
    assert len(solution.stages) == 1
    finished, _ = solve(X, ClassTargets(y, 3), n_components=10, max_time=1e-6)
    assert finished.status is Status.FINISHED


@pytest.mark.parametrize("where", ["generate", "callback"])
def test_interrupt_keeps_what_is_finished(where):
    X, y = problem()
    generator = RandomFourierFeatures(random_state=0).fit(X)

    def stop(record):
        if record.stage == 2:
            raise KeyboardInterrupt

    solver = Stagewise(Linear(Simplex()), 1e-3, 10, 100, callback=stop if where == "callback" else None)
    if where == "generate":
        drawn, draw = [], generator.draw

        def interrupting_draw(n, rng):
            drawn.append(draw(n, rng))
            if len(drawn) == 4:
                drawn[-1].generate = stop_now
            return drawn[-1]

        def stop_now(X, xp):
            raise KeyboardInterrupt

        generator.draw = interrupting_draw
    solution = solver.solve(TrainingSet(Design(X), ClassTargets(y, 3)), generator, np.random.default_rng(0))
    assert solution.status is Status.INTERRUPTED
    assert len(solution.stages) == 3
    whole, inner = solve(X, ClassTargets(y, 3), n_components=30)
    assert_array_equal(
        final_states(Design(X), solution.blocks, solution.stages, inner),
        final_states(Design(X), whole.blocks, whole.stages, inner),
    )


def test_an_interrupt_before_the_first_stage_is_not_swallowed():
    X, y = problem()
    generator = RandomFourierFeatures(random_state=0).fit(X)

    def stop(n, rng):
        raise KeyboardInterrupt

    generator.draw = stop
    with pytest.raises(KeyboardInterrupt):
        Stagewise(Linear(Simplex()), 1e-3, 10, 100).solve(
            TrainingSet(Design(X), ClassTargets(y, 3)), generator, np.random.default_rng(0)
        )


def test_no_block_is_ever_held_in_full(monkeypatch):
    from manyclass.solvers import stagewise

    monkeypatch.setattr(stagewise, "GRAM_BLOCK_BYTES", 64 * 10 * 8)
    X, y = problem(2000)
    seen = []
    generator = RandomFourierFeatures(random_state=0).fit(X)
    original = RandomFourierFeatures.generate

    def watched(self, X, xp):
        seen.append(len(X))
        return original(self, X, xp)

    monkeypatch.setattr(RandomFourierFeatures, "generate", watched)
    chunked, _ = solve(X, ClassTargets(y, 3), generator=generator)
    assert max(seen) <= 64
    monkeypatch.undo()
    whole, _ = solve(X, ClassTargets(y, 3), generator=generator)
    for a, b in zip(chunked.stages, whole.stages, strict=True):
        assert_allclose(a.coef, b.coef, atol=1e-9)


def test_float32_blocks_are_summed_in_float64():
    # Rows far from the origin: sums of squares in float32 would lose the variance.
    rng = np.random.default_rng(0)
    X = rng.random((40_000, 3)).astype(np.float32)
    y = (X[:, 0] > 0.5).astype(int)
    generator = FeatureSubset(random_state=0)
    narrow, _ = solve(X, ClassTargets(y, 2), generator=generator, n_components=None, alpha=0.0)
    wide, _ = solve(X.astype(np.float64), ClassTargets(y, 2), generator=generator, n_components=None, alpha=0.0)
    assert_allclose(narrow.stages[0].coef, wide.stages[0].coef, rtol=1e-4, atol=1e-4)


def test_heavy_rows():
    weight = np.array([0.0, 5.0, 1e-9, 3.0, 0.0, 0.0])
    assert_array_equal(heavy_rows(weight), [1, 3])
    assert heavy_rows(np.ones(10)) is None


@pytest.mark.parametrize("inner", sorted(INNER_UPDATES))
def test_torch_rows(inner):
    torch = pytest.importorskip("torch")
    X, y = problem()
    generator = RandomFourierFeatures(bandwidth=2.0, random_state=0)
    here, _ = solve(X, ClassTargets(y, 3), inner, generator, n_passes=2)
    there, update = solve(torch.asarray(X), ClassTargets(torch.asarray(y), 3), inner, generator, n_passes=2)
    assert_allclose([r.objective for r in there.history], [r.objective for r in here.history], rtol=1e-6)
    state = final_states(Design(torch.asarray(X)), there.blocks, there.stages, update)
    assert isinstance(state, torch.Tensor)
