"""The data sets the benchmarks run on, made once and kept as .npy files in benchmarks/.cache.

``MANYCLASS_DATA`` names the folder with the real data sets; the default is ``../shared/data``, seen from the
root of the repository.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent
CACHE = ROOT / ".cache"


def data_dir() -> Path:
    path = Path(os.environ.get("MANYCLASS_DATA", ROOT.parent.parent / "shared" / "data"))
    if not path.is_dir():
        raise SystemExit(f"{path} is not a folder: set MANYCLASS_DATA to the folder with the data sets.")
    return path


def read_idx(path: Path) -> np.ndarray:
    """A gzipped IDX file of unsigned bytes (the MNIST format)."""
    raw = gzip.decompress(path.read_bytes())
    n_dims = raw[3]
    shape = np.frombuffer(raw, ">i4", n_dims, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def mnist(part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1] as float32 of shape (n, 784), digits as int64."""
    folder, prefix = data_dir() / "mnist", {"train": "train", "test": "t10k"}[part]
    X = read_idx(folder / f"{prefix}-images-idx3-ubyte.gz")
    y = read_idx(folder / f"{prefix}-labels-idx1-ubyte.gz")
    return X.reshape(len(X), -1).astype(np.float32) / 255, y.astype(np.int64)


def _mnist_fourier() -> tuple[np.ndarray, np.ndarray]:
    """MNIST, PCA to 50 dimensions, cos(Pω + b) with 2048 ω ~ N(0, 2/s), s the median squared distance.

    The features are left unscaled, each of mean square about 1/2, so that alpha keeps its usual range.
    """
    from sklearn.decomposition import PCA

    X, y = mnist()
    P = PCA(50, random_state=0).fit_transform(X).astype(np.float32)
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, len(P), (2, 20_000))
    s = np.median(np.sum((P[left] - P[right]) ** 2, axis=1))
    omega = (rng.standard_normal((50, 2048)) * np.sqrt(2 / s)).astype(np.float32)
    phase = rng.uniform(0, 2 * np.pi, 2048).astype(np.float32)
    return np.cos(P @ omega + phase), y


def _gaussian_classes(separation: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """40 000 rows, 512 features, 1000 Gaussian classes; eigenvalues like i^-1.5, condition number 1.3e4.

    `separation` is the spread of the class means over that within a class. The larger `scale`, the smaller
    the optimum at a given alpha, and the further from zero the optimal W.
    """
    rng = np.random.default_rng(0)
    profile = scale * np.arange(1, 513) ** -0.75
    means = separation * rng.standard_normal((1000, 512))
    y = rng.integers(0, 1000, 40_000)
    X = (means[y] + rng.standard_normal((40_000, 512))) * profile
    return X.astype(np.float32), y


PROBLEMS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "mnist-fourier": _mnist_fourier,
    # At alpha = 1e-5 the optimum is 0.112; least squares errs on 0.01 % of new rows, softmax on 1 %.
    "gaussian-classes": lambda: _gaussian_classes(separation=0.5, scale=8.6),
    # The same with means as far apart as rows are spread; optimum 0.716.
    "gaussian-classes-unit": lambda: _gaussian_classes(separation=1.0, scale=1.0),
}


def load(name: str, mmap: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """A named problem: X float32 of shape (n, d) in C order, y of class indices 0..k-1."""
    folder = CACHE / name
    if not (folder / "y.npy").exists():
        X, y = PROBLEMS[name]()
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "X.npy", np.ascontiguousarray(X))
        np.save(folder / "y.npy", y)
    return np.load(folder / "X.npy", mmap_mode="r" if mmap else None), np.load(folder / "y.npy")
