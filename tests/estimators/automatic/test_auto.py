"""`AutoClassifier`: it is not worse than what one would have taken, and says the truth about what it did."""

import math
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import _get_check_estimator_ids

from manyclass import AutoClassifier, GLMClassifier, StagewiseClassifier
from manyclass.data import as_rows
from manyclass.estimators.automatic import candidates, rounds
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import Score
from manyclass.fit import Status
from tests.checks import checks

POINT = 0.01


def parts(X, y, seed=0):
    return train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_not_worse_than_logistic_regression(few, load):
    scores = []
    for seed in range(3):  # a row of one split is more than a point
        X, X_test, y, y_test = parts(*load(return_X_y=True), seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it does not converge on columns of different size
            peer = LogisticRegression().fit(X, y).score(X_test, y_test)
        scores.append((AutoClassifier().fit(X, y).score(X_test, y_test), peer))
    ours, peer = np.mean(scores, axis=0)
    assert ours >= peer - POINT


def test_features_are_taken_where_they_read_digits_better(few, monkeypatch):
    monkeypatch.setattr(candidates, "MOST_FEATURES", 512)
    X, X_test, y, y_test = parts(*(part[:1000] for part in load_digits(return_X_y=True)))
    model = AutoClassifier().fit(X, y)
    assert model.leaderboard_[0]["estimator"] == "StagewiseClassifier"
    assert model.score(X_test, y_test) > LogisticRegression(C=0.1).fit(X / 16, y).score(X_test / 16, y_test) + POINT


def test_features_are_taken_where_no_sum_over_columns_divides_the_classes(rng):
    X = rng.uniform(-1.0, 1.0, (600, 2))
    X, X_test, y, y_test = parts(X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other"))
    model = AutoClassifier().fit(X, y)
    assert model.score(X_test, y_test) > 0.93
    assert model.leaderboard_[0]["estimator"] == "StagewiseClassifier"


def test_the_leaderboard_is_in_order_and_tells_the_score_of_the_choice(few):
    X, y = load_iris(return_X_y=True)
    for objective, better in (("accuracy", max), ("log_loss", min)):
        model = AutoClassifier(objective=objective).fit(X, y)
        assert {"GLMClassifier", "StagewiseClassifier"} == {row["estimator"] for row in model.leaderboard_}
        scores = [row[objective] for row in model.leaderboard_]
        assert model.best_score_ in scores
        if objective == "log_loss":
            assert model.best_score_ == scores[0]
        assert better(scores[:2]) == scores[0]
        assert sum(told.startswith("Taken: ") for told in model.why_) == 1


def test_the_score_is_that_of_rows_not_seen(few, rng):
    """Labels that nothing can be learnt from."""
    X, y = rng.standard_normal((400, 30)), rng.integers(0, 2, 400)
    assert abs(AutoClassifier().fit(X, y).best_score_ - 0.5) < 0.12


def test_many_rows_are_searched_on_few_of_them_first(few, monkeypatch, rng):
    monkeypatch.setattr(rounds, "FEW_ROWS", 100)
    monkeypatch.setattr(rounds, "FIRST_ROWS", 50)
    monkeypatch.setattr(rounds, "MINORITY", 10)
    monkeypatch.setattr(candidates, "PENALTIES", (1e-1, 1e-2, 1e-3, 1e-4))
    X = rng.standard_normal((1000, 4))
    y = np.argmax(X[:, :3] + 0.1 * rng.standard_normal((1000, 3)), axis=1)
    y[0] = 7  # a class of one row
    model = AutoClassifier().fit(X, y)
    assert [sentence.split(" rows")[0].split()[-1] for sentence in model.why_[:3]] == ["50", "200", "800"]
    assert model.leaderboard_[0]["n_rows"] == 800 and model.leaderboard_[-1]["n_rows"] == 50
    assert model.score(X, y) > 0.9


def test_what_would_take_too_long_is_left_out_and_this_is_said(few, monkeypatch):
    monkeypatch.setattr(Entry, "seconds_for", lambda self, n_rows: 0.0 if self.candidate.is_linear else 1e9)
    model = AutoClassifier(max_time=1e6).fit(*make_moons(200, noise=0.1, random_state=0))
    assert {row["estimator"] for row in model.leaderboard_} == {"GLMClassifier"}
    assert any("StagewiseClassifier" in sentence and "left out" in sentence for sentence in model.why_)


def test_what_was_better_on_fewer_rows_is_taken_and_fitted_to_as_many_as_there_is_time_for(few, monkeypatch):
    monkeypatch.setattr(rounds, "FEW_ROWS", 100)
    monkeypatch.setattr(rounds, "FIRST_ROWS", 100)
    X, y = make_moons(2000, noise=0.1, random_state=0)
    y[0] = 7  # a class of one row
    slow = "StagewiseClassifier"
    monkeypatch.setattr(Entry, "seconds_for", lambda self, n: 1e9 * (n > 100 and self.candidate.estimator == slow))
    monkeypatch.setattr(Entry, "rows_in", lambda self, seconds: 300)
    model = AutoClassifier(max_time=1e6).fit(X, y)
    assert type(model.best_estimator_).__name__ == slow
    assert any("not compared on more rows" in sentence for sentence in model.why_)
    assert "fitted to 300 rows" in model.why_[-1] and model.score(X, y) > 0.98
    assert set(model.best_estimator_.classes_) == {0, 1, 7}


def test_what_is_clearly_worse_than_generated_features_is_not_tried_on_more_rows(few, monkeypatch):
    monkeypatch.setattr(rounds, "FEW_ROWS", 100)
    monkeypatch.setattr(rounds, "FIRST_ROWS", 500)
    model = AutoClassifier().fit(*make_moons(2500, noise=0.1, random_state=0))
    went_on = {row["estimator"] for row in model.leaderboard_ if row["n_rows"] > 500}
    assert went_on == {"StagewiseClassifier"}
    assert {row["estimator"] for row in model.leaderboard_} > went_on


@pytest.mark.parametrize("max_time", [None, 1e6])
def test_time_that_is_left_is_used_for_more_features(few, max_time):
    X, y = make_moons(300, noise=0.1, random_state=0)
    model = AutoClassifier(max_time=max_time).fit(X, y)
    found = model.best_estimator_
    n_models = 1 if max_time is None else 300 // 64
    assert found.n_models == n_models == len(found.models_)
    assert any(f"mean of {n_models} models" in sentence for sentence in model.why_) == (n_models > 1)


def test_features_are_fewer_where_there_is_no_time_for_all(few, monkeypatch):
    X, y = make_moons(300, noise=0.1, random_state=0)
    monkeypatch.setattr(candidates, "MOST_FEATURES", 300)
    monkeypatch.setattr(candidates, "FEWEST_FEATURES", 4)
    refit = Search.refit

    def without_time(search, entry):
        entry.expected += 1e3  # next to which what the machine does meanwhile is nothing
        search.end = time.perf_counter() + 0.5 * entry.seconds_for(300)
        return refit(search, entry)

    monkeypatch.setattr(Search, "refit", without_time)
    model = AutoClassifier(max_time=1e6).fit(X, y)
    assert 0.25 * 300 < model.best_estimator_.n_components <= 0.5 * 300 and "of its features" in model.why_[-1]


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_penalties_of_newton_steps_fall_with_the_rows(loss):
    y = np.arange(400) % 3
    X, indicator = np.random.default_rng(0).standard_normal((400, 4)), np.eye(3)[y]
    listed, _ = candidates.candidates(as_rows(X), 0, multilabel=loss == "logistic")
    steps = [one for one in listed if not one.is_linear]
    assert {one.model.loss for one in steps} == {loss}
    assert {one.penalty for one in steps} == set(candidates.STEP_PENALTIES)
    for one in steps:
        assert one.built(200, math.inf).alpha == pytest.approx(2.0 * one.model.alpha)
        one.built(200, math.inf).fit(X[:200], y[:200] if loss == "softmax" else indicator[:200])


def test_what_has_no_time_to_begin_anew_goes_on_with_all_rows(rng):
    X = rng.standard_normal((600, 5))
    y = (X @ rng.standard_normal((5, 4)) + rng.standard_normal((600, 4))).argmax(axis=1)
    learn, judge = np.arange(300), np.arange(300, 600)
    closely = GLMClassifier(alpha=1e-3, tol=1e-8, warm_start=True)
    linear = candidates.Candidate(closely, candidates.AS_GIVEN)
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    entry = Entry(linear, 1e-3, 300)
    assert search._round([entry], {0: (learn, judge)}, one_at_least=True) == [entry]
    entry.expected, n_passes = 50.0, entry.n_passes  # for half of the rows
    model = search.refit(entry)
    assert "begin anew" in search.why[-1] and model.n_passes_ < n_passes
    assert_allclose(model.coef_, GLMClassifier(alpha=1e-3, tol=1e-8).fit(X, y).coef_, atol=1e-3)
    entry.expected = 50.0 * entry.model.n_passes_  # for each pass more than is left
    assert search.refit(entry) is entry.model and "no time for all" in search.why[-1]


def test_of_a_file_all_rows_are_fitted_to_for_as_long_as_there_is_time(rng):
    """Rather than a sample: of 8 GB, a sample of 1 GB left 17 % errors where 13 are possible, and most of the time."""
    X = rng.standard_normal((600, 5))
    y = (X @ rng.standard_normal((5, 4)) + rng.standard_normal((600, 4))).argmax(axis=1)
    seen, whole = (Labelled({candidates.AS_GIVEN: part}, y[: len(part)]) for part in (X[:300], X))
    one = candidates.Candidate(GLMClassifier(alpha=1e-3, tol=1e-8), candidates.AS_GIVEN)
    search = Search("accuracy", seen, np.unique(y), time.perf_counter() + 60.0, all_rows=whole)
    entry = Entry(one, 1e-3, 300)
    search._round([entry], {0: (np.arange(200), np.arange(200, 300))}, one_at_least=True)
    entry.expected = 30.0  # for a third of the rows
    model = search.refit(entry)
    assert "all rows for as long as there was time" in search.why[-1]
    assert_allclose(model.coef_, GLMClassifier(alpha=1e-3, tol=1e-8).fit(X, y).coef_, atol=1e-3)


@pytest.mark.parametrize(("seconds", "best", "skips"), [(1.0, 1e-2, True), (40.0, 1e-2, False), (1.0, 1e-3, False)])
def test_two_that_are_left_are_compared_on_all_rows_if_there_is_time(rng, seconds, best, skips):
    """And few rows are not all that speaks for the smallest penalty."""
    X = rng.standard_normal((4000, 3))
    y = (X[:, 0] > 0).astype(int)
    linear = [candidates.Candidate(GLMClassifier(alpha=one), candidates.AS_GIVEN, "path") for one in (1e-2, 1e-3)]
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 100.0)
    entries = [Entry(one, 1e-3, 4000) for one in linear]
    sizes = []

    def tried(alive, parts, *_, **__):
        ((learn, judge),) = parts.values()
        sizes.append(len(learn))
        for one in alive:
            one.model, one.n_judged, one.n_rows = GLMClassifier(), len(judge), len(learn)
            accuracy = 0.9 + 0.05 * (one.candidate.alpha == best)
            one.scores = {0: Score(accuracy, 0.1, np.zeros(len(judge)), np.ones(len(judge)))}
            one.model.status_, one.expected = Status.CONVERGED, seconds * len(learn) / 3000
        return list(alive)

    search._round = tried
    index = np.arange(4000)
    search.run(entries, [{i: (index[:n], index[3000:])} for i, n in enumerate((200, 1000, 3000))])
    assert list(dict.fromkeys(sizes)) == ([200, 3000] if skips else [200, 1000, 3000])


def test_without_time_there_is_a_model_all_the_same(few):
    X, y = load_iris(return_X_y=True)
    model = AutoClassifier(max_time=1e-6).fit(X, y)
    assert len(model.leaderboard_) == 1 and "no time for all" in model.why_[-1]
    assert set(model.predict(X)) <= {0, 1, 2}


@pytest.mark.parametrize("seed", range(4))
def test_a_model_of_few_rows_knows_every_class(rng, seed):
    """It was that of the rows of a round, which may lack a class that has one row."""
    X = rng.standard_normal((4000, 20))
    y = np.array(["m", "n", "o"], dtype=object)[rng.integers(3, size=4000)]
    y[100] = "a"
    model = AutoClassifier(max_time=0.02, random_state=seed).fit(X, y)
    taken = model.best_estimator_
    known = getattr(taken, "steps", [("", taken)])[-1][1].classes_
    assert list(known) == list(model.classes_) == ["a", "m", "n", "o"]
    assert model.predict_proba(X[:2]).shape == (2, 4)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_several_labels_per_row(few, rng, layout):
    X = rng.standard_normal((300, 5))
    Y = (X[:, :3] > 0.3).astype(int)
    model = AutoClassifier().fit(layout(X), Y)
    assert model.predict(layout(X)).shape == model.predict_proba(layout(X)).shape == (300, 3)
    assert np.mean(model.predict(layout(X)) == Y) > 0.9


def test_two_rows_are_too_few_to_compare_by():
    model = AutoClassifier().fit([[0.0], [1.0]], ["a", "b"])
    assert model.leaderboard_ == [] and "too few rows" in model.why_[0]
    assert list(model.predict([[0.0], [1.0]])) == ["a", "b"]


def test_rows_of_no_weight_are_as_good_as_absent(few, rng):
    X, y = load_iris(return_X_y=True)
    weight, strange = np.concatenate([np.full(150, 2.0), np.zeros(50)]), rng.standard_normal((50, 4))
    model = AutoClassifier().fit(np.vstack([X, strange]), np.append(y, np.full(50, 7)), weight)
    alone = AutoClassifier().fit(X, y, np.full(150, 2.0))
    assert list(model.classes_) == [0, 1, 2]
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("way", ["sample_weight", "class_weight"])
def test_a_class_of_more_weight_is_missed_less(few, rng, way):
    X = rng.standard_normal((400, 3))
    y = (X[:, 0] + 2.0 * rng.standard_normal(400) > 2.5).astype(int)
    heavy = {0: 1.0, 1: 20.0}
    even = AutoClassifier().fit(X, y)
    if way == "class_weight":
        model = AutoClassifier(class_weight=heavy).fit(X, y)
        assert model.best_params_["class_weight"] == heavy
    else:
        model = AutoClassifier().fit(X, y, np.where(y == 1, 20.0, 1.0))
    assert np.mean(model.predict(X)[y == 1]) > np.mean(even.predict(X)[y == 1]) + 0.3
    # Rows of the rare class weigh as much where they judge, so that all of the others is no good answer.
    assert model.best_score_ < 0.9 < even.best_score_ + 0.1


def test_weights_of_several_labels_and_of_paths_of_rows(few, monkeypatch, rng):
    monkeypatch.setattr(rounds, "FEW_ROWS", 100)
    monkeypatch.setattr(rounds, "FIRST_ROWS", 50)
    X = rng.standard_normal((300, 4))
    Y = (X[:, :2] > 0).astype(int)
    Y[:100] = 1 - Y[:100]
    model = AutoClassifier().fit(X, Y, np.where(np.arange(300) < 100, 1e-3, 1.0))
    assert np.mean(model.predict(X[100:]) == Y[100:]) > 0.9


OTHER_ROWS = "penalties are measured on rows drawn by their numbers, and fits end within tol of each other only"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": OTHER_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": OTHER_ROWS,
}


@pytest.mark.parametrize(("estimator", "check"), [*checks(AutoClassifier(), EXPECTED)], ids=_get_check_estimator_ids)
def test_sklearn_estimator_checks(few, estimator, check):
    check(estimator)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_penalties_are_in_units_of_the_variance_that_the_rows_have_most_of(is_sparse):
    """tr Σ²/tr Σ of a known covariance, which hundreds of columns that say nothing do not lower."""
    rng = np.random.default_rng(0)
    X = np.zeros((2000, 400))
    X[:, :10] = 3.0 * rng.standard_normal((2000, 10))
    X[:, 10:] = 0.01 * rng.standard_normal((2000, 390)) + 5.0
    rows = as_rows(sp.csr_array(X) if is_sparse else X)
    assert candidates.leading_variance(rows, 0) == pytest.approx(9.0, rel=0.05)
    assert candidates.leading_variance(as_rows(np.ones((5, 3))), 0) == 1.0


def test_a_candidate_that_takes_longer_than_expected_leaves_time_for_others(monkeypatch):
    fit, least = StagewiseClassifier.fit, []

    def slow(self, X, y, *args, **kwargs):
        least.append(self.max_time)
        time.sleep(min(self.max_time, 10.0))
        return fit(self.set_params(max_time=1e-3), X, y, *args, **kwargs)

    monkeypatch.setattr(StagewiseClassifier, "fit", slow)
    monkeypatch.setattr("manyclass.estimators.auto._expected", lambda listed, *_: [
        *[(one, 1e-4) for one in listed if not one.is_linear][:1], *[(one, 1e-3) for one in listed if one.is_linear]
    ])  # fmt: skip
    X, y = load_digits(return_X_y=True)
    model = AutoClassifier(max_time=1.5, random_state=0).fit(X[:300], y[:300])
    assert least and max(least) < 1.0
    assert model.score(X, y) > 0.8


def test_without_time_for_all_a_path_is_tried_from_its_middle(few, monkeypatch):
    monkeypatch.setattr(candidates, "PENALTIES", (1e3, 1e-1, 1e-3, 1e-9))
    monkeypatch.setattr("manyclass.estimators.automatic.halving.Entry.seconds_for", lambda self, n_rows: 100.0)
    X, y = load_digits(return_X_y=True)
    model = AutoClassifier(max_time=20.0, random_state=0).fit(X[:1200], y[:1200])
    assert len(model.leaderboard_) == 1 and model.score(X[1200:], y[1200:]) > 0.85


def test_a_choice_is_fitted_along_the_path_that_led_to_it():
    """Where the model of a small penalty ends is a matter of where it began."""
    X, y = load_digits(return_X_y=True)
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.arange(10), time.perf_counter() + 600.0)
    first, second, last = path = [
        Entry(candidates.Candidate(GLMClassifier(alpha, warm_start=True), candidates.AS_GIVEN, "GLM"), 0.1, 900)
        for alpha in (10.0, 1.0, 0.1)
    ]
    search.run(path, [{0: (np.arange(900), np.arange(900, 1797))}])
    assert first.path == [first] and last.path == path
    found, by_hand = search.refit(last), GLMClassifier(10.0, warm_start=True).fit(X, y)
    for alpha in (1.0, 0.1):
        by_hand.set_params(alpha=alpha).fit(X, y)
    assert_allclose(found.coef_, by_hand.coef_)
    assert "from alpha=10 down" in search.why[-1] and search.path == [10.0, 1.0]
    last.expected = second.expected = 1e6  # there is no time for the path
    assert search.refit(last) is last.model


def test_no_time_for_any_fit_is_said():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="AutoClassifier: .* nothing was learned .* raise max_time"):
        AutoClassifier(max_time=1e-9).fit(X, y)
