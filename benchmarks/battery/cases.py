"""The data of the battery: every set at hand in several forms, a seeded grid of shapes, and files by path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from benchmarks import data
from benchmarks.battery import drawn
from benchmarks.text import newsgroups_texts
from manyclass.data.readers import read

ALPHAS = (1e-2, 1e-4, 1e-6)
Pair = tuple[Any, np.ndarray]
TABULAR = ("letter", "satimage", "optdigits", "ecoli", "adult", "shuttle", "kddcup", "connect_4", "krkopt")
DRAWN = "drawn-"
"""Before the seed of rows drawn at random."""
LARGEST_QUICK = 2e7
"""Numbers in X times classes, above which a quick run leaves a case out."""


def registry() -> dict[str, Callable[[], Pair]]:
    """Name → rows, of what needs no file and of what the data folder holds."""
    found: dict[str, Callable[[], Pair]] = dict(_bundled())
    found |= dict(_shapes())
    folder = data.found_data_dir()
    if folder is not None:
        found |= dict(_real(folder))
    return found


def arrays(name: str) -> Pair:
    """X (dense or CSR) and y: of a case, from the cache once it has been made; of a file by path; or drawn by seed."""
    path, _, form = name.partition("@")
    if data.is_file(path):
        X, y = data.rows(path)
        return (_standardised(X) if form == "standardised" else X), y
    if name.startswith(DRAWN):
        return drawn.arrays(int(name.removeprefix(DRAWN)))
    folder = data.CACHE / "battery" / name
    if not (folder / "y.npy").exists():
        X, y = registry()[name]()
        folder.mkdir(parents=True, exist_ok=True)
        if sparse.issparse(X):
            sparse.save_npz(folder / "X.npz", sparse.csr_matrix(X), compressed=False)
        else:
            np.save(folder / "X.npy", np.ascontiguousarray(X))
        np.save(folder / "y.npy", y)
    y = np.load(folder / "y.npy", allow_pickle=False)
    return (sparse.load_npz(folder / "X.npz") if (folder / "X.npz").exists() else np.load(folder / "X.npy")), y


def is_sparse(name: str) -> bool:
    folder = data.CACHE / "battery" / name
    if (folder / "y.npy").exists():
        return (folder / "X.npz").exists()
    return sparse.issparse(arrays(name)[0])


def forms(path: str) -> list[str]:
    """A file as it is, and standardised where that keeps it dense."""
    X, _ = data.rows(path)
    return [path] if sparse.issparse(X) else [path, f"{path}@standardised"]


def _both(name: str, load: Callable[[], Pair]) -> Iterator[tuple[str, Callable[[], Pair]]]:
    def standardised() -> Pair:
        X, y = load()
        return _standardised(X), y

    yield f"{name}-raw", load
    yield name, standardised


def _standardised(X: Any) -> np.ndarray:
    return StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)).astype(np.float32)


def _bundled() -> Iterator[tuple[str, Callable[[], Pair]]]:
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield from _both(name, partial(getattr(datasets, f"load_{name}"), return_X_y=True))


def _real(folder: Path) -> Iterator[tuple[str, Callable[[], Pair]]]:
    for name in TABULAR:
        yield from _both(name, partial(data.rows, name))
    for name in ("a9a", "w8a"):
        yield name, partial(data.rows, name)
    yield from _both("pendigits", lambda: _dense(data.rows("pendigits")))
    yield "mnist", data.mnist
    yield "mnist-255", lambda: (data.mnist()[0] * np.float32(255), data.mnist()[1])
    for n in (5, 20):
        yield f"mnist-few-{n}", partial(_few, data.mnist, n)
    for min_df in (1, 3, 30):
        yield f"20news-tfidf-{min_df}", partial(_newsgroups, min_df)
    yield "20news-8-classes", partial(_newsgroups, 3, 8)
    for min_df in (1, 3, 10):
        yield f"banking77-tfidf-{min_df}", partial(_banking, folder, min_df)
    yield "banking77-few-5", partial(_few, partial(_banking, folder, 1), 5)
    for name in ("yeast", "scene", "bibtex", "delicious"):
        yield name, partial(_multilabel, folder / "multilabel" / name / name)


def _multilabel(stem: Path) -> Pair:
    found = read(stem.with_name(f"{stem.name}-train.arff.gz"), labels=stem.with_suffix(".xml"))
    assert found.y is not None
    return found.X, found.y


def _dense(pair: Pair) -> Pair:
    X, y = pair
    return X.toarray() if sparse.issparse(X) else X, y


def _few(load: Callable[[], Pair], per_class: int) -> Pair:
    X, y = load()
    rng = np.random.default_rng(0)
    chosen = [rng.choice(np.flatnonzero(y == c), per_class, replace=False) for c in np.unique(y)]
    index = np.sort(np.concatenate(chosen))
    return X[index], y[index]


def _newsgroups(min_df: int, n_classes: int | None = None) -> Pair:
    texts, groups = newsgroups_texts()["train"]
    X = TfidfVectorizer(min_df=min_df, dtype=np.float32).fit_transform(texts)
    y = np.unique(groups, return_inverse=True)[1]
    return (X, y) if n_classes is None else (X[y < n_classes], y[y < n_classes])


def _banking(folder: Path, min_df: int) -> Pair:
    table = pd.read_csv(folder / "banking77" / "train.csv")
    X = TfidfVectorizer(min_df=min_df, dtype=np.float32).fit_transform(table.iloc[:, 0])
    return X, np.unique(table.iloc[:, 1], return_inverse=True)[1]


def _shapes() -> Iterator[tuple[str, Callable[[], Pair]]]:
    """n from 1e2 to 1e6, d from 4 to 1e5, k from 2 to 2000; the extremes never all at once."""
    for n, d, k, options in (
        (100, 4, 2, {}),
        (100, 3000, 5, {}),
        (300, 5000, 10, {"decay": 1.0}),
        (1000, 600, 26, {"decay": 0.7}),
        (1000, 30, 3, {"offset": 1e3}),
        (3000, 20, 4, {"scales": 6.0}),
        (3000, 1000, 20, {"decay": 1.0, "noise": 0.3}),
        (8000, 768, 1000, {"unit": True}),
        (10_000, 300, 2, {"decay": 0.5}),
        (10_000, 256, 100, {"decay": 1.5}),
        (20_000, 1000, 10, {"decay": 0.5}),
        (20_000, 64, 300, {"offset": 30.0}),
        (30_000, 512, 20, {"decay": 1.0, "scales": 2.0}),
        (50_000, 256, 50, {}),
        (100_000, 16, 10, {"decay": 1.0}),
        (200_000, 64, 5, {"rare": True}),
        (1_000_000, 8, 2, {"scales": 3.0}),
        (20_000, 256, 2000, {"unit": True}),
    ):
        yield f"gauss-{n}x{d}-k{k}" + "".join(f"-{key}" for key in options), partial(gaussian, n, d, k, **options)
    for n, d, k, density in (
        (300, 1500, 5, 2e-2),
        (2000, 20_000, 8, 3e-3),
        (10_000, 100_000, 20, 5e-4),
        (50_000, 2000, 10, 1e-2),
        (100_000, 1000, 3, 1e-2),
        (20_000, 5000, 200, 2e-3),
        (5000, 500, 4, 0.3),
    ):
        yield f"sparse-{n}x{d}-k{k}", partial(words, n, d, k, density)


def gaussian(
    n: int,
    d: int,
    k: int,
    *,
    decay: float = 0.0,
    noise: float = 1.0,
    offset: float = 0.0,
    scales: float = 0.0,
    unit: bool = False,
    rare: bool = False,
) -> Pair:
    """Gaussian classes in float32.

    Parameters
    ----------
    decay : float
        Standard deviations fall as i^-decay along random directions.
    noise : float
        Spread within a class over that of the class means in the leading directions.
    offset : float
        Mean of every column, in standard deviations.
    scales : float
        Columns differ in size by as many powers of ten.
    unit : bool
        Rows of unit length.
    rare : bool
        The first class has ten rows.
    """
    rng = np.random.default_rng([n, d, k])
    profile = np.arange(1, d + 1, dtype=np.float64) ** -decay
    means = rng.standard_normal((k, d)) * (2.0 / np.sqrt(min(d, 40)))
    means[:, 40:] *= 0.1
    y = rng.integers(0, k, n)
    if rare:
        y = np.where(y == 0, 1, y)
        y[rng.choice(n, 10, replace=False)] = 0
    X = np.empty((n, d), dtype=np.float32)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0] if d <= 1000 else None
    size = 10.0 ** rng.uniform(-scales / 2, scales / 2, d)
    for start in range(0, n, 8192):
        part = y[start : start + 8192]
        Z = (means[part] + noise * rng.standard_normal((len(part), d))) * profile
        Z = Z @ turn if turn is not None else Z
        if unit:
            Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        X[start : start + 8192] = Z * size + offset * size
    return X, y


def words(n: int, d: int, k: int, density: float) -> Pair:
    """Rows of unit length with Zipf frequencies of words, some of which a class prefers, in CSR float32."""
    rng = np.random.default_rng(n + d + k)
    per_row = max(int(density * d), 2)
    common = 1.0 / (np.arange(d) + 5.0)
    y = rng.integers(0, k, n)
    own = rng.integers(0, d, (k, max(d // (4 * k), 5)))
    columns = np.searchsorted(np.cumsum(common / common.sum()), rng.random((n, per_row))).clip(max=d - 1)
    mine = rng.random((n, per_row)) < 0.25
    columns[mine] = own[y[np.nonzero(mine)[0]], rng.integers(0, own.shape[1], int(mine.sum()))]
    X = sparse.csr_matrix(
        (np.ones(n * per_row, np.float32), columns.ravel().astype(np.int32), np.arange(0, n * per_row + 1, per_row)),
        shape=(n, d),
    )
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags_array((1.0 / norms).astype(np.float32)) @ X), y
