"""Class weights where a penalty is chosen, and labels that are a single column."""

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
    StagewiseRegressor,
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
def test_a_class_weight_is_no_number_of_copies(make, rare):
    """What is left out is a row, however much its class weighs: else no penalty is too small for the heavy ones."""
    X, y, X_test, y_test = rare
    of_classes = {0: 1.0, 1: (1.0 - y.mean()) / y.mean()}
    as_rows = make().fit(X, y, np.where(y == 1, 1.0, 1.0 / of_classes[1]))
    for class_weight in ("balanced", of_classes):
        model = make(class_weight=class_weight).fit(X, y)
        assert model.alpha_ == pytest.approx(as_rows.alpha_, rel=1e-6)
        np.testing.assert_allclose(*(one.decision_function(X_test) for one in (model, as_rows)), atol=5e-3)
        assert balanced_accuracy_score(y_test, model.predict(X_test)) > 0.72


def test_a_class_weight_is_no_number_of_copies_in_pieces(rare):
    X, y, *_ = rare
    make = CHOOSING["gcv"]
    of_classes = {1: 48.5}
    pieces = make(class_weight=of_classes)
    for part in np.array_split(np.arange(len(y)), 3):
        pieces.partial_fit(X[part], y[part], **({"classes": [0, 1]} if part[0] == 0 else {}))
    whole = make(class_weight=of_classes).fit(X, y)
    assert pieces.alpha_ == pytest.approx(whole.alpha_)
    np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("estimator", [StagewiseClassifier, StagewiseRegressor])
@pytest.mark.parametrize("weight", [0.5, 4.0, "from 1 to 10"])
def test_what_remembers_rows_leaves_out_all_of_a_row(estimator, weight):
    """Features are taken, and penalised, by rows left out, of which nothing may stay."""
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((1200, 20)), rng.standard_normal(20)
    scores = X @ coef / 2.0 + rng.standard_normal(1200)
    y = scores > 0 if estimator is StagewiseClassifier else scores
    given = np.full(200, weight) if weight != "from 1 to 10" else rng.uniform(1.0, 10.0, 200)
    plain, weighed = (estimator().fit(X[:200], y[:200], one) for one in (None, given))
    if weight != "from 1 to 10":
        assert weighed.choice_["features"] == plain.choice_["features"]
    assert weighed.score(X[200:], y[200:]) > plain.score(X[200:], y[200:]) - 0.1


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


@pytest.mark.parametrize("kind", ["Int64", "boolean"])
@pytest.mark.parametrize("make", [GLMClassifier, lambda: AutoClassifier(max_time=0.5)], ids=["one", "several"])
def test_what_fits_nullable_columns_of_pandas_scores_them(make, kind, rng):
    pd = pytest.importorskip("pandas")
    X = rng.standard_normal((100, 3))
    Y = (X[:, :2] > 0).astype(int)
    frame = pd.DataFrame(Y).astype(kind)
    model = make().fit(X, frame)
    assert model.score(X, frame) == model.score(X, Y)
