"""Least squares with a link of its own beside softmax, where no features are generated."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from manyclass import (
    AutoClassifier,
    CalibratedLeastSquaresClassifier,
    GLMClassifier,
    SDCAClassifier,
    StagewiseClassifier,
)
from manyclass.estimators.automatic import candidates, rounds
from manyclass.estimators.automatic.candidates import AS_GIVEN, Candidate
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled


def short_texts(rng, n=1500, k=60, n_words=3000, length=8):
    """Classes and words by Zipf's law; each class has words of its own."""
    of_words, of_classes = (1.0 / np.arange(1, size + 1) for size in (n_words, k))
    of_words, y = of_words / of_words.sum(), rng.choice(k, n, p=of_classes / of_classes.sum())
    own = np.stack([rng.choice(n_words, 25, p=of_words, replace=False) for _ in range(k)])
    words = rng.choice(n_words, (n, length), p=of_words)
    words = np.where(rng.random((n, length)) < 0.45, own[y[:, None], rng.integers(25, size=(n, length))], words)
    counts = sp.csr_array((np.ones(n * length), words.ravel(), np.arange(0, n * length + 1, length)), (n, n_words))
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts), y


def test_least_squares_tells_many_rare_classes_of_short_texts_apart(rng, monkeypatch):
    monkeypatch.setattr(Search, "_is_dear", lambda *known: False)  # which is a matter of the machine
    monkeypatch.setattr(candidates, "MARGINS", ())  # of hinges, which are not what is compared here
    monkeypatch.setattr(rounds, "FOLDS", 2)
    X, y = short_texts(rng)
    model = AutoClassifier(random_state=0).fit(X[:1000], y[:1000])
    assert model.best_params_["loss"] == "squared"
    softmax = [row for row in model.leaderboard_ if row["estimator"] == "GLMClassifier"]
    others = max(
        GLMClassifier(row["parameters"]["alpha"], tol=1e-2).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
        for row in softmax[:3]
    )
    assert model.score(X[1000:], y[1000:]) > others


@pytest.mark.parametrize(
    ("model", "n_labels", "seconds", "is_dear"),
    [
        (StagewiseClassifier(loss="squared"), 1, 3.5, True),
        (StagewiseClassifier(loss="squared"), 1, 2.5, False),
        (CalibratedLeastSquaresClassifier(), 2, 3.5, False),
        (SDCAClassifier(loss="squared_hinge", calibrate="temperature"), 1, 3.5, True),
    ],
)
def test_it_is_tried_where_it_takes_no_longer_than_all_others(model, n_labels, seconds, is_dear):
    y, parts = np.zeros((100, 2) if n_labels > 1 else 100), {0: (np.arange(100), np.arange(0))}
    search = Search("accuracy", Labelled({}, y), np.arange(2), time.perf_counter() + 60.0)
    tried = [
        Entry(Candidate(GLMClassifier(warm_start=True), AS_GIVEN, "path"), 1.0, 100, seconds=1.5) for _ in range(2)
    ]
    entry = Entry(Candidate(model, AS_GIVEN, "hinges" * isinstance(model, SDCAClassifier)), seconds, 100)
    assert search._is_dear(entry, parts, tried) == is_dear
    assert not search._is_dear(entry, parts, [])
    quick, quicker = Entry(entry.candidate, 0.5, 100), Entry(tried[0].candidate, 0.1, 100)
    assert search._is_dear(quick, parts, [quicker]) == (n_labels == 1)
    search.seen = Labelled({AS_GIVEN: np.zeros((100, 101))}, y)
    assert not search._is_dear(quick, parts, [quicker])
    assert not search._is_dear(Entry(tried[0].candidate, seconds, 100), parts, tried)
