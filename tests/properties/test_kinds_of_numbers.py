"""What X is held in, and where, changes neither the model nor what it predicts."""

import warnings
from contextlib import nullcontext

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from array_api_compat import array_namespace
from sklearn.exceptions import ConvergenceWarning

from manyclass.data.rows import to_numpy
from tests.properties.registry import MODELS, data, make

COMPILED = ("Pegasos", "SDCA", "BoundMajorizationClassifier stochastic")
ONE_OF_EACH = [name for name in MODELS if name in (name.split()[0], "BoundMajorizationClassifier stochastic")]
ANYWHERE = [name for name in ONE_OF_EACH if not name.startswith(COMPILED)]
COMPILED_FOR = {"PegasosClassifier": ("float16",), "SDCARegressor": ("uint8",), "SDCAClassifier": ()}
"""Loops are compiled anew for every kind of number, which takes many seconds; that each of them is read right is said
in tests/data/test_rows.py."""
PREDICTIONS = ("predict", "decision_function", "predict_proba")


def images(X):
    return np.clip(np.round(20 * X + 100), 0, 255)


def test_tensors_that_require_a_gradient_are_fitted():
    torch = pytest.importorskip("torch")
    name = "GLMClassifier"
    X, y, *_ = data(name)
    rows = torch.tensor(X, requires_grad=True)
    found = make(name).fit(rows, torch.tensor(y), torch.ones(len(y), requires_grad=True))
    np.testing.assert_allclose(to_numpy(found.coef_), make(name).fit(X, y).coef_, atol=1e-3)


def torch_array(X, dtype=None):
    torch = pytest.importorskip("torch")
    made = torch.asarray(np.array(X))
    return made if dtype is None else made.to(getattr(torch, dtype))


NARROW = {
    "float16": lambda X: X.astype(np.float16),
    "uint8": lambda X: images(X).astype(np.uint8),
    "torch float16": lambda X: torch_array(X, "float16"),
    "torch bfloat16": lambda X: torch_array(X, "bfloat16"),
    "torch uint8": lambda X: torch_array(images(X), "uint8"),
}
PLACES = {
    "numpy": np.asarray,
    "csr": sp.csr_array,
    "torch": torch_array,
    "strict": lambda X: array_api_strict.asarray(np.array(X)),
}


def wide(X):
    return X.astype(np.float32) if isinstance(X, np.ndarray) else X.to(pytest.importorskip("torch").float32)


def fitted(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make(model, max_iter=3, **options).fit(X, y)


def outputs(model, X):
    return [to_numpy(getattr(model, name)(X)) for name in PREDICTIONS if hasattr(model, name)]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (model, kind)
        for model in ONE_OF_EACH
        for kind in NARROW
        if ("torch" not in kind or model in ANYWHERE) and kind in COMPILED_FOR.get(model, (kind,))
    ],
)
def test_narrow_numbers_are_fitted_as_their_float32_copy(model, kind):
    X, y, X_test, _ = data(model)
    narrow, test = NARROW[kind](X[:300]), NARROW[kind](X_test[:300])
    weight = np.linspace(0.5, 1.5, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, other = (make(model, max_iter=3).fit(rows, y[:300].copy(), weight) for rows in (narrow, wide(narrow)))
    if hasattr(one, "coef_"):
        assert "float32" in str(one.coef_.dtype)
        scale = float(abs(to_numpy(other.coef_)).max())
        np.testing.assert_allclose(to_numpy(one.coef_), to_numpy(other.coef_), rtol=1e-4, atol=1e-4 * scale)
    for found, expected in zip(outputs(one, test), outputs(one, wide(test)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())


def fits(model, home):
    """Compiled loops take NumPy's arrays only."""
    return home in ("numpy", "csr") or model in ANYWHERE


@pytest.mark.parametrize(
    ("model", "home"), [(model, home) for model in ONE_OF_EACH for home in PLACES if fits(model, home)]
)
def test_a_model_predicts_wherever_the_rows_are(model, home):
    X, y, X_test, _ = data(model)
    X, y, X_test = X[:200], y[:200], X_test[:200]
    ours = fitted(model, PLACES[home](X), PLACES[home](y) if home in ("torch", "strict") else y)
    expected = outputs(ours, PLACES[home](X_test))
    for place in PLACES.values():
        rows = place(X_test)
        there = array_namespace(np.empty(0) if sp.issparse(rows) else rows)
        given = [getattr(ours, name)(rows) for name in PREDICTIONS if hasattr(ours, name)]
        for found, wanted in zip(given, expected, strict=True):
            assert array_namespace(found) is there
            np.testing.assert_allclose(to_numpy(found), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", ONE_OF_EACH)
def test_several_entries_in_one_place_are_their_sum(model):
    X, y, X_test, _ = data(model)
    X, y, X_test = X[:200] + 3.0, y[:200], X_test[:200] + 3.0  # squares of entries tell of the mean, too
    n, d = X.shape
    columns, pointers = np.tile(np.arange(d), 2 * n), np.arange(0, 2 * n * d + 1, 2 * d)
    split = sp.csr_array((np.hstack([X / 4, 3 * X / 4]).ravel(), columns, pointers), shape=X.shape)
    one, other = (fitted(model, rows, y) for rows in (split, sp.csr_array(X)))
    for found, expected in zip(outputs(one, X_test), outputs(other, X_test), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("model", [name for name in ONE_OF_EACH if not name.startswith("Stagewise")])
def test_numbers_whose_squares_are_beyond_their_kind_are_refused(model):
    """Their variances would be infinite, or none: columns that seem constant, and certificates of zero models."""
    X, y, _, _ = data(model)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"scale|Scale"):
        make(model, max_iter=3).fit(X[:300].astype(np.float32) * np.float32(1e25), y[:300])


def test_numbers_too_large_are_refused_at_one_size_wherever_they_lie(tmp_path):
    X, y, _, _ = data("GLMClassifier")
    X = X.astype(np.float32)
    for size, told in ((1e12, None), (1e16, "too large")):
        np.save(tmp_path / "X.npy", X * np.float32(size))
        for rows, limit in ((X * np.float32(size), None), (tmp_path / "X.npy", None), (tmp_path / "X.npy", "40kB")):
            context = nullcontext() if told is None else pytest.raises(ValueError, match=told)
            with context:
                make("GLMClassifier", max_iter=3).fit(rows, y, memory_limit=limit)


def test_labels_that_are_no_numbers_stay_in_numpy():
    X, y, X_test, _ = data("GLMClassifier")
    names = np.array(["a", "b", "c"])[y]
    model = fitted("GLMClassifier", X, names)
    assert set(model.predict(torch_array(X_test))) <= set(names)
    assert model.score(torch_array(X), names) == model.score(X, names)
