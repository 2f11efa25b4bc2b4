"""Files opened in every way there is, and what has to be true of whatever comes out."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy import sparse

from manyclass import ClassMoments, Moments
from manyclass.cli import modelfile
from manyclass.data import ChunkedRows, Rows
from manyclass.data.cells import unusable_cell
from manyclass.data.readers import DataFileError, Dataset, read, stored
from manyclass.data.readers.dataset import as_features
from manyclass.data.stored_table import StoredTable
from manyclass.data.stores import Store, stacked
from manyclass.export import load_coefficients
from manyclass.features import TableEncoder
from manyclass.fit import Checkpoint, CheckpointError
from tests.fuzz import seeds

_LONGEST_SENTENCE = 1000
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK", b"PAR1")
_OPTIONS: tuple[dict[str, Any], ...] = (
    *({} for _ in range(6)),
    {"target": False},
    {"target": "a"},
    {"labels": 1},
    {"features": 3},
    {"features": ("a", "b")},
    {"drop": ("a",)},
    {"drop": (-1,)},
    {"header": True},
    {"header": False},
    {"dtype": np.float32},
    {"multilabel": True},
    {"multilabel": False},
    {"zero_based": True},
    {"zero_based": False},
)


def check_refusal(refusal: Exception, path: Path) -> None:
    """One sentence; and no file of kilobytes may ask for the gigabytes at which the process that fuzzes is stopped."""
    text = str(refusal).removesuffix("." if isinstance(refusal, CheckpointError) else "")
    assert str(path.parent) in text, f"does not name the file: {text[:200]}"
    assert text.isprintable(), f"is not one line: {text[:200]!r}"
    assert len(text) < _LONGEST_SENTENCE, f"has {len(text)} characters: {text[:200]}"
    assert text[-1] not in " .,:;", f"ends badly: {text[-200:]}"
    error: BaseException | None = refusal
    while error is not None:
        assert not isinstance(error, MemoryError), f"asks for too much memory: {text}"
        error = error.__cause__ or error.__context__


def check_dataset(dataset: Any, path: Path) -> int:
    """The number of rows."""
    X, y = dataset.X, dataset.y
    assert X.ndim == 2 and X.dtype in (np.float32, np.float64), (X.ndim, X.dtype)
    if sparse.issparse(X):
        X.check_format(full_check=True)
    for names, width in (
        (dataset.feature_names, X.shape[1]),
        (dataset.label_names, y.shape[-1] if y is not None else 0),
    ):
        assert names is None or len(names) == width, (names, width)
    if y is not None:
        assert len(y) == X.shape[0], (X.shape, y.shape)
        assert y.dtype.kind in "biufU" and not (y.dtype.kind == "f" and np.isnan(y).any()), y
    content = path.read_bytes()
    if not content.startswith(_COMPRESSED):
        assert X.shape[0] <= len(content), (X.shape, len(content))
    unusable_cell(dataset.X)
    return X.shape[0]


def rows(path: Path, rng: Random) -> None:
    """Whole, and where they lie: the same rows, as far as they can be read."""
    options = rng.choice(_OPTIONS)
    if rng.random() < 0.1:  # known by its content alone
        path = path.rename(path.with_suffix(""))
    found: list[Any] = []
    counts, refusals = set(), []
    for way in (_whole, _where_they_lie):
        # A few bytes may be compressed rows by the million, which are no fault; two at a time they would take minutes.
        few = max([2, *(count // 256 for count in counts)])
        try:
            dataset, n_rows = way(path, few, options)
        except DataFileError as error:
            check_refusal(error, path)
            refusals.append(error)
            continue
        counts.add(n_rows)
        if dataset is not None:
            found.append(dataset)
    assert len(counts) <= 1, counts
    if not counts:
        raise refusals[0]
    for other in found[1:]:
        check_same(found[0], other)


def _whole(path: Path, few: int, options: dict[str, Any]) -> tuple[Any, int]:
    dataset = read(path, **options)
    return dataset, check_dataset(dataset, path)


def _where_they_lie(path: Path, few: int, options: dict[str, Any]) -> tuple[Dataset, int]:
    found = stored(path, **options)
    store = found.X
    chunks = list(store.chunks(few))
    assert chunks, store.n_rows
    X = as_features(stacked(chunks))
    dataset = Dataset(X, found.y, found.feature_names, found.target_name, found.label_names)
    assert store.n_rows == X.shape[0], (store.n_rows, X.shape)
    ends = np.array([store.n_rows - 1, 0])
    _check_equal(store.take(ends), X[ends])
    return dataset, check_dataset(dataset, path)


def check_same(one: Any, other: Any) -> None:
    """Rows and labels of two datasets."""
    _check_equal(one.X, other.X)
    assert (one.y is None) == (other.y is None), (one.y, other.y)
    if one.y is not None:
        assert one.y.dtype.kind == other.y.dtype.kind, (one.y.dtype, other.y.dtype)
        assert np.array_equal(one.y, other.y), f"other labels: {one.y} and {other.y}"
    assert (one.feature_names, one.label_names) == (other.feature_names, other.label_names), "other names"


def _check_equal(one: Any, other: Any) -> None:
    assert one.shape == other.shape, f"other shapes: {one.shape} and {other.shape}"
    assert sparse.issparse(one) == sparse.issparse(other), (type(one), type(other))
    parts = ("data", "indices", "indptr") if sparse.issparse(one) else ()
    for a, b in [(getattr(one, part), getattr(other, part)) for part in parts] or [(one, other)]:
        # In the coarser of the two: whoever reads in chunks cannot know that all that follows is small whole numbers.
        kind = min(a.dtype, b.dtype, key=lambda dtype: dtype.itemsize)
        assert np.array_equal(a.astype(kind), b.astype(kind), equal_nan=True), f"other rows: {a} and {b}"


def tables(path: Path, rng: Random) -> None:
    """Rows that may hold text, dates and gaps, whole and where they lie, and the numbers that are made of them."""
    counts, refusals = set(), []
    for way in (read, stored):
        try:
            found = way(path, kinds={})
            X = found.X if way is read else StoredTable(found.X, _all_at_once, 1e6) if found.X.kinds else None
            counts.add(found.X.shape[0] if way is read else found.X.n_rows)
            if X is not None:
                _check_encoded(X) if way is stored or found.is_table else check_dataset(found, path)
        except DataFileError as error:
            check_refusal(error, path)
            refusals.append(error)
    assert len(counts) <= 1, counts
    if not counts:
        raise refusals[0]


def _all_at_once(store: Store) -> Rows:
    return ChunkedRows(store, whole_bytes=1e9)


def _check_encoded(table: Any) -> None:
    encoder = TableEncoder()
    try:
        X = encoder.fit_transform(table)
        X = X.unwrapped() if isinstance(X, ChunkedRows) else X
    except ValueError as error:
        if isinstance(error, DataFileError):
            raise
        assert str(error).startswith(("Column ", "No column of X")), error
        return
    assert X.shape == (table.shape[0], encoder.n_features_out), (X.shape, table.shape)
    assert np.isfinite(X.data if sparse.issparse(X) else X).all(), X
    again = encoder.transform(table)
    _check_equal(again.unwrapped() if isinstance(again, ChunkedRows) else again, X)


def labels(path: Path, rng: Random) -> None:
    beside = path.with_name("rows.npy")
    np.save(beside, seeds.X)
    check_dataset(read(beside, labels=path), beside)


def label_names(path: Path, rng: Random) -> None:
    beside = path.with_name("rows.arff")
    beside.write_text(seeds.SPARSE_ARFF)
    check_dataset(read(beside, labels=path), beside)


def folder(path: Path, rng: Random) -> None:
    """What ``save_to_disk`` writes: Arrow files, and the damaged one that lists them."""
    inside = path.with_name("rows")
    inside.mkdir(exist_ok=True)
    for name in seeds.LISTED:
        (inside / name).write_bytes(seeds.FILES["arrow"][1])
    (inside / "state.json").write_bytes(path.read_bytes())
    found = stored(inside)
    n_rows = sum(chunk.shape[0] for chunk in found.X.chunks(2))
    assert n_rows == found.X.n_rows == len(found.y) > 0, (n_rows, found.X.n_rows, len(found.y))


def model(path: Path, rng: Random) -> None:
    found = modelfile.load(path)
    predicted = found.estimator.predict(found.schema.blank())
    assert predicted.shape == ((2, len(found.schema.labels)) if found.schema.multilabel else (2,))
    assert found.schema.multilabel or set(predicted) <= set(found.schema.classes)


def moments(path: Path, rng: Random) -> None:
    _check_moments(Moments.load(path))


def class_moments(path: Path, rng: Random) -> None:
    found = ClassMoments.load(path)
    _check_moments(found.features)
    k, d = len(found.classes), found.n_features
    assert found.counts.shape == found.weights.shape == (k,) and found.sums.shape == (k, d), (k, d)
    assert (found.counts >= 0).all() and np.isfinite(found.weights).all() and np.isfinite(found.sums).all()
    assert isinstance(found.multilabel, bool) and isinstance(found.about, dict), (found.multilabel, found.about)
    assert found.merge(found).n == 2 * found.n


def _check_moments(found: Moments) -> None:
    d, k = found.xy.shape
    shapes = [array.shape for array in (found.xx, found.x, found.y, found.pilot, found.target_pilot)]
    assert shapes == [(d, d), (d,), (k,), (d,), (k,)], shapes
    assert type(found.n) is int and found.n >= 0, found.n
    numbers = (found.weight, found.yy)
    assert all(type(number) in (int, float) and np.isfinite(number) for number in numbers), numbers
    assert all(np.isfinite(array).all() for array in (found.xx, found.xy, found.x, found.y))


def checkpoint(path: Path, rng: Random) -> None:
    assert isinstance(Checkpoint(path, seeds.BELONGS_TO).read(), dict)


def coefficients(path: Path, rng: Random) -> None:
    arrays, description = load_coefficients(path)
    coef, intercept = arrays["coef"], arrays["intercept"]
    assert coef.ndim == 2 and intercept.shape == coef.shape[:1], (coef.shape, intercept.shape)
    assert coef.dtype.kind == intercept.dtype.kind == "f" and isinstance(description, dict), (coef.dtype, description)
