"""Leaving out each row by a step of Newton's method."""

import numpy as np
import pytest

from manyclass import GLMClassifierCV
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


@pytest.mark.parametrize("least", [3e-12, 1e-13, 1e-15])
def test_a_class_that_weighs_next_to_nothing_leaves_the_scores_of_others_as_they_are(least, rng):
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 4)) + y[:, None]
    scores = [
        GLMClassifierCV([1e-2], cv=3, leave_one_out=True).fit(X, y, np.where(y < 2, 1.0, weight)).loo_score_
        for weight in (least, 1e-9)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
