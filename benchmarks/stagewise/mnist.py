"""MNIST as *Least Squares Revisited* uses it: 50 principal components, random Fourier features of a Gaussian kernel.

What is free here was chosen on 10 000 held-out training rows (``python -m benchmarks.stagewise.table1 choose``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks import data
from manyclass import StagewiseClassifier
from manyclass.features import ImagePatches, RandomFourierFeatures, median_squared_distance
from manyclass.features.base import FeatureGenerator

DIMENSIONS = 50
BANDWIDTH = 0.7
"""In units of the median squared distance."""
PATCH_BANDWIDTH = 1.0
"""The same, for rows of patch responses."""
VIEW_BANDWIDTH = 1.0
"""The same, for each of the `views` of an image."""
POWERS = (1.0, 0.5)
"""Of the pixels, in views of the image: the lower, the less it matters how dark a stroke is."""
TILT = 0.4
"""Components are multiplied by their standard deviation to this power: the kernel then looks at the leading ones."""
FILTERS, PATCH, POOL, PATCH_COMPONENTS = 64, 8, 4, 100
"""k-means filters of PATCH × PATCH pixels, cells of the pooling grid along a side, principal components kept."""
ALPHA = 1e-6
BLOCK = 2048
N_HELD_OUT = 10_000

Split = data.Split


def projected(dimensions: int = DIMENSIONS, tilt: float = 0.0, source: str = "mnist") -> Split:
    """(X_train, y_train, X_test, y_test): principal components of the training pixels, float32."""
    X, y, X_test, y_test = data.split(source)
    P, P_test, _ = components(X, X_test, dimensions, tilt)
    return P, y, P_test, y_test


def components(X: np.ndarray, X_test: np.ndarray, dimensions: int, tilt: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Principal components times their standard deviation to the power `tilt`, and the seconds of the training rows."""
    from sklearn.decomposition import PCA

    started = time.perf_counter()
    pca = PCA(dimensions, svd_solver="covariance_eigh").fit(X)
    P = pca.transform(X)
    scale = P.std(axis=0) ** tilt
    P *= scale
    seconds = time.perf_counter() - started
    return P, pca.transform(X_test) * scale, seconds


def views(split: Split, seed: int = 0) -> tuple[Split, float]:
    """Principal components of powers of the pixels at norm 1 side by side, and the seconds of the training rows.

    At norm 1 thick and thin strokes count alike. Median squared distances are 1 in each view.
    """
    X, y, X_test, y_test = split
    made, seconds = [], 0.0
    for power in POWERS:
        started = time.perf_counter()
        rows = normalize(X**power)
        seconds += time.perf_counter() - started
        P, P_test, projecting = components(rows, normalize(X_test**power), DIMENSIONS, TILT)
        unit = median_squared_distance(P) ** 0.5
        made.append((P / unit, P_test / unit))
        seconds += projecting
    train, test = (np.hstack(part) for part in zip(*made, strict=True))
    return (train, y, test, y_test), seconds


@dataclass(eq=False, repr=False)
class FourierOfViews(RandomFourierFeatures):
    """Each feature looks at one of so many parts of the columns: their kernel is the mean of the parts' kernels."""

    views: int = 1

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        super()._draw(n_components, dtype, rng)
        part = np.repeat(np.arange(self.views), self.n_features_in_ // self.views)
        self.random_weights_[part[:, None] != np.arange(n_components) % self.views] = 0.0


def convolved(split: Split, seed: int = 0) -> tuple[Split, float]:
    """Principal components of pooled responses to k-means patches, and the seconds of the training rows.

    Where `projected` would be the same for pixels in any order, this knows which are neighbours.
    """
    X, y, X_test, y_test = split
    started = time.perf_counter()
    generator = ImagePatches(
        2 * POOL**2 * FILTERS,
        image_shape=(28, 28),
        kind="kmeans",
        patch_size=PATCH,
        pool=POOL,
        random_state=seed,
    ).fit(X[:5000])
    pooled = generator.transform(X)
    seconds = time.perf_counter() - started
    P, P_test, projecting = components(pooled, generator.transform(X_test), PATCH_COMPONENTS, TILT)
    return (P, y, P_test, y_test), seconds + projecting


def held_out(split: Split, n_rows: int = N_HELD_OUT) -> Split:
    """The training rows alone, `n_rows` of them held out at random: what every parameter is chosen on."""
    X, y, _, _ = split
    order = np.random.default_rng(123).permutation(len(X))
    chosen, rest = order[:n_rows], order[n_rows:]
    return X[rest], y[rest], X[chosen], y[chosen]


def stagewise(
    X: np.ndarray,
    n_components: int,
    seed: int = 0,
    bandwidth: float = BANDWIDTH,
    generator: FeatureGenerator | None = None,
    **options: Any,
) -> StagewiseClassifier:
    """An unfitted model with features for rows such as X, by default those of a Gaussian kernel."""
    return StagewiseClassifier(
        generator or RandomFourierFeatures(bandwidth=bandwidth * median_squared_distance(X)),
        **{"alpha": ALPHA, "loss": "calibrated", "block_size": BLOCK, "random_state": seed, **options},
        n_components=n_components,
    )
