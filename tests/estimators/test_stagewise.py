import gc
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_diabetes, load_digits, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier, StagewiseClassifier, StagewiseRegressor
from manyclass.features import (
    FeatureSubset,
    ImagePatches,
    Landmarks,
    RandomFourierFeatures,
    RandomPolynomials,
    RandomUnits,
)
from manyclass.fit import Status
from manyclass.stagewise import UPDATES
from tests.covering import in_turn
from tests.problems import Callback

SMALL = {"n_components": 60, "block_size": 20}


GENERATORS = [
    None,
    RandomUnits(activation="relu"),
    RandomUnits(),
    RandomPolynomials(),
    FeatureSubset(order="gradient"),
    ImagePatches(patch_size=3),
    Landmarks(),
]


@pytest.mark.parametrize(("features", "loss"), in_turn(GENERATORS, sorted(UPDATES)), ids=lambda f: type(f).__name__)
def test_every_generator_and_every_loss(divided_digits, features, loss):
    X, X_test, y, y_test = divided_digits
    model = StagewiseClassifier(features, loss=loss, n_components=256, block_size=64, alpha=1e-3, max_iter=2).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    P = model.predict_proba(X_test)
    assert P.dtype == np.float32
    assert_allclose(P.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("loss", sorted(UPDATES))
def test_staged_predictions_end_in_the_prediction(divided_digits, loss):
    X, X_test, y, y_test = divided_digits
    model = StagewiseClassifier(loss=loss, **SMALL, alpha=1e-4, max_iter=2, n_models=2).fit(X, y)
    staged = list(model.staged_predict(X_test))
    assert len(staged) == 6
    assert_array_equal(staged[-1], model.predict(X_test))
    *_, P = model.staged_predict_proba(X_test)
    assert_allclose(P, model.predict_proba(X_test), atol=1e-5)
    *_, Z = model.staged_decision_function(X_test)
    assert_allclose(Z, model.decision_function(X_test), atol=1e-4)
    assert (staged[-1] == y_test).mean() > (staged[0] == y_test).mean()


def test_a_saved_model_predicts_the_same_bits(divided_digits):
    X, X_test, y = divided_digits[0][:300], divided_digits[1], divided_digits[2][:300]
    for loss in UPDATES:
        model = StagewiseClassifier(loss=loss, **SMALL).fit(X, y)
        loaded = pickle.loads(pickle.dumps(model))
        assert_array_equal(loaded.decision_function(X_test), model.decision_function(X_test))
        again = StagewiseClassifier(loss=loss, **SMALL).fit(X, y)
        assert_array_equal(again.decision_function(X_test), model.decision_function(X_test))


@pytest.mark.parametrize("loss", ["squared", "calibrated"])
def test_a_model_file_predicts_the_same_bits(divided_digits, tmp_path, loss):
    from manyclass.cli.modelfile import Model, Schema, load, save

    X, X_test, y, _ = divided_digits
    model = StagewiseClassifier(loss=loss, **SMALL).fit(X, y)
    schema = Schema(n_features=64, classes=model.classes_, feature_names=None, multilabel=False)
    save(Model(model, schema), tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops").estimator
    assert_array_equal(loaded.decision_function(X_test), model.decision_function(X_test))


def test_early_stopping_and_time_limit(divided_digits):
    X, X_test, y, y_test = divided_digits
    options = {"n_components": 3000, "block_size": 100, "alpha": 1e-6, "n_iter_no_change": 3}
    model = StagewiseClassifier(**options, early_stopping=True).fit(X, y)
    assert len(model.history_) < 30
    assert model.status_ is Status.EARLY_STOPPED
    assert model.score(X_test, y_test) > 0.9
    with pytest.warns(ConvergenceWarning, match="max_time"):
        features = RandomFourierFeatures(bandwidth=5.0)
        options = {"n_components": 10**7, "block_size": 100, "alpha": 1e-3}
        short = StagewiseClassifier(features, **options, max_time=0.4, n_models=2).fit(X, y)
    assert len(short.models_) == 1
    assert short.score(X_test, y_test) > 0.8


def test_interrupt_gives_a_model_and_a_warning(divided_digits):
    X, X_test, y, y_test = divided_digits

    class Stop(Callback):
        def on_fit_task_end(self, estimator, context, *, metadata):
            if "record" in metadata and metadata["record"]["stage"] == 1:
                raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = StagewiseClassifier(**SMALL, alpha=1e-3).set_callbacks(Stop()).fit(X, y)
    assert len(model.models_[0].stages) == 2
    assert model.score(X_test, y_test) > 0.8


def test_sparse_text_like_rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 300), density=0.05, rng=rng, format="csr", dtype=np.float32)
    y = np.asarray((X @ rng.standard_normal((300, 3))).argmax(axis=1))
    for indices in (np.int32, np.int64):
        X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
        options = {"n_components": None, "block_size": 50, "max_iter": 2, "alpha": 1e-4}
        model = StagewiseClassifier(FeatureSubset(order="gradient"), **options).fit(X, y)
        assert len(model.history_) == 12 and model.n_iter_ == 2
        dense = StagewiseClassifier(FeatureSubset(order="gradient"), **options).fit(X.toarray(), y)
        assert_allclose(model.decision_function(X), dense.decision_function(X.toarray()), atol=1e-3)
        assert model.score(X, y) > 0.9


@pytest.mark.parametrize("loss", sorted(set(UPDATES) - {"softmax"}))
def test_multilabel(loss):
    X, Y = make_multilabel_classification(500, 20, n_classes=6, random_state=0)
    model = StagewiseClassifier(loss=loss, n_components=200, block_size=50, alpha=1e-3).fit(X[:400], Y[:400])
    P = model.predict_proba(X[400:])
    assert P.shape == (100, 6)
    assert ((P >= 0) & (P <= 1)).all()
    assert_array_equal(model.predict(X[400:]), model.decision_function(X[400:]) > 0)
    constant = np.maximum(Y[:400].mean(axis=0), 1 - Y[:400].mean(axis=0)).mean()
    assert (model.predict(X[400:]) == Y[400:]).mean() > constant + 0.02


def test_features_do_not_depend_on_the_block_size_scale(divided_digits):
    X, X_test, y, y_test = divided_digits
    scores = [
        StagewiseClassifier(n_components=256, block_size=p, alpha=1e-3, max_iter=30).fit(X, y).score(X_test, y_test)
        for p in (32, 256)
    ]
    assert abs(scores[0] - scores[1]) < 0.02


@pytest.mark.parametrize("loss", ["squared", "softmax", "logistic"])
def test_two_classes_have_the_objective_of_the_glm(divided_digits, loss):
    X, _, y, _ = divided_digits
    X, y = X.astype(float), y > 4
    options = {"n_components": None, "block_size": 64, "max_iter": 1 if loss == "squared" else 60}
    model = StagewiseClassifier(FeatureSubset(), loss=loss, alpha=1e-2, **options).fit(X, y)
    glm = GLMClassifier(1e-2, loss=loss, tol=1e-10).fit(X, y)
    assert model.models_[0].stages[0].coef.shape == (64, 1)
    assert model.history_[-1].objective == pytest.approx(glm.history_[-1].objective, rel=1e-4)
    if loss == "squared":
        assert_allclose(model.models_[0].stages[0].coef.T, glm.coef_, atol=1e-6)
    P = model.predict_proba(X)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))


def test_squared_scores_become_probabilities(divided_digits):
    X, X_test, y, _ = divided_digits
    model = StagewiseClassifier(**SMALL, loss="squared", alpha=1e-4).fit(X, y // 4)  # no rows tell a temperature
    assert not hasattr(model, "temperature_")
    P = model.predict_proba(X_test)
    inside = (P > 0.34 * model._doubt).all(axis=1)
    near = (1 + model.decision_function(X_test)) / 2 * (1 - model._doubt)
    assert 0 < inside.mean() < 1 and P.min() == pytest.approx(model._doubt / 3, rel=1e-3)
    assert_allclose(np.diff(P[inside]), np.diff(near[inside]), atol=1e-5)  # a projection inside shifts all alike
    binary = StagewiseClassifier(**SMALL, loss="squared", alpha=1e-4).fit(X, y > 4)
    expected = np.clip((1 + binary.decision_function(X_test)) / 2, 0, 1) * (1 - binary._doubt) + binary._doubt / 2
    assert_allclose(binary.predict_proba(X_test)[:, 1], expected, atol=1e-6)


@pytest.mark.parametrize("features", [None, RandomUnits(), RandomPolynomials(), Landmarks(), FeatureSubset()])
def test_the_origin_does_not_matter(divided_digits, features):
    X, X_test, y, y_test = divided_digits
    options = {"n_components": 64, "block_size": 32, "alpha": 1e-3, "loss": "calibrated", "max_iter": 3}
    scores = []
    for shift in np.float32([0.0, 1024.0]):
        model = StagewiseClassifier(features, **options).fit(X + shift, y)
        scores.append(model.score(X_test + shift, y_test))
    assert scores[1] > scores[0] - 0.03  # random features are drawn anew


def test_models_predict_in_any_namespace_and_dtype(divided_digits):
    torch = pytest.importorskip("torch")
    X, X_test, y = divided_digits[0][:300], divided_digits[1], divided_digits[2][:300]
    for loss in UPDATES:
        model = StagewiseClassifier(**SMALL, loss=loss).fit(X, y)
        expected = model.predict_proba(X_test)
        there = model.predict_proba(torch.asarray(X_test))
        assert isinstance(there, torch.Tensor)
        assert_allclose(there.numpy(force=True), expected, atol=1e-4)
        assert_allclose(model.predict_proba(X_test.astype(np.float64)), expected, atol=1e-4)
        wide = StagewiseClassifier(**SMALL, loss=loss).fit(X.astype(np.float64), y)
        assert wide.predict_proba(X_test).dtype == np.float64


def test_regressor_is_ridge_on_its_features():
    from sklearn.linear_model import Ridge

    X, y = load_diabetes(return_X_y=True)
    model = StagewiseRegressor(n_components=60, block_size=60, alpha=1e-3).fit(X, y)
    Z = model.models_[0].blocks[0].transform(X)
    assert_allclose(model.predict(X), Ridge(1e-3 * len(X)).fit(Z, y).predict(Z), rtol=1e-6)
    two = StagewiseRegressor(n_components=60, block_size=60, alpha=1e-3).fit(X, np.c_[y, -y])
    assert_allclose(two.predict(X), np.c_[model.predict(X), -model.predict(X)], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("features", [RandomFourierFeatures(), RandomUnits(), FeatureSubset()], ids=str)
def test_constant_columns_predict_the_mean_whatever_comes(features, dtype):
    for seed, column in [(0, 0.0), (1, 3.3), (2, 0.1)]:
        rng = np.random.default_rng(seed)
        X, y = np.full((500, 5), column, dtype=dtype), rng.standard_normal(500)
        model = StagewiseRegressor(features, n_components=5, block_size=5).fit(X, y)
        assert_allclose(model.predict(rng.standard_normal((9, 5)).astype(dtype)), y.mean(), atol=1e-6)
        classifier = CalibratedLeastSquaresClassifier().fit(X, y > 0)
        assert_allclose(classifier.predict_proba(X + 0.1)[:, 1], np.mean(y > 0), atol=1e-3)


def test_bad_requests_are_named(divided_digits):
    X, y = divided_digits[0][:100], divided_digits[2][:100]
    with pytest.raises(ValueError, match="set n_components"):
        StagewiseClassifier(n_components=None).fit(X, y)
    with pytest.raises(ValueError, match="'cubic'"):
        StagewiseClassifier(loss="cubic").fit(X, y)
    with pytest.raises(ValueError, match="use loss='logistic'"):
        StagewiseClassifier(loss="softmax").fit(X, np.eye(10)[y])
    with pytest.raises(ValueError, match="one class"):
        StagewiseClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="NaN"):
        StagewiseClassifier().fit(np.full_like(X, np.nan), y)


def test_the_generator_given_is_not_touched(divided_digits):
    X, _, y, _ = divided_digits
    features = RandomFourierFeatures(random_state=7)
    StagewiseClassifier(features, **SMALL).fit(X, y)
    assert not hasattr(features, "bandwidth_")
    assert features.random_state == 7


def test_columns_are_taken_where_they_predict_better_and_generated_features_elsewhere():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60))
    linear, round_ = X @ rng.standard_normal(60) > 0, (X[:, :2] ** 2).sum(axis=1) > 1.4
    assert StagewiseClassifier(loss="squared").fit(X, linear).choice_["features"] == "columns"
    found = StagewiseClassifier(random_state=0).fit(X[:, :2], round_)
    assert found.choice_["features"] == "RandomFourierFeatures"
    assert found.score(X[:, :2], round_) > 0.9


@pytest.mark.parametrize(
    ("estimator", "far"),
    in_turn(
        [
            StagewiseClassifier(n_components=128, block_size=64, random_state=0),
            StagewiseRegressor(n_components=256, block_size=128, random_state=0),
            CalibratedLeastSquaresClassifier(),
        ],
        [True, False],
    ),
    ids=lambda one: str(one) if isinstance(one, bool) else type(one).__name__,
)
def test_columns_in_different_units_cost_no_accuracy(estimator, far):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 8))
    Z = X @ rng.standard_normal((8, 3)) + 0.1 * rng.standard_normal((900, 3))
    y = Z[:, 0] if is_regressor(estimator) else Z.argmax(axis=1)
    in_units = (X + 1e3 * far) * np.logspace(-4, 4, 8)
    scores = [clone(estimator).fit(rows[:600], y[:600]).score(rows[600:], y[600:]) for rows in (X, in_units)]
    assert scores[0] > 0.9
    assert scores[1] > scores[0] - 0.02


def test_models_of_standardized_columns_are_those_of_columns_that_were_standardized():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60))
    y = X @ rng.standard_normal(60) > 0
    X = X * np.logspace(-3, 3, 60) + 5.0
    # Folds are drawn by what rows hold, which differs.
    calibrated = partial(CalibratedLeastSquaresClassifier, early_stopping=False)
    for kind in (partial(StagewiseClassifier, loss="squared"), calibrated):
        model = kind(random_state=0).fit(X, y)
        assert model.choice_["features"] == "standardized columns"
        scaled = StandardScaler().fit(X)
        other = kind(random_state=0).fit(scaled.transform(X), y)
        assert other.choice_["features"] == "columns"
        assert other.alpha_ == pytest.approx(model.alpha_)
        assert_allclose(model.decision_function(X), other.decision_function(scaled.transform(X)), atol=1e-8)


@pytest.mark.parametrize(
    ("response", "narrower", "unit"),
    [
        (lambda X: np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1]), True, 1.0),
        (lambda X: X[:, 0] * X[:, 1] - X[:, 2] ** 2, False, 1e3),
    ],
)
def test_a_regressor_chooses_how_fast_its_features_change(response, narrower, unit, rng):
    Z = rng.uniform(-2, 2, (900, 2 if narrower else 8))
    X, y = Z * np.where(np.arange(Z.shape[1]) == 0, unit, 1.0), response(Z) + 0.1 * rng.standard_normal(900)
    options = {"n_components": 1024, "random_state": 0}
    model = StagewiseRegressor(**options).fit(X[:500], y[:500])
    in_units = RandomFourierFeatures(standardize=unit > 1)
    median = StagewiseRegressor(in_units, **options).fit(X[:500], y[:500])
    (drawn,) = model.models_[0].blocks
    assert drawn.bandwidth_ == model.choice_["bandwidth"]
    assert (drawn.bandwidth_ < median.models_[0].blocks[0].bandwidth_) == narrower
    assert 1 - model.score(X[500:], y[500:]) < 0.5 * (1 - median.score(X[500:], y[500:]))


@pytest.mark.parametrize("labels", ["classes", "indicator"])
def test_a_classifier_chooses_how_fast_its_features_change(labels, rng):
    X = rng.uniform(0.0, 6.0, (1400, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    Y = y if labels == "classes" else np.stack([y, 1 - y], axis=1)
    options = {"n_components": 768, "random_state": 0}
    model = StagewiseClassifier(**options).fit(X[:900], Y[:900])
    median = StagewiseClassifier(RandomFourierFeatures(), **options).fit(X[:900], Y[:900])
    assert 1 - model.score(X[900:], Y[900:]) < 0.6 * (1 - median.score(X[900:], Y[900:]))
    assert model.choice_["bandwidth"] < 0.3 * median.models_[0].blocks[0].bandwidth_


def test_the_median_bandwidth_is_kept_where_no_other_is_clearly_better(rng):
    X, y = rng.standard_normal((300, 5)), rng.standard_normal(300)
    for model, given in ((StagewiseRegressor, y), (StagewiseClassifier, rng.integers(3, size=300))):
        assert "bandwidth" not in model(n_components=256, random_state=0).fit(X, given).choice_
    X, y = load_digits(return_X_y=True)  # of 14 errors for 16
    assert "bandwidth" not in StagewiseClassifier(n_components=512, random_state=0).fit(X[:1200] / 16, y[:1200]).choice_


@pytest.mark.parametrize("loss", ["squared", "calibrated", "softmax"])
def test_wide_sparse_rows_are_fitted_by_their_columns_without_a_matrix_of_them(loss):
    rng = np.random.default_rng(0)
    X = sp.random_array((120, 5000), density=0.01, format="csr", rng=rng)
    y = np.asarray(X @ rng.standard_normal((5000, 3))).argmax(axis=1)
    model = StagewiseClassifier(loss=loss, n_components=256, random_state=0).fit(X, y)
    assert set(model.choice_["errors"]) == {"columns", "RandomFourierFeatures"}
    assert model.predict(X).shape == (120,) and set(model.predict(X)) <= set(y)


def test_newton_steps_on_wide_sparse_columns_end_at_the_joint_solution(monkeypatch):
    monkeypatch.setattr("manyclass.estimators.stagewise.columns_suffice", lambda *_: True)
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 3000), density=0.02, format="csr", rng=rng)
    y = np.asarray(X @ rng.standard_normal((3000, 3))).argmax(axis=1)
    weight = rng.random(200) + 0.5
    model = StagewiseClassifier(loss="softmax", max_iter=12).fit(X, y, sample_weight=weight)
    assert (model.choice_["features"], model.choice_["representation"] != "moments") == ("columns", True)
    other = GLMClassifier(alpha=model.alpha_, tol=1e-8).fit(X, y, sample_weight=weight)
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=2e-3)
    assert np.all(np.diff([record.objective for record in model.history_]) <= 1e-9)


@pytest.mark.parametrize("kind", [CalibratedLeastSquaresClassifier, partial(StagewiseClassifier, **SMALL)])
def test_the_predictions_of_fits_are_let_go_without_garbage_collection(kind):
    X, y = load_digits(return_X_y=True)
    gc.collect()
    gc.disable()
    try:
        model = kind().fit(X[:300], y[:300])
        assert not [one for one in gc.get_objects() if type(one).__name__ == "_Fit"]
    finally:
        gc.enable()
    assert model.score(X[300:], y[300:]) > 0.75


def test_held_out_rows_tell_the_doubt_in_several_models(rng):
    """Rows that were fitted to told it of all but the last."""
    X = rng.standard_normal((500, 10))
    y = (X @ rng.standard_normal((10, 8)) + rng.gumbel(size=(500, 8))).argmax(axis=1)
    options = {"n_components": 256, "n_models": 3, "early_stopping": True, "random_state": 0}
    model = StagewiseClassifier(RandomFourierFeatures(), loss="calibrated", **options)
    P = model.fit(X, y).predict_proba(rng.standard_normal((500, 10)))
    assert P.min() == pytest.approx(model.models_[-1].doubt / 8)
    assert model.models_[0].doubt < 0.5 * model.models_[-1].doubt
