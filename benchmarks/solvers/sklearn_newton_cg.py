"""scikit-learn LogisticRegression, solver="newton-cg"."""

from unittest.mock import patch

from sklearn.linear_model import _logistic

from benchmarks.solvers._sklearn import estimator, fit_quietly, on_raveled


def fit(X, y, alpha, record):
    on_iterate = on_raveled(record, y)
    newton_cg = _logistic._newton_cg

    def recorded_newton_cg(*, grad_hess, **kwargs):
        def recorded_grad_hess(w, *args):
            # Called once at the head of each Newton iteration, with the iterate just reached.
            on_iterate(w)
            return grad_hess(w, *args)

        return newton_cg(grad_hess=recorded_grad_hess, **kwargs)

    with patch.object(_logistic, "_newton_cg", recorded_newton_cg):
        model = fit_quietly(estimator(X, alpha, "newton-cg"), X, y)
    record(model.coef_.T, model.intercept_)
