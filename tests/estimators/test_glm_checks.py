"""scikit-learn's own estimator checks, in full."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import GLMClassifier

EXPECTED = {"check_fit_score_takes_y": "partial_fit after fit is refused, as fit keeps no sums to add to"}


@parametrize_with_checks(
    [
        GLMClassifier(),
        GLMClassifier(loss="squared", solver="majorize"),
        GLMClassifier(loss="logistic", curvature="diagonal"),
    ],
    expected_failed_checks=lambda estimator: EXPECTED if estimator.loss == "squared" else {},
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sklearn_estimator_checks(estimator, check):
    if estimator.solver == "auto" and "sample_weight_equivalence" in check.func.__name__:
        # Which method is estimated to be the fastest depends on the number of rows held, and models agree to tol only.
        estimator.set_params(solver="newton")
    check(estimator)
