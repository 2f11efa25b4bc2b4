"""What is tried, and predicted from which probability on, where rows have several labels each."""

import pickle
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import f1_score

from manyclass import AutoClassifier, CalibratedLeastSquaresClassifier, GLMClassifier
from manyclass.cli.modelfile import Model, Schema, load, save
from manyclass.estimators.automatic.candidates import AS_GIVEN, PENALTIES, Candidate
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import THRESHOLDS, Score, score


def words(rng, n=400, d=600, k=12, share=0.4):
    """Binary words, of which each label has a few of its own; the labels are of unequal frequencies."""
    Y = (rng.random((n, k)) < 0.5 / np.arange(1, k + 1)).astype(int)
    X = rng.random((n, d)) < 0.02
    for label in range(k):
        own = rng.choice(d, 6, replace=False)
        X[:, own] |= (rng.random((n, 6)) < share) & (Y[:, [label]] > 0)
    return X.astype(float), Y


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_calibrated_least_squares_is_tried_of_every_scaling(few, rng, layout):
    X, Y = words(rng, n=120, d=40, k=3)
    board = AutoClassifier(random_state=0).fit(layout(X * 10.0 ** rng.integers(-2, 3, 40)), Y).leaderboard_
    tried = {one["scaling"] for one in board if one["estimator"] == "CalibratedLeastSquaresClassifier"}
    assert tried == {one["scaling"] for one in board} and len(tried) == 2


@pytest.mark.parametrize("weight", [None, np.arange(300) % 3])
def test_scores_by_threshold_are_those_of_scikit_learn(rng, weight):
    X, Y = words(rng, n=300, d=60, k=4)
    model = CalibratedLeastSquaresClassifier().fit(X, Y)
    found, P = score(model, X, Y, model.classes_, weight), model.predict_proba(X)
    for threshold, accuracy, f1 in zip(THRESHOLDS, *found.cells, strict=True):
        assert f1 == pytest.approx(f1_score(Y, P > threshold, average="micro", sample_weight=weight))
        assert accuracy == pytest.approx(np.average(np.mean((P > threshold) == Y, axis=1), weights=weight))
    assert found.cells[0, 0] == pytest.approx(found.accuracy)


@pytest.mark.parametrize(
    ("accuracies", "expected", "threshold"),
    [
        ([[0.80, 0.79], [0.79, 0.70]], 1, 0.5),  # the F1 score decides where accuracies cannot be told apart,
        ([[0.90, 0.79], [0.79, 0.70]], 0, 0.5),  # not otherwise;
        ([[0.80, 0.79], [0.70, 0.79]], 1, 0.45),  # and so it does between thresholds
    ],
)
def test_the_f1_score_decides_where_accuracies_cannot_be_told_apart(accuracies, expected, threshold):
    """And not the log loss, of which a model that is sure that all labels are absent has little."""
    X, y = np.zeros((400, 1)), np.arange(1200).reshape(400, 3) % 2
    search, entries = Search("accuracy", Labelled({AS_GIVEN: X}, y), np.arange(3), time.perf_counter() + 60.0), []
    for alpha, known, f1 in zip(PENALTIES, accuracies, ((0.2, 0.1), (0.5, 0.6)), strict=False):
        one = Entry(Candidate(GLMClassifier(alpha=alpha), AS_GIVEN, "path"), 1e-3, 400)
        cells = np.zeros((2, len(THRESHOLDS)))
        cells[:, :2] = known, f1
        one.scores = {0: Score(known[0], f1[0], np.full(400, f1[0]), np.ones(400), cells)}
        one.n_judged = 400
        entries.append(one)
    assert search.choose(entries) is entries[expected]
    assert entries[expected].threshold == threshold


def test_of_rare_labels_fewer_are_missed_than_from_one_half_on(few):
    X, Y = words(np.random.default_rng(2), share=0.15)
    model = AutoClassifier(random_state=0).fit(X[:250], Y[:250])
    predicted, P = model.predict(X[250:]), model.predict_proba(X[250:])
    np.testing.assert_array_equal(predicted, P > model.threshold_)
    np.testing.assert_array_equal(model.best_estimator_.predict(X[250:]), predicted)
    usual = f1_score(Y[250:], P > 0.5, average="micro")
    assert f1_score(Y[250:], predicted, average="micro") > usual + 0.02


def test_where_the_log_loss_is_asked_for_labels_are_predicted_from_one_half_on(few, rng):
    X, Y = words(rng)
    model = AutoClassifier("log_loss", random_state=0).fit(X, Y)
    assert model.threshold_ == 0.5
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))
    del model.threshold_  # as a model of manyclass 0.1
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)


@pytest.mark.parametrize("kind", [GLMClassifier, CalibratedLeastSquaresClassifier])
def test_a_threshold_goes_with_what_is_stored_and_exported_and_not_into_another_fit(rng, tmp_path, kind):
    X, Y = words(rng, n=200, d=40, k=4)
    model = kind().fit(X, Y)
    model._threshold = 0.2
    wanted = model.predict_proba(X) > 0.2
    assert (wanted != (model.predict_proba(X) > 0.5)).any()
    np.testing.assert_array_equal(model.predict(X), wanted)
    schema = Schema(n_features=40, classes=model.classes_, feature_names=None, multilabel=True)
    save(Model(model, schema), tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").estimator.predict(X), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), wanted)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict(X), model.predict_proba(X) > 0.5)
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), model.predict_proba(X) > 0.5)


def test_a_threshold_of_probabilities_by_another_link_is_not_taken(few, rng, monkeypatch):
    """Few rows may take the temperature of scores, and all of them calibration, of which probabilities are others."""
    X, Y = words(rng, n=120, d=60, k=3)
    chosen = Search.choose

    def by_another(self, ranked):
        found = chosen(self, ranked)
        found.threshold = 0.3
        found.links = {not known for known in found.links}
        return found

    monkeypatch.setattr(Search, "choose", by_another)
    assert AutoClassifier(random_state=0).fit(X, Y).threshold_ == 0.5
