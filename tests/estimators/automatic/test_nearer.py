"""Fewer rows than columns are told by models that are far from the minimum, and may be told otherwise nearer to it."""

import time

import numpy as np
import pytest

from manyclass import GLMClassifier
from manyclass.estimators.automatic.candidates import AS_GIVEN, GAP, NEARER, Candidate
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.neighbours import nearer
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import Score


def path_of(*penalties):
    models = [GLMClassifier(alpha=one, tol=GAP, warm_start=True) for one in penalties]
    return [Entry(Candidate(one, AS_GIVEN, "path"), 1e-3, 400) for one in models]


def judged(entry, accuracy, loss):
    entry.scores, entry.n_judged = {0: Score(accuracy, loss, np.full(100, loss), np.ones(100))}, 100
    return entry


def test_what_has_the_least_log_loss_of_the_near_is_fitted_to_a_smaller_gap_and_so_is_what_is_beside_it():
    entries = path_of(1e-1, 1e-2, 1e-3)
    tried = [judged(one, *found) for one, found in zip(entries, [(0.9, 0.5), (0.89, 0.4), (0.5, 0.3)], strict=True)]
    found = nearer(tried[0], tried, entries)
    assert (found.candidate.alpha, found.candidate.model.tol) == (1e-2, NEARER)
    tried.append(judged(found, 0.9, 0.2))
    larger = nearer(found, tried, entries)
    tried.append(judged(larger, 0.9, 0.3))
    smaller = nearer(found, tried, entries)
    assert [one.candidate.alpha for one in (larger, smaller)] == [1e-1, 1e-3]
    assert {one.candidate.model.tol for one in (larger, smaller)} == {NEARER}
    assert nearer(found, [*tried, judged(smaller, 0.8, 0.4)], entries) is None


def test_nothing_is_nearer_than_a_model_without_a_path():
    alone = judged(Entry(Candidate(GLMClassifier(), AS_GIVEN), 1e-3, 400), 0.9, 0.2)
    assert nearer(alone, [alone], [alone]) is None


@pytest.mark.parametrize(("n_columns", "tol"), [(5, GAP), (500, NEARER)])
def test_what_no_larger_penalty_leads_to_goes_nearer_where_rows_are_few(rng, n_columns, tol):
    X, y = rng.standard_normal((300, n_columns)), rng.integers(0, 2, 300)
    first, second = path_of(1e-2, 1e-3)
    search = Search("accuracy", Labelled({AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    for one in (first, second):
        search._try(one, {0: (np.arange(200), np.arange(200, 300))})
    assert (first.candidate.model.tol, second.candidate.model.tol) == (tol, GAP)
