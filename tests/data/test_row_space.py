"""Rows in as many dimensions as there are rows."""

import numpy as np
import pytest
from scipy import sparse

from manyclass import GLMClassifier, SDCAClassifier
from manyclass.data import as_rows
from manyclass.data.row_space import RowSpace


@pytest.mark.parametrize("is_sparse", [False, True])
def test_models_keep_their_scores_on_the_way_back_from_the_space_of_the_rows(is_sparse):
    """In float32, with columns of very different size: combinations of rows that nearly cancel were rounded."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((44, 45)) * 10.0 ** rng.uniform(-3.0, 3.0, 45)).astype(np.float32)
    rows = as_rows(sparse.csr_array(X) if is_sparse else X)
    space = RowSpace(rows, None if is_sparse else rows.mean())
    B = rng.standard_normal((space.rows.n_features, 3)).astype(np.float32)
    B /= np.maximum(np.abs(space.rows.X).max(axis=0), 1e-3)[:, None]
    W, b = space.lift(B, np.zeros(3, dtype=np.float32))
    wide = X.astype(np.float64)
    error = np.abs(wide @ W + b - space.rows.X.astype(np.float64) @ B)
    size = np.abs(wide) @ np.abs(W) + np.abs(b)
    assert W.dtype == np.float32
    assert (error <= 10.0 * np.finfo(np.float32).eps * size + 1e-5).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_column_in_large_units_hides_nothing_of_the_others(dtype, rng):
    """In squares of the rows it would: of 1e7 against 1 float64 keeps two digits."""
    X = rng.standard_normal((100, 150))
    y = (X @ rng.standard_normal(150) > 0).astype(int)
    X[:, 0] *= 1e7
    X = X.astype(dtype)
    one, other = GLMClassifier().fit(X, y), SDCAClassifier("logistic", random_state=0).fit(X, y)
    losses = [
        np.logaddexp(0, -(2 * y - 1) * model.decision_function(X)).mean() + 0.5e-4 * np.sum(model.coef_**2)
        for model in (one, other)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=2e-3)
