"""The mean of models on the features of several kernels."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import log_loss

from manyclass import AutoClassifier, GLMClassifier, StagewiseClassifier
from manyclass.estimators.automatic import candidates, rounds
from manyclass.estimators.automatic.candidates import AS_GIVEN, Candidate
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.feature_kinds import LEARNED_WAVES, WAVES
from manyclass.estimators.automatic.neighbours import other_kernel
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import Score, mean_score, score
from manyclass.features import RandomFourierFeatures, RandomUnits
from manyclass.fit import Status

N, K = 2000, 4
LABELS = np.arange(N) % K


def judged(logits, bandwidth=1.0, kind=WAVES, scaling=AS_GIVEN, penalty=1.0, seconds=1.0):
    model = StagewiseClassifier(kind.generator(bandwidth), n_components=20)
    one = Entry(Candidate(model, scaling, kind=kind, bandwidth=bandwidth, penalty=penalty), seconds, N)
    evidence = log_softmax(logits, axis=1)
    losses, right = -evidence[np.arange(N), LABELS], evidence.argmax(axis=1) == LABELS
    one.scores = {0: Score(right.mean(), losses.mean(), losses, np.ones(N), evidence=evidence)}
    one.n_judged = N
    return one


def noisy(seed, signal=2.0):
    return signal * np.eye(K)[LABELS] + np.random.default_rng(seed).standard_normal((N, K))


def search(seconds=1e6):
    found = Search("accuracy", Labelled({}, LABELS), np.arange(K), time.perf_counter() + seconds)
    found.judges = {0: np.arange(N)}
    return found


def averaged(entries, seconds=1e6):
    return search(seconds).averaged(entries[0], entries)


def test_models_that_err_on_other_rows_are_averaged_the_better_first():
    entries = [judged(noisy(seed, signal), 2.0**seed) for seed, signal in enumerate((1.8, 2.0, 1.9))]
    mean = averaged(entries)
    kernels = [one.bandwidth for one in mean.candidate.model.features]
    assert kernels == [one.candidate.bandwidth for one in sorted(entries, key=lambda one: -one.accuracy)]
    together = np.mean([noisy(seed, signal) for seed, signal in enumerate((1.8, 2.0, 1.9))], axis=0)
    assert mean.accuracy == np.mean(together.argmax(axis=1) == LABELS)
    assert mean.accuracy > max(one.accuracy for one in entries) + 0.05
    assert mean.seconds_for(N) == pytest.approx(3.0 * entries[0].seconds_for(N))


def test_models_of_larger_blocks_are_no_part_of_the_mean():
    """Random features are no good in these, nor landmarks in smaller ones."""
    entries = [judged(noisy(seed), 2.0**seed) for seed in range(3)]
    entries[1].candidate.model.set_params(block_size=2048)
    assert [one.bandwidth for one in averaged(entries).candidate.model.features] == [1.0, 4.0]


def test_what_knows_nothing_is_left_out_of_the_mean():
    entries = [judged(noisy(seed, signal), 2.0**seed) for seed, signal in enumerate((2.0, 2.0, 1.9, 0.0, 0.0))]
    mean = averaged(entries)
    assert [one.bandwidth for one in mean.candidate.model.features[:3]] == [
        one.candidate.bandwidth for one in sorted(entries[:3], key=lambda one: -one.accuracy)
    ]
    assert mean.candidate.n_kernels == 3


def test_two_are_enough_and_a_search_that_was_stopped_has_none():
    entries = [judged(noisy(seed), 2.0**seed, seconds=seed + 1.0) for seed in range(2)]
    mean = averaged(entries)
    assert mean.candidate.n_kernels == 2 and mean.path == [mean]
    assert mean.row()["seconds"] == sum(one.seconds for one in entries)
    stopped = search()
    stopped.stopped = Status.INTERRUPTED
    assert stopped.averaged(entries[0], entries) is entries[0]


def test_a_more_accurate_mean_with_no_less_log_loss_is_not_taken():
    first, second = noisy(0), noisy(1)
    sure = judged(first)
    other = judged(40.0 * second, 2.0)  # so sure of its errors that the mean is, too
    other.scores = {0: other.scores[0]._replace(accuracy=sure.accuracy - 1e-6)}
    assert averaged([sure, other]) is sure


def test_features_are_those_of_twice_as_many_rows_at_most_over_several_kernels():
    one = judged(noisy(0)).candidate
    several = [one.averaged_with([one] * n).most_share(65_536) for n in (1, 3, 15)]
    assert [one.most_share(65_536), *several] == [8.0, 8.0, 4.0, 1.0]
    assert one.averaged_with([one] * 2).rows_for(one.averaged_with([one] * 2).work(20_000)) == 20_000


def test_models_that_say_the_same_are_not():
    entries = [judged(noisy(0), bandwidth) for bandwidth in (1.0, 2.0)]
    assert averaged(entries) is entries[0]


@pytest.mark.parametrize("change", [{"scaling": "deviation"}, {"penalty": 2.0}])
def test_models_of_other_rows_or_penalties_are_not(change):
    entries = [judged(noisy(0)), judged(noisy(1), **change)]
    assert averaged(entries) is entries[0]


def test_what_was_judged_by_other_rows_or_not_kept_is_not():
    first, second, third = (judged(noisy(seed), 2.0**seed) for seed in range(3))
    second.scores = {1: second.scores[0]}
    third.forget()
    assert averaged([first, second, third]) is first
    fourth = judged(noisy(3), 8.0)
    assert averaged([first, second, third, fourth]).candidate.n_kernels == 2


def test_no_more_are_averaged_than_there_is_time_for():
    entries = [judged(noisy(seed), 2.0**seed, seconds=10.0) for seed in range(5)]
    assert [averaged(entries, seconds).candidate.n_kernels for seconds in (15.0, 25.0, 36.0, 1e6)] == [1, 2, 3, 5]


def test_a_linear_model_is_not_averaged_with_kernels():
    linear = judged(noisy(0))
    linear.candidate = Candidate(GLMClassifier(), AS_GIVEN)
    assert averaged([linear, judged(noisy(1)), judged(noisy(2), 2.0)]) is linear


def test_the_score_of_a_mean_is_that_of_the_mean_of_scores():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
    models = [
        StagewiseClassifier(one, loss="softmax", alpha=1e-3, n_components=200).fit(X, y)
        for one in (RandomFourierFeatures(), RandomUnits())
    ]
    mean = mean_score([score(model, X_test, y_test, np.unique(y)) for model in models], y_test, np.unique(y))
    Z = np.mean([model.decision_function(X_test) for model in models], axis=0)
    assert mean.accuracy == pytest.approx(np.mean(Z.argmax(axis=1) == y_test), abs=0.01)
    assert mean.log_loss == pytest.approx(log_loss(y_test, softmax(Z, axis=1)), rel=0.02)


def test_the_other_metric_is_tried_where_no_bandwidth_is_better():
    accuracy = {(1.0, WAVES): 2.0, (2.0, WAVES): 1.5, (0.5, WAVES): 1.5, (1.0, LEARNED_WAVES): 1.9}
    entries = [judged(noisy(0, 2.0)), judged(noisy(0, 1.5), 4.0, LEARNED_WAVES)]
    tried, asked = entries[:1], []
    while (one := other_kernel(search().ranking.best, tried, entries, asked)) is not None:
        asked.append(one)
        key = one.candidate.bandwidth, one.candidate.kind
        one.scores, one.n_judged = judged(noisy(0, accuracy[key])).scores, N
        tried.append(one)
    assert [(one.candidate.bandwidth, one.candidate.kind) for one in asked] == list(accuracy)[1:]


def test_a_mean_is_an_ordinary_estimator(monkeypatch):
    monkeypatch.setattr(candidates, "FEWEST_FEATURES", 64)
    monkeypatch.setattr(candidates, "MOST_FEATURES", 128)
    monkeypatch.setattr(rounds, "FEW_ROWS", 100)
    monkeypatch.setattr(rounds, "FIRST_ROWS", 300)
    monkeypatch.setattr(rounds, "FOLDS", 2)
    X, y = make_classification(2000, 10, n_informative=6, n_classes=4, n_clusters_per_class=4, random_state=0)
    X, X_test, y, y_test = X[:1500], X[1500:], y[:1500], y[1500:]
    model = AutoClassifier(max_time=1e6, random_state=0).fit(X, y)
    found = model.best_estimator_
    assert isinstance(found, StagewiseClassifier) and len(found.features) > 1
    assert len(found.models_) == found.n_models * len(found.features)
    assert any("features of different kernels" in sentence for sentence in model.why_)
    assert model.best_score_ == model.leaderboard_[0]["accuracy"] == max(one["accuracy"] for one in model.leaderboard_)
    assert model.score(X_test, y_test) > 0.6
    again = clone(found).fit(X, y)
    assert_allclose(again.predict_proba(X_test), model.predict_proba(X_test), atol=1e-6)
