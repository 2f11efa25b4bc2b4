"""Rows in half precision whose products are taken as they are: on a GPU, and on any machine with these products."""

import numpy as np
import pytest

from manyclass import GLMClassifier
from manyclass.data import HalfRows, as_rows, half
from manyclass.data.rows import to_numpy

torch = pytest.importorskip("torch")
PLACES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
N, D, K = 700, 24, 5


@pytest.fixture(params=[(place, kind) for place in PLACES for kind in half.PARTS], ids="-".join)
def held(request, rng, monkeypatch):
    """Rows, and the numbers that they hold."""
    place, kind = request.param
    X = torch.asarray(3.0 + rng.standard_normal((N, D)), dtype=torch.float32, device=place).to(getattr(torch, kind))
    monkeypatch.setattr(half, "SUMMED", 300)
    if place == "cpu":
        monkeypatch.setattr(half, "_product", product_on_host)
        monkeypatch.setattr(half, "_adds_in_float32", lambda dtype, device: True)
    rows = as_rows(X)
    assert isinstance(rows, HalfRows)
    return rows, to_numpy(X.to(torch.float64))


def product_on_host(A, B, total=None):
    assert A.dtype == B.dtype and A.dtype.itemsize == 2
    found = A.float() @ B.float()
    return found if total is None else total + found


def close(found, expected):
    np.testing.assert_allclose(to_numpy(found), expected, rtol=0, atol=1e-5 * abs(expected).max())


def test_products_are_as_exact_as_in_float32(held, rng):
    rows, X = held
    for size in (1e-8, 1.0, 1e8):
        W, R = size * rng.standard_normal((D, K)), size * rng.standard_normal((N, K))
        close(rows.matmat(rows.asarray(W)), X @ W)
        close(rows.rmatmat(rows.asarray(R)), X.T @ R)
    assert (to_numpy(rows.matmat(rows.zeros((D, K)))) == 0).all()


def test_wider_operands_keep_their_digits(held, rng):
    rows, X = held
    W = rng.standard_normal((D, K))
    wide = rows.matmat(rows.asarray(W, dtype=torch.float64))
    np.testing.assert_allclose(to_numpy(wide), X @ W, rtol=1e-12, atol=1e-12)


def test_second_moments_and_sums(held, rng):
    rows, X = held
    weight = rng.random(N)
    close(rows.sandwich(), X.T @ X)
    close(rows.sandwich(rows.asarray(weight)), (X.T * weight) @ X)
    center = X.mean(axis=0)
    close(rows.sandwich(None, rows.asarray(center, dtype=torch.float64)), (X - center).T @ (X - center))
    close(rows.mean(), center)


def test_blocks_stay_in_half_precision(held):
    rows, X = held
    for where, block in rows.blocks(256):
        assert isinstance(block, HalfRows) and block.X.dtype == rows.X.dtype
        np.testing.assert_array_equal(to_numpy(block.dense()), X[where])
    assert rows.dense().dtype == torch.float32 and isinstance(rows.take(np.arange(3)), HalfRows)


def test_rows_that_require_a_gradient_are_converted(held):
    rows, _ = held
    assert not isinstance(as_rows(rows.X.clone().requires_grad_()), HalfRows)


@pytest.mark.parametrize("kind", half.PARTS)
def test_parts_add_up_to_the_digits_of_float32(kind, rng):
    values = torch.asarray(rng.standard_normal((50, 8)) * 10.0 ** np.arange(-4, 4), dtype=torch.float32)
    parts, unit = half.in_parts(values, getattr(torch, kind), as_rows(values).xp)
    assert all(torch.isfinite(part).all() for part in parts)
    total = sum(part.to(torch.float64) for part in parts) * (1.0 if unit is None else unit.to(torch.float64))
    assert float(abs(total - values).max()) <= 2.0**-22 * float(abs(values).max())


def test_fits_are_those_of_rows_in_float32(held, rng):
    rows, _ = held
    X, y = rows.X, np.arange(N) % K
    X += 2.0 * torch.nn.functional.one_hot(torch.asarray(y, device=X.device), D).to(X.dtype)
    one, other = (GLMClassifier(1e-4, tol=1e-5).fit(given, y) for given in (X, X.float()))
    assert one.duality_gap_ <= 1e-5
    np.testing.assert_allclose(to_numpy(one.coef_), to_numpy(other.coef_), atol=1e-2 * float(abs(other.coef_).max()))
