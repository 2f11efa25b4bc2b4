"""Every curvature that claims to majorize touches the objective at the point and lies above it everywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyclass.curvature import CURVATURES
from manyclass.model import SMOOTH_LOSSES
from tests import problems
from tests.covering import in_turn

MAJORIZERS = [
    (name, loss)
    for name, c in CURVATURES.items()
    for loss in SMOOTH_LOSSES
    if c.majorizes and problems.serves(name, loss)
]


def metric(curvature, shape):
    """The dense H, from the H⁻¹ that the curvature knows."""
    size = int(np.prod(shape))
    inverse = np.stack([curvature.solve(e.reshape(shape)).ravel() for e in np.eye(size)])
    return np.linalg.inv(inverse)


@pytest.mark.parametrize(("majorizer", "fit_intercept"), in_turn(MAJORIZERS, [True, False]), ids=str)
@given(seed=st.integers(0, 10_000), reach=st.floats(1e-2, 1e2), size=st.floats(0, 10))
@settings(max_examples=25, deadline=None)
def test_touches_and_dominates(majorizer, fit_intercept, seed, reach, size):
    name, loss = majorizer
    kind = CURVATURES[name]
    rng = np.random.default_rng(seed)
    F, *_ = problems.problem(loss, seed=seed % 7, center=kind.center, fit_intercept=fit_intercept)
    curvature = kind(F, rng)
    shape = (5 + fit_intercept, 3)
    theta, D = size * rng.standard_normal(shape), reach * rng.standard_normal(shape)
    if kind.local:
        # Far out some classes are decided for every row, and only the penalty is left to invert.
        theta = theta / max(1.0, size)
        curvature.refresh(F, theta)
    H = metric(curvature, shape)
    here = F.value_and_gradient(theta)
    bound = lambda t: here.value + t * (here.gradient * D).sum() + 0.5 * t**2 * D.ravel() @ H @ D.ravel()  # noqa: E731
    for t in (1.0, -1.0, 1e-3):
        value = F.value_and_gradient(theta + t * D).value
        assert value <= bound(t) + 1e-9 * max(1.0, abs(bound(t)))
    tiny = 1e-6 / reach
    assert F.value_and_gradient(theta + tiny * D).value == pytest.approx(bound(tiny), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("loss", SMOOTH_LOSSES)
def test_a_smaller_lipschitz_constant_would_not_dominate(loss):
    """The property above can fail: with a quarter of L it does, for the least-squares-like directions."""
    F, *_ = problems.problem(loss, alpha=0.0)
    H = metric(CURVATURES["second-moment"](F, np.random.default_rng(0)), (6, 3)) * 0.2
    rng = np.random.default_rng(1)
    theta = np.zeros((6, 3))
    here = F.value_and_gradient(theta)
    above = []
    for _ in range(50):
        D = 1e-3 * rng.standard_normal((6, 3))
        bound = here.value + (here.gradient * D).sum() + 0.5 * D.ravel() @ H @ D.ravel()
        above.append(F.value_and_gradient(theta + D).value > bound)
    assert any(above)
