"""Fourier features whose metric follows what is to be predicted."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from manyclass import StagewiseClassifier, StagewiseRegressor
from manyclass.data import GeneratedRows, as_rows
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


@pytest.mark.parametrize(("n", "d"), [(200, 4), (30, 40)])
def test_the_metric_is_the_mean_outer_product_of_gradients(monkeypatch, n, d):
    X, y, _ = ridged(n, d)
    Y = np.column_stack([y, 1.0 - y, X[:, 0]])
    weight, seen = np.random.default_rng(1).uniform(0.5, 2.0, n), []
    fitted = room._least_squares

    def watched(features, *given):
        seen.append((features.transformer, fitted(features, *given)))
        return seen[-1][1]

    monkeypatch.setattr(room, "_least_squares", watched)
    root = room.metric_root(as_rows(X), Y, weight, 8.0, np.random.default_rng(0))
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


def test_it_is_found_in_units_of_the_columns_from_sparse_rows_and_from_labels():
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
    X = ridged(50)[0]
    with pytest.raises(ValueError, match="requires y to be passed"):
        RandomFourierFeatures(metric="learned").fit(X)
    with pytest.raises(ValueError, match=r"metric='learned'\) requires y .* use metric='euclidean' to do without"):
        RandomFourierFeatures(metric="learned").fit(as_rows(X))
    constant = learned(X, np.zeros(50))  # no prediction changes: as without
    assert constant.metric_root_ is None
    assert constant.transform(X).shape == (50, 1024)
