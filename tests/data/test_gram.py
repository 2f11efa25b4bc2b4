import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import Design
from manyclass.data.gram import GramSum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1, 7, 300])  # 300 is mirrored in several tiles
def test_the_sum_over_blocks_is_the_gram_matrix_of_all_rows(dtype, order, size):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((90, size)), dtype=dtype, order=order)
    weight = rng.uniform(0, 2, 90).astype(dtype)
    sums = GramSum(Design(X))
    for start in (0, 13, 60):
        stop = {0: 13, 13: 60, 60: 90}[start]
        sums.add(X[start:stop], weight[start:stop])
    total = sums.result()
    expected = (X * weight[:, None]).astype(np.float64).T @ X
    assert total.dtype == np.float64
    np.testing.assert_allclose(total, expected, atol=50 * np.finfo(dtype).eps * np.abs(expected).max())
    np.testing.assert_array_equal(total, total.T)


def test_rows_are_not_written_to():
    X = np.random.default_rng(0).standard_normal((20, 5))
    kept = X.copy()
    X.flags.writeable = False
    sums = GramSum(Design(X))
    sums.add(X)
    sums.add(X, np.full(20, 2.0))
    np.testing.assert_allclose(sums.result(), 3 * kept.T @ kept)


def test_sparse_rows_give_the_same_sum():
    X = sp.random_array((50, 8), density=0.3, format="csr", rng=0)
    dense, sparse = GramSum(Design(X.toarray())), GramSum(Design(X))
    dense.add(X.toarray())
    sparse.add(X)
    np.testing.assert_allclose(sparse.result(), dense.result(), atol=1e-12)


def test_no_rows_give_zero():
    sums = GramSum(Design(np.empty((0, 3))))
    sums.add(np.empty((0, 3)))
    np.testing.assert_array_equal(sums.result(), np.zeros((3, 3)))
