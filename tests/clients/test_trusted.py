"""Who measures or mends probabilities, labels, and fairness."""

import numpy as np
import pytest

from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier, SDCAClassifier
from manyclass.linear_model import LogisticRegression

EACH = pytest.mark.parametrize(
    "model",
    [GLMClassifier(), LogisticRegression(), CalibratedLeastSquaresClassifier()],
    ids=lambda model: type(model).__name__,
)


@EACH
def test_mapie(model, problem):
    mapie = pytest.importorskip("mapie.classification")
    X, y, X_test, y_test = problem
    split = mapie.SplitConformalClassifier(model, confidence_level=0.9, prefit=False)
    _, sets = split.fit(X[:200], y[:200]).conformalize(X[200:], y[200:]).predict_set(X_test)
    assert np.mean(sets[np.arange(len(y_test)), y_test, 0]) > 0.8
    crossed = mapie.CrossConformalClassifier(model, confidence_level=0.9, cv=3).fit_conformalize(X, y)
    assert crossed.predict_set(X_test)[1].shape == (200, 3, 1)


@EACH
def test_cleanlab(model, problem):
    cleanlab = pytest.importorskip("cleanlab.classification")
    X, y, X_test, y_test = problem
    wrong = np.arange(0, 400, 20)
    given = y.copy()
    given[wrong] = (given[wrong] + 1) % 3
    learner = cleanlab.CleanLearning(model, cv_n_folds=3).fit(X, given)
    issues = learner.get_label_issues()
    found = np.flatnonzero(issues["is_label_issue"])
    assert len(np.intersect1d(found, wrong)) > 10
    assert learner.score(X_test, y_test) > 0.75


@pytest.mark.parametrize("model", [GLMClassifier(), SDCAClassifier(loss="hinge")], ids=["GLM", "hinge"])
def test_fairlearn(model, two_classes):
    fairlearn = pytest.importorskip("fairlearn")
    from fairlearn.metrics import MetricFrame, selection_rate
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    assert fairlearn
    X, y, _, _ = two_classes
    y, group = (y == "yes").astype(int), np.where(X[:, 0] > 0, "a", "b")
    reduced = ExponentiatedGradient(model, DemographicParity(), max_iter=5, nu=0.1)
    reduced.fit(X, y, sensitive_features=group)
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    moved = ThresholdOptimizer(estimator=model, constraints="demographic_parity", predict_method=method)
    moved.fit(X, y, sensitive_features=group)
    for mended in (reduced.predict(X, random_state=0), moved.predict(X, sensitive_features=group, random_state=0)):
        before, after = (
            MetricFrame(metrics=selection_rate, y_true=y, y_pred=labels, sensitive_features=group).difference()
            for labels in (model.fit(X, y).predict(X), mended)
        )
        assert after < before


def test_imbalanced_learn(problem):
    pytest.importorskip("imblearn")
    from imblearn.ensemble import BalancedBaggingClassifier, EasyEnsembleClassifier
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline
    from imblearn.under_sampling import CondensedNearestNeighbour

    X, y, X_test, y_test = problem
    for model in (
        make_pipeline(SMOTE(random_state=0), GLMClassifier()),
        make_pipeline(CondensedNearestNeighbour(random_state=0), LogisticRegression()),
        BalancedBaggingClassifier(GLMClassifier(), 3, random_state=0),
        EasyEnsembleClassifier(2, GLMClassifier(), random_state=0),
    ):
        assert model.fit(X, y).score(X_test, y_test) > 0.6
