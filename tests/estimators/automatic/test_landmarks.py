"""Where kernel values at rows take the place of random features."""

import time

import numpy as np
import pytest

from manyclass import AutoClassifier
from manyclass.data import as_rows
from manyclass.estimators.automatic import candidates
from manyclass.estimators.automatic.candidates import AS_GIVEN
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.feature_kinds import KINDS, LANDMARKS, WAVES
from manyclass.estimators.automatic.neighbours import other_kernel
from manyclass.estimators.automatic.ranking import Ranking
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import Score
from manyclass.features import Landmarks
from manyclass.features.landmarks import RowsTooFarError

N = 400


def kernels(n_rows=N):
    listed, _ = candidates.candidates(as_rows(np.random.default_rng(0).standard_normal((n_rows, 4))), 0)
    return {one.kind: one for one in reversed(listed) if not one.is_linear}


def judged(candidate, accuracy, n_rows=300):
    one = Entry(candidate, 1.0, n_rows, of_all=(1.0, N))
    losses = np.where(np.arange(N) < accuracy * N, 0.1, 3.0)
    one.scores, one.n_judged = {0: Score(accuracy, float(losses.mean()), losses, np.ones(N))}, N
    return one


def search_of(objective="accuracy"):
    X, y = np.zeros((N, 1)), np.arange(N) % 2
    return Search(objective, Labelled({AS_GIVEN: X}, y), np.arange(2), time.perf_counter() + 60.0)


@pytest.mark.parametrize(("accuracy", "goes_on"), [(0.82, False), (0.95, True)])
def test_they_go_on_where_they_are_clearly_better(accuracy, goes_on):
    """As they take several times as long."""
    search, known = search_of(), kernels()
    waves, landmarks = judged(known[WAVES], 0.8), judged(known[LANDMARKS], accuracy)
    ranked = search.ranking.in_order([waves, landmarks])
    assert ranked == ([landmarks, waves] if goes_on else [waves, landmarks])
    assert (landmarks in search.ranking.going_on(ranked)) == goes_on
    assert search.choose(ranked) is ranked[0]


def test_rows_that_are_not_all_of_those_that_are_fitted_to_are_none():
    X = np.random.default_rng(0).standard_normal((N, 4))
    for are_all in (True, False):
        listed, _ = candidates.candidates(as_rows(X), 0, are_all=are_all)
        assert any(one.kind == LANDMARKS for one in listed) == are_all


def test_more_of_them_are_of_one_model():
    one = kernels()[LANDMARKS]
    built = one.built(20_000, np.inf, share=2.0)
    assert (built.n_models, built.n_components, built.block_size) == (
        1,
        2 * candidates.MOST_FEATURES,
        LANDMARKS.block_size,
    )
    assert isinstance(built.features, Landmarks)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [500, 5000, 500_000])
def test_rows_for_the_work_of_some_are_these(kind, n_rows):
    one = kernels()[kind]
    assert one.rows_for(one.work(n_rows)) == n_rows


def test_what_they_take_before_any_row_is_read_is_not_that_of_rows():
    """A fit to 2000 rows had been taken for one that 60 000 rows take 120 times as long for."""
    one = kernels()[LANDMARKS]
    assert one.work(60_000) / one.work(2000) < 0.5 * (60_000 * candidates.MOST_FEATURES) / 2000**2


def test_a_round_takes_the_seconds_of_judging_too_and_a_fit_to_all_does_not():
    entry = judged(kernels()[LANDMARKS], 0.9, n_rows=1000)
    entry.expected, entry.judging = 1.0, 5.0
    parts = {0: (np.arange(1000), np.arange(100)), 1: (np.arange(2000), np.arange(100))}
    assert entry.seconds_with(parts) == entry.seconds_for(1000) + 5.0 + entry.seconds_for(2000) + 10.0


def test_larger_blocks_are_tried_beside_the_best_as_far_as_there_are_features():
    search, known = search_of(), kernels()
    best = judged(known[LANDMARKS], 0.95, n_rows=10_000)
    tried = [best, judged(known[WAVES], 0.8, n_rows=10_000)]
    entries, asked = list(tried), list[Entry]()
    while more := other_kernel(search.ranking.best, tried, entries, asked):
        asked.append(more)
    at_best = [one for one in asked if one.candidate.bandwidth == best.candidate.bandwidth]
    assert {one.candidate.model.block_size for one in at_best if one.candidate.kind == LANDMARKS} == {
        2 * LANDMARKS.block_size
    }
    larger = next(one for one in at_best if one.candidate.kind == LANDMARKS)
    assert larger.expected == 2 * best.expected
    assert known[LANDMARKS].with_larger_blocks(LANDMARKS.block_size) is None


@pytest.mark.parametrize("when", ["compared", "all"])
def test_rows_that_are_too_far_away_leave_random_features(few, rng, monkeypatch, when):
    X = rng.uniform(0.0, 4.0, (300, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    draw = Landmarks._draw

    def refused(self, n_components, dtype, rng):
        if when == "compared" or len(self._order) == 300:
            raise RowsTooFarError("Rows lie so far from each other; scale them.")
        return draw(self, n_components, dtype, rng)

    monkeypatch.setattr(Landmarks, "_draw", refused)
    monkeypatch.setattr(
        Ranking, "in_order", lambda search, tried: sorted(tried, key=lambda one: one.candidate.kind != LANDMARKS)
    )
    model = AutoClassifier(random_state=0).fit(X, y)
    assert "Landmarks" not in str(model.best_params_)
    assert model.score(X, y) > 0.6
