"""Fourier features whose metric follows what is to be predicted."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from manyclass import StagewiseClassifier, StagewiseRegressor
from manyclass.data import GeneratedRows, as_rows, penalty
from manyclass.features import FeatureSubset, RandomFourierFeatures, median_squared_distance
from manyclass.features import learned_metric as room


def ridged(n=1500, d=10, seed=0, dtype=np.float64):
    """Rows of which one direction decides the class, and that direction."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal(d)
    w /= np.linalg.norm(w)
    return X, (abs(X @ w) > 0.67).astype(int), w


def learned(X, y, weight=None, **options):
    return RandomFourierFeatures(metric="learned", random_state=0, **options).fit(X, y, weight)


def leading(root):
    return np.linalg.svd(root)[0][:, 0]


@pytest.mark.parametrize(("n", "d", "most"), [(200, 4, 1000), (200, 4, 30), (90, 40, 1000)])
def test_the_metric_is_the_mean_outer_product_of_gradients(monkeypatch, n, d, most):
    monkeypatch.setattr(room, "WAVES", most)  # few enough for the penalty of many rows
    X, y, _ = ridged(n, d)
    Y = np.column_stack([y, 1.0 - y, X[:, 0]])
    weight, seen = np.random.default_rng(1).uniform(0.5, 2.0, n), []
    fitted = room._least_squares

    def watched(features, *given):
        seen.append((features.transformer, fitted(features, *given)))
        return seen[-1][1]

    monkeypatch.setattr(room, "_least_squares", watched)
    root = room.metric_root(as_rows(X), Y, weight, np.random.default_rng(0))
    ((waves, W),) = seen

    def predicted(X):
        return GeneratedRows(as_rows(X), waves).dense() @ W

    steps = 1e-5 * np.eye(d)
    slopes = np.stack([(predicted(X + step) - predicted(X - step)) / 2e-5 for step in steps], axis=1)
    expected = np.einsum("n,ndk,nek->de", weight, slopes, slopes)
    found = root @ root.T
    assert_allclose(found / np.trace(found), expected / np.trace(expected), atol=1e-6)
    mapped = median_squared_distance(X @ root, weight)
    assert mapped == pytest.approx(median_squared_distance(X, weight))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_the_direction_that_decides_is_found(dtype, shift):
    X, y, w = ridged(dtype=dtype)
    found = learned((X + dtype(shift)).astype(dtype), y)
    assert abs(leading(found.metric_root_) @ w) > 0.95
    assert found.transform((X + dtype(shift)).astype(dtype)).dtype == dtype


def test_it_is_found_in_units_of_the_columns_from_sparse_rows_and_from_labels(monkeypatch):
    monkeypatch.setattr(room, "WAVES", 256)
    X, y, w = ridged()
    units = np.geomspace(1e-3, 1e3, X.shape[1])
    assert abs(leading(learned(X * units, y, standardize=True).metric_root_) @ w) > 0.95
    assert abs(leading(learned(sp.csr_array(X), y).metric_root_) @ w) > 0.95
    assert abs(leading(learned(X, np.column_stack([y, 1 - y])).metric_root_) @ w) > 0.95
    named = np.array(["no", "yes"])[y]
    assert_array_equal(learned(X, named).metric_root_, learned(X, y).metric_root_)


def test_rows_without_weight_count_for_nothing():
    X, y, _ = ridged(300)
    kept = np.arange(300) % 3 > 0
    y_noisy = np.where(kept, y, 1 - y)
    some = learned(X[kept], y[kept])
    weighted = learned(X, y_noisy, kept.astype(float))
    assert_allclose(weighted.metric_root_ @ weighted.metric_root_.T, some.metric_root_ @ some.metric_root_.T, rtol=1e-6)


def test_fewer_errors_where_few_directions_matter():
    X, y, _ = ridged(2000)
    options = {"n_components": 512, "block_size": 512, "random_state": 0}
    fitted = [
        StagewiseClassifier(RandomFourierFeatures(metric=metric), **options).fit(X[:1500], y[:1500])
        for metric in ("euclidean", "learned")
    ]
    plain, better = (model.score(X[1500:], y[1500:]) for model in fitted)
    assert better > plain + 0.05


def test_responses_that_are_whole_numbers_are_no_classes():
    X, _, _ = ridged(300, 4)
    y = np.round(20.0 * X[:, 0] ** 2)
    for features in (RandomFourierFeatures(metric="learned"), FeatureSubset(order="gradient")):
        options = {"features": features, "block_size": 2, "n_components": 2, "random_state": 0}
        found = [StagewiseRegressor(**options).fit(X, shifted).predict(X) - shifted for shifted in (y, y + 0.25)]
        assert_allclose(*found, atol=1e-8)


def test_what_cannot_be_learned_is_told():
    X, y, _ = ridged(50)
    with pytest.raises(ValueError, match="requires y to be passed"):
        RandomFourierFeatures(metric="learned").fit(X)
    with pytest.raises(ValueError, match=r"metric='learned'\) requires y .* use metric='euclidean' to do without"):
        RandomFourierFeatures(metric="learned").fit(as_rows(X))
    constant = learned(X, np.zeros(50))  # no prediction changes: as without
    assert constant.metric_root_ is None
    assert constant.transform(X).shape == (50, 1024)
    assert learned(np.ones((50, 3)), y).metric_root_ is None
    assert learned(*ridged(2000)[:1], np.random.default_rng(5).integers(0, 2, 2000)).metric_root_ is None


def test_a_metric_learned_before_is_taken_as_it_is():
    X, y, _ = ridged(300)
    again = RandomFourierFeatures(metric=learned(X, y).metric_root_, random_state=0).fit(X)
    assert_array_equal(again.transform(X), learned(X, y).transform(X))
    with pytest.raises(ValueError, match=r"metric has the shape \(3, 3\); give finite numbers of shape \(10, n_dir"):
        RandomFourierFeatures(metric=np.eye(3)).fit(X)


def test_columns_that_are_too_many_for_the_waves_keep_their_distances():
    X, y, _ = ridged(100, 60)  # 50 waves
    assert learned(X, y).metric_root_ is None
    assert_array_equal(learned(X, y).transform(X), RandomFourierFeatures(random_state=0).fit(X).transform(X))


def test_the_penalty_is_that_of_rows_left_out():
    # Where there is nothing to learn, the largest leaves no prediction that changes by more than rounding.
    rng = np.random.default_rng(0)
    for n in (1000, 5000):
        X = rng.standard_normal((n, 5))
        features = GeneratedRows(as_rows(X), room.Waves(rng.standard_normal((5, 500)), rng.uniform(0, 6.28, 500)))
        noise, signal = rng.standard_normal((n, 1)), np.sin(X[:, :1])
        assert np.linalg.norm(features.dense() @ room._least_squares(features, noise, None)) < 0.3 * np.linalg.norm(
            noise
        )
        error = features.dense() @ room._least_squares(features, signal, None) - signal
        assert error.std() < 0.1 * signal.std()


def test_many_responses_are_summed_with_random_signs(monkeypatch):
    monkeypatch.setattr(room, "WAVES", 512)
    X, y, w = ridged(2000)
    Y = np.zeros((2000, 400))
    Y[np.arange(2000), 10 * y + np.arange(2000) % 10] = 1.0  # 20 of 400 columns are not empty
    assert room.random_sums(400).shape == (400, 256)
    assert abs(leading(learned(X, Y).metric_root_) @ w) > 0.95
    assert abs(leading(learned(X, sp.csr_array(Y[:, :30])).metric_root_) @ w) > 0.95


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_beyond_what_is_affordable_are_drawn_as_they_weigh(monkeypatch, weighted):
    monkeypatch.setattr(room, "ROWS", 4000)
    monkeypatch.setattr(room, "WAVES", 256)
    X, y, w = ridged(16_000)
    weight = np.ones(16_000)
    order = np.argsort(y, kind="stable")  # sorted rows: the first of them have one class
    X, y = X[order], y[order]
    if weighted:  # what weighs next to nothing says something else
        light = np.random.default_rng(0).random(16_000) < 0.9
        weight, y = np.where(light, 1e-6, 1.0), np.where(light, abs(X[:, 0]) > 0.67, y)
    assert abs(leading(learned(X, y, weight if weighted else None).metric_root_) @ w) > (0.8 if weighted else 0.95)


def test_weights_that_are_all_the_same_change_nothing(monkeypatch):
    monkeypatch.setattr(room, "ROWS", 2000)
    monkeypatch.setattr(room, "WAVES", 256)
    X, y, _ = ridged(3000)
    noise = np.random.default_rng(3).integers(0, 2, 3000)
    for weight in (np.ones(3000), np.full(3000, 10.0)):
        assert learned(X, noise, weight).metric_root_ is None
        assert abs(leading(learned(X, y, weight).metric_root_) @ leading(learned(X, y).metric_root_)) > 0.99


def test_constant_columns_matter_nothing():
    X, y, _ = ridged(500, 4)
    with_one = learned(np.column_stack([X, np.ones(500)]), y).metric_root_
    assert_array_equal(with_one[4], 0.0)


@pytest.mark.parametrize("metric", [np.eye(10) + 1j, np.zeros((10, 0)), np.full((10, 2), np.nan)])
def test_what_is_no_metric_is_refused(metric):
    with pytest.raises(ValueError, match="give finite numbers of shape"):
        RandomFourierFeatures(metric=metric).fit(ridged(50)[0])


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_units_do_not_decide_whether_there_is_something_to_learn(monkeypatch, unit):
    monkeypatch.setattr(room, "WAVES", 256)
    X, y, _ = ridged(2000)
    noise = np.random.default_rng(5).integers(0, 2, 2000)
    for labels, is_learned in ((y, True), (noise, False)):
        Y = np.column_stack([labels, 1 - labels])
        for found in (learned(unit * X, Y), learned(X, unit * Y)):
            assert (found.metric_root_ is not None) == is_learned


def test_rows_that_are_drawn_stand_for_all():
    rng = np.random.default_rng(0)
    weight = rng.choice([1.0, 4.0], 40_000)
    index, mass = room._drawn(as_rows(rng.standard_normal((40_000, 3))), weight, rng)
    share = weight[weight > 2.0].sum() / weight.sum()
    is_heavy = weight[index] > 2.0
    assert len(index) <= room.ROWS
    assert is_heavy.mean() == pytest.approx(share, abs=0.02)  # as often as they weigh,
    assert mass[is_heavy].sum() / mass.sum() == pytest.approx(share, abs=0.02)  # and then all alike


def test_rows_that_weigh_next_to_nothing_teach_nothing():
    X, y, w = ridged(2000)
    is_light = np.arange(2000) % 2 == 0
    y = np.where(is_light, abs(X[:, 0]) > 0.67, y)
    assert abs(leading(learned(X, y, np.where(is_light, 1e-6, 1.0)).metric_root_) @ w) > 0.95


def test_every_response_guides_the_metric():
    X, y, w = ridged()
    Y = np.column_stack([np.random.default_rng(3).standard_normal(len(X)), y])
    features = RandomFourierFeatures(metric="learned")
    model = StagewiseRegressor(features, n_components=64, block_size=64, random_state=0).fit(X, Y)
    assert abs(leading(model.models_[0].blocks[0].metric_root_) @ w) > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_first_models_are_judged_by_rows_left_out(monkeypatch, dtype, d):
    """Though of few columns most waves say nothing new, and their variance is rounding."""
    rng, seen, best = np.random.default_rng(d), [], penalty.best
    X = rng.standard_normal((200, d)).astype(dtype)
    y = np.sin(2.0 * X[:, :1]) + 0.3 * rng.standard_normal((200, 1))
    waves = room.Waves(rng.standard_normal((d, 100)), rng.uniform(0.0, 6.28, 100))
    features = GeneratedRows(as_rows(X), waves)
    monkeypatch.setattr(penalty, "best", lambda *given: seen.append(given) or best(*given))
    room._least_squares(features, y, None)
    ((alphas, errors),) = seen
    Z = np.hstack([np.ones((200, 1)), features.dense()]).astype(np.float64)
    for alpha, error in zip(alphas[:14], errors[:14, 0], strict=True):
        H = Z @ np.linalg.solve(Z.T @ Z + 200 * alpha * np.diag([0.0, *np.ones(100)]), Z.T)
        assert error == pytest.approx(np.mean(((y - H @ y)[:, 0] / (1.0 - np.diag(H))) ** 2), rel=0.02)
