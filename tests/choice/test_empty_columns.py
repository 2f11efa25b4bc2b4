"""Columns that no row has, as of texts in hashed words, cost nothing and change nothing."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from manyclass import (
    BoundMajorizationClassifier,
    CalibratedLeastSquaresClassifier,
    GLMClassifier,
    GLMClassifierCV,
    StagewiseClassifier,
)
from manyclass.choice.costs import costs
from manyclass.data import as_rows
from manyclass.data.labels import encode

WIDE, N_WORDS, N_CLASSES = 2**16, 60, 8
MODELS = {
    "softmax": GLMClassifier(alpha=1e-3),
    "squared": GLMClassifier(alpha=1e-3, loss="squared"),
    "without penalty": GLMClassifier(alpha=0.0, max_iter=20, tol=0.0),
    "held out": GLMClassifier(alpha=1e-3, early_stopping=True, random_state=0),
    "path": GLMClassifierCV(4, cv=KFold(3)),
    "ridge path": GLMClassifierCV(4, loss="squared"),
    "left out": GLMClassifierCV(4, cv="loo"),
    "calibrated": CalibratedLeastSquaresClassifier(early_stopping=False),
    "bound": BoundMajorizationClassifier(),
    "bound by single rows": BoundMajorizationClassifier(method="stochastic", max_iter=2, random_state=0),
    "bound of low rank": BoundMajorizationClassifier(method="stochastic", rank=3, max_iter=2, random_state=0),
    "stagewise": StagewiseClassifier(),
}


@pytest.fixture(scope="module")
def words():
    """Rows of few words, the same in a vocabulary of many, which columns they have there, and classes."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, N_WORDS), density=0.2, rng=rng, format="csr")
    y = (X @ rng.standard_normal((N_WORDS, N_CLASSES)) + 0.3 * rng.standard_normal((400, N_CLASSES))).argmax(axis=1)
    places = np.sort(rng.choice(WIDE, N_WORDS, replace=False))
    return X, sp.csr_array((X.data, places[X.indices], X.indptr), shape=(len(y), WIDE)), places, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_columns_that_no_row_has_change_nothing_and_cost_nothing(name, words):
    X, hashed, places, y = words
    few = MODELS[name].fit(X, y).decision_function(X)
    tracemalloc.start()
    model = MODELS[name].fit(hashed, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(model.decision_function(hashed), few, rtol=1e-5, atol=1e-5 * abs(few).max())
    stages = sum(stage.coef.nbytes for one in vars(model).get("models_", ()) for stage in one.stages)
    paths = vars(model).get("coefs_paths_", np.zeros(0)).nbytes
    # A few times the coefficients, of which L-BFGS holds forty.
    assert peak <= 6 * max(8 * WIDE * N_CLASSES, stages) + 3 * paths
    if hasattr(model, "coef_"):
        assert model.coef_.shape == (N_CLASSES, WIDE)
        assert not np.delete(model.coef_, places, axis=1).any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_start_may_know_of_columns_that_no_row_has_now(words):
    _, hashed, _, y = words
    model = GLMClassifier(alpha=1e-3, warm_start=True).fit(hashed, y)
    before, model.coef_ = model.coef_, model.coef_ + 1.0
    model.coef_ = np.where(before != 0, before, 1.0)
    model.fit(hashed, y)
    assert model.n_iter_ <= 1
    assert_allclose(model.coef_, before, atol=1e-12)


def test_costs_are_those_of_the_columns_that_occur(words):
    """By those of all 2²⁰ columns `AutoClassifier` left most models out."""
    X, hashed, _, y = words
    few, many = (
        {(one.estimator, one.loss): one for one in costs(as_rows(rows), encode(y, "it"))} for rows in (X, hashed)
    )
    for loss, name in (("softmax", "GLMClassifier"), ("calibrated", "CalibratedLeastSquaresClassifier")):
        assert many[name, loss].seconds == pytest.approx(few[name, loss].seconds, rel=0.1)
