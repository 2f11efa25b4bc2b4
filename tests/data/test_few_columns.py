"""Arithmetic on few columns gives what NumPy's own does."""

import numpy as np
import pytest

from manyclass import GLMClassifier
from manyclass.data import as_rows, few_columns, threads
from manyclass.data.few_columns import add_product, add_row, product
from manyclass.data.rows import to_numpy

SHAPES = [
    (0, 3, 2),
    (1, 1, 1),
    (5, 3, 1),
    (63, 2, 32),
    (64, 7, 2),
    (65, 200, 33),
    (5000, 311, 4),
    (9000, 16, 26),
    (70, 20, 200),
]


@pytest.fixture(params=[True, False], ids=["unpacked", "whole"])
def kernels(request, monkeypatch):
    monkeypatch.setattr(few_columns, "multiplies_unpacked", lambda: request.param)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_those_of_numpy(shape, dtype, order):
    (n, d, k), rng = shape, np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((n, d)), dtype=dtype, order=order)
    W, R = rng.standard_normal((d, k)).astype(dtype), rng.standard_normal((n, k)).astype(dtype)
    precision = 4.0 * np.finfo(dtype).eps * max(d, n) ** 0.5
    found = product(X, W)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, X.astype(np.float64) @ W, atol=precision * max(d, 1) ** 0.5)
    total = np.ones((d, k))
    add_product(X, R, total)
    np.testing.assert_allclose(total, 1.0 + X.T.astype(np.float64) @ R, atol=precision * max(n, 1) ** 0.5)


@pytest.mark.usefixtures("kernels")
def test_products_take_every_second_column_and_row():
    X = np.random.default_rng(0).standard_normal((4000, 100))[::2, ::2]
    W, R = np.ones((50, 12)), np.ones((2000, 12))
    np.testing.assert_allclose(product(X, W), X @ W, atol=1e-12)
    total = np.zeros((50, 12))
    add_product(X, R, total)
    np.testing.assert_allclose(total, X.T @ R, atol=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_is_added_as_by_numpy(shape, order, monkeypatch):
    monkeypatch.setattr(few_columns, "FEWEST_LONG", 1)
    (n, _, k), rng = shape, np.random.default_rng(0)
    Z = np.asarray(rng.standard_normal((n, k)), order=order)
    row, given = rng.standard_normal(k), Z.copy()
    add_row(Z, row)
    np.testing.assert_array_equal(Z, given + row)


def test_a_row_of_another_namespace_is_added():
    torch = pytest.importorskip("torch")
    Z = torch.ones((100, 3))
    add_row(Z, torch.arange(3.0))
    np.testing.assert_array_equal(to_numpy(Z), np.tile([1.0, 2.0, 3.0], (100, 1)))


def test_small_kernels_are_asked_for_where_one_thread_multiplies():
    with threads.blas_threads(1):
        known = {one.architecture for one in threads._of_numpy() if hasattr(one, "architecture")}
        assert threads.multiplies_unpacked() == (bool(known) and known <= set(threads.SMALL_KERNELS))
    with threads.blas_threads(2):
        if all(one.get_num_threads() == 2 for one in threads._of_numpy()):
            assert not threads.multiplies_unpacked()


@pytest.mark.parametrize(("shape", "expected"), [((10**5, 16, 10), 1), ((10**5, 500, 2), None), ((10, 500, 10), 1)])
def test_few_parameters_take_one_thread_where_its_kernels_are_as_fast_as_two(monkeypatch, shape, expected):
    n, d, k = shape
    rows = as_rows(np.broadcast_to(np.float32(0), (n, d)))
    monkeypatch.setattr(threads, "_has_small_kernels", lambda: True)
    monkeypatch.setattr(threads, "_are_cores_busy", lambda: False)
    with threads.blas_threads(2):
        assert threads.threads_of_products(rows, k) == expected
        monkeypatch.setattr(threads, "_has_small_kernels", lambda: False)
        assert threads.threads_of_products(rows, k) == (1 if n * d * k <= threads.SMALL_PRODUCT else None)


@pytest.mark.usefixtures("kernels")
def test_large_products_are_left_whole(monkeypatch):
    """In pieces of a row or two a product with a thousand columns took three times as long."""
    sizes, matmul = [], np.matmul
    monkeypatch.setattr(np, "matmul", lambda X, W, out: sizes.append(len(X)) or matmul(X, W, out=out))
    X = np.ones((300, 784), dtype=np.float32)
    product(X, np.ones((784, 1000), dtype=np.float32))
    product(X, np.ones((10, 784), dtype=np.float32).T)  # its columns lie one after the other
    assert sizes == [300, 300]


def test_an_intercept_may_be_one_number():
    X, y = np.random.default_rng(0).standard_normal((200, 5)), np.arange(200) % 3
    model = GLMClassifier().fit(X, y)
    model.intercept_ = 0.0
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T)


def test_tensors_of_any_kind_are_multiplied(rng):
    """On the host as NumPy's arrays, but for those that are kept track of, or are read as the negative of what lies."""
    torch = pytest.importorskip("torch")
    X, W, R = (torch.tensor(rng.standard_normal(shape)) for shape in ((50, 7), (7, 3), (50, 3)))
    for given in (X, X.T.contiguous().T, X[:, ::2], torch.complex(X, -X).conj().imag, X.clone().requires_grad_()):
        few = W[: given.shape[1]]
        total, plain = torch.ones((given.shape[1], 3), dtype=X.dtype), to_numpy(given.resolve_neg())
        with torch.no_grad():
            found = product(given, few)
            add_product(given, R, total)
        np.testing.assert_allclose(to_numpy(found), plain @ to_numpy(few), atol=1e-12)
        np.testing.assert_allclose(to_numpy(total), 1.0 + plain.T @ to_numpy(R), atol=1e-12)
