"""Elementwise functions in pieces, and what is computed in place of NumPy's own."""

import numpy as np
import pytest

from manyclass.data import as_rows
from manyclass.data.pieces import CACHE_ELEMENTS, FEW_ELEMENTS, cosine, elementwise


def cosines(Z):
    return elementwise(lambda Z, out: cosine(Z, out, np), Z + 0, as_rows(Z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [1, 7, FEW_ELEMENTS + 3, CACHE_ELEMENTS + 5])
def test_cosines_are_those_of_numpy(rng, dtype, order, size):
    Z = np.asarray(30.0 * rng.standard_normal((3, size)), dtype=dtype, order=order)
    np.testing.assert_allclose(cosines(Z), np.cos(Z), rtol=0, atol=4 * np.finfo(dtype).eps)


def test_cosines_of_odd_numbers(rng):
    Z = np.concatenate([np.arange(-20.0, 21.0) * np.pi / 2, [0.0, -0.0, 5e-324, 1e-300, 700.0 * np.pi]])[None, :]
    np.testing.assert_allclose(cosines(Z), np.cos(Z), rtol=0, atol=1e-15)
    large = 1e9 * rng.standard_normal((1, 50))
    np.testing.assert_allclose(cosines(large), np.cos(large), rtol=0, atol=1e-6)
    huge = 10.0 ** rng.uniform(9, 300, (1, 200))
    assert (abs(cosines(huge)) <= 1.0).all()
    with np.errstate(invalid="ignore"):
        assert np.isnan(cosines(np.array([[np.inf, np.nan]]))).all()
