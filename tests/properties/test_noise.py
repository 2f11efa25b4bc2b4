"""Labels that are noise cannot be told: no search may find a model that rows left out speak for."""

import numpy as np
import pytest

from manyclass import AutoClassifier, GLMClassifierCV, StagewiseClassifier
from manyclass.linear_model import LogisticRegressionCV, RidgeClassifierCV

SEARCHES = {
    "softmax": GLMClassifierCV(scoring="accuracy"),
    "softmax, loosely": GLMClassifierCV(scoring="accuracy", tol=3e-2),
    "softmax, one by one": GLMClassifierCV(scoring="accuracy", cv="loo"),
    "squared": GLMClassifierCV(loss="squared"),
    "squared, folds": GLMClassifierCV(loss="squared", cv=5),
    "ridge": RidgeClassifierCV(scoring="accuracy"),
    "auto": AutoClassifier(random_state=0),
}


def noise(n=160, d=500, k=3):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d)).astype(np.float32), rng.integers(0, k, n)
    # The best of several penalties, each a share of n rows that are right by chance.
    return X, y, np.bincount(y).max() / n + 4.0 * (0.25 / n) ** 0.5


@pytest.mark.parametrize("name", SEARCHES)
def test_scores_of_a_search_are_those_of_chance(name):
    X, y, most = noise()
    assert SEARCHES[name].fit(X, y).best_score_ <= most


def test_left_out_probabilities_know_no_more_than_chance():
    X, y, _ = noise(100, 300)
    model = GLMClassifierCV(alphas=[1e-4], cv=2, leave_one_out=True, loo_refits=20).fit(X, y)
    assert abs(model.loo_check_["mean_difference"]) < 0.1
    assert model.loo_score_ < -1.0  # that of equal probabilities is -log 3


def test_scores_of_cs_are_those_of_chance():
    X, y, most = noise()
    model = LogisticRegressionCV(cv=5).fit(X, y)
    assert max(np.mean(scores, axis=0).max() for scores in model.scores_.values()) <= most


def test_what_stages_are_chosen_by_are_errors_of_chance():
    X, y, most = noise()
    errors = StagewiseClassifier(n_components=64, block_size=64, random_state=0).fit(X, y).choice_["errors"]
    assert min(errors.values()) >= 1.0 - most
