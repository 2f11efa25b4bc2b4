"""What `AutoClassifier` tries beside the best of a round."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from manyclass import AutoClassifier, StagewiseClassifier
from manyclass.estimators.candidates import AS_GIVEN, Candidate, Score
from manyclass.estimators.entries import Entry
from manyclass.estimators.neighbours import other_bandwidth
from manyclass.features import RandomFourierFeatures

BANDWIDTH = 3.0


def entry(loss="softmax", penalty=1.0):
    model = StagewiseClassifier(RandomFourierFeatures(bandwidth=BANDWIDTH), loss=loss)
    return Entry(Candidate(model, AS_GIVEN, False, bandwidth=1.0, metric="euclidean", penalty=penalty), 1.0, 100)


def judged(one, accuracy):
    one.scores, one.n_judged = {0: Score(accuracy, 1.0, np.zeros(10), np.ones(10))}, 10
    return one


def climbed(accuracy_of, entries, tried):
    """Bandwidths that are asked for, where a kernel of each has that accuracy."""
    asked = []
    while (
        one := other_bandwidth(lambda some: max(some, key=lambda one: one.accuracy), tried, entries, asked)
    ) is not None:
        asked.append(one)
        tried.append(judged(one, accuracy_of(one.candidate.bandwidth)))
    return [one.candidate.bandwidth for one in asked]


@pytest.mark.parametrize(
    ("best", "expected"),
    [(1.0, [2.0, 0.5]), (8.0, [2.0, 4.0, 8.0, 16.0]), (0.25, [2.0, 0.5, 0.25, 0.125])],
)
def test_bandwidths_are_tried_until_both_sides_are_worse(best, expected):
    def accuracy(bandwidth):
        return 0.9 - 0.1 * abs(np.log2(bandwidth / best))

    start = judged(entry(), accuracy(1.0))
    entries = [start]
    assert climbed(accuracy, entries, [start]) == expected
    assert [one.candidate.model.features.bandwidth for one in entries[1:]] == [BANDWIDTH * one for one in expected]


def test_what_is_listed_already_is_not_listed_twice():
    start = judged(entry(), 0.9)
    listed = Entry(replace(start.candidate, bandwidth=0.5), 1.0, 100)
    entries = [start, listed]
    climbed(lambda bandwidth: 0.5, entries, [start])
    assert [one.candidate.bandwidth for one in entries] == [1.0, 0.5, 2.0]


def test_least_squares_has_no_neighbours():
    assert climbed(lambda bandwidth: 1.0, [], [judged(entry("squared", 0.0), 0.9)]) == []


def test_a_pattern_finer_than_any_kernel_that_is_listed_is_learned():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 6.0, (6000, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    model = AutoClassifier(random_state=0).fit(X[:5000], y[:5000])
    assert model.score(X[5000:], y[5000:]) > 0.9
    assert log_loss(y[5000:], model.predict_proba(X[5000:])) < 0.3
    medians = model.best_params_["features"].bandwidth / 10.0  # of the squared distance, about
    assert medians < 0.2
