"""scikit-learn's linear classifiers by another engine: change the import, and keep the rest of the program.

Parameters, their order and their defaults are those of the installed scikit-learn, and so are the objectives and thus
the models. How the minimum is found is up to `GLMClassifier`, so what concerns only that is accepted and ignored:
``solver``, ``n_jobs``, ``verbose`` (``set_callbacks`` shows progress), ``copy_X``, and ``intercept_scaling``, as the
intercept is never penalised. What would be another model is refused: L1 penalties, ``dual=True``, ``positive=True``.

A fit ends at a relative duality gap of min(tol, 1e8·tol³): a bound on how far the objective is from its minimum, as a
share of its value at the zero model. scikit-learn compares `tol` with the largest entry of the gradient; that distance
is its square times a number that depends on the data. At the default of 1e-4 coefficients are closer to the optimum
than those of scikit-learn's lbfgs on each of the data sets compared. Fits that are asked for more than the precision of
X allows end without a warning.
Beside scikit-learn's attributes there are those of every estimator here: ``status_``, ``history_``, ``duality_gap_``.
"""

from manyclass.linear_model.logistic import LogisticRegression
from manyclass.linear_model.logistic_cv import LogisticRegressionCV
from manyclass.linear_model.ridge import RidgeClassifier, RidgeClassifierCV

__all__ = ["LogisticRegression", "LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV"]
