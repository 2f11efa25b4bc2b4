"""The path of penalties goes on, with more rows, for as long as smaller ones are better."""

import time

import numpy as np
import pytest

from manyclass import GLMClassifier
from manyclass.estimators import candidates
from manyclass.estimators.entries import Entry
from manyclass.estimators.halving import Search
from manyclass.estimators.sampled_rows import Labelled

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4)
SCORES = [(0.7, 0.9), (0.8, 0.6), (0.9, 0.4), (0.85, 0.5)]
"""Accuracy and log loss, by the number of the penalty."""


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (SCORES, [0, 1, 2, 3]),  # the best is the smallest tried until the last is worse
        ([(0.7, 0.9), (0.8, 0.6), (0.9, 0.7)], [0, 1, 2]),  # beyond the turn of the log loss, accuracies are luck
        ([(0.8, 0.5), (0.7, 0.6)], [0, 1]),
    ],
)
def test_the_next_penalty_is_tried_where_the_smallest_is_the_best(scores, expected):
    X, y = np.zeros((400, 1)), np.arange(400) % 2
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    path = [
        Entry(candidates.Candidate(GLMClassifier(alpha=one), candidates.AS_GIVEN, True, "path"), 1e-3, 400)
        for one in PENALTIES
    ]

    def tried(alive, parts, **_):
        for one in alive:
            one.scores, one.n_judged = {0: scores[path.index(one)]}, 100
        return alive

    search._round = lambda alive, parts, **given: tried(alive[:2] if len(alive) > 2 else alive, parts)
    ranked = search.run(path, [{0: (np.arange(300), np.arange(300, 400))}])
    assert sorted(path.index(one) for one in ranked) == expected
