"""scikit-learn's own estimator checks: one instance for each way the solver goes."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import PegasosClassifier

# A weight scales the gradient of its row's draw and a repeated row is drawn more often: the same in expectation (see
# test_pegasos.py), not on one path.
STOCHASTIC = "a weighted row takes other steps than a repeated one; the two agree in expectation only"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": STOCHASTIC,
    "check_sample_weight_equivalence_on_sparse_data": STOCHASTIC,
}


@parametrize_with_checks(
    [
        PegasosClassifier(),
        PegasosClassifier(loss="perceptron", max_iter=10.5, early_stopping=True, validation_fraction=0.3),
        PegasosClassifier(loss="hinge", schedule="paper"),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_sklearn_estimator_checks(estimator, check):
    check(estimator)
