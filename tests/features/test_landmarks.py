"""Kernel values at rows, and products with them."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import StagewiseClassifier
from manyclass.data import GeneratedRows, as_rows
from manyclass.features import Landmarks


def test_a_product_takes_no_features(rng, monkeypatch):
    X = rng.standard_normal((300, 4)) + 1e3
    generator, coef = Landmarks(40, random_state=0).fit(X), rng.standard_normal((40, 3))
    wanted = generator.transform(X) @ coef
    shift = generator.transform(X).mean(axis=0)
    monkeypatch.setattr(Landmarks, "generate", None)
    rows = GeneratedRows(as_rows(X), generator)
    np.testing.assert_allclose(rows.matmat(coef), wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rows.shifted(shift).matmat(coef), wanted - shift @ coef, rtol=1e-9, atol=1e-9)


def test_a_model_predicts_without_features(rng, monkeypatch):
    X, y = rng.standard_normal((300, 4)), np.arange(300) % 3
    model = StagewiseClassifier(Landmarks(random_state=0), n_components=60, block_size=20).fit(X, y)
    P = model.predict_proba(X)
    monkeypatch.setattr(Landmarks, "generate", None)
    np.testing.assert_array_equal(model.predict_proba(X), P)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_products_with_landmarks_are_kernel_values(rng, dtype):
    X = rng.standard_normal((80, 3)).astype(dtype)
    generator = Landmarks(30, random_state=0).fit(X)
    Z, C = generator.transform(X), generator.transform(generator.landmarks_.astype(dtype))
    squares = ((X[:, None] - generator.landmarks_[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(Z @ C.T, np.exp(-squares / generator.bandwidth_), atol=1e-3)
    np.testing.assert_array_equal(generator.whitening_, np.triu(generator.whitening_))


def test_parts_of_features_are_those_of_all(rng):
    X = rng.standard_normal((50, 3))
    rows = GeneratedRows(as_rows(X), Landmarks(10, random_state=0).fit(X))
    (_, block), *_ = rows.blocks(50)
    index, coef = np.array([7, 3, 40]), rng.standard_normal((10, 2))
    Z = rows.transformer.transform(X)
    np.testing.assert_allclose(block.take(index).matmat(coef), Z[index] @ coef)
    np.testing.assert_allclose(block.part(slice(10, 20)).dense(), Z[10:20])
    np.testing.assert_allclose(block.outer(), Z @ Z.T)


def test_sparse_rows_have_the_features_of_dense_ones(rng, monkeypatch):
    X = sp.random_array((200, 9), density=0.4, rng=rng, format="csr")
    sparse, dense = (Landmarks(20, bandwidth=2.0, random_state=0).fit(rows) for rows in (X, X.toarray()))
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X.toarray()), atol=1e-6)
    np.testing.assert_allclose(sparse.transform(X.toarray()), dense.transform(X), atol=1e-6)
    monkeypatch.setattr("manyclass.data.memory.free_memory", lambda: 2000.0)
    with pytest.raises(MemoryError, match="20 landmarks of 9 columns would take"):
        Landmarks(20, bandwidth=2.0, random_state=0).fit(X)
