"""Features of rows that lie far from the origin or from each other, and of numbers that have no squares."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from manyclass.features import (
    ImagePatches,
    Landmarks,
    RandomFourierFeatures,
    RandomPolynomials,
    RandomUnits,
    median_squared_distance,
)


@pytest.mark.parametrize(
    ("generator", "unit", "dtype"),
    [
        (Landmarks(30, random_state=0), 1e20, "float32"),
        (Landmarks(30, random_state=0), 1e-22, "float32"),
        (RandomPolynomials(30, random_state=0), 1e160, "float64"),
        (RandomFourierFeatures(30, random_state=0), 1e-40, "float32"),
        (RandomUnits(30, random_state=0), 1e-40, "float32"),
    ],
)
def test_features_that_are_no_numbers_are_refused(generator, unit, dtype):
    X = np.random.default_rng(0).standard_normal((300, 6)) * unit
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="scale"):
        generator.fit(X.astype(dtype))


def test_landmarks_far_from_the_origin_and_from_each_other():
    X = np.random.default_rng(0).standard_normal((200, 6))
    for origin in (1e6, 1e7):
        moved = (X + origin).astype(np.float32)
        Z = Landmarks(200, random_state=0).fit_transform(moved)
        wide = moved.astype(np.float64) - origin
        assert_allclose(Z @ Z.T, rbf_kernel(wide, gamma=1.0 / median_squared_distance(wide)), atol=0.02)
    with pytest.raises(ValueError, match="choose a larger bandwidth"):
        Landmarks(100, bandwidth=1.0, random_state=0).fit(np.vstack([X[:100] - 1e8, X[100:] + 1e8]))


def test_images_far_from_black_have_the_patches_of_others():
    X = np.random.default_rng(0).standard_normal((60, 64))
    for origin in (1e3, 1e4):
        far = (X + origin).astype(np.float32)
        near = far.astype(np.float64) - origin
        one, two = (ImagePatches(60, patch_size=3, random_state=0).fit_transform(given) for given in (far, near))
        assert_allclose(one, two, atol=1e-3)


def test_patches_of_many_images_are_drawn_a_few_images_at_a_time():
    X = np.random.default_rng(0).random((16_000, 1024), dtype=np.float32)
    tracemalloc.start()
    ImagePatches(60, image_shape=(32, 32), patch_size=3, n_patches=16_000, random_state=0).fit(X)
    assert tracemalloc.get_traced_memory()[1] < 0.5 * X.nbytes
    tracemalloc.stop()


def test_units_of_wide_rows_keep_few_of_them():
    X = sp.random_array((4000, 8000), density=1e-3, format="csr", rng=np.random.default_rng(0))
    tracemalloc.start()
    RandomUnits(30, random_state=0).fit(X)
    assert tracemalloc.get_traced_memory()[1] < 300e6  # all rows and a sorted copy are 512 MB
    tracemalloc.stop()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_moves_no_standardized_wave(kind, dtype):
    """Its variance is not 0 but rounding."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3)).astype(dtype)
    X[:, 2] = 3.3
    generator = RandomFourierFeatures(50, standardize=True, random_state=0).fit(kind(X))
    assert abs(generator.random_weights_[2]).max() < 50


def test_a_constant_column_matters_to_no_metric():
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((600, 3)), rng.random(600)
    X[:, 1] = 3.3
    learned = RandomFourierFeatures(50, metric="learned", random_state=0).fit(X, X[:, 0] > 0, sample_weight=weight)
    assert not learned.metric_root_[1].any()


@pytest.mark.parametrize("times", [1e6, 1e9, 1e12])
def test_one_row_far_from_all_others_does_not_choose_the_bandwidth(times):
    X = np.random.default_rng(0).standard_normal((200, 6))
    alone = median_squared_distance(X[1:])
    X[0] *= times
    assert median_squared_distance(X) == pytest.approx(alone, rel=0.05)


def test_most_rows_may_be_empty():
    X = np.zeros((100, 4))
    X[:20] = np.random.default_rng(0).standard_normal((20, 4))
    assert 0.5 < median_squared_distance(X) < 10
