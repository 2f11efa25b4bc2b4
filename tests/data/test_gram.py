import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data import as_rows


def total(blocks):
    sums = as_rows(blocks[0][0]).gram_sum()
    for X, weight in blocks:
        sums.add(as_rows(X), weight)
    return sums.result()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1, 7, 300])  # 300 is mirrored in several tiles
def test_the_sum_over_blocks_is_the_gram_matrix_of_all_rows(dtype, order, size):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((90, size)), dtype=dtype, order=order)
    weight = rng.uniform(0, 2, 90).astype(dtype)
    parts = (slice(0, 13), slice(13, 60), slice(60, 90))
    found = total([(X[part], weight[part]) for part in parts])
    expected = (X * weight[:, None]).astype(np.float64).T @ X
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=50 * np.finfo(dtype).eps * np.abs(expected).max())
    np.testing.assert_array_equal(found, found.T)


def test_rows_are_not_written_to():
    X = np.random.default_rng(0).standard_normal((20, 5))
    kept = X.copy()
    X.flags.writeable = False
    np.testing.assert_allclose(total([(X, None), (X, np.full(20, 2.0))]), 3 * kept.T @ kept)


def test_sparse_rows_give_the_same_sum():
    X = sp.random_array((50, 8), density=0.3, format="csr", rng=0)
    np.testing.assert_allclose(total([(X, None)]), total([(X.toarray(), None)]), atol=1e-12)


def test_no_rows_give_zero():
    np.testing.assert_array_equal(total([(np.empty((0, 3)), None)]), np.zeros((3, 3)))
