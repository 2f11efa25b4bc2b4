"""What `AutoClassifier` tries beside the best of a round."""

import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from manyclass import AutoClassifier, GLMClassifier, StagewiseClassifier
from manyclass.data import as_rows
from manyclass.estimators.automatic import candidates, rounds
from manyclass.estimators.automatic.candidates import AS_GIVEN, Candidate
from manyclass.estimators.automatic.entries import Entry, middle_first
from manyclass.estimators.automatic.feature_kinds import LEARNED_WAVES, WAVES
from manyclass.estimators.automatic.halving import Halving
from manyclass.estimators.automatic.neighbours import LearnedMetrics, beyond_the_end, other_bandwidth
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import Score, score
from manyclass.features import fourier

BANDWIDTH = 3.0
LOSSES = np.random.default_rng(0).uniform(0.5, 1.5, 400)


def entry(kind=WAVES):
    model = StagewiseClassifier(kind.generator(BANDWIDTH), n_components=20)
    return Entry(Candidate(model, AS_GIVEN, kind=kind, bandwidth=1.0, penalty=1.0), 1.0, 100)


def judged(one, accuracy, losses=LOSSES):
    one.scores, one.n_judged = {0: Score(accuracy, losses.mean(), losses, np.ones(len(losses)))}, len(losses)
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


def test_bandwidths_end_where_they_gain_nothing_but_rounding():
    start, n_asked = judged(entry(), 0.9), 0
    tried, entries, asked = [start], [start], []
    while one := other_bandwidth(lambda some: min(some, key=lambda one: one.log_loss), tried, entries, asked):
        n_asked += 1
        asked.append(one)
        tried.append(judged(one, 0.9, LOSSES - 1e-6 * n_asked * LOSSES**2))  # ever less, by far less than it varies
    assert n_asked == 2


def test_bandwidths_end_somewhere():
    start = judged(entry(), 0.5)
    found = climbed(lambda bandwidth: 0.5 + 0.01 * np.log2(bandwidth), [start], [start])
    assert max(found) == 1024.0


@pytest.mark.parametrize(("accuracy", "more"), [(1.0, 0.0), (0.9, 0.1)])
def test_kernels_that_are_clearly_worse_have_no_neighbours(accuracy, more):
    linear = Entry(Candidate(GLMClassifier(), AS_GIVEN, "path"), 1.0, 100)
    start = judged(entry(), 0.9, LOSSES + more)
    assert climbed(lambda bandwidth: 1.0, [start], [judged(linear, accuracy), start]) == []
    assert climbed(lambda bandwidth: 0.5, [start], [judged(entry(), 0.9), judged(linear, 0.9)]) == [2.0, 0.5]


def test_a_metric_is_learned_once_for_all_kernels_of_the_same_rows(monkeypatch):
    X = np.random.default_rng(0).standard_normal((200, 4))
    y, n_learned, learn = (abs(X[:, 0]) > 0.7).astype(int), [0], fourier.metric_root
    first = entry(LEARNED_WAVES).candidate
    kernels = [first, first.of_bandwidth(2.0), first]

    def counted(*given):
        n_learned[0] += 1
        return learn(*given)

    monkeypatch.setattr(fourier, "metric_root", counted)
    metrics, models = LearnedMetrics(), []
    for candidate in kernels:
        models.append(clone(candidate.model).set_params(random_state=0))
        with metrics.shared(candidate, 0, models[-1]):
            models[-1].fit(X, y)
        assert models[-1].features.metric == "learned"
    assert n_learned == [1]
    assert 0.0 < metrics.seconds_for(first) < 10.0
    assert metrics.seconds_for(entry().candidate) == 0.0
    alone = clone(models[1]).fit(X, y)
    assert_array_equal(alone.predict_proba(X), models[1].predict_proba(X))
    metrics.clear()
    with metrics.shared(first, 0, models[0]):
        models[0].fit(np.ones((200, 4)) + 0.0 * X, y)  # nothing to learn: as without
    assert metrics[AS_GIVEN, 0] == "euclidean"


def test_a_pattern_finer_than_any_kernel_that_is_listed_is_learned(monkeypatch):
    monkeypatch.setattr(candidates, "MOST_FEATURES", 512)
    monkeypatch.setattr(rounds, "FOLDS", 3)
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 6.0, (2300, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    model = AutoClassifier(random_state=0).fit(X[:1300], y[:1300])
    assert model.score(X[1300:], y[1300:]) > 0.85
    assert log_loss(y[1300:], model.predict_proba(X[1300:])) < 0.22
    kernels = model.best_params_["features"]
    first = kernels[0] if isinstance(kernels, list) else kernels
    assert first.bandwidth / 10.0 < 0.2  # of the median squared distance, about


@pytest.mark.parametrize("seconds", [1e-3, None])
def test_a_fit_that_there_is_no_time_for_teaches_nothing(seconds):
    X = np.random.default_rng(0).standard_normal((400, 4))
    y, first, metrics = (abs(X[:, 0]) > 0.7).astype(int), entry(LEARNED_WAVES).candidate, LearnedMetrics()
    model = first.built(400, np.inf if seconds is None else seconds)
    with metrics.shared(first, 0, model), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert len(metrics) == (seconds is None)
    with pytest.raises(KeyboardInterrupt), metrics.shared(first, 0, model):
        raise KeyboardInterrupt
    assert model.features.metric == first.model.features.metric == "learned"


def test_where_there_is_no_time_for_a_stage_the_model_that_was_judged_is_kept(few, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 4))
    y = (np.sin(2 * X[:, 0]) * X[:, 1] > 0).astype(int)
    built = Candidate.built

    def without_time(candidate, n_rows, seconds, *more):
        return built(candidate, n_rows, 1e-3 if n_rows == 900 else seconds, *more)

    monkeypatch.setattr(Candidate, "built", without_time)
    model = AutoClassifier(max_time=1e6).fit(X, y)
    assert model.score(X, y) > 0.8
    assert any("there was no time for all" in sentence for sentence in model.why_)
    assert not isinstance(model.best_estimator_.features, list)  # not even where a mean was to be fitted
    assert model.best_score_ == model.leaderboard_[0]["accuracy"]


@pytest.mark.parametrize(("shape", "learns"), [((400, 50), True), ((400, 250), False), ((3000, 1100), False)])
def test_no_metric_is_tried_where_none_can_be_learned(shape, learns):
    listed, _ = candidates.candidates(as_rows(np.random.default_rng(0).standard_normal(shape)), 0)
    assert (LEARNED_WAVES in {one.kind for one in listed}) == learns


NOISE = np.random.default_rng(1).standard_normal(400)
NOISE = (NOISE - NOISE.mean()) / NOISE.std()


def linear(accuracy, losses=LOSSES):
    return judged(Entry(Candidate(GLMClassifier(), AS_GIVEN, "path"), 1.0, 100), accuracy, losses)


def search(objective="accuracy", seconds=60.0):
    return Search(objective, Labelled({}, np.arange(400) % 2), np.arange(2), time.perf_counter() + seconds)


@pytest.mark.parametrize(("n_errors", "expected"), [(2.0, [2.0, 0.5]), (5.0, [])])
def test_kernels_whose_loss_may_be_chance_have_neighbours(n_errors, expected):
    start = judged(entry(), 0.9, LOSSES + 0.1 * (NOISE + n_errors / len(NOISE) ** 0.5))
    assert climbed(lambda bandwidth: 0.5, [start], [linear(0.9), start]) == expected


def test_bandwidths_are_tried_for_as_long_as_the_log_loss_falls():
    start = judged(entry(), 0.9, 1.3 * LOSSES)
    tried, entries, asked = [start], [start], []
    while one := other_bandwidth(lambda some: min(some, key=lambda one: one.log_loss), tried, entries, asked):
        asked.append(one)
        tried.append(judged(one, 0.9, LOSSES * (1.0 + 0.1 * abs(np.log2(one.candidate.bandwidth / 8.0)))))
    assert [one.candidate.bandwidth for one in asked] == [2.0, 4.0, 8.0, 16.0]


@pytest.mark.parametrize(("n_alike", "expected"), [(1, 4), (5, 5), (8, 6)])
def test_what_rows_do_not_tell_from_the_best_goes_on_up_to_half_of_all(n_alike, expected):
    alike = [linear(0.9, LOSSES + 0.1 * NOISE * (place > 0)) for place in range(n_alike)]
    others = [linear(0.9 if not place else 0.8, LOSSES + 0.1) for place in range(12 - n_alike)]
    assert search().ranking.going_on([*alike, *others]) == [*alike, *others][:expected]
    assert len(search("log_loss").ranking.going_on([*alike, *others])) == 4


@pytest.mark.parametrize(("accuracy", "goes_on"), [(0.85, True), (0.5, False)])
def test_the_best_kernel_goes_on_unless_it_is_clearly_worse(accuracy, goes_on):
    kernels = [judged(entry(), accuracy - 0.01 * place, LOSSES + 0.5) for place in range(2)]
    others = [linear(0.9 - 0.001 * place) for place in range(4)]
    assert search().ranking.going_on([*others, *kernels]) == [*others[:3], *kernels[:goes_on]]


@pytest.mark.parametrize(
    ("is_last", "seconds", "expected"),
    [(False, np.inf, 2.0), (True, np.inf, None), (True, 60.0, 2.0), (True, 9.0, 2.0), (True, 7.0, None)],
)
def test_bandwidths_are_tried_where_fits_take_longest_if_time_is_to_be_used(is_last, seconds, expected):
    """And is left for the fit to all rows, which takes six seconds where one to these takes one."""
    start = judged(entry(), 0.9)
    last = {0: (np.arange(100), np.arange(100))} if is_last else None
    found = search(seconds=seconds)._beside([start], [start], [], last)
    assert (found and found.candidate.bandwidth) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(np.inf, False), (60.0, True), (7.0, False)])
def test_one_kernel_that_is_left_goes_on_where_there_is_time_to_try_others_beside_it(seconds, expected):
    """It takes a second, and six where it is fitted to all rows."""
    alone, last = [judged(entry(), 0.9)], {0: (np.arange(100), np.arange(100))}
    assert search("log_loss", seconds)._is_worth(alone, last) == expected


@pytest.mark.parametrize(("more_loss", "expected"), [(0.5, True), (-0.5, False)])
def test_the_time_that_a_linear_model_would_leave_shows_what_more_rows_make_of_a_kernel(more_loss, expected):
    """There is time for that, but not for a fit to all rows as well, which takes six seconds."""
    pair = [judged(entry(), 0.91, LOSSES + more_loss), linear(0.905)]
    assert search(seconds=4.0)._is_worth(pair, {0: (np.arange(100), np.arange(100))}) == expected


@pytest.mark.parametrize("objective", ["accuracy", "log_loss"])
def test_kernels_that_are_worse_than_the_best_on_few_rows_go_on_and_linear_models_do_not(objective):
    kernels = [judged(entry(), 0.9 - 0.3 * place, LOSSES + 0.3 * place) for place in range(2)]
    others = [linear(0.5, LOSSES + 0.4 + 0.1 * place) for place in range(5)]
    assert search(objective).ranking.going_on([*kernels, *others]) == kernels


@pytest.mark.parametrize(("is_wide", "first"), [(False, [2, 1, 3]), (True, [1, 2, 3])])
def test_without_time_for_all_penalties_beside_the_middle_come_before_kernels(is_wide, first):
    path, kernel = path_of([LOSSES] * 5), entry()
    for one in path:
        one.expected = 2.0 * kernel.expected
    expected = [*(path[one] for one in first), kernel, path[0], path[4]]
    assert middle_first([kernel, *path], is_wide) == expected


def test_a_model_that_is_built_has_features_of_its_own():
    one = entry().candidate
    one.built(100, 1.0).set_params(features__metric=np.eye(2))
    assert one.model.features.metric == "euclidean"


@pytest.mark.parametrize(
    ("share", "n_models", "n_components"), [(0.5, 1, 500), (1.0, 1, 1000), (1.9, 1, 1900), (2.5, 2, 1250)]
)
def test_models_that_are_averaged_have_no_fewer_features_than_was_judged(share, n_models, n_components):
    """And are penalised as much: kernels of blocks add up."""
    one = entry().candidate
    built = one.built(1000, np.inf, share=share)
    assert (built.n_models, built.n_components) == (n_models, n_components)
    assert built.alpha == pytest.approx(one.penalty / 1000 * n_components / 1000)


@pytest.mark.parametrize(
    ("n_judged", "n_wrong", "nothing"),
    [(400, 0, True), (300, 0, False), (800, 1, True), (600, 1, False), (5000, 5, False)],
)
def test_nothing_is_to_gain_where_rows_do_not_tell_a_model_from_one_without_errors(n_judged, n_wrong, nothing):
    one = linear(1.0 - n_wrong / n_judged, np.ones(n_judged))
    assert (search().ranking.flawless([one]) is one) == nothing
    assert search("log_loss").ranking.flawless([one]) is None
    assert search().ranking.flawless([judged(entry(), 1.0, np.ones(n_judged))]) is None


def test_few_rows_are_tried_with_larger_penalties():
    X = np.random.default_rng(0).standard_normal((rounds.FEW_ROWS, 3))
    most, few = (
        max(one.alpha for one in candidates.candidates(as_rows(rows), 0)[0] if one.is_linear) for rows in (X, X[1:])
    )
    assert few > 10 * most


def path_of(losses_of_each, family="path", smallest=1e-3):
    """Judged entries, each of a tenth of the penalty before."""
    entries = []
    for losses, place in zip(losses_of_each, range(len(losses_of_each))[::-1], strict=True):
        model = GLMClassifier(alpha=smallest * 10.0**place)
        entries.append(judged(Entry(Candidate(model, AS_GIVEN, family), 1.0, 100), 0.9, losses))
    return entries


def test_a_path_goes_on_beyond_its_end_where_that_has_clearly_the_least_log_loss():
    gains, other = path_of([LOSSES, 0.5 * LOSSES]), path_of([LOSSES, 1.1 * LOSSES], "other")
    entries = [*gains, *other]
    found = beyond_the_end(entries.copy(), entries)
    assert entries[-1] is found
    assert (found.kin, found.candidate.alpha) == ("path", pytest.approx(1e-4))
    assert beyond_the_end(entries[:-1], entries) is None  # not twice
    assert beyond_the_end(entries, entries[:0] + other) is None
    uneven = LOSSES - 2.0 * np.random.default_rng(1).permutation(LOSSES - LOSSES.mean()) - 0.02
    for next_to_nothing in (LOSSES - 1e-3, uneven):
        level = path_of([LOSSES, next_to_nothing])
        assert beyond_the_end(level.copy(), level) is None
    untried = path_of([LOSSES, 0.5 * LOSSES])
    assert beyond_the_end(untried[:1], untried) is None


def test_a_path_ends_where_the_rows_that_judge_cannot_tell_the_log_loss_from_none():
    assert beyond_the_end(*2 * [path_of([0.1 * LOSSES, 0.02 * LOSSES])]) is not None
    assert beyond_the_end(*2 * [path_of([1e-3 * LOSSES, 1e-4 * LOSSES])]) is None  # of 400 rows


def test_of_a_path_that_does_not_end_lowest_or_was_not_tried_to_its_end_nothing_follows():
    path = path_of([0.4 * LOSSES, LOSSES, 0.5 * LOSSES])
    assert beyond_the_end(path.copy(), path) is None
    path = path_of([LOSSES, 0.8 * LOSSES, 0.5 * LOSSES])
    assert beyond_the_end([path[0], path[2]], path) is None


@pytest.mark.parametrize("n_labels", [1, 2])
def test_rows_that_are_separated_are_fitted_neither_without_end_nor_to_the_last_digit(n_labels, rng):
    X = rng.standard_normal((200, 2)) + np.repeat([[0.0], [10.0]], 100, axis=0)
    y = np.repeat([0, 1], 100)
    model = AutoClassifier(random_state=0).fit(X, np.c_[y, 1 - y] if n_labels > 1 else y)
    linear = [row["parameters"] for row in model.leaderboard_ if row["estimator"] == "GLMClassifier"]
    assert min(one["alpha"] for one in linear) > 1e-8
    assert 1e-5 < min(one["tol"] for one in linear) < 0.5 * max(one["tol"] for one in linear)


def test_the_less_is_left_to_be_told_the_nearer_a_fit_comes():
    several, labels = (
        SimpleNamespace(seen=SimpleNamespace(y=np.zeros(of)), classes=np.arange(5)) for of in (9, (9, 5))
    )
    for search, n_classes in ((several, 5), (labels, 2)):
        leader = SimpleNamespace(loss_told=0.02 * np.log(n_classes))
        assert Halving._gap_near(search, leader) == pytest.approx(0.002)
    one = Candidate(GLMClassifier(tol=0.01), AS_GIVEN)
    assert [one.within(gap).model.tol for gap in (0.002, 0.02, np.nan)] == [0.002, 0.01, 0.01]


@pytest.mark.parametrize(("n", "d", "seed"), [(1200, 30, 1), (900, 20, 2)])
def test_columns_of_heavy_tails_have_the_penalty_and_the_accuracy_that_they_ask_for(monkeypatch, n, d, seed):
    """Far below the largest variance, where the gaps of the others would hide most of what is left to be told."""
    monkeypatch.setattr(rounds, "FOLDS", 2)
    half, rng = n // 2, np.random.default_rng(seed)
    rates, y = 2.0 * rng.pareto(1.2, size=(4, d)), rng.integers(4, size=n)
    X = rng.poisson(rates[y] * rng.pareto(1.5, size=(n, 1))).astype(float)
    models = AutoClassifier(random_state=0), LogisticRegression(max_iter=2000)
    ours, its = (log_loss(y[half:], one.fit(X[:half], y[:half]).predict_proba(X[half:])) for one in models)
    assert ours <= 1.2 * its


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_model_that_is_sure_of_what_is_wrong_has_the_log_loss_that_scikit_learn_gives_it(dtype):
    y = np.array([0, 1, 2, 0])
    P = np.array([[1, 0, 0], [0.2, 0.5, 0.3], [1, 0, 0], [0.4, 0.3, 0.3]], dtype=dtype)
    model = SimpleNamespace(_labels_and_probabilities=lambda X: (P.argmax(axis=1), P), classes_=np.arange(3))
    assert score(model, None, y, np.arange(3)).log_loss == pytest.approx(log_loss(y, P), rel=1e-6)
