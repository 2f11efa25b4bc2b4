"""What other programs predict with a model is what the model predicts."""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manyclass
from manyclass import export, features, linear_model
from manyclass.data.rows import to_numpy
from manyclass.export.program import GENERATORS

SMALL = {"n_components": 24, "block_size": 12, "alpha": 1e-3}
MODELS = {
    "softmax": manyclass.GLMClassifier(),
    "logistic": manyclass.GLMClassifier(loss="logistic"),
    "squared": manyclass.GLMClassifier(loss="squared"),
    "sparsemax": manyclass.GLMClassifier(loss="sparsemax"),
    "temperature": manyclass.GLMClassifierCV(alphas=[1e-2, 1e-3], cv=2, calibrate="temperature"),
    "hinge, sigmoid": manyclass.SDCAClassifier(loss="hinge", calibrate="sigmoid"),
    "joint hinge, temperature": manyclass.SDCAClassifier(loss="crammer_singer", calibrate="temperature"),
    "calibrated": manyclass.CalibratedLeastSquaresClassifier(max_iter=5),
    "LogisticRegression": linear_model.LogisticRegression(),
    "RidgeClassifier": linear_model.RidgeClassifier(),
    "Fourier": manyclass.StagewiseClassifier(**SMALL),
    "units": manyclass.StagewiseClassifier(
        features=features.RandomUnits(activation="relu"), loss="calibrated", max_iter=2, **SMALL
    ),
    "polynomials": manyclass.StagewiseClassifier(
        features=[features.RandomPolynomials(), features.RandomUnits()], loss="logistic", n_models=2, **SMALL
    ),
    "landmarks": manyclass.StagewiseClassifier(features=features.Landmarks(), loss="softmax", **SMALL),
    "columns": manyclass.StagewiseClassifier(
        features=features.FeatureSubset(), n_components=None, block_size=3, alpha=1e-3, max_iter=2
    ),
}
EVERY = pytest.mark.parametrize("name", MODELS)
CLASSES = pytest.mark.parametrize("load", [load_iris, load_breast_cancer], ids=["three classes", "two classes"])


@cache
def fitted(name, load):
    found = load()
    X = ((found.data - found.data.mean(axis=0)) / found.data.std(axis=0) + 1.0).astype(np.float32)
    return clone(MODELS[name]).fit(X, found.target_names[found.target]), X


def expected_of(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


def session_of(model, **options):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    made = export.to_onnx(model, **options)
    assert max(one.version for one in made.opset_import if not one.domain) <= 18  # or old runtimes could not read it
    return runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


@CLASSES
@EVERY
def test_onnx(name, load):
    model, X = fitted(name, load)
    labels, values = session_of(model).run(None, {"X": X})
    expected = expected_of(model, X)
    # A learned link may be steep: in float32, sums in another order are another probability in the fifth digit.
    np.testing.assert_allclose(values.reshape(expected.shape), expected, atol=1e-4)
    assert np.mean(labels == model.predict(X)) > 0.99


@pytest.mark.parametrize("labels", [np.array([-1.0, 1.0, 4.0]), np.array([False, True, True]), np.array([7, 2, 5])])
def test_onnx_gives_numbers_where_labels_are_numbers(labels):
    X, y = load_iris(return_X_y=True)
    model = manyclass.GLMClassifier().fit(X.astype(np.float32), labels[y])
    found, _ = session_of(model).run(None, {"X": X.astype(np.float32)})
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, model.predict(X.astype(np.float32)))


@CLASSES
@EVERY
def test_torch(name, load):
    torch = pytest.importorskip("torch")
    model, X = fitted(name, load)
    module = export.to_torch(model)
    rows = torch.tensor(X, requires_grad=True)
    found = module.predict_proba(rows) if hasattr(model, "predict_proba") else module(rows)
    expected = expected_of(model, X)
    np.testing.assert_allclose(to_numpy(found).reshape(expected.shape), expected, atol=1e-4)
    assert np.mean(module.classes[to_numpy(module.predict(rows))] == model.predict(X)) > 0.99
    module(rows).sum().backward()
    assert rows.grad is not None


def test_a_module_of_torch_may_be_stored_and_take_other_numbers(tmp_path):
    torch = pytest.importorskip("torch")
    model, X = fitted(next(iter(MODELS)), load_iris)
    module, rows = export.to_torch(model), torch.tensor(X)
    torch.save(module, tmp_path / "m.pt")
    assert torch.equal(torch.load(tmp_path / "m.pt", weights_only=False)(rows), module(rows))
    expected = module(rows)
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        found = module.to(dtype)(rows)
        assert found.dtype == dtype and torch.allclose(found.float(), expected, rtol=0.05, atol=0.2)
    with pytest.raises(ValueError, match="'float32' or 'float64'"):
        export.to_torch(model, dtype="float16")


def test_pipelines_double_precision_several_labels_and_numbers_as_labels():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), manyclass.GLMClassifier()).fit(X, y * 10)
    labels, P = session_of(pipeline, dtype="float64").run(None, {"X": X})
    np.testing.assert_allclose(P, pipeline.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(labels, pipeline.predict(X))
    with pytest.raises(ValueError, match="'float32' or 'float64'"):
        export.to_onnx(pipeline, dtype="float16")
    Y = np.stack([y == 0, y > 0], axis=1).astype(int)
    several = manyclass.GLMClassifier().fit(X, Y)
    labels, P = session_of(several, dtype="float64").run(None, {"X": X})
    np.testing.assert_array_equal(labels, several.predict(X))
    np.testing.assert_allclose(P, several.predict_proba(X), atol=1e-12)


TRANSFORMERS = [
    features.ThermometerEncoder(6),
    features.RandomFourierFeatures(40, random_state=0),
    features.RandomUnits(40, random_state=0),
    features.RandomPolynomials(40, random_state=0),
    features.Landmarks(20, random_state=0),
    features.FeatureSubset(2),
]


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transformers_are_parts_of_pipelines(transformer, dtype):
    X, y = load_iris(return_X_y=True)
    X = X.astype(dtype)
    pipeline = make_pipeline(transformer, manyclass.GLMClassifier(alpha=1e-3)).fit(X, y)
    labels, P = session_of(pipeline, dtype=dtype).run(None, {"X": X})
    np.testing.assert_allclose(P, pipeline.predict_proba(X), atol=1e-3 if dtype == "float32" else 1e-6)
    np.testing.assert_array_equal(labels, pipeline.predict(X))


def test_numbers_at_a_threshold_are_not_beyond_it():
    X = np.arange(8.0)[:, None]
    model = make_pipeline(features.ThermometerEncoder(), manyclass.GLMClassifier(alpha=1e-3)).fit(X, X[:, 0] > 2)
    at = model[0].thresholds_[:, None]
    found = session_of(model, dtype="float64").run(None, {"X": at})[1]
    np.testing.assert_allclose(found, model.predict_proba(at), atol=1e-6)


def test_thresholds_in_less_precision_tell_the_same_numbers_apart():
    X = 2.0**24 + 2.0 * np.arange(40)[:, None]
    y = np.arange(40) % 2
    pipeline = make_pipeline(features.ThermometerEncoder(64), manyclass.GLMClassifier(alpha=1e-4)).fit(X, y)
    np.testing.assert_array_equal(session_of(pipeline).run(None, {"X": X.astype(np.float32)})[0], y)


def test_every_transformer_with_operators_is_among_them():
    assert {type(one).__name__ for one in TRANSFORMERS} == set(GENERATORS)


def test_regressors():
    X = np.random.default_rng(0).standard_normal((80, 4))
    y = np.sin(X[:, 0]) + X[:, 1]
    model = manyclass.StagewiseRegressor(**SMALL).fit(X, y)
    found = session_of(model).run(None, {"X": X.astype(np.float32)})[0]
    np.testing.assert_allclose(found[:, 0], model.predict(X), atol=1e-4)
    missing = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state").NotImplemented
    try:
        session = session_of(model, dtype="float64")
    except missing as error:  # of old versions, which have a cosine in float32 alone
        assert "Cos" in str(error)
        return
    np.testing.assert_allclose(session.run(None, {"X": X})[0][:, 0], model.predict(X), atol=1e-6)


def test_what_has_no_operators_is_refused():
    pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)

    class Own(features.RandomFourierFeatures):
        pass

    with pytest.raises(ValueError, match="those that have are"):
        export.to_torch(manyclass.StagewiseClassifier(features=Own(), **SMALL).fit(X, y))
    with pytest.raises(ValueError, match="fit with powers"):
        export.to_torch(manyclass.CalibratedLeastSquaresClassifier(basis=(1, np.abs)).fit(X, y))


@CLASSES
def test_a_stagewise_model_of_columns_has_coefficients(load):
    model, X = fitted("columns", load)
    Z = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(Z.squeeze(), model.decision_function(X), atol=1e-5)
    assert not hasattr(fitted("Fourier", load)[0], "coef_")


def test_coefficients_as_safetensors(tmp_path):
    pytest.importorskip("safetensors")
    model, _ = fitted("temperature", load_iris)
    export.save_coefficients(model, tmp_path / "model.safetensors")
    arrays, description = export.load_coefficients(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(arrays["coef"], model.coef_)
    assert description["classes"] == ["setosa", "versicolor", "virginica"]
    assert description["temperature"] == model.temperature_
    for write in (export.to_torch, lambda given: export.save_coefficients(given, tmp_path / "other.safetensors")):
        with pytest.raises(TypeError, match=r"give the fitted one in it, such as pipeline\[-1\]"):
            write(make_pipeline(StandardScaler(), manyclass.GLMClassifier()))
    with pytest.raises(ValueError, match="not linear"):
        export.save_coefficients(fitted("Fourier", load_iris)[0], tmp_path / "other.safetensors")


def test_what_a_search_has_found_is_what_becomes_onnx():
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")  # for the scaler before it
    X, y = load_iris(return_X_y=True)
    model = manyclass.AutoClassifier().fit(X, y)
    session = runtime.InferenceSession(export.to_onnx(model).SerializeToString())
    _, probabilities = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-4)
    with pytest.raises(NotFittedError):
        export.to_onnx(manyclass.GLMClassifier())


def test_what_is_behind_the_encoder_of_a_table_becomes_onnx():
    table = [[number % 7 if number % 5 else None, ("Rome", "Oslo")[number % 2]] for number in range(80)]
    model = make_pipeline(features.TableEncoder(), StandardScaler(), manyclass.GLMClassifier())
    model.fit(table, np.arange(80) % 2)
    with pytest.raises(TypeError, match="no operators in ONNX: export what is behind TableEncoder"):
        export.to_onnx(model)
    _, found = session_of(model[1:]).run(None, {"X": model[0].transform(table).astype(np.float32)})
    np.testing.assert_allclose(found, model.predict_proba(table), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["RandomFourierFeatures", "RandomUnits", "RandomPolynomials", "Landmarks"])
def test_features_of_rows_far_from_the_origin_are_those_of_the_model(name, dtype):
    torch = pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    X = (X + 1000.0).astype(dtype)
    model = manyclass.StagewiseClassifier(features=getattr(features, name)(), **SMALL).fit(X, y)
    found = export.to_torch(model, dtype).predict_proba(torch.tensor(X))
    np.testing.assert_allclose(to_numpy(found), model.predict_proba(X), atol=1e-3 if dtype == "float32" else 1e-8)


def indicators(y, n_labels=3):
    return np.stack([y == 0, y > 0, y == 2], axis=1)[:, :n_labels].astype(int)


SEVERAL = {
    "linear": manyclass.GLMClassifier(alpha=1.0),
    "calibrated": manyclass.CalibratedLeastSquaresClassifier(max_iter=5),
    "stagewise": manyclass.StagewiseClassifier(loss="squared", **SMALL),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_labels_in_torch(name, n_labels):
    torch = pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    model = clone(SEVERAL[name]).fit(X, indicators(y, n_labels))
    module = export.to_torch(model, "float64")
    np.testing.assert_allclose(to_numpy(module.predict_proba(torch.tensor(X))), model.predict_proba(X), atol=1e-8)
    np.testing.assert_array_equal(to_numpy(module.predict(torch.tensor(X))), model.predict(X))
    if name == "linear":  # which is so flat that all labels of some rows are in doubt
        assert (abs(model.decision_function(X)) < 0.5).any()


@pytest.mark.parametrize("name", SEVERAL)
def test_labels_begin_where_those_of_the_model_do(name):
    torch = pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32)
    model = clone(SEVERAL[name]).fit(X, indicators(y, 3))
    usual, model._threshold = model.predict(X), 0.2  # as `AutoClassifier` may choose
    wanted = model.predict(X)
    assert (wanted > usual).any()
    assert np.mean(to_numpy(export.to_torch(model).predict(torch.tensor(X))) == wanted) > 0.99
    assert np.mean(session_of(model).run(None, {"X": X})[0] == wanted) > 0.99


def test_a_module_computes_in_the_precision_that_was_asked_for_whatever_that_of_the_rows():
    torch = pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    model = manyclass.GLMClassifier().fit(X, y)
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12)):
        module = export.to_torch(model, dtype)
        for rows in (torch.tensor(X), torch.tensor(X, dtype=torch.float32)):
            scores, P = module(rows), module.predict_proba(rows)
            assert scores.dtype == P.dtype == getattr(torch, dtype)
            np.testing.assert_allclose(to_numpy(P), model.predict_proba(to_numpy(rows).astype(float)), atol=tolerance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_functions_that_all_outputs_share_are_exported():
    torch = pytest.importorskip("torch")
    y = np.arange(30) % 12
    X = np.eye(12)[y] + 0.3 * np.random.default_rng(0).standard_normal((30, 12))
    model = manyclass.CalibratedLeastSquaresClassifier(max_iter=3, early_stopping=False).fit(X, y)
    found = export.to_torch(model, "float64").predict_proba(torch.tensor(X))
    np.testing.assert_allclose(to_numpy(found), model.predict_proba(X), atol=1e-9)


def test_rows_that_no_class_claims_have_finite_probabilities():
    torch = pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    model = manyclass.GLMClassifier(loss="logistic", alpha=1.0).fit(X, y)
    away = np.linalg.lstsq(model.coef_, np.full(3, -1e4), rcond=None)[0]
    rows = np.stack([away, X[0]]).astype(np.float32)
    assert (model.decision_function(rows[:1]) < -200).all()  # so that each sigmoid rounds to 0 in float32
    found = to_numpy(export.to_torch(model).predict_proba(torch.tensor(rows)))
    assert np.isfinite(found).all() and (found >= 0).all() and (found <= 1).all()


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [manyclass.GLMClassifier(), linear_model.RidgeClassifier()], ids=str)
def test_onnx_announces_the_shapes_of_what_it_gives(model, n_classes, several):
    X, y = load_iris(return_X_y=True)
    y = indicators(y, n_classes) if several else np.minimum(y, n_classes - 1)
    model = clone(model).fit(X, y)
    found = session_of(model).run(None, {"X": X.astype(np.float32)})
    announced = [one.type.tensor_type.shape.dim for one in export.to_onnx(model).graph.output]
    assert [[one.dim_value for one in shape[1:]] for shape in announced] == [list(one.shape[1:]) for one in found]


def test_the_version_of_the_operators_may_be_asked_for():
    pytest.importorskip("skl2onnx")
    model, _ = fitted("softmax", load_iris)
    made = export.to_onnx(model, target_opset=20)
    assert 18 < max(one.version for one in made.opset_import if not one.domain) <= 20


def test_a_description_says_what_turns_scores_into_probabilities(tmp_path):
    model, X = fitted("hinge, sigmoid", load_iris)
    export.save_coefficients(model, tmp_path / "model")
    arrays, told = export.load_coefficients(tmp_path / "model")
    assert told["link"] == "logistic"
    slopes, offsets = np.array(told["slopes and offsets of scores"])
    P = 1.0 / (1.0 + np.exp(-(slopes * (X @ arrays["coef"].T + arrays["intercept"]) + offsets)))
    np.testing.assert_allclose(P / P.sum(axis=1, keepdims=True), model.predict_proba(X), atol=1e-5)


def test_a_description_names_the_columns_and_the_kind_of_labels(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    for labels, names, multilabel in ((indicators(y), list("abcd"), True), (y, list("abcd"), False), (y, [], False)):
        export.save_coefficients(manyclass.GLMClassifier().fit(frame if names else X, labels), tmp_path / "model")
        told = export.load_coefficients(tmp_path / "model")[1]
        assert (told["features"], told["multilabel"]) == (names, multilabel)
