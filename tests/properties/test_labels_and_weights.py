"""What a penalty that is chosen must not depend on: the unit of weights; and labels that are a single column."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score

from manyclass import (
    AutoClassifier,
    CalibratedLeastSquaresClassifier,
    GLMClassifier,
    GLMClassifierCV,
    SDCAClassifier,
    StagewiseClassifier,
)
from manyclass.linear_model import RidgeClassifier

CHOOSING = {
    "stagewise": lambda **given: StagewiseClassifier(n_components=256, random_state=0, **given),
    "calibrated": CalibratedLeastSquaresClassifier,
    "loo": lambda **given: GLMClassifierCV(cv="loo", **given),
    "gcv": lambda **given: GLMClassifierCV(loss="squared", cv="gcv", **given),
    "folds": lambda **given: GLMClassifierCV(5, cv=3, **given),
}
EACH = pytest.mark.parametrize("make", CHOOSING.values(), ids=CHOOSING)


@pytest.fixture(scope="module")
def rare():
    """One row in fifty is of the class that three columns tell of."""
    rng = np.random.default_rng(0)
    y = (rng.random(11000) < 0.02).astype(int)
    X = rng.standard_normal((11000, 40))
    X[y == 1, :3] += 1.0
    return X[:2500], y[:2500], X[2500:], y[2500:]


@EACH
@pytest.mark.parametrize("kind", [np.asarray, lambda y: np.c_[y, 1 - y]], ids=["classes", "labels"])
def test_a_class_weight_is_no_number_of_copies(make, kind, rare):
    """What is left out is a row, however much its class weighs: else no penalty is too small for the heavy ones."""
    X, y, X_test, y_test = rare
    weight = np.where(y == 1, 1.0, y.mean() / (1.0 - y.mean()))
    as_classes = make(class_weight="balanced").fit(X, kind(y)) if kind is np.asarray else make().fit(
        X, kind(y), 30.5 * weight
    )  # fmt: skip
    as_rows = make().fit(X, kind(y), weight)
    assert as_classes.alpha_ == pytest.approx(as_rows.alpha_, rel=1e-6)
    np.testing.assert_allclose(*(model.decision_function(X_test) for model in (as_classes, as_rows)), atol=5e-3)
    if kind is np.asarray:
        assert balanced_accuracy_score(y_test, as_classes.predict(X_test)) > 0.72


@EACH
def test_weights_that_are_no_whole_numbers_have_no_unit(make, rng):
    X, y = load_iris(return_X_y=True)
    X, y, weight = X[:, :2], y, rng.uniform(0.5, 1.5, len(y))
    models = [make().fit(X, y, unit * weight) for unit in (1.0, 1e3)]
    assert models[0].alpha_ == pytest.approx(models[1].alpha_, rel=1e-6)
    np.testing.assert_allclose(*(model.decision_function(X) for model in models), atol=1e-4)


def test_class_weights_add_to_a_penalty_of_sums_as_scikit_learn_has_them():
    from sklearn.linear_model import RidgeClassifier as Peer

    X, y = load_iris(return_X_y=True)
    ours, theirs = (kind(3.0, class_weight={0: 7, 1: 0.5, 2: 3}).fit(X, y) for kind in (RidgeClassifier, Peer))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [*CHOOSING, "auto", "glm", "sdca"])
@pytest.mark.parametrize("label", ["some", "all", "none"])
def test_a_single_sparse_label_is_one_for_all(kind, label, rng):
    X = rng.standard_normal((120, 4))
    Y = {"some": X[:, :1] > 0, "all": np.ones((120, 1)), "none": np.zeros((120, 1))}[label].astype(int)
    others = {"auto": lambda: AutoClassifier(max_time=1.0), "glm": GLMClassifier, "sdca": SDCAClassifier}
    model = (CHOOSING | others)[kind]().fit(X, sp.csr_array(Y))
    assert model.predict(X).shape == (120, 1) and model.multilabel_ if kind != "auto" else True
    assert np.mean(np.asarray(model.predict(X)) == Y) > 0.9
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X).shape == (120, 1)
