"""scikit-learn LogisticRegression, solver="newton-cholesky": a (d·k)² Hessian at each iteration."""

from unittest.mock import patch

from sklearn.linear_model import _logistic

from benchmarks.solvers._sklearn import estimator, fit_quietly, on_raveled


def fit(X, y, alpha, record):
    on_iterate = on_raveled(record, y)

    class Recorded(_logistic.NewtonCholeskySolver):
        def line_search(self, X, y, sample_weight):
            super().line_search(X=X, y=y, sample_weight=sample_weight)
            on_iterate(self.coef)

    with patch.object(_logistic, "NewtonCholeskySolver", Recorded):
        model = fit_quietly(estimator(X, alpha, "newton-cholesky"), X, y)
    record(model.coef_.T, model.intercept_)
