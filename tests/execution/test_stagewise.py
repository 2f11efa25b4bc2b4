"""Calibrated and stagewise fits of parts are those of one machine: what they predict stays with the rows."""

import numpy as np
import pytest
from sklearn.base import clone

from manyclass import CalibratedLeastSquaresClassifier, StagewiseClassifier
from manyclass.features import FeatureSubset, Landmarks, RandomFourierFeatures, RandomPolynomials, RandomUnits
from tests.execution.parts import fit_parts


def assert_same(model, X, y, weight=None, atol=1e-6):
    one = clone(model).fit(X, y, weight)
    found = fit_parts(model, X, y, weight)
    assert found.alpha_ == pytest.approx(one.alpha_, rel=1e-6)
    assert len(found.history_) == len(one.history_)
    np.testing.assert_allclose(found.decision_function(X), one.decision_function(X), atol=atol)
    np.testing.assert_allclose(found.predict_proba(X), one.predict_proba(X), atol=atol)
    return found


def calibrated(**options):
    return CalibratedLeastSquaresClassifier(**({"early_stopping": False, "max_iter": 8} | options))


def stagewise(**options):
    return StagewiseClassifier(**({"n_components": 24, "block_size": 8, "random_state": 0} | options))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"alpha": 1e-2}, {"fit_intercept": False}, {"class_weight": "balanced"}, {"basis": (1, 2)}], ids=str
)
def test_calibrated(data, weighted, options):
    X, y, weight = data
    assert_same(calibrated(**options), X, y, weight if weighted else None)


def test_calibration_of_each_output_by_itself(rng):
    """More functions than rows."""
    X, y = rng.standard_normal((300, 6)), rng.integers(0, 110, 300)
    assert_same(calibrated(alpha=1e-2), X, y)


def test_calibration_of_each_label_by_itself(rng):
    """Fewer than ten rows for each function of all labels."""
    X = rng.standard_normal((300, 6))
    Y = (X @ rng.standard_normal((6, 20)) + rng.standard_normal((300, 20)) > 1.0).astype(int)
    found = assert_same(calibrated(alpha=1e-2), X, Y)
    assert found.models_[0].stages[0].calibration[0].shape == (3, 20)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 1e-2, "max_iter": 3},
        {"alpha": 1e-2, "n_models": 2},
        {"loss": "calibrated", "alpha": 1e-2, "max_iter": 2},
        {"features": RandomUnits()},
        {"features": [RandomUnits(), RandomFourierFeatures()], "alpha": 1e-2},
        {"features": FeatureSubset(), "n_components": None, "block_size": 3, "max_iter": 2},
    ],
    ids=str,
)
def test_stagewise(data, weighted, options):
    X, y, weight = data
    assert_same(stagewise(**options), X, y, weight if weighted else None)


def test_features_that_need_sums_over_rows(data):
    assert_same(stagewise(features=RandomPolynomials(), alpha=1e-2), *data[:2])


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_newton_steps(data, loss):
    assert_same(stagewise(loss=loss, alpha=1e-2, max_iter=2), *data[:2])


def test_two_classes_several_labels_and_single_precision(data):
    X, y, weight = data
    several = np.stack([y == 0, y > 1, X[:, 0] > 0], axis=1).astype(int)
    for targets in (y > 1, several):
        assert_same(calibrated(), X, targets, weight)
        assert_same(stagewise(), X, targets, weight)
    assert_same(calibrated(), X.astype(np.float32), y, atol=1e-3)


@pytest.mark.parametrize("model", [calibrated(early_stopping="auto", max_iter=30), stagewise(early_stopping=True)])
def test_rows_are_held_out_in_each_part(rng, model):
    y = rng.integers(0, 3, 600)
    X = rng.standard_normal((600, 6)) + rng.standard_normal((3, 6))[y]
    found = fit_parts(model, X[:300], y[:300])
    assert found.history_[-1].validation_score < 0
    assert found.score(X[300:], y[300:]) > clone(model).fit(X[:300], y[:300]).score(X[300:], y[300:]) - 0.05


def test_what_needs_all_rows_in_one_place_is_refused(data, monkeypatch):
    monkeypatch.setattr("manyclass.data.parted.FEW", 100)
    with pytest.raises(TypeError, match="needs the rows in one place"):
        fit_parts(stagewise(features=Landmarks()), *data[:2])
