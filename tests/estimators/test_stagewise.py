import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_digits, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import StagewiseClassifier, StagewiseRegressor
from manyclass.features import (
    FeatureSubset,
    ImagePatches,
    Landmarks,
    RandomFourierFeatures,
    RandomPolynomials,
    RandomUnits,
)
from manyclass.solvers import Status

SMALL = {"n_components": 60, "block_size": 20}


def expected_failures(estimator):
    failures = {}
    if getattr(estimator, "inner", "softmax") != "softmax":
        failures["check_classifiers_multilabel_output_format_predict_proba"] = (
            "projection onto [0, 1] gives probabilities of exactly 0 and 1, which the check does not allow"
        )
    return failures


@parametrize_with_checks(
    [
        StagewiseClassifier(**SMALL, alpha=1e-4),
        StagewiseClassifier(**SMALL, alpha=1e-1, inner="calibrated"),
        StagewiseClassifier(**SMALL, alpha=1e-4, inner="softmax", n_passes=2),
        StagewiseRegressor(**SMALL, alpha=1e-4),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split((X / 16).astype(np.float32), y, test_size=0.4, random_state=0, stratify=y)


@pytest.mark.parametrize("inner", ["linear", "calibrated", "softmax"])
@pytest.mark.parametrize(
    "features",
    [
        None,
        RandomUnits(activation="relu"),
        RandomUnits(),
        RandomPolynomials(),
        FeatureSubset(order="gradient"),
        ImagePatches(patch_size=3),
        Landmarks(),
    ],
    ids=lambda f: type(f).__name__,
)
def test_every_generator_with_every_inner_update(digits, features, inner):
    X, X_test, y, y_test = digits
    model = StagewiseClassifier(features, inner=inner, n_components=256, block_size=64, alpha=1e-3, n_passes=2).fit(
        X, y
    )
    assert model.score(X_test, y_test) > 0.9
    P = model.predict_proba(X_test)
    assert P.dtype == np.float32
    assert_allclose(P.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("inner", ["linear", "calibrated", "softmax"])
def test_staged_predictions_end_in_the_prediction(digits, inner):
    X, X_test, y, y_test = digits
    model = StagewiseClassifier(inner=inner, **SMALL, alpha=1e-4, n_passes=2, n_models=2).fit(X, y)
    staged = list(model.staged_predict(X_test))
    assert len(staged) == 6
    assert_array_equal(staged[-1], model.predict(X_test))
    *_, P = model.staged_predict_proba(X_test)
    assert_allclose(P, model.predict_proba(X_test), atol=1e-5)
    *_, Z = model.staged_decision_function(X_test)
    assert_allclose(Z, model.decision_function(X_test), atol=1e-4)
    assert (staged[-1] == y_test).mean() > (staged[0] == y_test).mean()


def test_a_saved_model_predicts_the_same_bits(digits):
    X, X_test, y, _ = digits
    for inner in ("linear", "calibrated", "softmax"):
        model = StagewiseClassifier(inner=inner, **SMALL).fit(X, y)
        loaded = pickle.loads(pickle.dumps(model))
        assert_array_equal(loaded.decision_function(X_test), model.decision_function(X_test))
        again = StagewiseClassifier(inner=inner, **SMALL).fit(X, y)
        assert_array_equal(again.decision_function(X_test), model.decision_function(X_test))


@pytest.mark.parametrize("inner", ["linear", "calibrated"])
def test_a_model_file_predicts_the_same_bits(digits, tmp_path, inner):
    from manyclass.cli.modelfile import Model, load, save
    from manyclass.cli.schema import Schema

    X, X_test, y, _ = digits
    model = StagewiseClassifier(inner=inner, **SMALL).fit(X, y)
    schema = Schema(n_features=64, classes=model.classes_, feature_names=None, multilabel=False)
    save(Model(model, schema), tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops").estimator
    assert_array_equal(loaded.decision_function(X_test), model.decision_function(X_test))


def test_averaged_models_differ_and_their_average_is_their_mean(digits):
    X, X_test, y, _ = digits
    model = StagewiseClassifier(**SMALL, n_models=3).fit(X, y)
    assert [r.model for r in model.history_] == [0] * 3 + [1] * 3 + [2] * 3
    weights = [m.blocks[0].random_weights_ for m in model.models_]
    assert not np.allclose(weights[0], weights[1])
    from manyclass.data import Design
    from manyclass.solvers.stages import final_states

    parts = [final_states(Design(X_test), m.blocks, m.stages, model._inner_update()) for m in model.models_]
    assert_allclose(model.decision_function(X_test), np.mean(parts, axis=0), atol=1e-5)
    with pytest.raises(ValueError, match="n_models=1"):
        StagewiseClassifier(FeatureSubset(), n_models=2).fit(X, y)


def test_early_stopping_and_time_limit(digits):
    X, X_test, y, y_test = digits
    model = StagewiseClassifier(n_components=3000, block_size=100, early_stopping=True, n_iter_no_change=3).fit(X, y)
    assert model.n_iter_ < 30
    assert model.status_ is Status.EARLY_STOPPED
    assert model.score(X_test, y_test) > 0.9
    with pytest.warns(ConvergenceWarning, match="max_time"):
        short = StagewiseClassifier(n_components=50_000, block_size=100, max_time=0.2, n_models=2).fit(X, y)
    assert len(short.models_) == 1
    assert short.score(X_test, y_test) > 0.8


def test_interrupt_gives_a_model_and_a_warning(digits):
    X, X_test, y, y_test = digits

    def stop(record):
        if record.stage == 1:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = StagewiseClassifier(**SMALL, callback=stop).fit(X, y)
    assert model.n_iter_ == 2
    assert model.score(X_test, y_test) > 0.8


def test_sparse_text_like_rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 300), density=0.05, rng=rng, format="csr", dtype=np.float32)
    y = np.asarray((X @ rng.standard_normal((300, 3))).argmax(axis=1))
    for indices in (np.int32, np.int64):
        X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
        options = {"n_components": None, "block_size": 50, "n_passes": 2, "alpha": 1e-4}
        model = StagewiseClassifier(FeatureSubset(order="gradient"), **options).fit(X, y)
        assert model.n_iter_ == 12
        dense = StagewiseClassifier(FeatureSubset(order="gradient"), **options).fit(X.toarray(), y)
        assert_allclose(model.decision_function(X), dense.decision_function(X.toarray()), atol=1e-3)
        assert model.score(X, y) > 0.9


@pytest.mark.parametrize("inner", ["linear", "calibrated", "softmax"])
def test_multilabel(inner):
    X, Y = make_multilabel_classification(500, 20, n_classes=6, random_state=0)
    model = StagewiseClassifier(inner=inner, n_components=200, block_size=50, alpha=1e-3).fit(X[:400], Y[:400])
    P = model.predict_proba(X[400:])
    assert P.shape == (100, 6)
    assert ((P >= 0) & (P <= 1)).all()
    assert_array_equal(model.predict(X[400:]), model.decision_function(X[400:]) > 0)
    constant = np.maximum(Y[:400].mean(axis=0), 1 - Y[:400].mean(axis=0)).mean()
    assert (model.predict(X[400:]) == Y[400:]).mean() > constant + 0.02


def test_features_do_not_depend_on_the_block_size_scale(digits):
    X, X_test, y, y_test = digits
    scores = [
        StagewiseClassifier(n_components=512, block_size=p, alpha=1e-3, n_passes=40).fit(X, y).score(X_test, y_test)
        for p in (64, 512)
    ]
    assert abs(scores[0] - scores[1]) < 0.02


def test_regressor_is_ridge_on_its_features():
    from sklearn.linear_model import Ridge

    X, y = load_diabetes(return_X_y=True)
    model = StagewiseRegressor(n_components=60, block_size=60, alpha=1e-3).fit(X, y)
    Z = model.models_[0].blocks[0].transform(X)
    assert_allclose(model.predict(X), Ridge(1e-3 * len(X)).fit(Z, y).predict(Z), rtol=1e-6)
    two = StagewiseRegressor(n_components=60, block_size=60, alpha=1e-3).fit(X, np.c_[y, -y])
    assert_allclose(two.predict(X), np.c_[model.predict(X), -model.predict(X)], rtol=1e-6)


def test_bad_requests_are_named(digits):
    X, _, y, _ = digits
    with pytest.raises(ValueError, match="set n_components"):
        StagewiseClassifier(n_components=None).fit(X, y)
    with pytest.raises(ValueError, match="inner"):
        StagewiseClassifier(inner="cubic").fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        StagewiseClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="NaN"):
        StagewiseClassifier().fit(np.full_like(X, np.nan), y)


def test_the_generator_given_is_not_touched(digits):
    X, _, y, _ = digits
    features = RandomFourierFeatures(random_state=7)
    StagewiseClassifier(features, **SMALL).fit(X, y)
    assert not hasattr(features, "bandwidth_")
    assert features.random_state == 7
