"""Paths of penalties that dual ascent begins with."""

import numpy as np
import pytest

from manyclass.dual import homotopy_path
from manyclass.fit import Status
from tests.dual.given import problem, small, solve, targets


def test_homotopy_path():
    def path(alpha, homotopy):
        return homotopy_path(problem("squared", np.full((100, 1), 0.1), np.ones((100, 1)), alpha), homotopy)

    assert path(1e-6, False) == path(1e-6, "auto") == [1e-6]
    assert path(1e-6, True) == [pytest.approx(2.5e-4), 1e-6]
    seven = path(1e-6, 7)
    assert len(seven) == 7 and seven[0] == pytest.approx(2.5e-4) and seven[-1] == 1e-6
    np.testing.assert_allclose(np.diff(np.log(seven)), np.log(seven[1] / seven[0]))
    origin = problem("squared", np.full((100, 1), 0.1), np.ones((100, 1)), 1e-12, fit_intercept=False)
    assert homotopy_path(origin, 3)[0] == pytest.approx(1e-4)  # ‖x‖²/n
    assert path(0.5, 7) == [0.5]  # ν would be below alpha


@pytest.mark.parametrize("name", ["squared", "squared_hinge"])
def test_homotopy_beats_the_zero_start_where_alpha_is_small(name):
    """The paper's claim on epochs, the first phases counted: correlated columns, alpha far below ‖x‖²/n."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 10)) @ rng.standard_normal((10, 10)) + 1
    y = np.sign(X[:, :1] + 3 * rng.standard_normal((1000, 1)))
    epochs = {
        homotopy: solve(problem(name, X, y, 1e-6, fit_intercept=False), homotopy, tol=1e-2, max_iter=400).n_iter
        for homotopy in (False, 6)
    }
    assert epochs[6] * 4 < epochs[False]


def test_phases_share_half_of_the_limit_when_tol_is_out_of_reach():
    X, codes, _ = small(14)
    found = solve(problem("hinge", X, targets("hinge", codes), 1e-6), 5, tol=0.0, max_iter=80)
    assert found.status is Status.FINISHED and found.n_iter == 80
    assert found.history[-1]["phase_epochs"] == [10, 10, 10, 10, 40]
