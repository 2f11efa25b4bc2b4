import array_api_strict
import numpy as np
import pytest
import scipy.linalg

import manyclass.data.factor as module
from manyclass.data.factor import Factor
from manyclass.data.rows import to_numpy


def spd(rng, values):
    Q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (Q * values) @ Q.T


def moved(A, namespace):
    if namespace == "torch":
        return pytest.importorskip("torch").asarray(A)
    return array_api_strict.asarray(A) if namespace == "strict" else A


@pytest.mark.parametrize("namespace", ["numpy", "strict", "torch"])
@pytest.mark.parametrize("ridges", [[0.0], [0.5], [0.5, 1e-3, 0.5, 0.0, 10.0]], ids=str)
def test_any_number_of_ridges_is_solved_for(rng, namespace, ridges):
    S, B = spd(rng, np.array([3.0, 1.0, 0.1, 1e-3])), rng.standard_normal((4, 2))
    factor = Factor(moved(S, namespace))
    for ridge in ridges:
        expected = scipy.linalg.solve(S + ridge * np.eye(4), B, assume_a="pos")
        np.testing.assert_allclose(to_numpy(factor.solve(moved(B, namespace), ridge)), expected, rtol=1e-9)


@pytest.mark.parametrize("namespace", ["numpy", "strict", "torch"])
def test_each_column_may_have_a_ridge_of_its_own(rng, namespace):
    A = rng.standard_normal((30, 6))
    S, B, ridges = A.T @ A, rng.standard_normal((6, 5)), np.array([0.5, 2.0, 0.5, 1e-3, 2.0])
    given = [moved(part, namespace) for part in (S, B, ridges)]
    expected = np.stack([np.linalg.solve(S + one * np.eye(6), b) for one, b in zip(ridges, B.T, strict=True)], axis=1)
    np.testing.assert_allclose(to_numpy(Factor(given[0]).solve(*given[1:])), expected, rtol=1e-10)


def test_one_decomposition_serves_every_ridge(rng, monkeypatch):
    S, B = spd(rng, np.geomspace(1e-3, 1, 20)), rng.standard_normal((20, 2))
    calls = []
    for name in ("eigh_in_place", "_cholesky"):
        made = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, name=name, made=made: (calls.append(name), made(*args))[1])
    factor = Factor(S)
    factor.solve(B, 0.1)
    factor.solve(B, 0.1)
    assert calls == ["_cholesky"]
    for ridge in (1.0, 0.01, 0.1, 0.0):
        factor.solve(B, ridge)
    assert calls == ["_cholesky", "eigh_in_place"]


def test_singular_matrices_are_inverted_on_their_range(rng):
    S, B = spd(rng, np.array([2.0, 1.0, 0.0, 0.0, 0.0])), rng.standard_normal((5, 2))
    factor = Factor(S)
    expected = np.linalg.pinv(S, rcond=1e-10) @ B
    np.testing.assert_allclose(factor.solve(B, 0.0), expected, atol=1e-12)
    np.testing.assert_allclose(factor.solve(B, 1.0), np.linalg.solve(S + np.eye(5), B), rtol=1e-9)
    np.testing.assert_allclose(factor.solve(B, 0.0), expected, atol=1e-12)
    assert Factor(np.zeros((3, 3))).solve(np.ones((3, 1)), 0.0).sum() == 0


def test_eigenvalues_below_the_precision_of_the_data_are_noise(rng):
    S = spd(rng, np.array([1.0, 0.5, 1e-8]))
    for precision, n_kept in ((None, 3), (1e-7, 2)):
        assert np.linalg.matrix_rank(Factor(S, precision).solve(np.eye(3), 0.0), tol=1e-3) == n_kept
    inverse = np.linalg.inv(S + 0.1 * np.eye(3))
    np.testing.assert_allclose(Factor(S, precision=1e-7).solve(np.eye(3), 0.1), inverse, rtol=1e-9)


def test_the_matrix_is_not_changed_and_the_dtype_is_kept(rng):
    S = spd(rng, np.ones(3)).astype(np.float32)
    before = S.copy()
    factor = Factor(S)
    for ridge in (1.0, 2.0):
        assert factor.solve(np.ones((3, 1), np.float32), ridge).dtype == np.float32
    np.testing.assert_array_equal(S, before)


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_axes_are_eigenvectors_where_they_are(noise, monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.permutation(np.logspace(-5, 3, 40))
    E = noise * rng.standard_normal((40, 40)) * np.sqrt(values) * np.sqrt(values)[:, None]
    S = np.diag(values) + E + E.T
    expected, n_decomposed = Factor(S).solve(np.eye(40), 1e-6), []
    decompose = module.eigh_in_place
    monkeypatch.setattr(module, "eigh_in_place", lambda S: n_decomposed.append(1) or decompose(S))
    factor = Factor(S)
    found, vectors = factor.spectrum
    assert len(n_decomposed) == (noise > 0)
    np.testing.assert_allclose(vectors @ (found[:, None] * vectors.T), S, atol=1e-9)
    assert (np.diff(found) >= 0).all()
    if not noise:
        np.testing.assert_allclose(factor.solve(np.eye(40), 1e-6), expected, rtol=1e-9)
