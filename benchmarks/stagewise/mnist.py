"""MNIST as *Least Squares Revisited* uses it: 50 principal components, random Fourier features of a Gaussian kernel.

What is free here was chosen on 10 000 training rows that were held out (``python -m benchmarks.stagewise.choose``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data
from manyclass import StagewiseClassifier
from manyclass.features import RandomFourierFeatures

DIMENSIONS = 50
BANDWIDTH = 0.7
"""In units of the median squared distance."""
TILT = 0.4
"""Components are multiplied by their standard deviation to this power: the kernel then looks at the leading ones."""
ALPHA = 1e-6
BLOCK = 2048
N_HELD_OUT = 10_000

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def projected(dimensions: int = DIMENSIONS, tilt: float = 0.0) -> Split:
    """(X_train, y_train, X_test, y_test): principal components of the training pixels, float32."""
    from sklearn.decomposition import PCA

    X, y = data.mnist()
    X_test, y_test = data.mnist("test")
    pca = PCA(dimensions, random_state=0).fit(X)
    P, P_test = pca.transform(X), pca.transform(X_test)
    scale = P.std(axis=0) ** tilt
    return P * scale, y, P_test * scale, y_test


def held_out(split: Split, n_rows: int = N_HELD_OUT) -> Split:
    """The training rows alone, `n_rows` of them held out at random: what every parameter is chosen on."""
    X, y, _, _ = split
    order = np.random.default_rng(123).permutation(len(X))
    chosen, rest = order[:n_rows], order[n_rows:]
    return X[rest], y[rest], X[chosen], y[chosen]


def median_squared_distance(X: np.ndarray, n_pairs: int = 20_000) -> float:
    left, right = np.random.default_rng(0).integers(0, len(X), (2, n_pairs))
    return float(np.median(np.sum((X[left] - X[right]) ** 2, axis=1)))


def stagewise(X: np.ndarray, n_components: int, seed: int = 0, bandwidth: float = BANDWIDTH, **options: Any):
    """An unfitted model with features for rows such as X."""
    return StagewiseClassifier(
        RandomFourierFeatures(bandwidth=bandwidth * median_squared_distance(X)),
        **{"alpha": ALPHA, "inner": "calibrated", "block_size": BLOCK, "random_state": seed, **options},
        n_components=n_components,
    )
