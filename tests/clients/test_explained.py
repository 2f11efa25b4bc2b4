"""Who says what a prediction rests on."""

import numpy as np
import pytest

from manyclass import GLMClassifier, SDCAClassifier, StagewiseClassifier
from manyclass.features import FeatureSubset
from manyclass.linear_model import LogisticRegression

LINEAR = pytest.mark.parametrize(
    "model",
    [
        GLMClassifier(),
        LogisticRegression(),
        SDCAClassifier(loss="hinge"),
        StagewiseClassifier(features=FeatureSubset(), n_components=None, alpha=1e-3),
    ],
    ids=lambda model: type(model).__name__,
)


@LINEAR
def test_shap(model, problem):
    shap = pytest.importorskip("shap")
    X, y, X_test, _ = problem
    model.fit(X, y)
    explainer = shap.LinearExplainer(model, X)
    found = explainer(X_test[:20])
    total = found.values.sum(axis=1) + np.atleast_1d(found.base_values)
    np.testing.assert_allclose(total, model.decision_function(X_test[:20]), atol=1e-8)


def test_shap_of_any_model(problem):
    shap = pytest.importorskip("shap")
    X, y, X_test, _ = problem
    model = StagewiseClassifier(n_components=32, block_size=16, loss="softmax", alpha=1e-3).fit(X, y)
    found = shap.Explainer(model.predict_proba, X[:20])(X_test[:2])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict_proba(X_test[:2]), atol=1e-6)


@LINEAR
def test_eli5_once_told_that_the_model_is_linear(model, problem):
    eli5 = pytest.importorskip("eli5")
    from eli5.sklearn.explain_prediction import explain_prediction_linear_classifier
    from eli5.sklearn.explain_weights import explain_linear_classifier_weights

    eli5.explain_weights.register(type(model))(explain_linear_classifier_weights)
    eli5.explain_prediction.register(type(model))(explain_prediction_linear_classifier)
    X, y, X_test, _ = problem
    model.fit(X, y)
    weights = eli5.explain_weights(model)
    assert weights.error is None
    assert [target.target for target in weights.targets] == [0, 1, 2]
    explained = eli5.explain_prediction(model, X_test[0])
    assert explained.error is None
    scores = [target.score for target in explained.targets]
    np.testing.assert_allclose(scores, model.decision_function(X_test[:1])[0], atol=1e-8)
