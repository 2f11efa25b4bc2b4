import numpy as np
import pytest
import scipy.sparse as sp
from array_api_compat import numpy as xp

from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.data.targets import FEW, column_totals


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 1.0), (0.0, 2.0)])
@pytest.mark.parametrize("n_rows", [30, FEW])
def test_classes_are_columns_of_two_values(values, n_rows, rng):
    codes, like = rng.integers(4, size=n_rows), np.zeros(0, dtype=np.float32)
    targets, weight = ClassTargets(codes, 4, values), rng.random(n_rows).astype(np.float32)
    Y = np.where(codes[:, None] == np.arange(4), values[1], values[0])
    dense = targets.dense(slice(5, 25), like, xp)
    assert dense.dtype == np.float32
    np.testing.assert_array_equal(dense, Y[5:25])
    for s in (None, weight):
        held = targets.weighted(slice(None), s, like, xp)
        assert sp.issparse(held) == (n_rows == FEW and not values[0])
        expected = Y if s is None else Y * s[:, None]
        np.testing.assert_allclose(held.toarray() if sp.issparse(held) else held, expected, rtol=1e-6)
        np.testing.assert_allclose(column_totals(held, xp), expected.sum(axis=0), rtol=1e-5)
        np.testing.assert_allclose(MatrixTargets(Y).weighted(slice(None), s, like, xp), expected, rtol=1e-6)


@pytest.mark.parametrize("values", [(0.0, 1.0), (-1.0, 1.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_totals_are_the_sums_of_the_columns(values, weighted, rng):
    rows, codes = as_rows(rng.standard_normal((70, 2))), rng.integers(5, size=70)
    weight = rng.uniform(size=70) if weighted else None
    targets = ClassTargets(codes, 6, values)
    Y = targets.dense(slice(None), np.zeros(0), np)
    expected = Y.sum(axis=0) if weight is None else weight @ Y
    np.testing.assert_allclose(targets.totals(weight, rows), expected, rtol=1e-12)
    np.testing.assert_allclose(MatrixTargets(Y).totals(weight, rows), expected, rtol=1e-12)
