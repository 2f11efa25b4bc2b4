"""Few rows of many rare words speak for penalties that are far too small for all of them."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import log_loss

from manyclass import AutoClassifier, GLMClassifier
from manyclass.estimators.automatic import candidates, rounds
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.neighbours import next_penalty
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import Score
from tests.problems import texts

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4)


def path_of(*penalties):
    listed = [
        candidates.Candidate(GLMClassifier(alpha=one, warm_start=True), candidates.AS_GIVEN, "path")
        for one in penalties
    ]
    return [Entry(one, 1e-3, 400) for one in listed]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({2: (0.9, 0.4), 3: (0.8, 0.5)}, 1),
        ({1: (0.95, 0.3), 2: (0.9, 0.4), 3: (0.8, 0.5)}, 0),
        ({1: (0.8, 0.6), 2: (0.9, 0.4), 3: (0.8, 0.5)}, None),  # what is on both sides of it is worse
        ({2: (0.90, 0.4), 3: (0.91, 0.5)}, 1),  # rows do not tell them apart, log losses do
        ({2: (0.50, 0.4), 3: (0.91, 0.5)}, None),
        ({0: (0.9, 0.4), 1: (0.8, 0.403)}, None),  # next to nothing is gained towards one that is not listed
        ({1: (0.8, 0.5), 2: (0.9, 0.4)}, 3),
    ],
)
def test_the_next_penalty_is_beyond_the_end_with_the_least_log_loss(scores, expected):
    path = path_of(*PENALTIES)
    for number, found in scores.items():
        path[number].scores, path[number].n_judged = {0: Score(*found, np.zeros(100), np.ones(100))}, 100
    tried = [path[number] for number in scores]
    found = next_penalty(max(tried, key=lambda one: one.accuracy), tried, path)
    assert found is (None if expected is None else path[expected])


def test_beyond_the_largest_penalty_that_is_listed_the_path_goes_on_where_that_gains():
    path = path_of(*PENALTIES)
    for one, found in zip(path[:2], [(0.9, 0.4), (0.8, 0.5)], strict=True):
        one.scores, one.n_judged = {0: Score(*found, np.zeros(100), np.ones(100))}, 100
    entries = list(path)
    found = next_penalty(path[0], path[:2], entries)
    assert found.candidate.alpha == 1.0 and entries == [found, *path]


def test_a_larger_penalty_is_fitted_anew_and_smaller_ones_from_there(rng):
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 2, 300)
    small, large, between = path_of(1e-4, 1e-2, 1e-3)
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    parts = {0: (np.arange(200), np.arange(200, 300))}
    for one in (small, large, between):
        search._try(one, parts)
    assert (small.path, large.path, between.path) == ([small], [large], [large, between])


def test_where_all_words_are_as_rare_the_penalty_is_beyond_those_listed(rng):
    n, n_words = 8000, 18_000
    y, words = rng.integers(0, 6, n), rng.integers(0, n_words, (n, 8))
    words = np.where(rng.random((n, 8)) < 0.2, words // 6 * 6 + y[:, None], words)
    X = sp.csr_array((np.full(8 * n, 8**-0.5), words.ravel(), np.arange(0, 8 * n + 1, 8)), (n, n_words))
    X.sum_duplicates()
    model, other = (one.fit(X[:6000], y[:6000]) for one in (AutoClassifier(random_state=0), GLMClassifier()))
    ours, its = (log_loss(y[6000:], one.predict_proba(X[6000:])) for one in (model, other))
    assert ours < its + 0.06


def test_penalties_of_many_texts_are_not_those_of_the_first_of_them(monkeypatch):
    monkeypatch.setattr(candidates, "PENALTIES", (1e-1, 1e-3, 1e-5))
    monkeypatch.setattr(candidates, "MARGINS", ())  # of hinges, which are not what is compared here
    monkeypatch.setattr(rounds, "FIRST_ROWS", 500)
    X, y = texts(np.random.default_rng(0), 22_000, 4, 2**18, 8, 0.15)
    learn, judge = slice(0, 12_000), slice(12_000, 22_000)
    model = AutoClassifier(random_state=0).fit(X[learn], y[learn])
    others = [GLMClassifier(alpha).fit(X[learn], y[learn]).score(X[judge], y[judge]) for alpha in (1e-5, 1e-6)]
    assert model.score(X[judge], y[judge]) > max(others) - 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_goes_on_and_is_cut_short_tells_other_rows_no_worse(rng):
    """First steps of a tiny penalty tell new rows by larger coefficients than are right."""
    y = np.arange(1500) % 6
    X = 0.12 * rng.standard_normal((6, 300))[y] + rng.standard_normal((1500, 300))
    seen, (X, y) = Labelled({candidates.AS_GIVEN: X[:1000]}, y[:1000]), (X[1000:], y[1000:])
    search = Search("accuracy", seen, np.unique(y), time.perf_counter() + 60.0)
    entry = Entry(candidates.Candidate(GLMClassifier(0.1, warm_start=True), candidates.AS_GIVEN), 1e-3, 150)
    search._round([entry], {0: (np.arange(150), np.arange(150, 400))}, one_at_least=True)
    before, entry.expected, entry.n_passes = log_loss(y, entry.model.predict_proba(X)), 20.0, 50.0
    entry.candidate.model.set_params(alpha=1e-7, max_iter=6)
    after = search.refit(entry)
    assert "begin anew" in search.why[-1] and after.n_iter_ == 6 and not after.early_stopping
    assert log_loss(y, after.predict_proba(X)) < before
