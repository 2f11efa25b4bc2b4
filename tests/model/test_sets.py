import numpy as np
import pytest
from array_api_compat import numpy as xp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from manyclass import GLMClassifier
from manyclass.data.compiled import project_simplex as compiled_projection
from manyclass.dual.row_kernels import FAST
from manyclass.fit import Status
from manyclass.model.sets import Box, Simplex, WholeSpace
from tests.oracles.glm import project_simplex


@given(arrays(np.float64, (3, 5), elements=st.floats(-1e3, 1e3)))
@settings(max_examples=100, deadline=None)
def test_simplex_projection_against_bisection(V):
    P = Simplex().project(V, xp)
    np.testing.assert_allclose(P, [project_simplex(v) for v in V], atol=1e-9)
    np.testing.assert_allclose(P.sum(1), 1)


@njit(fastmath=FAST)
def projected(v, out):
    """What compiled loops call, for Python; as those do that add up in any order, which is not for it to do."""
    compiled_projection(v, len(v), out)


@pytest.mark.parametrize("size", [1e9, 1e17, 1e300])
def test_simplex_projection_of_large_numbers_sums_to_one(size):
    V = size * np.array([[1.0, -2.0, 0.5], [3.0, 3.0, 1.0]])
    expected = [[1, 0, 0], [0.5, 0.5, 0]]
    np.testing.assert_allclose(Simplex().project(V, xp), expected)
    out = np.empty(3)
    for v, p in zip(V, expected, strict=True):
        projected(v, out)
        np.testing.assert_allclose(out, p)


def test_box_projection():
    np.testing.assert_array_equal(Box().project(np.array([[-1.0, 0.5, 2.0]]), xp), [[0, 0.5, 1]])


def probabilities(domain, rng):
    P = rng.random((2, 6))
    return P / P.sum(1, keepdims=True) if isinstance(domain, Simplex) else P


@pytest.mark.parametrize("domain", [Simplex(), Box(), WholeSpace()], ids=["simplex", "box", "space"])
def test_blend_reaches_the_wanted_mean_from_inside_the_domain(domain, rng):
    for _ in range(50):
        mean, wanted = probabilities(domain, rng)
        (theta,), (q,) = domain.blend(mean[None], wanted[None], xp)
        assert 0 <= theta <= 1
        np.testing.assert_allclose((1 - theta) * mean + theta * q, wanted, atol=1e-12)
        np.testing.assert_allclose(domain.project(q[None], xp)[0], q, atol=1e-9)
    theta, _ = domain.blend(wanted[None], wanted[None], xp)
    assert theta == 0


def test_means_that_cancel_out_but_for_rounding_are_as_good_as_equal():
    """Balanced weights of two classes make the mean of ±1 a number like 1e-17."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((30, 5)), np.repeat([0, 1], [11, 19])
        model = GLMClassifier(10.0 ** rng.uniform(-4, 0), loss="squared", class_weight="balanced").fit(X, y)
        assert model.status_ is Status.CONVERGED and model.duality_gap_ <= 1e-3
