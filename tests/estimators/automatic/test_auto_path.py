"""Which models `AutoClassifier` looks at, and which it takes of those that accuracy does not tell apart."""

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import manyclass
from manyclass import AutoClassifier, GLMClassifier
from manyclass.data import as_rows
from manyclass.data.labels import encode
from manyclass.estimators.automatic import candidates
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.feature_kinds import WAVES
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.rounds import enough_rows, splits
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scores import Score, score
from manyclass.fit import Status
from tests.problems import ESTIMATORS, rows

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4)
FEW_ROWS = [(0.9, 0.4), (0.8, 0.402), (0.3, 0.9), (0.2, 1.0)]
"""Accuracy and log loss, by the number of the penalty, of which the first two go on to more rows."""
SCORES = [(0.7, 0.9), (0.8, 0.6), (0.9, 0.4), (0.85, 0.5)]
"""The same of more rows."""


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (SCORES, [0, 1, 2, 3]),  # the best is the smallest tried until the last is worse
        ([(0.7, 0.9), (0.8, 0.6), (0.9, 0.7)], [0, 1, 2]),  # beyond the turn of the log loss, accuracies are luck
        ([(0.8, 0.5), (0.7, 0.502)], [0, 1]),
    ],
)
def test_the_next_penalty_is_tried_where_the_smallest_is_the_best(scores, expected):
    X, y = np.zeros((400, 1)), np.arange(400) % 2
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    path = [
        Entry(candidates.Candidate(GLMClassifier(alpha=one), candidates.AS_GIVEN, "path"), 1e-3, 400)
        for one in PENALTIES
    ]

    learnt = []

    def tried(alive, parts, *_, **__):
        ((number, (learn, judge)),) = parts.items()
        for one in alive:
            found = FEW_ROWS[path.index(one)] if number == 0 else scores[path.index(one)]
            one.scores, one.n_judged = {number: Score(*found, np.zeros(100), np.ones(100))}, len(judge)
            one.n_rows = len(learn)
            learnt.append((number, path.index(one)))
        return list(alive)

    search._round = tried
    search.run(path, [{number: (np.arange(n), np.arange(300, 400))} for number, n in enumerate((100, 300))])
    assert [one for number, one in learnt if number == 0] == [0, 1, 2, 3]
    assert sorted(one for number, one in learnt if number == 1) == expected


UP, DOWN = [(0.6, 0.9), (0.7, 0.8), (0.8, 0.6), (0.9, 0.4)], [(0.9, 0.4), (0.8, 0.6), (0.7, 0.8), (0.6, 0.9)]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([(0.7, 0.9), (0.8, 0.5), (0.7, 0.7), (0.6, 0.9)], [0, 1, 2]),
        ([(0.8, 0.5), (0.7, 0.7), (0.9, 0.4), (0.9, 0.3)], [0, 1]),  # what is beyond is not known
        ([(0.8, 0.5), (0.9, 0.7), (0.8, 0.8), (0.9, 0.9)], [0, 1, 2]),  # more accurate with more loss: not turned
        ([(0.8, 0.5), (0.81, 0.7), (0.79, 0.6), (0.9, 0.3)], [0, 1, 2]),  # from the first, not from the one before
        ([(0.8, 0.6), (0.7, 0.5), (0.6, 0.4), (0.5, 0.3)], [0, 1, 2, 3]),  # only accuracy, which may be luck
        ([(0.8, 0.5), (0.7, 0.501), (0.9, 0.4), (0.8, 0.5)], [0, 1, 2, 3]),  # a difference that may be luck
    ],
)
@pytest.mark.parametrize("objective", ["accuracy", "log_loss"])
def test_penalties_beyond_the_turn_of_a_path_are_not_tried(scores, expected, objective):
    path, tried = _path_with(scores, objective)
    assert tried(path) == expected


def test_a_turn_says_nothing_of_larger_penalties_nor_of_other_paths():
    path, tried = _path_with(DOWN)
    assert tried(path[::-1]) == [3, 2, 1, 0]
    other, _ = _path_with(UP, family="other")
    path, tried = _path_with(DOWN, before=other)
    assert tried([*path, *other]) == [0, 1, "other 0", "other 1", "other 2", "other 3"]


def _path_with(scores, objective="accuracy", family="path", before=()):
    """The entries of a path whose models have these scores, and what a round tries of entries given."""
    X, y = np.zeros((400, 1)), np.arange(400) % 2
    search = Search(objective, Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    noise = np.random.default_rng(0).standard_normal((len(scores), 400))
    path = []
    for alpha, (accuracy, loss), each in zip(PENALTIES, scores, noise, strict=True):
        one = Entry(candidates.Candidate(GLMClassifier(alpha=alpha), candidates.AS_GIVEN, family), 1e-3, 400)
        one.found = Score(accuracy, loss, loss + 0.5 * (each - each.mean()), np.ones(400))
        path.append(one)

    def judged(entry, parts):
        entry.scores, entry.n_judged = {0: entry.found}, 400

    def tried(entries):
        names = {one: number for number, one in enumerate(path)}
        names |= {one: f"other {number}" for number, one in enumerate(before)}
        search._try = judged
        return [names[one] for one in search._round(entries, {0: (np.arange(300), np.arange(300, 400))})]

    return path, tried


@pytest.mark.parametrize(
    ("accuracies", "losses", "expected"),
    [
        ((0.80, 0.79), (0.50, 0.40), 1),  # clearly less log loss, and hardly more errors
        ((0.80, 0.79), (0.41, 0.40), 0),  # neither can be told apart: accuracy decides
        ((0.90, 0.79), (0.50, 0.40), 0),  # clearly more errors
    ],
)
def test_log_losses_decide_where_accuracies_cannot_be_told_apart(accuracies, losses, expected):
    X, y, rng = np.zeros((400, 1)), np.arange(400) % 2, np.random.default_rng(0)
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    entries = []
    for alpha, accuracy, loss in zip(PENALTIES, accuracies, losses, strict=False):
        noise = rng.standard_normal(400)
        each = loss + 0.5 * (noise - noise.mean())
        one = Entry(candidates.Candidate(GLMClassifier(alpha=alpha), candidates.AS_GIVEN, "path"), 1e-3, 400)
        one.scores, one.n_judged = {0: Score(accuracy, loss, each, np.ones(400))}, 400
        entries.append(one)
    assert search.choose(entries) is entries[expected]


@pytest.mark.parametrize("objective", ["accuracy", "log_loss"])
@pytest.mark.parametrize(("worse", "n_going_on"), [(0.3, 1), (0.005, 2)])
def test_no_linear_model_goes_on_that_is_clearly_worse_than_generated_features(objective, worse, n_going_on):
    search = Search(objective, Labelled({}, np.arange(400) % 2), np.arange(2), time.perf_counter() + 60.0)
    tried = []
    for number, noise in enumerate(np.random.default_rng(0).standard_normal((3, 400))):
        one = Entry(
            candidates.Candidate(GLMClassifier(), candidates.AS_GIVEN, kind=None if number else WAVES), 1e-3, 400
        )
        losses = 0.3 + number * worse + 0.5 * (noise - noise.mean())
        one.scores, one.n_judged = {0: Score(0.9 - number * worse, losses.mean(), losses, np.ones(400))}, 400
        tried.append(one)
    assert search.ranking.going_on(tried) == tried[:n_going_on]


def test_noise_is_taken_for_evidence_as_rarely_where_rows_weigh_differently():
    """By more than a standard error in a sixth of the cases; without regard to weights in more than a quarter."""
    rng, wrong = np.random.default_rng(0), []
    for _ in range(1000):
        weights, entries = np.exp(rng.standard_normal(400)), []
        for _ in range(2):
            losses = rng.standard_normal(400)
            one = Entry(candidates.Candidate(GLMClassifier(), candidates.AS_GIVEN), 1e-3, 400)
            one.scores = {0: Score(0.8, float(np.average(losses, weights=weights)), losses, weights)}
            entries.append(one)
        wrong.append(entries[0].has_more_loss(entries[1]))
    assert 0.11 < np.mean(wrong) < 0.22


def test_of_a_path_that_goes_on_one_makes_room_for_another_scaling():
    search = Search("accuracy", Labelled({}, np.arange(400) % 2), np.arange(2), time.perf_counter() + 60.0)

    def judged(scaling, accuracy):
        one = Entry(candidates.Candidate(GLMClassifier(), scaling, scaling), 1e-3, 400)
        one.scores, one.n_judged = {0: Score(accuracy, 0.3, np.full(400, 0.3), np.ones(400))}, 400
        return one

    path = [judged("of one size", 0.9 - 0.001 * place) for place in range(9)]
    for accuracy, goes_on in ((0.85, True), (0.5, False)):
        other = [judged(candidates.AS_GIVEN, accuracy - 0.001 * place) for place in range(3)]
        assert search.ranking.going_on([*path, *other]) == ([*path[:5], other[0]] if goes_on else path[:6])
    assert search.ranking.going_on(path[:4]) == path[:2]


@pytest.mark.parametrize(
    ("seconds", "is_late", "expected", "sizes"),
    [
        ((1e-3, 1e-3), False, 1, [100, 300]),
        ((1e-3, 1e3), False, 0, [100]),  # there is no time for the best
        ((1e3, 1e-3), False, 0, [100, 300]),  # nor for the other
        ((1e-3, 1e-3), True, 0, [100, 300]),  # which is not known before
    ],
)
def test_scores_of_models_of_different_numbers_of_rows_are_not_compared(seconds, is_late, expected, sizes):
    """Whatever more rows make of the second, the first was better on as many."""
    X, y = np.zeros((400, 1)), np.arange(400) % 2
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.unique(y), time.perf_counter() + 60.0)
    other, best = [
        Entry(candidates.Candidate(GLMClassifier(), candidates.AS_GIVEN, family), 1e-3, 400)
        for family in ("other", "best")
    ]
    rows_of = []

    def tried(alive, parts, *_, **__):
        ((number, (learn, judge)),) = parts.items()
        rows_of.append(len(learn))
        found = [one for one in alive if not (number and is_late and one is best)]
        search.late |= {*alive} - {*found}
        for one in found:
            accuracy = 0.8 + 0.1 * number + (0.05 if one is (other if number else best) else 0.0)
            one.scores, one.n_judged = {number: Score(accuracy, 1.0, np.ones(100), np.ones(100))}, len(judge)
            one.n_rows, one.expected = len(learn), seconds[one is best]
        return found

    search._round = tried
    ranked = search.run([other, best], [{i: (np.arange(n), np.arange(300, 400))} for i, n in enumerate((100, 300))])
    assert search.choose(ranked) is (best, other)[expected]
    assert rows_of == sizes and len(ranked) == 2


def test_an_interruption_on_the_way_along_a_path_takes_what_was_tried():
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 3
    search = Search("accuracy", Labelled({candidates.AS_GIVEN: X}, y), np.arange(3), time.perf_counter() + 60.0)
    path = [
        Entry(candidates.Candidate(GLMClassifier(one, warm_start=True), candidates.AS_GIVEN, "path"), 1e-3, 60)
        for one in (1e-1, 1e-2)
    ]
    search.run(path, [{0: (np.arange(40), np.arange(40, 60))}])
    tried, fit = path[1].model, search.all_rows.fit

    def interrupted(model, scaling, index=None):
        found = fit(model, scaling, index)
        found.status_ = Status.INTERRUPTED
        return found

    at_once = search.all_rows.seconds_to_read
    search.all_rows = SimpleNamespace(n_rows=60, fit=interrupted, seconds_to_read=at_once)
    assert search.refit(path[1]) is tried and tried.status_ is Status.INTERRUPTED


CLASSIFIERS = [name for name in ESTIMATORS if name.endswith(("Classifier", "CV"))]
OF_ONE_CLASS_A_ROW = ["BoundMajorizationClassifier"]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        *itertools.product(CLASSIFIERS, ["two", "three"]),
        *((name, "several") for name in CLASSIFIERS if name not in OF_ONE_CLASS_A_ROW),
    ],
)
def test_labels_and_probabilities_of_one_look_are_those_of_two(name, labels):
    X, codes, _ = rows()
    y = {"two": codes > 0, "three": codes, "several": np.stack([codes == 0, codes > 0], axis=1).astype(int)}[labels]
    options = {"loss": "logistic"} if name in ("PegasosClassifier", "SDCAClassifier") else {}
    model = getattr(manyclass, name)(**ESTIMATORS[name], **options).fit(X, y)
    predicted, P = model._labels_and_probabilities(X)
    np.testing.assert_array_equal(predicted, model.predict(X))
    np.testing.assert_allclose(P, model.predict_proba(X), rtol=1e-12)


def test_each_model_is_asked_for_its_scores_once(monkeypatch):
    X, codes, _ = rows()
    model, asked = GLMClassifier().fit(X, codes), []
    scores = GLMClassifier._scores
    monkeypatch.setattr(GLMClassifier, "_scores", lambda self, given: asked.append(given) or scores(self, given))
    found = score(model, X, codes, model.classes_)
    assert len(asked) == 1
    assert found.accuracy == model.score(X, codes)
    assert found.log_loss == pytest.approx(log_loss(codes, model.predict_proba(X)))


def test_of_few_rows_that_tell_nothing_the_frequent_class_is_predicted(few):
    scores = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = sp.csr_array(rng.standard_normal((1060, 60))), (np.arange(1060) % 10 < 3).astype(int)
        scores.append(AutoClassifier(random_state=0).fit(X[:60], y[:60]).score(X[60:], y[60:]))
    assert np.mean(scores) > 0.7 - 0.03


@pytest.mark.parametrize(
    ("n_rows", "objective", "tries"), [(5000, "accuracy", False), (900, "log_loss", True), (300, "accuracy", True)]
)
def test_nothing_is_generated_where_many_rows_leave_a_linear_model_without_errors(few, n_rows, objective, tries):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, n_rows)
    X = 8.0 * np.eye(4)[y] + rng.standard_normal((n_rows, 4))
    X[0] = 8.0 * np.eye(4)[(y[0] + 1) % 4]  # one of these may be anything
    model = AutoClassifier(objective, random_state=0).fit(X, y)
    assert ("StagewiseClassifier" in {one["estimator"] for one in model.leaderboard_}) == tries
    assert any("next to no error" in sentence for sentence in model.why_) != tries
    assert model.score(X, y) > 0.99


def fitted_again(model, X, y):
    """By the parameters of the choice, along the path of penalties that it was fitted along."""
    again = clone(model.best_estimator_)
    one = again[-1] if hasattr(again, "steps") else again
    for alpha in model.best_path_:
        one.set_params(alpha=alpha, warm_start=True)
        again.fit(X, y)
    one.set_params(**model.best_params_)
    if model.best_path_:
        one.set_params(warm_start=True)
    return again.fit(X, y)


def test_the_choice_is_an_ordinary_estimator_with_its_parameters(few):
    X, y = load_wine(return_X_y=True)
    model = AutoClassifier().fit(X, y)
    chosen = model.best_estimator_[-1] if hasattr(model.best_estimator_, "steps") else model.best_estimator_
    assert chosen.get_params(deep=False) == model.best_params_
    assert chosen.max_time is None and not getattr(chosen, "warm_start", False)
    again = fitted_again(model, X, y)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-12)
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(model, method)(X), getattr(model.best_estimator_, method)(X))
    best = model.predict(X, top_k=2)
    assert best.shape == (len(X), 2)
    np.testing.assert_array_equal(best[:, 0], model.predict(X))


def test_the_choice_is_what_its_parameters_give_by_themselves(few, rng):
    X = rng.standard_normal((150, 300))  # of more columns than rows, so that many models are as good on the rows
    y = np.argmax(X[:, :5] + rng.standard_normal((150, 5)), axis=1)
    model = AutoClassifier().fit(X, y)
    best, again = model.best_estimator_, fitted_again(model, X, y)
    np.testing.assert_allclose(best.decision_function(X), again.decision_function(X), rtol=1e-10)


def words(rng, n):
    """Rows with one of some, most often the first ones, in each of four places."""
    shares = [1.0 / np.arange(1, size + 1) ** 1.1 for size in (500, 80, 50, 12)]
    drawn = [rng.choice(len(one), n, p=one / one.sum()) for one in shares]
    X = sp.hstack([sp.eye_array(len(one), format="csr")[held] for one, held in zip(shares, drawn, strict=True)])
    return sp.csr_array(X), X @ (0.8 * rng.standard_normal(X.shape[1]))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_rare_class_is_told_as_well_as_by_logistic_regression(seed):
    """A constant model is within hundredths of what a fair coin leaves to be told."""
    rng = np.random.default_rng(seed)
    X, scores = words(rng, 60_000)
    y = (rng.random(60_000) < expit(scores - 7.0)).astype(int)
    X, X_test, y, y_test = X[:30_000], X[30_000:], y[:30_000], y[30_000:]
    model, peer = AutoClassifier(), LogisticRegression(max_iter=1000)
    ours, theirs = (log_loss(y_test, one.fit(X, y).predict_proba(X_test)[:, 1]) for one in (model, peer))
    shares = log_loss(y_test, np.full(len(y_test), y.mean()))
    assert shares - ours > 0.75 * (shares - theirs) > 0.0


@pytest.mark.parametrize(
    ("shares", "expected"), [([0.5, 0.5], 1.0), ([0.2] * 5, 1.0), ([0.99, 0.01], 0.0808), ([0.98, 0.01, 0.01], 0.102)]
)
def test_gaps_are_of_what_the_shares_of_classes_leave_to_be_told(shares, expected):
    codes = np.repeat(np.arange(len(shares)), np.round(100 * np.array(shares)).astype(int))
    assert candidates.evenness(codes) == pytest.approx(expected, rel=5e-3)
    assert candidates.evenness(None) == 1.0


@pytest.mark.parametrize(
    ("n_rare", "seconds", "first"),
    [(20_000, 1e6, 2000), (400, 1e6, 8000), (60, 1e6, 32_000), (3, 1e6, 32_000), (3, 100.0, 32_000), (3, 60.0, 8000)],
)
def test_the_first_rows_hold_some_outside_the_largest_class(n_rare, seconds, first):
    """Or are all that are not held out; and fewer, where a tenth of a millisecond for each is more than there is."""
    y = np.arange(40_000) < n_rare
    X = np.random.default_rng(0).standard_normal((40_000, 2))
    rounds = splits(as_rows(X), encode(y, ""), 0.2, np.random.default_rng(0))
    found = Search("accuracy", Labelled({}, y), np.arange(2), time.perf_counter() + seconds)
    entries = [Entry(candidates.Candidate(GLMClassifier(), candidates.AS_GIVEN), 1.0, 10_000) for _ in range(5)]
    enough = enough_rows(y.astype(int), 40_000, False)
    (learn, _), *_ = found.affordable(rounds, entries, enough)[0].values()
    assert len(learn) == first
    assert enough_rows(y.astype(int), 40_000, True) == max(enough, 2500.0)
    assert enough_rows(None, 40_000, True) == 2500.0
    assert enough_rows(None, 40_000, False) == 0.0
    assert found.affordable([], entries, 1e9) == []
