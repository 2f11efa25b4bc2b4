"""What the CIFAR-10 models see: principal components of pooled filter responses, of an image and its mirror image."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA

from manyclass.data import Rows
from manyclass.data.rows import Array
from manyclass.features import FeatureGenerator, ImagePatches

POOL, CHUNK, N_SAMPLE = 3, 500, 8000
"""Cells along each side of an image; images at a time; images from which filters and components are learned."""


class Components:
    """Filters and components of one model; `transform` gives (components of the image, of its mirror image).

    The pooled responses enter by their square roots, standardised: strong and weak filters then count the same. A
    component is multiplied by its standard deviation to the power `tilt` − 1: 1 is plain PCA, 0 whitens.
    """

    def __init__(self, n_filters: int, n_components: int, tilt: float, seed: int, images: np.ndarray):
        self.patches = ImagePatches(
            2 * POOL**2 * n_filters,
            image_shape=(32, 32, 3),
            kind="kmeans",
            contrast=False,
            mirror=True,
            pool=POOL,
            threshold=0.75,
            random_state=seed,
        )
        self.patches.fit(as_float(images[:N_SAMPLE]))
        sample = np.vstack([self._pooled(images[i : i + CHUNK]) for i in range(0, min(len(images), N_SAMPLE), CHUNK)])
        self.mean, self.spread = sample.mean(axis=0), sample.std(axis=0)
        self.spread += 1e-3 * self.spread.mean()
        sample -= self.mean
        sample /= self.spread
        pca = PCA(n_components, svd_solver="randomized", iterated_power=2, random_state=seed).fit(sample)
        scale = np.sqrt(pca.explained_variance_) ** tilt
        # The mean squared norm becomes 1, so that bandwidths need no other unit.
        self.map = (pca.components_.T * (scale / np.sqrt(pca.explained_variance_))) / np.sqrt(np.sum(scale**2))

    def transform(self, images: np.ndarray) -> np.ndarray:
        n_components = self.map.shape[1]
        out = np.empty((len(images), 2 * n_components), np.float32)
        for start in range(0, len(images), CHUNK):
            pooled = self._pooled(images[start : start + CHUNK])
            for part, side in enumerate((pooled, self.patches.mirrored(pooled))):
                columns = slice(part * n_components, (part + 1) * n_components)
                out[start : start + CHUNK, columns] = ((side - self.mean) / self.spread) @ self.map
        return out

    def _pooled(self, images: np.ndarray) -> np.ndarray:
        return np.sqrt(self.patches.transform(as_float(images)))


class BothSides(FeatureGenerator):
    """φ(x) + φ(x') where a row holds x and x' side by side, here an image and its mirror image.

    Least squares on these sums is least squares on the images and their mirror images, restricted to models that give
    both the same prediction, with half of the rows.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, features: FeatureGenerator, n_components: int = 1024, *, random_state: Any = None):
        self.features = features
        self.n_components = n_components
        self.random_state = random_state

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        self._sides = np.split(np.arange(rows.n_features), 2)
        self._maker = clone(self.features).set_params(n_components=1).fit(rows.select(self._sides[0]))

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        self._drawn = self._maker.draw(n_components, rng)
        self._set_drawn(self._drawn.n_features_out, dtype)

    def _generate(self, rows: Rows) -> Array:
        first, second = (self._drawn.generate(rows.select(side)) for side in self._sides)
        first += second
        first *= 0.5**0.5
        return first


def as_float(images: np.ndarray) -> np.ndarray:
    return images.astype(np.float32) / 255
