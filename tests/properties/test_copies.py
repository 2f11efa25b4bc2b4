"""Rows that occur more than once, as those of a rare class that was oversampled, deceive nobody who judges."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from manyclass import AutoClassifier, CalibratedLeastSquaresClassifier, GLMClassifierCV, StagewiseClassifier, analyze
from manyclass.data import as_rows
from manyclass.fit.held_out import MOST_COPIES, copies_of_rows, folds_by_content


def drawn(n, seed):
    """A rare class that linear scores tell, and each row of it as often as the other class has rows."""
    rng = np.random.default_rng(seed)
    slope = np.random.default_rng(0).standard_normal(10) * 0.5
    X = rng.standard_normal((n, 10))
    y = (X @ slope + rng.logistic(size=n) > 3.2).astype(int)
    rare = np.flatnonzero(y == 1)
    every = np.r_[np.flatnonzero(y == 0), np.repeat(rare, np.sum(y == 0) // len(rare))]
    return X, y, every


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (AutoClassifier(max_time=60), 1000),
        (StagewiseClassifier(), 1000),
        (GLMClassifierCV(), 2000),
    ],
    ids=lambda one: one if isinstance(one, int) else type(one).__name__,
)
def test_a_rare_class_may_be_oversampled(model, n):
    X, y, every = drawn(n, 1)
    new, wanted, _ = drawn(5000, 2)
    usual = LogisticRegression().fit(X[every], y[every]).predict(new)
    found = model.fit(X[every], y[every]).predict(new)
    # What remembers rows has 0.53.
    assert balanced_accuracy_score(wanted, found) > balanced_accuracy_score(wanted, usual) - 0.06


def test_analyze_does_not_advise_features_that_remember_copies():
    X, y, every = drawn(1000, 1)
    report = analyze(X[every], y[every])
    deviation = (report.trial.linear_error / report.trial.n_judged) ** 0.5
    assert report.trial.generated_error > report.trial.linear_error - deviation
    assert report.estimator != "StagewiseClassifier"


def test_a_score_of_noise_given_twice_is_that_of_noise():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.standard_normal((300, 5)), 2, axis=0), np.repeat(rng.integers(0, 3, 300), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert AutoClassifier(max_time=60).fit(X, y).best_score_ < 0.5


def test_rows_given_fifty_times_teach_as_much_as_rows_given_once():
    """Calibrated least squares that is judged by copies of its rows takes next to no penalty, and is far more
    often wrong."""
    accuracies = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 5, 1080)
        X = 0.5 * rng.standard_normal((5, 30))[y] + rng.standard_normal((1080, 30))
        for times in (1, 50):
            model = CalibratedLeastSquaresClassifier().fit(np.repeat(X[:80], times, axis=0), np.repeat(y[:80], times))
            accuracies.append(model.score(X[80:], y[80:]))
    assert np.mean(accuracies[1::2]) > np.mean(accuracies[::2]) - 0.06


def test_copies_stay_together_and_values_of_few_columns_do_not():
    X, y, every = drawn(1000, 1)
    rows, labels = as_rows(X[every]), y[every]
    numbers = copies_of_rows(rows, labels)
    assert len(np.unique(numbers)) == 1000
    fold = folds_by_content(rows, labels, None, 5)
    assert all(len(np.unique(fold[numbers == one])) == 1 for one in np.unique(numbers))
    few = np.random.default_rng(0).integers(0, 3, (600, 2)).astype(float)
    assert len(np.unique(copies_of_rows(as_rows(few), (few[:, 0] > 0).astype(int)))) == 600
    # Of rows that all differ, but for those that say nothing: these are as many rows, not copies.
    empty = np.vstack([np.random.default_rng(0).standard_normal((200, 4)), np.zeros((100, 4))])
    assert len(np.unique(copies_of_rows(as_rows(empty), np.arange(300) // 150))) == 300
    twice = np.repeat(np.random.default_rng(0).standard_normal((50, 4)), MOST_COPIES, axis=0)
    assert len(np.unique(copies_of_rows(as_rows(twice), None))) == 50


@pytest.mark.parametrize("kind", ["zeros", "two values", "few values"])
def test_a_class_of_few_values_beside_one_that_varies_is_no_copy(kind):
    rng = np.random.default_rng(0)
    few = {"zeros": np.zeros((200, 3)), "two values": np.repeat(rng.integers(0, 2, 200)[:, None], 3, axis=1)}
    few = few.get(kind, rng.integers(0, 2, (200, 3))).astype(float)
    X, y = np.vstack([few, 1.0 + rng.standard_normal((200, 3))]), np.repeat([0, 1], 200)
    assert len(np.unique(copies_of_rows(as_rows(X), y))) == 400
    assert AutoClassifier(max_time=60).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.85


@pytest.mark.parametrize("n", [3200, 3201, 3202])
def test_what_learns_knows_every_class(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 4))
    model = AutoClassifier(max_time=30).fit(X, (np.arange(n) == n // 2).astype(int))
    assert model.classes_.tolist() == [0, 1]


def test_what_learns_knows_a_class_of_one_row_given_often():
    X = np.random.default_rng(3200).standard_normal((400, 4))
    once, labels = np.vstack([X, np.repeat(X[:1] + 3.0, 100, axis=0)]), (np.arange(500) >= 400).astype(int)
    assert AutoClassifier(max_time=30).fit(once, labels).score(once[400:], labels[400:]) > 0.9


def test_errors_of_two_classes_are_those_of_rows_as_often_as_they_are_there():
    X, y, every = drawn(700, 3)
    choice = StagewiseClassifier().fit(X[every], y[every]).choice_
    assert all(0.0 < error < 1.1 for error in choice["errors"].values())
