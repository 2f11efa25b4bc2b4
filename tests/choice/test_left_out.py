"""Leaving out each row by a step of Newton's method."""

import numpy as np
import pytest

from manyclass.choice import left_out
from manyclass.curvature import CURVATURES
from manyclass.fit import Clock
from tests import problems


@pytest.mark.parametrize("weighted", [True, False])
def test_outputs_by_themselves_are_exact_for_the_squared_loss(weighted, rng):
    F, *_ = problems.problem("squared", alpha=3.0, weighted=weighted)
    H = CURVATURES["hessian"](F, rng)
    theta = F.constant_model()
    for _ in range(3):
        theta = theta - H.solve(F.value_and_gradient(theta).gradient)
    W, b = F.unpack(theta)
    np.testing.assert_allclose(left_out._by_outputs(F, W, b, Clock()), left_out._exactly(F, theta), atol=1e-4)
