"""The image problems of *Least Squares Revisited*: MNIST projected to 50 dimensions, CIFAR-10 as bytes."""

from __future__ import annotations

import io
import zipfile

import numpy as np

from benchmarks import data

DIMENSIONS = 50
N_HELD_OUT = 10_000

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def mnist_projected() -> Split:
    """(X_train, y_train, X_test, y_test): the first 50 principal components of the training pixels, float32."""
    from sklearn.decomposition import PCA

    X, y = data.mnist()
    X_test, y_test = data.mnist("test")
    pca = PCA(DIMENSIONS, random_state=0).fit(X)
    return pca.transform(X), y, pca.transform(X_test), y_test


def held_out(split: Split) -> Split:
    """The training rows alone, 10 000 of them held out at random: what every parameter is chosen on."""
    X, y, _, _ = split
    order = np.random.default_rng(123).permutation(len(X))
    chosen, rest = order[:N_HELD_OUT], order[N_HELD_OUT:]
    return X[rest], y[rest], X[chosen], y[chosen]


def median_squared_distance(X: np.ndarray, n_pairs: int = 20_000) -> float:
    left, right = np.random.default_rng(0).integers(0, len(X), (2, n_pairs))
    return float(np.median(np.sum((X[left] - X[right]) ** 2, axis=1)))


def cifar10() -> Split:
    """Bytes of shape (n, 3072), height × width × channel, decoded once from the JPEG copies and kept."""
    folder = data.CACHE / "cifar10"
    names = ("X_train", "y_train", "X_test", "y_test")
    if not (folder / f"{names[-1]}.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts = _decoded()
        for name, array in zip(names, (*parts["train"], *parts["test"]), strict=True):
            np.save(folder / f"{name}.npy", array)
    X_train, y_train, X_test, y_test = (np.load(folder / f"{name}.npy") for name in names)
    return X_train, y_train, X_test, y_test


def _decoded() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    from PIL import Image

    images: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    labels: dict[str, list[str]] = {"train": [], "test": []}
    with zipfile.ZipFile(data.data_dir() / "cifar10" / "cifar10_jpg.zip") as archive:
        for name in sorted(archive.namelist()):
            pieces = name.split("/")
            if not name.endswith(".jpg") or len(pieces) < 3:
                continue
            with Image.open(io.BytesIO(archive.read(name))) as image:
                images[pieces[-3]].append(np.asarray(image.convert("RGB")).reshape(-1))
            labels[pieces[-3]].append(pieces[-2])
    return {
        part: (np.stack(images[part]), np.unique(labels[part], return_inverse=True)[1].astype(np.int64))
        for part in images
    }
