"""What estimators make of the rows they are given to fit."""

import datetime
import io
import os

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from manyclass import GLMClassifier, analyze
from manyclass.data import as_rows, memory, validation
from manyclass.data.validation import check_rows, check_weights
from manyclass.features import TableEncoder

N, D = 60, 7


def by_columns(X):
    return np.asfortranarray(X)


def every_second(X):
    return np.repeat(X, 2, axis=1)[:, ::2]


def backwards(X):
    return X[::-1].copy()[::-1]


def some_columns(X):
    return np.concatenate([X, X], axis=1)[:, : X.shape[1]]


def held(X, **options):
    rows, _ = check_rows(GLMClassifier(), X, np.arange(len(X)) % 2, reset=True, many_passes=True, **options)
    return rows.X


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8"])
@pytest.mark.parametrize("lay", [by_columns, every_second, backwards])
def test_rows_to_fit_lie_one_after_the_other(lay, dtype, rng):
    X = (10 * rng.random((N, D))).astype(dtype)
    given = lay(X)
    found = held(given)
    assert not given.flags.c_contiguous and found.flags.c_contiguous
    np.testing.assert_array_equal(found, X)


def test_rows_in_order_are_not_copied_nor_what_there_is_no_room_for(rng, monkeypatch, tmp_path):
    X = rng.standard_normal((N, D))
    for given in (X, some_columns(X)):
        assert np.shares_memory(held(given), given)
    given = by_columns(X)
    assert np.shares_memory(held(given, memory_limit=2 * X.nbytes), given)
    monkeypatch.setattr(validation, "room_for", lambda limit: X.nbytes)
    assert np.shares_memory(held(given), given)


def test_what_is_not_there_is_not_made():
    for given in (np.broadcast_to(np.ones(D), (N, D)), np.broadcast_to(np.ones((N, 1)), (N, D))):
        assert 0 in held(given).strides


def test_mapped_files_stay_where_they_are(rng, tmp_path):
    np.save(tmp_path / "X.npy", by_columns(rng.standard_normal((N, D))))
    given = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert given.flags.f_contiguous and np.shares_memory(held(given), given)


def test_the_memory_that_is_free_is_what_the_system_says(monkeypatch):
    told = b"MemTotal:       24576000 kB\nMemFree:          524288 kB\nMemAvailable:    2097152 kB\nBuffers: 9 kB\n"
    monkeypatch.setattr(memory, "open", lambda *path, **options: io.BytesIO(told), raising=False)
    assert memory.free_memory() == 1024 * 2097152


def test_memory_is_guessed_where_the_system_says_nothing(monkeypatch):
    """As on macOS, which has neither the file nor the name."""

    def open_nothing(*path, **options):
        raise FileNotFoundError

    monkeypatch.setattr(memory, "open", open_nothing, raising=False)
    monkeypatch.setattr(os, "sysconf_names", {}, raising=False)
    assert memory.free_memory() == 8e9


def unsorted(X):
    """The same matrix with the entries of each row the other way round."""
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)])
    return sp.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def stored_where(rows, columns, n_columns):
    """Ones, in the order given."""
    rows, order = np.asarray(rows), np.argsort(rows, kind="stable")
    indptr = np.searchsorted(rows[order], np.arange(rows.max() + 2))
    return sp.csr_array((np.ones(len(rows)), np.asarray(columns)[order], indptr), shape=(rows.max() + 1, n_columns))


@pytest.mark.parametrize("density", [0.05, 0.4, 1.0])
def test_sparse_rows_are_copied_only_where_a_place_has_several_entries(density, rng):
    X = unsorted(sp.csr_array(sp.random_array((N, D), density=density, rng=rng)))
    assert np.shares_memory(as_rows(X).X.data, X.data)
    row = int(np.argmax(np.diff(X.indptr)))
    where = X.indptr[row]
    indices = np.insert(X.indices, where, X.indices[where])
    twice = sp.csr_array((np.insert(X.data, where, 3.0), indices, X.indptr + (np.arange(N + 1) > row)), shape=X.shape)
    rows = as_rows(twice)
    assert rows.X.nnz == X.nnz and twice.nnz == X.nnz + 1
    np.testing.assert_allclose(rows.X.toarray(), twice.toarray())


def test_entries_of_one_row_in_neighbouring_columns_are_no_repetition():
    X = stored_where([0, 0, 0, 1, 1], [2, 1, 0, 2, 1], 3)  # each column begins with the row the one before ended with
    assert np.shares_memory(as_rows(X).X.data, X.data)
    twice = as_rows(stored_where([0, 0, 0, 0, 1], [2, 1, 0, 2, 1], 3)).X
    np.testing.assert_array_equal(twice.toarray(), [[1, 1, 2], [0, 1, 0]])


def test_rows_to_be_taken_apart_are_sorted_once(rng):
    X = unsorted(sp.csr_array(sp.random_array((N, D), density=0.4, rng=rng)))
    rows = as_rows(X).canonical()
    assert rows.X.has_canonical_format and rows.canonical() is rows and not X.has_sorted_indices
    np.testing.assert_array_equal(rows.X.toarray(), X.toarray())


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_are_refused_in_a_sentence(layout):
    torch = pytest.importorskip("torch")
    X = getattr(torch.eye(6), layout)()
    with pytest.raises(TypeError, match=r"pass a scipy\.sparse\.csr_array"):
        GLMClassifier().fit(X, torch.arange(6) % 2)


@pytest.mark.parametrize(("size", "dtype"), [(1e300, np.float64), (1e-300, np.float64), (1e38, np.float32)])
def test_weights_beyond_the_sums_are_refused_in_a_sentence(size, dtype):
    X, y = np.arange(8).reshape(4, 2).astype(dtype), np.arange(4) % 2
    with pytest.raises(ValueError, match=r"Rows weigh .* divide their weights by the mean"):
        GLMClassifier().fit(X, y, sample_weight=size * np.arange(1, 5))


def test_class_weights_are_at_most_one_where_they_are_relative():
    rows, y = as_rows(np.ones((6, 2))), np.array([0, 0, 0, 0, 0, 1])
    weights = check_weights(rows, y, None, "balanced", relative=True)
    np.testing.assert_allclose(weights, [0.2] * 5 + [1.0])
    weights = check_weights(rows, np.zeros(6, dtype=int), None, {0: 1.0, 1: 50.0}, is_part=True, relative=True)
    np.testing.assert_allclose(weights, 1.0 / 50.0)  # of a part that has none of the heavy class, too
    weights = check_weights(rows, np.c_[y, 1 - y], None, "balanced", relative=True)
    assert weights.max() == 1.0 and weights.min() < 0.1
    assert check_weights(rows, y, None, "balanced").max() == pytest.approx(3.0)
    zero = check_weights(rows, y, [1.0, 1, 1, 1, 1, 0], "balanced", relative=True)
    assert np.isfinite(zero).all() and zero[-1] == 0.0


def test_class_weights_of_several_labels_are_a_dict_for_each(rng):
    X, Y = rng.standard_normal((N, D)), rng.integers(2, size=(N, 2))
    listed = GLMClassifier(1e-2, tol=1e-8, class_weight=[{0: 1, 1: 5}, {0: 2, 1: 1}]).fit(X, Y)
    weighted = GLMClassifier(1e-2, tol=1e-8).fit(X, Y, np.where(Y[:, 0], 5, 1) * np.where(Y[:, 1], 1, 2))
    np.testing.assert_allclose(listed.coef_, weighted.coef_, atol=1e-5)
    for class_weight, y in (({0: 1, 1: 5}, Y), ([{0: 1, 1: 5}], Y[:, 0]), ([1, 5], Y)):
        with pytest.raises(ValueError, match="class_weight of several labels is 'balanced' or a list with a dict for"):
            GLMClassifier(class_weight=class_weight).fit(X, y)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_columns_of_dates_are_named(zone):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"size": np.arange(6.0), "when": pd.date_range("2026-01-01", periods=6, tz=zone)})
    with pytest.raises(ValueError, match=r"Column 'when' of X holds dates or times .* or leave it out"):
        GLMClassifier().fit(X, np.arange(6) % 2)
    make_pipeline(TableEncoder(), GLMClassifier()).fit(X, np.arange(6) % 2)
    assert analyze(X, np.arange(6) % 2).rows.n_table_columns == 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_text_and_frames_without_rows_are_named(library):
    def judge(X, y):
        return GLMClassifier().fit(X, y)

    frames, y = pytest.importorskip(library), np.arange(6) % 2
    X = {"size": np.arange(6.0), "digits": list("123456"), "colour": np.where(y, "red", "7").tolist()}
    with pytest.raises(ValueError, match=r"Column 'colour' of X holds text \('red'\) .* or leave it out"):
        judge(frames.DataFrame(X), y)
    assert analyze(frames.DataFrame(X), y).rows.n_table_columns == 3
    X["colour"] = [datetime.date(2026, 1, 1 + day) for day in range(6)]
    if library == "polars":
        with pytest.raises(ValueError, match="Column 'colour' of X holds dates or times"):
            judge(frames.DataFrame(X), y)
        with pytest.raises(ValueError, match=r"lazy frame, which holds no rows yet: give X\.collect\(\)"):
            judge(frames.DataFrame(X).lazy(), y)
        with pytest.raises(ValueError, match=r"lazy frame, which holds no rows yet: give X\.collect\(\)"):
            analyze(frames.DataFrame(X).lazy(), y)
    del X["colour"]
    judge(frames.DataFrame(X), y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("judge", [lambda X, y: GLMClassifier().fit(X, y), analyze])
def test_missing_labels_are_refused_alike(judge):
    y = np.where(np.arange(6) < 1, np.nan, np.arange(6) % 2)
    with pytest.raises(ValueError, match="Input y contains NaN: some of it is missing; drop these rows"):
        judge(np.arange(12.0).reshape(6, 2), y)


@pytest.mark.parametrize("judge", [lambda X, y: GLMClassifier().fit(X, y), analyze])
def test_columns_of_complex_numbers_or_of_one_name_are_named(judge):
    pd, y = pytest.importorskip("pandas"), np.arange(6) % 2
    X = pd.DataFrame({"size": np.arange(6.0), "wave": 1j * np.arange(6)})
    with pytest.raises(ValueError, match=r"Complex data not supported: .* of column 'wave' of X"):
        judge(X, y)
    with pytest.raises(ValueError, match="Two columns of X are called 'size': rename one"):
        judge(pd.concat([X[["size"]], X[["size"]]], axis=1), y)


def test_columns_of_tables_and_frames_are_matched_by_name(rng):
    pd, X, y = pytest.importorskip("pandas"), rng.standard_normal((N, 3)), np.arange(N) % 3
    frame, labels = pd.DataFrame(X, columns=list("abc")), pa.array(list(map(str, y)))
    turned = frame[["c", "a", "b"]]
    for fitted_to, other in ((frame, pa.table(turned)), (pa.table(frame), pa.table(turned))):
        model = GLMClassifier().fit(fitted_to, labels)
        assert list(model.feature_names_in_) == list("abc")
        np.testing.assert_array_equal(model.predict(other), model.predict(frame))
        with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
            model.predict(turned)
        model.fit(as_rows(X), labels)
        assert not hasattr(model, "feature_names_in_")
