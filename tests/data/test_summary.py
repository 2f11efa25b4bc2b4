"""Rows and columns are equal where all their numbers are."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import analyze
from manyclass.data import as_rows
from manyclass.data.rows import Rows
from manyclass.data.summary import column_keys, row_keys
from manyclass.fit.held_out import copies_of_rows

N = 600
COLUMNS = {
    "offset": 1e12 + np.arange(N),
    "milliseconds": 1.7e12 + np.arange(N),
    "filled with 1e30": np.where(np.arange(N) % 7, np.arange(N), 1e30),
    "filled with 2**63": np.where(np.arange(N) % 7, np.arange(N), 2.0**63),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_rows_beside_a_column_of_large_numbers_differ_by_what_else_they_hold(column):
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    X = np.column_stack([column, y + rng.normal(size=N), rng.integers(0, 10, N), column + (np.arange(N) == 3)])
    report = analyze(X, y)
    assert (report.rows.n_repeated, report.rows.n_contradicting) == (0, 0)
    assert len(np.unique(copies_of_rows(as_rows(X), y))) == N
    twice = analyze(np.vstack([X, X[:5]]), np.append(y, 1 - y[:5]))
    assert (twice.rows.n_repeated, twice.rows.n_contradicting) == (10, 10)
    assert report.columns.duplicated == ()


def test_keys_are_those_of_the_numbers_however_they_are_held(monkeypatch):
    X = np.random.default_rng(0).integers(-2, 3, (300, 4)).astype(np.float32)
    X[:3] = 0.0
    rows, columns = row_keys(as_rows(X)), column_keys(as_rows(X))
    _, expected = np.unique(X, axis=0, return_inverse=True)
    assert len(np.unique(np.column_stack([rows, expected.astype(np.uint64)]), axis=0)) == expected.max() + 1
    assert len(np.unique(rows)) == expected.max() + 1
    stored_zeros = sp.csr_array(X)
    stored_zeros.data[:5] = 0.0
    filled = stored_zeros.toarray()
    monkeypatch.setattr(Rows, "rows_per_block", lambda *_: 7)
    for held in (
        X,
        np.where(X == 0, -0.0, X),
        X.astype(np.float64),
        X.astype(np.int64),
        sp.csr_array(X),
        X[:, ::-1][:, ::-1],
    ):
        np.testing.assert_array_equal(row_keys(as_rows(held)), rows)
        np.testing.assert_array_equal(column_keys(as_rows(held)), columns)
    np.testing.assert_array_equal(row_keys(as_rows(stored_zeros)), row_keys(as_rows(filled)))
    np.testing.assert_array_equal(column_keys(as_rows(stored_zeros)), column_keys(as_rows(filled)))
