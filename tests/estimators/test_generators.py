"""Models on the features of several kernels, which are averaged."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from manyclass import StagewiseClassifier
from manyclass.data import as_rows
from manyclass.features import FeatureSubset, RandomFourierFeatures, RandomUnits
from manyclass.fit import Status
from tests.problems import Callback

SMALL = {"n_components": 60, "block_size": 20}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split((X / 16).astype(np.float32), y, test_size=0.4, random_state=0, stratify=y)


def test_averaged_models_differ_and_their_average_is_their_mean(digits):
    X, X_test, y, _ = digits
    model = StagewiseClassifier(**SMALL, n_models=3).fit(X, y)
    assert [r["model"] for r in model.history_] == [0] * 3 + [1] * 3 + [2] * 3
    weights = [m.blocks[0].random_weights_ for m in model.models_]
    assert not np.allclose(weights[0], weights[1])
    parts = [m.scores(as_rows(X_test)) for m in model.models_]
    assert_allclose(model.decision_function(X_test), np.mean(parts, axis=0), atol=1e-5)
    with pytest.raises(ValueError, match="n_models=1"):
        StagewiseClassifier(FeatureSubset(), n_models=2).fit(X, y)


def test_of_several_kernels_each_has_models_of_its_own(digits):
    X, X_test, y, _ = digits
    kernels = [RandomFourierFeatures(), RandomUnits()]
    model = StagewiseClassifier(kernels, **SMALL, n_models=2).fit(X, y)
    assert [type(one.blocks[0]) for one in model.models_] == 2 * [RandomFourierFeatures, RandomUnits]
    parts = [one.scores(as_rows(X_test)) for one in model.models_]
    assert_allclose(model.decision_function(X_test), np.mean(parts, axis=0), atol=1e-5)
    assert not np.allclose(parts[0], parts[2])


def test_a_list_of_one_kernel_is_that_kernel(digits):
    X, X_test, y, _ = digits
    alone, listed = (StagewiseClassifier(one, **SMALL).fit(X, y) for one in (RandomUnits(), [RandomUnits()]))
    assert_array_equal(listed.decision_function(X_test), alone.decision_function(X_test))
    assert listed.alpha_ == alone.alpha_


class Counted(RandomFourierFeatures):
    """Features of which it is known how many were drawn."""

    drawn = 0

    def _draw(self, n_components, dtype, rng):
        type(self).drawn += n_components
        super()._draw(n_components, dtype, rng)


def test_hardly_more_features_are_drawn_than_a_model_has(digits):
    StagewiseClassifier(Counted(), **SMALL, alpha=1e-3).fit(digits[0], digits[2])
    assert SMALL["n_components"] <= Counted.drawn < SMALL["n_components"] + SMALL["block_size"]


@pytest.mark.parametrize("features", [[], [RandomUnits(), "median"], (None,)], ids=str)
def test_what_is_no_list_of_generators_is_refused(digits, features):
    with pytest.raises(TypeError, match="a list of these"):
        StagewiseClassifier(features, **SMALL).fit(digits[0], digits[2])


@pytest.mark.parametrize(("stops", "n_models"), [((1, 0), 1), ((1, 2), 2), ((2, 1), 2)])
def test_a_model_that_is_not_finished_is_not_averaged_with_those_that_are(digits, stops, n_models):
    """Of three models, each of three stages, stopped after a stage of one."""
    X, _, y, _ = digits

    class Stop(Callback):
        def on_fit_task_end(self, estimator, context, *, metadata):
            record = metadata.get("record", {"model": 0, "stage": 0})
            if (record["model"], record["stage"]) == stops:
                raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = StagewiseClassifier(**SMALL, alpha=1e-3, n_models=3).set_callbacks(Stop()).fit(X, y)
    assert [len(one.stages) for one in model.models_] == n_models * [3]


def test_a_kernel_learns_when_its_models_begin(digits):
    """So that a fit that is stopped before has not waited for it."""

    class Stop(Callback):
        def on_fit_task_end(self, estimator, context, *, metadata):
            return metadata.get("record", {"model": 0})["model"] == 0

    class Unready(RandomFourierFeatures):
        def fit(self, *given, **options):
            raise AssertionError

    model = StagewiseClassifier([RandomUnits(), Unready(metric="learned")], **SMALL, alpha=1e-3)
    model.set_callbacks(Stop()).fit(digits[0], digits[2])
    assert model.status_ is Status.STOPPED_BY_CALLBACK and len(model.models_) == 1


@pytest.mark.parametrize(
    ("second", "options"),
    [
        (RandomFourierFeatures(bandwidth=-1.0, metric="learned"), {}),
        (RandomUnits(activation="no"), {}),
        (FeatureSubset(), {"n_models": 2}),
        (RandomUnits(), {"n_components": None}),
    ],
    ids=str,
)
def test_a_kernel_that_cannot_serve_is_refused_before_the_first_model(digits, second, options):
    seen = []

    class Seen(Callback):
        def on_fit_task_end(self, estimator, context, **_):
            seen.append(context)

    model = StagewiseClassifier([FeatureSubset(), second], **SMALL | options, alpha=1e-3).set_callbacks(Seen())
    with pytest.raises(ValueError):
        model.fit(digits[0], digits[2])
    assert not seen
