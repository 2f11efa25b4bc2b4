"""Rows that are slow to read: from the third pass on from a temporary file."""

import os
from contextlib import closing

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import SDCAClassifier
from manyclass.data import ChunkedRows, spooled
from manyclass.data.spooled import Spooled
from manyclass.data.stores import Repeated, Transformed, Whole, stacked

N_ROWS = 500


class Counted:
    """A store, and how often it was read from its beginning."""

    def __init__(self, X):
        self.n_passes, self.X = 0, X
        self.store = Spooled(Repeated(self.read, X.shape[0]))

    def read(self, n_rows):
        self.n_passes += 1
        return (self.X[start : start + n_rows] for start in range(0, self.X.shape[0], n_rows))


def matrices(rng):
    sparse = sp.random_array((N_ROWS, 30), density=0.1, rng=rng, format="csr")
    gone = sparse.copy()
    gone.data[:] = np.where(np.arange(gone.nnz) < 200, 0.0, gone.data)
    gone.eliminate_zeros()
    dense = rng.standard_normal((N_ROWS, 7))
    return {"dense": dense, "float32": dense.astype(np.float32), "half": dense.astype(np.float16)} | {
        "sparse": sparse,
        "sparse float32": sparse.astype(np.float32),
        "empty rows first": gone,
    }


@pytest.fixture(params=matrices(np.random.default_rng(0)))
def rows(request, rng):
    return matrices(rng)[request.param]


def as_dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


def test_later_passes_are_the_rows(rows, rng):
    counted = Counted(rows)
    for n_rows in (64, 100, 33, 500, 7):
        found = list(counted.store.chunks(n_rows))
        assert {chunk.dtype for chunk in found} == {rows.dtype}
        assert sp.issparse(found[0]) == sp.issparse(rows)
        np.testing.assert_array_equal(as_dense(stacked(found)), as_dense(rows))
    assert counted.n_passes == 2 and counted.store.has_random_access
    index = rng.integers(N_ROWS, size=77)
    np.testing.assert_array_equal(as_dense(counted.store.take(index)), as_dense(rows)[index])
    np.testing.assert_array_equal(as_dense(counted.store.read(13, 301)), as_dense(rows)[13:301])
    assert counted.store.take(index[:0]).shape == (0, rows.shape[1])


def test_what_ends_early_is_not_taken_for_all(rows):
    counted = Counted(rows)
    list(counted.store.chunks(50))
    for _ in range(3):
        with closing(counted.store.chunks(50)) as chunks:
            next(chunks)
    assert not counted.store.has_random_access
    list(counted.store.chunks(50))
    np.testing.assert_array_equal(as_dense(stacked(list(counted.store.chunks(50)))), as_dense(rows))


@pytest.mark.parametrize("reason", ["full", "small", "absent"])
def test_without_room_rows_are_read_again(rows, monkeypatch, tmp_path, reason):
    if reason == "small":
        monkeypatch.setattr(spooled, "DISK_SHARE", 0.0)
    elif reason == "absent":
        monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    else:

        class Full:
            def write(self, data):
                raise OSError(28, "No space left on device")

            def close(self):
                pass

        monkeypatch.setattr(spooled.tempfile, "TemporaryFile", lambda dir: Full())
    counted = Counted(rows)
    for _ in range(4):
        np.testing.assert_array_equal(as_dense(stacked(list(counted.store.chunks(99)))), as_dense(rows))
    assert counted.n_passes == 4 and not counted.store.has_random_access


def test_fewer_rows_than_announced_are_not_taken_for_all(rows):
    store = Spooled(Repeated(lambda n_rows: iter([rows]), N_ROWS + 1))
    for _ in range(3):
        list(store.chunks(50))
    assert not store.has_random_access


def test_chunks_are_no_larger_than_what_they_are_made_of(rows):
    made = Transformed(Whole(rows), lambda chunk: chunk, row_bytes=1000.0)
    assert max(part.n_rows for _, part in ChunkedRows(made, chunk_bytes=20_000).blocks(N_ROWS)) == 20


def test_no_file_is_left(rows, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    counted = Counted(rows)
    for _ in range(3):
        list(counted.store.chunks(50))
    assert counted.store.has_random_access and not os.listdir(tmp_path)


def test_sorted_text_is_mixed(rng, tmp_path):
    """Where chunks come in the order of a file that is sorted by class, each pass forgets what the last chunk tells."""
    X = rng.standard_normal((6000, 40))
    y = np.sort(rng.integers(4, size=6000))
    X[np.arange(6000), y] += 2.0
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",", fmt="%.6g")
    model = SDCAClassifier("softmax", alpha=1e-3, random_state=0)
    whole = model.fit(X, y).n_iter_
    assert model.fit(tmp_path / "rows.csv", memory_limit="3MB").n_iter_ <= 2 * whole
    assert model.status_.name == "CONVERGED"
