"""scikit-learn's own estimator checks, in full."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import GLMClassifier


@parametrize_with_checks(
    [
        GLMClassifier(),
        GLMClassifier(loss="squared", solver="majorize"),
        GLMClassifier(loss="logistic", curvature="diagonal"),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sklearn_estimator_checks(estimator, check):
    if estimator.solver == "auto" and "sample_weight_equivalence" in check.func.__name__:
        # Which method is estimated to be the fastest depends on the number of rows held, and models agree to tol only.
        estimator.set_params(solver="newton")
    check(estimator)
