"""What judges penalties: scores that count, that folds have not, that take no weights; and classes that folds lack."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut

from manyclass import GLMClassifier, GLMClassifierCV
from manyclass.estimators.classifier import largest
from manyclass.fit.folds import mean_scores, without_score

IRIS = load_iris(return_X_y=True)


def test_a_count_of_errors_does_not_end_the_search_before_the_log_loss_does():
    rng, k = np.random.default_rng(0), 150
    means, y = rng.standard_normal((k, 24)), np.repeat(np.arange(k), 3)
    X = means[y] + 0.6 * rng.standard_normal((len(y), 24))
    wanted = rng.integers(0, k, 2000)
    new = means[wanted] + 0.6 * rng.standard_normal((2000, 24))
    *models, usual = (GLMClassifierCV(cv=3, scoring=one).fit(X, y) for one in ("accuracy", "f1_macro", None))
    assert min(model.score(new, wanted) for model in models) > usual.score(new, wanted) - 0.01


@pytest.mark.parametrize("seed", range(3))
def test_a_class_that_a_fold_lacks_is_what_other_folds_say_of_it(seed):
    rng, n, d, k = np.random.default_rng(seed), 100, 300, 20
    means = 0.8 * rng.standard_normal((k, d))
    y = np.r_[0, np.tile(np.arange(1, k), 6)[: n - 1]]  # class 0 has a single row
    X = means[y] + rng.standard_normal((n, d))
    wanted = rng.integers(0, k, 3000)
    new = means[wanted] + rng.standard_normal((3000, d))
    model = GLMClassifierCV().fit(X, y)
    alone = GLMClassifier(model.alpha_).fit(X, y)
    losses = [log_loss(wanted, one.predict_proba(new)) for one in (model, alone)]
    assert losses[0] < 0.05 and losses[0] < 2.0 * losses[1] + 0.02
    assert np.mean(model.predict(new[wanted == 0]) == 0) > 0.9


def test_folds_that_a_score_is_not_defined_on_do_not_judge():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 4, 400), rng.integers(0, 5, 400)
    X = 2 * rng.standard_normal((4, 8))[y] + rng.standard_normal((400, 8))
    kept = ~((groups == 0) & (y == 3))  # group 0 has no class 3
    X, y, groups = X[kept], y[kept], groups[kept]
    splits = list(GroupKFold(5).split(X, y, groups))
    with pytest.warns(UserWarning) as caught:
        model = GLMClassifierCV(cv=splits, scoring="roc_auc_ovr").fit(X, y)
    assert any("no number on 1 of 5 folds" in str(one.message) for one in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        means = np.nanmean(model.scores_, axis=0)
    assert model.best_score_ == pytest.approx(np.nanmax(means)) and model.best_score_ > 0.99
    assert model.alpha_ == model.alphas_[np.nanargmax(means)]
    for loss, scoring in (("softmax", "roc_auc_ovr"), ("squared", make_scorer(lambda y, predicted: np.nan))):
        with warnings.catch_warnings(), pytest.raises(ValueError, match="no number on any fold"):
            warnings.simplefilter("ignore")
            GLMClassifierCV([1.0], cv=LeaveOneOut(), scoring=scoring, loss=loss).fit(X[:40], y[:40])


@pytest.mark.parametrize("scoring", [make_scorer(lambda y, predicted: np.mean(y == predicted)), "roc_auc_ovo"])
def test_scorers_that_take_no_weights_are_given_none(scoring):
    X, y = IRIS
    model = GLMClassifierCV([0.1, 0.01], scoring=scoring, class_weight="balanced", cv=KFold(3, shuffle=True)).fit(X, y)
    model.fit(X, y, np.linspace(0.5, 2.0, len(y)))
    assert 0.9 < model.best_score_ <= 1.0


@pytest.mark.parametrize("scoring", ["neg_brier_score", "d2_log_loss_score", "d2_brier_score"])
@pytest.mark.filterwarnings("ignore:The y_prob values")
def test_scores_of_several_labels_are_those_of_a_grid_search(scoring):
    X, Y = make_multilabel_classification(200, 8, n_classes=4, random_state=0)
    ours = GLMClassifierCV([0.1, 0.01], scoring=scoring, cv=KFold(3), tol=1e-8).fit(X, Y)
    theirs = GridSearchCV(GLMClassifier(tol=1e-8), {"alpha": [0.1, 0.01]}, scoring=scoring, cv=KFold(3)).fit(X, Y)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cv": tuple(part.tolist() for part in IRIS)}, r"tuple \(X, y\) of two arrays"),
        ({"cv": [(np.arange(9), np.arange(9), np.arange(3))]}, r"no pair of \(train, test\)"),
        ({"cv": GroupKFold(3)}, r"list\(splitter.split\(X, y, groups\)\)"),
        ({"alphas": ["a"]}, "must be a number of penalties"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(options, told):
    with pytest.raises(ValueError, match=told):
        GLMClassifierCV(**options).fit(*IRIS)


def test_counts_and_shares_of_other_kinds_are_refused():
    model = GLMClassifierCV([0.1], leave_one_out=True).fit(*IRIS)
    with pytest.raises(ValueError, match="top_k"):
        model.predict(IRIS[0], top_k=2.0)
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        model.predict_set(IRIS[0], coverage="90%")


def test_a_penalty_at_which_some_folds_have_no_score_takes_none_of_them_away():
    nan = np.nan
    scores = np.array([[nan, 0.7, 0.9, nan], [0.5, 0.6, 0.9, nan], [nan, nan, nan, nan]])
    assert without_score(scores).tolist() == [False, False, True]
    np.testing.assert_allclose(mean_scores(scores), [nan, 0.65, 0.9, nan])
    np.testing.assert_array_equal(mean_scores(np.array([[nan, 0.7], [0.5, nan]])), [0.5, 0.7])
    assert not without_score(np.full((2, 2), nan)).any()


@pytest.mark.parametrize(("n_classes", "n"), [(2, 1), (3, 3), (40, 5), (40, 30), (3000, 7)])
def test_the_best_of_many_classes_are_those_that_sorting_all_finds(n_classes, n):
    scores = np.random.default_rng(n).standard_normal((50, n_classes)).round(1)  # many are equal
    kept = scores.copy()
    np.testing.assert_array_equal(largest(scores, n), np.argsort(-scores, axis=1, kind="stable")[:, :n])
    np.testing.assert_array_equal(scores, kept)


@pytest.mark.parametrize("shape", [(60, 150), (150, 60)])
def test_a_path_of_least_squares_whose_matrix_does_not_fit_is_descended_or_refused(shape, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=shape[0])
    X = rng.standard_normal((3, shape[1]))[y] + 3.0 * rng.standard_normal(shape)
    exact = GLMClassifierCV([1.0, 10.0], loss="squared", cv=3, tol=1e-6).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr("manyclass.estimators.glm_cv.room_for", lambda limit: 1e4)
        patch.setattr("manyclass.estimators.glm_cv.RidgeSearch", None)
        other = GLMClassifierCV([1.0, 10.0], loss="squared", cv=3, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(other.scores_, exact.scores_, rtol=1e-3)
    monkeypatch.setattr("manyclass.data.memory.free_memory", lambda: 1e5)
    with pytest.raises(MemoryError, match="use GLMClassifier"):
        GLMClassifierCV([1.0, 10.0], loss="squared", cv="gcv").fit(X, y)
