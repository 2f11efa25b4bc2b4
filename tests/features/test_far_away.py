"""Features of rows that lie far from the origin or from each other, and of numbers that have no squares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

from manyclass.features import (
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
