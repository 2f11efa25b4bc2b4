"""CIFAR-10 with convolution features: how accuracy grows with the number of filters, joined or averaged.

The goals are 80 % with about 400 filters and 85 % by averaging models on disjoint filters. Filters come in groups of
their own, each learned by k-means; their pooled responses are kept in memory. After each group two predictions are
scored: of one model on all filters so far, and of the average of the models on one group each. The images are JPEG
copies, not the originals.

``python -m benchmarks.stagewise.cifar --groups 3``
"""

from __future__ import annotations

import time

import numpy as np
import typer

from benchmarks.report import Table, figure
from benchmarks.stagewise import cifar_images
from manyclass import StagewiseClassifier
from manyclass.features import FeatureSubset, ImagePatches

FILTERS, POOL, CHUNK = 400, 2, 500
"""Filters of a group; cells of the pooling grid along each side; images whose features are made at a time."""
ALPHAS = (1e-2, 1e-1, 1.0)
N_HELD_OUT = 5000
BLOCK, N_PASSES = 1600, 3


def group(seed: int, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised square roots of the pooled responses: strong and weak filters then have the same spread."""
    generator = ImagePatches(
        2 * POOL**2 * FILTERS, image_shape=(32, 32, 3), kind="kmeans", pool=POOL, random_state=seed
    )
    generator.fit(as_float(train[:20_000]))
    X, X_test = (
        np.sqrt(np.vstack([generator.transform(as_float(part[i : i + CHUNK])) for i in range(0, len(part), CHUNK)]))
        for part in (train, test)
    )
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread += 1e-3 * spread.mean()
    for part in (X, X_test):
        part -= mean
        part /= spread
    return X, X_test


def as_float(images: np.ndarray) -> np.ndarray:
    return images.astype(np.float32) / 255


def model(inner: str, alpha: float, n_features: int) -> StagewiseClassifier:
    # The rows' mean squared norm is the number of features, so the penalty keeps its meaning as that grows.
    return StagewiseClassifier(
        FeatureSubset(),
        inner=inner,
        alpha=alpha * n_features / (2 * POOL**2 * FILTERS),
        n_components=None,
        block_size=BLOCK,
        n_passes=N_PASSES,
        cache_size=4000,
    )


def choose(X: np.ndarray, y: np.ndarray) -> tuple[str, float]:
    """Inner update and alpha with the fewest errors on held-out training rows."""
    order = np.random.default_rng(0).permutation(len(y))
    held, rest = order[:N_HELD_OUT], order[N_HELD_OUT:]
    errors = {}
    for inner in ("linear", "calibrated", "softmax"):
        for alpha in ALPHAS:
            if inner == "softmax":
                alpha /= 10
            fitted = model(inner, alpha, X.shape[1]).fit(X[rest], y[rest])
            errors[inner, alpha] = np.mean(fitted.predict(X[held]) != y[held])
            print(f"held out: {inner}, alpha {alpha:g}: {100 * errors[inner, alpha]:.2f} % errors", flush=True)
    return min(errors, key=lambda setting: errors[setting])


def main(groups: int = 3) -> None:
    train, y, test, y_test = cifar_images.load()
    X, X_test = np.empty((len(y), 0), np.float32), np.empty((len(y_test), 0), np.float32)
    table = Table(
        "CIFAR-10 (JPEG copy): test accuracy, %",
        ["filters", "features", "one model", "average of models", "s for features", "s for the one model"],
    )
    average, rows = 0.0, []
    for seed in range(groups):
        started = time.perf_counter()
        new, new_test = group(seed, train, test)
        making = time.perf_counter() - started
        if seed == 0:
            inner, alpha = choose(new, y)
        average += model(inner, alpha, new.shape[1]).fit(new, y).predict_proba(new_test)
        X, X_test = np.hstack([X, new]), np.hstack([X_test, new_test])
        started = time.perf_counter()
        joint = model(inner, alpha, X.shape[1]).fit(X, y).predict(X_test)
        fitting = time.perf_counter() - started
        one, averaged = (100 * float(np.mean(p == y_test)) for p in (joint, average.argmax(axis=1)))
        rows.append(((seed + 1) * FILTERS, one, averaged))
        table.add(rows[-1][0], X.shape[1], f"{one:.2f}", f"{averaged:.2f}", f"{making:.0f}", f"{fitting:.0f}")
        print(table, flush=True)
    table.note(
        f"k-means filters of 6 × 6, whitened; max(±r − ½, 0) pooled over a {POOL} × {POOL} grid, square roots; "
        f"inner={inner!r}, alpha = {alpha:g} per {FILTERS} filters, chosen on {N_HELD_OUT} held-out training images; "
        f"blocks of {BLOCK} features, {N_PASSES} passes. Goals: 80 % with about 400 filters, 85 % by averaging."
    )
    table.publish("stagewise_cifar")
    with figure("stagewise_cifar") as ax:
        filters, one, averaged = np.array(rows).T
        ax.plot(filters, one, marker="o", label="one model on all filters")
        ax.plot(filters, averaged, marker="s", label=f"average of models on {FILTERS} each")
        ax.set(xlabel="filters", ylabel="test accuracy, %", title="CIFAR-10 (JPEG copy)")
        ax.legend()


if __name__ == "__main__":
    typer.run(main)
