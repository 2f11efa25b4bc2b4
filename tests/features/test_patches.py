from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from manyclass.features import ImagePatches


def slow_patch_features(images, generator, power):
    """Loops over images, places, and cells."""
    shape, (h, w), grid = generator._shape, generator._patch, generator._grid
    result = []
    for image in images.reshape(len(images), *shape):
        places_r, places_c = shape[0] - h + 1, shape[1] - w + 1
        response = np.empty((places_r, places_c, generator.filters_.shape[1]))
        for i in range(places_r):
            for j in range(places_c):
                patch = image[i : i + h, j : j + w].ravel()
                own = patch.var() if generator.contrast is True else 0.0
                patch = (patch - patch.mean()) / np.sqrt(own + generator._contrast)
                response[i, j] = patch @ generator.filters_ + generator.filter_offset_
                if generator.contrast == "whitened":
                    whitened = (patch - generator._mean) @ generator._whitening
                    response[i, j] /= np.linalg.norm(whitened) + generator._norm
        edges_r, edges_c = (
            np.linspace(0, n, g + 1).astype(int) for n, g in zip((places_r, places_c), grid, strict=True)
        )
        more = generator.overlap
        cells = [
            (slice(max(a - more, 0), b + more), slice(max(c - more, 0), d + more))
            for a, b in pairwise(edges_r)
            for c, d in pairwise(edges_c)
        ]
        pooled = [
            np.maximum(sign * response[cell] - generator.threshold, 0).mean(axis=(0, 1))
            for cell in cells
            for sign in (1, -1)
        ]
        features = np.concatenate(pooled)
        result.append(np.concatenate([features**p for p in range(1, power + 1)]))
    return generator._scale * np.array(result)


@pytest.mark.parametrize("overlap", [0, 1])
@pytest.mark.parametrize("kind", ["random", "kmeans"])
@pytest.mark.parametrize(
    ("whitening", "contrast", "mirror"),
    [(0.1, True, False), (None, True, True), (0.01, False, True), (0.1, "whitened", True), (None, "whitened", False)],
)
def test_patches_agree_with_a_slow_convolution(kind, whitening, contrast, mirror, overlap):
    X = np.random.default_rng(0).random((30, 7 * 6 * 3))
    shape = {"image_shape": (7, 6, 3), "patch_size": 3, "polynomial": 2, "n_patches": 200, "random_state": 0}
    shape |= {"kind": kind, "whitening": whitening, "contrast": contrast, "mirror": mirror, "overlap": overlap}
    generator = ImagePatches(64, **shape).fit(X)
    features = generator.transform(X)
    assert_allclose(features, slow_patch_features(X, generator, 2), atol=1e-10)
    assert generator.filters_.shape == (27, 4)
    if mirror:
        flipped = X.reshape(-1, 7, 6, 3)[:, :, ::-1].reshape(X.shape)
        assert_allclose(generator.mirrored(features), generator.transform(flipped), atol=1e-10)
        there, back = (generator.even_and_odd(generator.transform(images)) for images in (X, flipped))
        assert_allclose(there[0], back[0], atol=1e-10)
        assert_allclose(there[1], -back[1], atol=1e-10)
        assert_allclose(np.hstack(there) @ np.hstack(there).T, features @ features.T, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 8), (8, 3)])
def test_images_have_as_many_cells_as_places_in_each_direction(shape):
    X = np.random.default_rng(0).random((20, 24))
    options = {"image_shape": shape, "patch_size": 2, "pool": 4, "n_patches": 50, "random_state": 0}
    generator = ImagePatches(160, **options).fit(X)
    assert generator.filters_.shape == (4, 10)  # of either sign in 2 × 4 cells
    assert_allclose(generator.transform(X), slow_patch_features(X, generator, 1), atol=1e-10)


def test_even_features_are_the_same_for_a_mirrored_image():
    X = np.random.default_rng(0).random((30, 8 * 8))
    even, both = (
        ImagePatches(n, patch_size=3, mirror=mirror, n_patches=200, random_state=0).fit(X)
        for n, mirror in ((32, "even"), (64, True))
    )
    Z = even.transform(X)
    assert Z.shape == (30, 32)
    assert_allclose(Z, even.transform(X.reshape(-1, 8, 8)[:, :, ::-1].reshape(X.shape)), atol=1e-12)
    half = both.even_and_odd(both.transform(X))[0]
    assert_allclose(Z / np.linalg.norm(Z), half / np.linalg.norm(half), atol=1e-12)


def test_without_contrast_normalisation_features_keep_the_scale_of_the_image():
    X = np.random.default_rng(0).random((20, 64))
    generator = ImagePatches(16, patch_size=3, whitening=None, contrast=False, threshold=0.0, random_state=0).fit(X)
    assert_allclose(generator.transform(3 * X), 3 * generator.transform(X), rtol=1e-10)
    with pytest.raises(ValueError, match="mirror=True"):
        generator.mirrored(generator.transform(X))


def test_responses_of_whitened_patches_are_cosines():
    X = np.random.default_rng(0).random((20, 64))
    options = {"patch_size": 3, "threshold": 0.0, "pool": 6, "n_patches": 100_000, "random_state": 0}
    cosines = ImagePatches(72 * 500, contrast="whitened", **options).fit(X)
    # Filters are patches themselves: each meets itself, and falls short of 1 by what is added to the norm.
    largest = np.max(cosines.transform(X) / cosines._scale)
    assert 0.8 < largest < 1.0
    # Without the mean nothing but the floor depends on the contrast of an image.
    faint = np.max(cosines.transform(0.1 * X) / cosines._scale)
    assert 0.3 < faint < largest


def test_patches_tell_digits_apart():
    from sklearn.linear_model import RidgeClassifier

    X, y = load_digits(return_X_y=True)
    Z = ImagePatches(512, patch_size=4, random_state=0).fit_transform(X)
    raw = RidgeClassifier().fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
    assert RidgeClassifier(1e-3).fit(Z[:1200], y[:1200]).score(Z[1200:], y[1200:]) > raw


def test_flat_images_give_finite_features():
    X = np.zeros((5, 64), dtype=np.float32)
    assert np.isfinite(ImagePatches(8, random_state=0).fit_transform(X)).all()
