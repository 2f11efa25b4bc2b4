"""scikit-learn's own estimator checks: one instance for each way the solver goes."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import SDCAClassifier, SDCARegressor

EXACT = {"tol": 1e-20, "max_iter": 100_000}
"""For the checks that compare two fits to seven digits; only sums of squares can be judged so finely."""

ROWS_IN_ANOTHER_ORDER = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "Weights and repetitions are two orders of coordinates that agree to tol, where the check asks for seven "
        "digits. The instances with the squared loss pass it; the others are compared to their tolerance in "
        "test_sdca.py::test_weights_are_repetitions."
    )
    for kind in ("dense", "sparse")
}


def expected_failures(estimator):
    return {} if estimator.loss == "squared" else ROWS_IN_ANOTHER_ORDER


@parametrize_with_checks(
    [
        SDCAClassifier(),
        SDCAClassifier("squared", homotopy=4),
        SDCARegressor(),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sklearn_estimator_checks(estimator, check):
    if estimator.loss == "squared" and "sample_weight_equivalence" in check.func.__name__:
        estimator.set_params(**EXACT)
    check(estimator)
