"""What scikit-learn does with a classifier beside fitting it."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import DecisionBoundaryDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    TunedThresholdClassifierCV,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from manyclass import GLMClassifier, SDCAClassifier, StagewiseClassifier
from manyclass.linear_model import LogisticRegression

EACH = pytest.mark.parametrize(
    "model",
    [
        GLMClassifier(),
        LogisticRegression(),
        SDCAClassifier(loss="softmax"),
        StagewiseClassifier(n_components=64, block_size=32, loss="softmax", alpha=1e-3),
    ],
    ids=lambda model: type(model).__name__,
)


@EACH
@pytest.mark.parametrize(
    "around",
    [
        lambda model: BaggingClassifier(model, 3, max_features=0.7, random_state=0),
        lambda model: AdaBoostClassifier(model, n_estimators=3),
        lambda model: VotingClassifier([("a", model), ("b", Theirs())], voting="soft", weights=[2, 1]),
        lambda model: StackingClassifier([("a", model), ("b", Theirs())], model, cv=3),
        lambda model: CalibratedClassifierCV(model, cv=3),
        lambda model: CalibratedClassifierCV(model, cv=3, method="temperature", ensemble=False),
        OneVsRestClassifier,
        lambda model: OutputCodeClassifier(model, code_size=2, random_state=0),
        SelfTrainingClassifier,
    ],
    ids="bagging boosting voting stacking sigmoid temperature rest codes self-training".split(),
)
def test_around(model, around, problem):
    X, y, X_test, y_test = problem
    assert around(model).fit(X, y).score(X_test, y_test) > 0.75


@EACH
def test_inspection(model, problem):
    X, y, X_test, y_test = problem
    model.fit(X, y)
    importance = permutation_importance(model, X_test, y_test, n_repeats=3, random_state=0).importances_mean
    assert importance.max() > 0.1
    found = partial_dependence(model, X, [0], grid_resolution=5)
    assert found["average"].shape == (3, 5)
    twin = type(model)(**model.get_params()).fit(X[:, :2], y)
    assert DecisionBoundaryDisplay.from_estimator(twin, X[:, :2], grid_resolution=8).response.shape == (8, 8, 3)


@EACH
def test_thresholds_and_calibration_curves(model, two_classes):
    X, y, X_test, y_test = two_classes
    tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=3).fit(X, y)
    assert tuned.score(X_test, y_test) > 0.6
    fixed = FixedThresholdClassifier(FrozenEstimator(model.fit(X, y)), threshold=0.0, pos_label="yes").fit(X, y)
    assert np.all(fixed.predict(X_test) == "yes")
    display = CalibrationDisplay.from_estimator(model, X_test, y_test, pos_label="yes", n_bins=5)
    assert len(display.prob_true) <= 5


@EACH
def test_searches_and_curves(model, problem):
    X, y, _, _ = problem
    name = "C" if "C" in model.get_params() else "alpha"
    pipeline = make_pipeline(StandardScaler(), model)
    grid = {f"{type(model).__name__.lower()}__{name}": [1e-3, 1e-1]}
    assert GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss").fit(X, y).best_score_ > -0.8
    HalvingGridSearchCV(pipeline, grid, cv=3, min_resources=100, scoring="neg_log_loss").fit(X, y)
    found = cross_validate(pipeline, X, y, cv=3, scoring=["accuracy", "roc_auc_ovr", "neg_brier_score"])
    assert found["test_roc_auc_ovr"].min() > 0.8
    assert learning_curve(model, X, y, train_sizes=[0.3, 1.0], cv=3)[1].shape == (2, 3)


def test_selection_of_features(problem):
    X, y, _, _ = problem
    model = GLMClassifier(alpha=1e-3)
    assert SelectFromModel(model).fit(X, y).get_support().sum() < 6
    assert RFE(model, n_features_to_select=2).fit(X, y).get_support().sum() == 2
    assert SequentialFeatureSelector(model, n_features_to_select=2, cv=2).fit(X, y).get_support().sum() == 2


def test_several_outputs(problem):
    X, y, _, _ = problem
    Y = np.stack([y == 0, y == 1], axis=1).astype(int)
    assert MultiOutputClassifier(GLMClassifier()).fit(X, Y).score(X, Y) > 0.7
    assert ClassifierChain(GLMClassifier(), order=[1, 0]).fit(X, Y).predict_proba(X).shape == (400, 2)


@EACH
def test_callbacks(model, problem, capsys):
    X, y, _, _ = problem
    monitor = ScoringMonitor(scoring="neg_log_loss")
    model = sklearn.clone(model).set_callbacks(monitor, ProgressBar()).fit(X, y)
    found = monitor.get_logs()
    assert found
    assert log_loss(y, model.predict_proba(X)) < 0.8


def test_set_output_and_names_of_columns(problem):
    X, y, X_test, y_test = problem
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pipeline = make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "b", "c"]), remainder="passthrough"), GLMClassifier()
    ).set_output(transform="pandas")
    pipeline.fit(frame, y)
    assert list(pipeline[-1].feature_names_in_[:3]) == [
        "standardscaler__a", "standardscaler__b", "standardscaler__c",
    ]  # fmt: skip
    assert pipeline.score(pd.DataFrame(X_test, columns=frame.columns), y_test) > 0.75


@EACH
def test_metadata_is_routed(model, problem):
    X, y, _, _ = problem
    weight = np.where(y == 2, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = sklearn.clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model).fit(
            X, y, sample_weight=weight
        )
        assert not np.any(pipeline.predict(X) == 2)
        found = cross_validate(pipeline, X, y, params={"sample_weight": weight}, cv=3)
        assert found["test_score"].min() > 0.8
        chosen = GridSearchCV(pipeline, {}, cv=3).fit(X, y, sample_weight=weight)
    assert not np.any(chosen.predict(X) == 2)
