import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp

from manyclass.data.design import Design, gram, scale_rows


def layouts(rng, tmp_path):
    X = rng.standard_normal((137, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.5] = 0
    mapped = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    mapped[:] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return X, {
        "C": X,
        "F": np.asfortranarray(X),
        "memmap": mapped,
        "read-only": frozen,
        "csr": sp.csr_array(X),
        "csr matrix": sp.csr_matrix(X),
        "csr int64": wide,
        "strict": array_api_strict.asarray(X),
    }


def test_every_layout_means_the_same(rng, tmp_path):
    X, variants = layouts(rng, tmp_path)
    W, R, weight = rng.standard_normal((5, 3)), rng.standard_normal((137, 3)), rng.random(137)
    for name, variant in variants.items():
        design = Design(variant)
        parts = [block for _, block in design.blocks(20)]
        assert [part.shape[0] for part in parts] == [20] * 6 + [17], name
        stacked = np.concatenate([p.toarray() if sp.issparse(p) else np.asarray(p) for p in parts])
        np.testing.assert_array_equal(stacked, X, err_msg=name)
        np.testing.assert_allclose(np.asarray(design.matmat(design.asarray(W))), X @ W, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.asarray(design.rmatmat(design.asarray(R))), X.T @ R, rtol=1e-4, atol=1e-5)
        mean = np.asarray(design.mean(design.asarray(weight)))
        np.testing.assert_allclose(mean, weight @ X / weight.sum(), rtol=1e-4)
        squares = np.asarray(design.mean_square(design.asarray(weight)))
        np.testing.assert_allclose(squares, weight @ X**2 / weight.sum(), rtol=1e-4)
        taken = design.take(np.array([3, 3, 0]))
        np.testing.assert_array_equal(taken.toarray() if sp.issparse(taken) else np.asarray(taken), X[[3, 3, 0]])


def test_blocks_share_memory_with_the_data(rng):
    X = rng.standard_normal((50, 4))
    assert all(np.shares_memory(block, X) for _, block in Design(X).blocks(7))
    S = sp.csr_array(X)
    assert all(np.shares_memory(block.data, S.data) for _, block in Design(S).blocks(7))


def test_mean_of_float32_is_summed_in_float64():
    X = np.full((3_000_000, 1), 0.1, dtype=np.float32)
    exact = float(X[0, 0])
    assert abs(float(np.add.accumulate(X[:, 0])[-1]) / len(X) - exact) > 1e-4  # what a running float32 sum would give
    assert abs(float(Design(X).mean()[0]) - exact) < 5e-7


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_weighted_gram(rng, kind):
    X, weight = rng.standard_normal((30, 4)), rng.random(30)
    np.testing.assert_allclose(gram(scale_rows(kind(X), np.sqrt(weight))), (X * weight[:, None]).T @ X)


def test_blocks_hold_at_least_some_rows_however_wide():
    assert Design(np.zeros((1000, 10))).rows_per_block(10**9) == 64
    assert Design(np.zeros((3, 10))).rows_per_block(1) == 3
