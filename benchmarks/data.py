"""Rows for the benchmarks: sets by name, or files by path.

``MANYCLASS_DATA`` names the folder with the real data sets; the default is ``../shared/data``, seen from the root of
the repository. Wherever a benchmark takes the name of a data set it takes a file as well, of any format that
`manyclass.data.readers` knows (LIBSVM, CSV, Parquet, NPZ, ...): ``TRAIN`` or ``TRAIN,TEST``; without a test file a part
of the rows is held out. What takes long to make is kept in benchmarks/.cache. Inside `at_most` sets are random parts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from manyclass.data.readers import DataFileError, companion_labels, read

ROOT = Path(__file__).resolve().parent
CACHE = ROOT / ".cache"
Rows = tuple[Any, np.ndarray]
Split = tuple[Any, np.ndarray, Any, np.ndarray]
"""X_train, y_train, X_test, y_test."""
_most: list[int | None] = [None]


@contextmanager
def at_most(n_rows: int | None) -> Iterator[None]:
    """Sets have at most so many training rows, and so many test rows, from here on."""
    _most.append(n_rows)
    try:
        yield
    finally:
        _most.pop()


def allowed(n_rows: int) -> int:
    """So many rows, or as many as `at_most` leaves of them."""
    return n_rows if _most[-1] is None else min(n_rows, _most[-1])


def part_of(*arrays: Any) -> tuple:
    """The same random rows of each, as many as are allowed, in their order."""
    n = arrays[0].shape[0]
    if allowed(n) == n:
        return arrays
    kept = np.sort(np.random.default_rng(0).permutation(n)[: allowed(n)])
    return tuple(array[kept] for array in arrays)


def cache() -> Path:
    """Where to keep what depends on how many rows are allowed; whole sets are in `CACHE` itself."""
    return CACHE if _most[-1] is None else CACHE / f"at-most-{_most[-1]}"


def data_dir() -> Path:
    path = found_data_dir()
    if path is None:
        raise SystemExit("There is no folder with the data sets: set MANYCLASS_DATA to it.")
    return path


def found_data_dir() -> Path | None:
    path = Path(os.environ.get("MANYCLASS_DATA", ROOT.parent.parent / "shared" / "data"))
    return path if path.is_dir() else None


def mnist(part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1] as float32 of shape (n, 784), digits as int64."""
    return part_of(*_images(data_dir() / "mnist", part))


def _images(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    path = folder / f"{ {'train': 'train', 'test': 't10k'}[part] }-images-idx3-ubyte.gz"
    found = read(path, labels=companion_labels(path))
    assert found.y is not None
    return found.X / np.float32(255), found.y.astype(np.int64)


def is_file(name: str) -> bool:
    """Whether this is a path rather than the name of a set."""
    return Path(name.partition(",")[0]).exists()


def title(name: str) -> str:
    """The name of a set, or that of a file without its folder and endings: good for a title and for a file name."""
    return Path(name.partition(",")[0]).name.partition(".")[0] if is_file(name) else name


def check_one_label(name: str, y: np.ndarray) -> None:
    if y.ndim == 2:
        raise SystemExit(f"{name} has several labels in a row, and this is for one: give a set that has one.")


def rows(name: str) -> Rows:
    """Training rows of a set in the folder, or all rows of a file; y as it is there."""
    return part_of(*_all_rows(name))


def _all_rows(name: str) -> Rows:
    if is_file(name):
        return _read(Path(name.partition(",")[0]))
    if name == "mnist":
        return _images(data_dir() / "mnist", "train")
    if name == "digits":  # comes with scikit-learn, and stands in where a set is not at hand
        X, y = load_digits(return_X_y=True)
        return X.astype(np.float32) / 16, y
    for path in (data_dir() / "libsvm" / f"{name}.gz", data_dir() / "tabular" / f"{name}.tsv.gz"):
        if path.exists():
            return _read(path)
    raise SystemExit(f"There is no data set and no file {name!r}.")


def split(name: str, test_size: float = 0.2, stratify: bool = False, several: bool = True) -> Split:
    """Training and test rows of a set or a file, labels as class codes 0 .. k − 1 (an indicator matrix as it is).

    Sets and files without test rows of their own are divided at random, the same way each time. Rows with several
    labels are refused unless they are wanted.
    """
    first, _, second = name.partition(",")
    own = Path(second) if second else (found_data_dir() or Path()) / "libsvm" / f"{name}.t.gz"  # where there is one
    if name == "mnist" or Path(name).is_dir():  # a folder of files named as those of MNIST
        folder = data_dir() / "mnist" if name == "mnist" else Path(name)
        X, y, X_test, y_test = *_images(folder, "train"), *_images(folder, "test")
    elif own.is_file():
        X, y = rows(first)
        X_test, y_test = _read(own, X.shape[1])
    else:
        X, y = rows(name)
        index = np.arange(X.shape[0])
        index, out = train_test_split(index, test_size=test_size, random_state=0, stratify=y if stratify else None)
        X, y, X_test, y_test = X[index], y[index], X[out], y[out]
    X, y, X_test, y_test = *part_of(X, y), *part_of(X_test, y_test)
    if not several:
        check_one_label(name, y)
    if y.ndim == 2:
        return X, y, X_test, y_test
    codes = np.unique(np.concatenate([y, y_test]), return_inverse=True)[1]
    return X, codes[: len(y)], X_test, codes[len(y) :]


def _read(path: Path, n_features: int | None = None) -> Rows:
    if path.is_dir():
        return _images(path, "train")
    try:
        found = read(path, features=n_features)
    except (DataFileError, OSError) as error:
        raise SystemExit(str(error)) from None
    if found.y is None:
        raise SystemExit(f"{path} holds no labels.")
    return found.X, found.y


def kept(file: str, name: str, work: Callable[[], Any]) -> Any:
    """What `work` gives, from a file of the cache where it has been done before."""
    path = cache() / f"{file}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    if name not in known:
        known[name] = work()
        print(name, known[name], flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(known, indent=1))
        unfinished.replace(path)
    return known[name]


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


def load(name: str, mmap: bool = False) -> Rows:
    """A problem of the above, X float32 of shape (n, d) in C order, or the rows of a file; y of class codes."""
    if is_file(name):
        X, y = rows(name)
        return X, np.unique(y, return_inverse=True)[1]
    folder = CACHE / name
    if not (folder / "y.npy").exists():
        X, y = PROBLEMS[name]()
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "X.npy", np.ascontiguousarray(X))
        np.save(folder / "y.npy", y)
    return np.load(folder / "X.npy", mmap_mode="r" if mmap else None), np.load(folder / "y.npy")
