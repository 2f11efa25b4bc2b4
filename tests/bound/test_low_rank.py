import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyclass.bound import LowRank
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.model import LOSSES, Problem


def make(rng, d, m, rank, loss, alpha):
    X = rng.standard_normal((5, d))
    targets = MatrixTargets(np.zeros((5, m))) if loss == "logistic" else ClassTargets(np.zeros(5, int), m)
    return LowRank(Problem(as_rows(X), targets, LOSSES[loss], alpha, fit_intercept=False), rank)


def factors(rng, b, m, loss):
    if loss == "logistic":
        return np.eye(m) * np.sqrt(0.25 * rng.random((b, 1, m)))
    return rng.standard_normal((b, m - 1, m)) * rng.exponential(size=(b, 1, 1))


def matrix(low):
    """H in full."""
    flat = low.W.reshape(len(low.W), low.D.size)
    return flat.T @ flat + np.diag(low.D.ravel())


@given(
    st.integers(0, 2**31),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 8),
    st.sampled_from(["softmax", "logistic"]),
)
@settings(max_examples=60, deadline=None)
def test_never_falls_below_the_true_sum(seed, d, m, rank, loss):
    """Σ_lowrank ⪰ Σ_true after every block, whatever the rank, with repeated rows and rows on a few columns."""
    rng = np.random.default_rng(seed)
    m = max(m, 2) if loss == "softmax" else m
    low = make(rng, d, m, rank, loss, 0.1)
    true = np.diag(low.D.ravel())
    for block in range(4):
        columns = None if block % 2 else np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False))
        width = d if columns is None else len(columns)
        X = rng.standard_normal((rng.integers(1, 5), width)) * 10.0 ** rng.integers(-2, 3)
        X[0] = X[-1]
        C = factors(rng, len(X), m, loss)
        low.gram(X, columns)
        low.absorb(C, None)
        full = np.zeros((len(X), d))
        full[:, slice(None) if columns is None else columns] = X
        for x, c in zip(full, C, strict=True):
            true += np.kron(np.outer(x, x), c.T @ c)
        H = matrix(low)
        assert len(low.W) <= rank
        assert np.linalg.eigvalsh(H - true).min() >= -1e-9 * np.abs(H).max()
        V = rng.standard_normal((2, d, m))
        solved = np.linalg.solve(H, V.reshape(2, -1).T).T.reshape(V.shape)
        np.testing.assert_allclose(low.products(V), solved, rtol=1e-5, atol=1e-8 * np.abs(solved).max())
    b = 3
    X = rng.standard_normal((b, d))
    rows = np.einsum("bc,ae->bace", X, np.eye(m)).reshape(b * m, d * m)
    expected = rows @ np.linalg.solve(matrix(low), rows.T)
    np.testing.assert_allclose(low.gram(X, None), expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


def test_dropping_instead_of_absorbing_would_fall_below(rng):
    """The property can fail: without the diagonal the kept directions alone do not dominate."""
    low = make(rng, 5, 1, 2, "logistic", 1e-6)
    X = rng.standard_normal((6, 5))
    C = np.full((6, 1, 1), 0.5)
    low.gram(X, None)
    low.absorb(C, None)
    kept = low.W.reshape(2, -1).T @ low.W.reshape(2, -1)
    assert np.linalg.eigvalsh(kept - 0.25 * X.T @ X).min() < -1e-3


def test_is_exact_while_rank_suffices(rng):
    low = make(rng, 6, 1, 4, "logistic", 0.1)
    before = matrix(low)
    X, C = rng.standard_normal((4, 6)), np.full((4, 1, 1), 0.5)
    low.gram(X, None)
    low.absorb(C, None)
    np.testing.assert_allclose(matrix(low), before + 0.25 * X.T @ X, atol=1e-12)


@pytest.mark.parametrize("columns", [None, np.array([1, 4])])
def test_renew_keeps_the_last_pass_alone(columns, rng):
    low = make(rng, 6, 1, 10, "logistic", 0.1)
    start = matrix(low)
    width = 6 if columns is None else 2
    for _ in range(2):
        X, C = rng.standard_normal((2, width)), np.full((2, 1, 1), 0.5)
        low.collect(X, columns, C)
        low.renew()
        full = np.zeros((2, 6))
        full[:, slice(None) if columns is None else columns] = X
        np.testing.assert_allclose(matrix(low), start + 0.25 * full.T @ full, atol=1e-12)
