"""scikit-learn LogisticRegression, solver="lbfgs"."""

from types import SimpleNamespace
from unittest.mock import patch

import scipy.optimize

from benchmarks.solvers._sklearn import estimator, fit_quietly, on_raveled


def fit(X, y, alpha, record):
    on_iterate = on_raveled(record, y)

    def minimize(*args, callback=None, options=None, **kwargs):
        # scikit-learn leaves scipy's limit of 15 000 evaluations alone: no run here comes near it.
        return scipy.optimize.minimize(*args, callback=on_iterate, options=options, **kwargs)

    with patch("sklearn.linear_model._logistic.optimize", SimpleNamespace(minimize=minimize)):
        model = fit_quietly(estimator(X, alpha, "lbfgs"), X, y)
    record(model.coef_.T, model.intercept_)
