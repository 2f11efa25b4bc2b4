import array_api_strict
import numpy as np
import pytest

from manyclass.data.factor import Factor


def spd(rng, values):
    Q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (Q * values) @ Q.T


@pytest.mark.parametrize("namespace", ["numpy", "strict", "torch"])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_solves(rng, namespace, ridge):
    S, B = spd(rng, np.array([3.0, 1.0, 0.1, 1e-3])), rng.standard_normal((4, 2))
    move = {"numpy": np.asarray, "strict": array_api_strict.asarray}.get(namespace)
    if move is None:
        move = pytest.importorskip("torch").asarray
    solution = Factor(move(S), ridge).solve(move(B))
    np.testing.assert_allclose(np.asarray(solution), np.linalg.solve(S + ridge * np.eye(4), B), rtol=1e-9)


def test_singular_matrices_are_inverted_on_their_range(rng):
    S, B = spd(rng, np.array([2.0, 1.0, 0.0, 0.0, 0.0])), rng.standard_normal((5, 2))
    factor = Factor(S, 0.0)
    assert factor.rank == 2
    np.testing.assert_allclose(factor.solve(B), np.linalg.pinv(S, rcond=1e-10) @ B, atol=1e-12)
    assert Factor(np.zeros((3, 3)), 0.0).solve(np.ones((3, 1))).sum() == 0


def test_eigenvalues_below_the_precision_of_the_data_are_noise(rng):
    S = spd(rng, np.array([1.0, 0.5, 1e-8]))
    assert Factor(S, 0.0).rank == 3
    assert Factor(S, 0.0, precision=1e-7).rank == 2
    inverse = np.linalg.inv(S + 0.1 * np.eye(3))
    np.testing.assert_allclose(Factor(S, 0.1, precision=1e-7).solve(np.eye(3)), inverse, rtol=1e-9)


def test_the_matrix_is_not_changed_and_the_dtype_is_kept(rng):
    S = spd(rng, np.ones(3)).astype(np.float32)
    before = S.copy()
    assert Factor(S, 1.0).solve(np.ones((3, 1), np.float32)).dtype == np.float32
    np.testing.assert_array_equal(S, before)
