"""What GLMClassifierCV finds, against the fits that it spares."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV, RidgeClassifierCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_score, train_test_split
from sklearn.preprocessing import scale

from manyclass import GLMClassifier, GLMClassifierCV
from manyclass.choice import descent
from manyclass.choice.together import Together
from manyclass.fit import Status
from manyclass.fit.folds import TooFewRowsError
from tests.problems import rows

ALPHAS = np.logspace(1, -3, 5)
LOSSES = ["softmax", "logistic", "squared", "sparsemax"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, train_size=0.5, random_state=1)


def columns(fitted):
    return np.hstack([fitted.coef_, fitted.intercept_[:, None]])


def assert_same_rule(coef, expected, loss):
    if len(coef) > 1 and loss in ("softmax", "sparsemax"):  # which do not see a shift of all scores
        coef, expected = coef - coef.mean(axis=0), expected - expected.mean(axis=0)
    np.testing.assert_allclose(coef, expected, atol=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_path_is_that_of_separate_fits(loss, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes] / X.std(0), y[y < n_classes]
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    path = GLMClassifierCV(ALPHAS, loss=loss, cv=splits, scoring="accuracy", tol=1e-10).fit(X, y)
    reached = ~np.isnan(path.scores_[0])
    for fold, (train, test) in enumerate(splits):
        for place in np.flatnonzero(reached):
            one = GLMClassifier(path.alphas_[place], loss=loss, tol=1e-10).fit(X[train], y[train])
            coef = path.coefs_paths_[fold, place]
            coef = coef[1:] - coef[:1] if len(coef) == 2 else coef
            assert_same_rule(coef, columns(one), loss)
            assert path.scores_[fold, place] == pytest.approx(one.score(X[test], y[test]))
    final = GLMClassifier(path.alpha_, loss=loss, tol=1e-10).fit(X, y)
    assert_same_rule(columns(path), columns(final), loss)


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["rows-shared", "rows-copied"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_whose_rows_are_copied_and_those_that_share_them_are_separate_fits(share, sparse, weighted, monkeypatch):
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: False))
    monkeypatch.setattr(descent, "COPIES_SHARE", share)
    X, y, s = rows(5, n=60, d=4)
    s = s if weighted else np.ones(len(s))
    data = sp.csr_array(X) if sparse else X
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    path = GLMClassifierCV(ALPHAS, cv=splits, tol=1e-10).fit(data, y, s)
    for fold, (train, _) in enumerate(splits):
        for place in np.flatnonzero(~np.isnan(path.scores_[fold])):
            one = GLMClassifier(path.alphas_[place], tol=1e-10).fit(X[train], y[train], s[train])
            assert_same_rule(path.coefs_paths_[fold, place], columns(one), "softmax")


@pytest.mark.parametrize("shape", [(30, 6), (12, 20)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_leaving_one_out_of_least_squares_is_n_refits(shape, fit_intercept):
    X, y, s = rows(3, *shape)
    options = {"loss": "squared", "fit_intercept": fit_intercept}
    model = GLMClassifierCV(ALPHAS, leave_one_out=True, **options)
    model.fit(X, y, s)
    S = s.sum()
    for place, alpha in enumerate(model.alphas_):
        right = 0.0
        for i in range(len(X)):
            less = s.copy()
            less[i] -= min(s[i], 1.0)
            one = GLMClassifier(alpha * S / less.sum(), tol=1e-12, **options).fit(X, y, less)
            right += s[i] * (one.predict(X[i : i + 1])[0] == y[i])
        assert model.scores_[0, place] == pytest.approx(right / S, abs=1e-9)
    assert model.loo_score_ == pytest.approx(model.best_score_)


def test_generalised_cross_validation_and_leave_one_out_agree_with_ridge_classifier_cv(digits):
    X, _, y, _ = digits
    theirs = RidgeClassifierCV(np.logspace(4, -1, 6), scoring="accuracy").fit(X, y)
    ours = GLMClassifierCV(np.logspace(4, -1, 6) / len(y), loss="squared").fit(X, y)
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    assert ours.alpha_ * len(y) == pytest.approx(theirs.alpha_)
    gcv = GLMClassifierCV(30, loss="squared", cv="gcv").fit(X, y)
    loo = GLMClassifierCV(30, loss="squared", alpha_per_output=True).fit(X, y)
    assert gcv.scores_.max() == pytest.approx(loo.scores_.mean(axis=2).max(), rel=0.02)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [True, False])
def test_moments_that_are_subtracted_are_those_of_refits(dtype, weighted):
    X, y, s = rows(4, n=80, d=7)
    X, s = (X + 50.0).astype(dtype), s if weighted else np.ones(len(s))
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = GLMClassifierCV(ALPHAS, loss="squared", cv=splits).fit(X, y, s)
    for fold, (train, _) in enumerate(splits):
        for place, alpha in enumerate(model.alphas_):
            one = GLMClassifier(alpha, loss="squared", tol=1e-12).fit(X[train].astype(float), y[train], s[train])
            np.testing.assert_allclose(
                model.coefs_paths_[fold, place], columns(one), rtol=1e-6 if dtype is np.float64 else 2e-2, atol=1e-4
            )


def test_each_output_may_have_its_own_penalty(digits):
    X, _, y, _ = digits
    for options in ({}, {"cv": 4}, {"cv": "gcv"}):
        model = GLMClassifierCV(8, loss="squared", alpha_per_output=True, **options).fit(X, y)
        assert model.alpha_.shape == model.best_score_.shape == (10,)
        assert model.scores_.shape[1:] == (8, 10)
        for j in (0, 6):
            alone = GLMClassifier(model.alpha_[j], loss="squared", tol=1e-12).fit(X, y)
            np.testing.assert_allclose(model.coef_[j], alone.coef_[j], atol=1e-6)
    several = GLMClassifierCV(8, loss="squared", alpha_per_output=True, leave_one_out=True).fit(X, y)
    assert several.predict_set(X[:5]).shape == (5, 10)


@pytest.mark.parametrize("cv", [5, "loo"])
@pytest.mark.parametrize("unit", [1e-15, 1e-18])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_tiny_float32_rows_are_fitted_to_the_tolerance(load, unit, cv):
    X, y = load(return_X_y=True)
    X = (X * unit).astype(np.float32)
    model = GLMClassifierCV(cv=cv).fit(X, y)
    assert model.status_ is Status.CONVERGED and model.duality_gap_ <= model.tol
    alone = GLMClassifier(model.alpha_).fit(X.astype(float), y)
    assert np.mean(alone.predict(X) == model.predict(X)) > 0.98


@pytest.mark.parametrize("loss", ["softmax", "squared"])
@pytest.mark.parametrize("cv", [3, "loo"])
def test_weights_are_repetitions_and_order_and_names_do_not_matter(loss, cv, rng):
    X, y = load_wine(return_X_y=True)
    X, repeat = (X / X.std(0))[::2], rng.integers(1, 3, len(y))[::2]
    y = y[::2]
    options = {"alphas": np.logspace(1, -2, 4), "loss": loss, "cv": cv, "tol": 1e-8}
    weighted = GLMClassifierCV(**options).fit(X, y, repeat)
    order = rng.permutation(int(repeat.sum()))
    X_many, y_many = np.repeat(X, repeat, axis=0)[order], np.array(list("cab"))[np.repeat(y, repeat)[order]]
    repeated = GLMClassifierCV(**options).fit(X_many, y_many)
    assert repeated.alpha_ == weighted.alpha_
    np.testing.assert_allclose(repeated.scores_, weighted.scores_, atol=1e-5)
    np.testing.assert_allclose(repeated.coef_[[2, 0, 1]], weighted.coef_, atol=1e-4)


def test_the_search_ends_when_the_score_has_turned_and_is_no_worse_than_scikit_learns(digits):
    X, X_test, y, y_test = digits
    ours = GLMClassifierCV(12).fit(X, y)
    assert np.isnan(ours.scores_[:, -1]).all() and not np.isnan(ours.scores_[:, 0]).any()
    assert ours.status_ is Status.CONVERGED and len(ours.history_) < 14
    theirs = LogisticRegressionCV(
        Cs=1 / (ours.alphas_[3:9] * len(y)), cv=3, scoring="neg_log_loss", l1_ratios=(0,), use_legacy_attributes=False,
        max_iter=300,
    ).fit(X, y)  # fmt: skip
    assert log_loss(y_test, ours.predict_proba(X_test)) <= log_loss(y_test, theirs.predict_proba(X_test)) + 0.01


def test_held_out_rows_splitters_and_scorers(digits):
    X, X_test, y, y_test = digits
    model = GLMClassifierCV(5, cv=(X_test, y_test), scoring="accuracy").fit(X, y)
    assert model.scores_.shape == (1, 5)
    assert model.score(X_test, y_test) == pytest.approx(model.best_score_, abs=0.01)
    few = X[:200], y[:200]
    for loss in ("softmax", "squared"):
        # No row that judges is within 0.01 of a tie, of which rounding would decide.
        splitter = ShuffleSplit(3, test_size=0.3, train_size=0.5, random_state=6)
        model = GLMClassifierCV([1e-2], loss=loss, cv=splitter, scoring="balanced_accuracy", tol=1e-9).fit(*few)
        expected = cross_val_score(
            GLMClassifier(1e-2, loss=loss, tol=1e-9), *few, cv=splitter, scoring="balanced_accuracy"
        )
        np.testing.assert_allclose(model.scores_[:, 0], expected, atol=1e-12)
    auc = GLMClassifierCV([1.0, 1e-2], loss="logistic", cv=3, scoring="roc_auc_ovr").fit(few[0], few[1] > 4)
    assert 0.5 < auc.best_score_ < 1.0


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_rows_that_a_split_names_twice_count_twice(loss, rng):
    X, y = load_wine(return_X_y=True)
    X, drawn = X / X.std(0), rng.integers(0, len(y), len(y))
    left = np.setdiff1d(np.arange(len(y)), drawn)
    model = GLMClassifierCV([0.1], loss=loss, cv=[(drawn, left)], tol=1e-9).fit(X, y)
    one = GLMClassifier(0.1, loss=loss, tol=1e-9).fit(X[drawn], y[drawn])
    np.testing.assert_allclose(model.coefs_paths_[0, 0, :, :-1], one.coef_, atol=1e-5)


@pytest.mark.parametrize("split", [([0, 150], [1]), ([0.5], [1]), ([True, False], [1]), ([[0]], [1]), ([-121], [1])])
def test_splits_that_name_no_rows_are_refused(split):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="row numbers from 0 to 119, or 120 truth values"):
        GLMClassifierCV(cv=[split]).fit(X[:120], y[:120])


def test_rows_held_out_have_labels_of_the_same_kind():
    X, Y = make_multilabel_classification(100, n_classes=3, random_state=0)
    for y, judging in ((Y, Y[:, 0]), (Y[:, 0] + Y[:, 1], Y)):
        with pytest.raises(ValueError, match="of the same kind"):
            GLMClassifierCV(cv=(X, judging)).fit(X, y)


def test_wide_and_sparse_rows_are_fitted_like_dense_ones(rng):
    X = sp.random_array((40, 90), density=0.2, rng=rng, format="csr")
    y = np.argmax(X @ rng.standard_normal((90, 3)), axis=1)
    for options in ({"loss": "squared"}, {"loss": "squared", "cv": 3}, {"cv": 3}):
        sparse = GLMClassifierCV(4, tol=1e-7, **options).fit(X, y)
        dense = GLMClassifierCV(4, tol=1e-7, **options).fit(X.toarray(), y)
        np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=2e-2)  # fits of a path end when they settle
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)


def test_the_best_labels_in_order(digits):
    X, _, y, _ = digits
    model = GLMClassifierCV([1e-2], cv=2).fit(X, np.array(list("abcdefghij"))[y])
    best = model.predict(X, top_k=3)
    assert best.shape == (len(X), 3)
    np.testing.assert_array_equal(best[:, 0], model.predict(X))
    for other in (11, 0, 2.5, "a"):
        with pytest.raises(ValueError, match="from 1 to that"):
            model.predict(X, top_k=other)
    two = GLMClassifierCV([1e-2], cv=2).fit(X, y > 4)
    np.testing.assert_array_equal(two.predict(X, top_k=2)[:, 1], ~two.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": "gcv"}, "for loss='squared'"),
        ({"alpha_per_output": True}, "for loss='squared'"),
        ({"loss": "squared", "cv": "gcv", "scoring": "accuracy"}, "goes by the squared error"),
        ({"loss": "squared", "calibrate": "temperature"}, "nothing to calibrate"),
        ({"loss": "sparsemax", "leave_one_out": True}, "use loss='softmax', or folds"),
        ({"alphas": [1.0, 0.0]}, "use GLMClassifier for alpha=0"),
        ({"cv": 140}, "use fewer folds"),
        ({"cv": []}, "holds no fold"),
    ],
)
def test_what_does_not_go_together_is_said(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        GLMClassifierCV(**options).fit(X[:120], y[:120])


@pytest.mark.parametrize("loss", ["softmax", "squared"])
@pytest.mark.parametrize("fits_light", [True, False])
def test_folds_whose_rows_weigh_nothing_are_refused(loss, fits_light):
    X, y = np.random.default_rng(0).standard_normal((30, 2)), np.arange(30) % 2
    light, others = np.arange(10), np.arange(10, 30)
    split = (light, others) if fits_light else (others, light)
    with pytest.raises(TooFewRowsError, match="rows of positive weight"):
        GLMClassifierCV(cv=[split], loss=loss).fit(X, y, np.where(np.arange(30) < 10, 0.0, 1.0))


def test_nothing_is_said_of_units_where_penalties_were_given(recwarn):
    X = np.random.default_rng(0).standard_normal((300, 20)) * np.logspace(-8, 8, 20)
    GLMClassifierCV([1e12, 1e10], loss="squared").fit(X, X[:, -1] > 0)
    assert not [one for one in recwarn if one.category is UserWarning]


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr"])
def test_scorers_of_probabilities_are_refused_where_there_are_none(scoring):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(AttributeError, match=r"use loss='softmax' \(or 'logistic'\), or put CalibratedClassifierCV"):
        GLMClassifierCV(loss="squared", scoring=scoring).fit(X, y)


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_no_time_leaves_a_model(loss):
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning):
        model = GLMClassifierCV(loss=loss, max_time=1e-9).fit(X, y)
    assert model.predict(X).shape == y.shape and model.status_ is Status.MAX_TIME


def test_a_held_out_set_may_be_of_any_namespace():
    torch = pytest.importorskip("torch")
    X, y = load_digits(return_X_y=True)
    held, given = (torch.tensor(X[1200:]), torch.tensor(y[1200:])), (torch.tensor(X[:1200]), torch.tensor(y[:1200]))
    there = GLMClassifierCV([1.0, 0.1], cv=held, tol=1e-5).fit(*given)
    here = GLMClassifierCV([1.0, 0.1], cv=(X[1200:], y[1200:]), tol=1e-5).fit(X[:1200], y[:1200])
    assert there.alpha_ == pytest.approx(here.alpha_)
    np.testing.assert_allclose(there.scores_, here.scores_, rtol=1e-3)  # a device may take other steps


def test_a_callable_that_would_be_given_scores_for_rows_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"use make_scorer"):
        GLMClassifierCV(scoring=lambda estimator, X, y: estimator.score(X, y)).fit(X, y)


def test_without_time_to_compare_the_middle_penalty_is_fitted_to_all_rows(digits, monkeypatch):
    X, _, y, _ = digits
    monkeypatch.setattr("manyclass.choice.descent.seconds_of_path", lambda *_: 100.0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = GLMClassifierCV(max_time=30.0).fit(X, y)
    assert model.status_ is Status.MAX_TIME and model.alpha_ == model.alphas_[len(model.alphas_) // 2]
    assert np.isnan(model.scores_).all() and np.isnan(model.best_score_) and model.score(X, y) > 0.9
    assert model.duality_gap_ <= 1e-3


def test_with_time_for_some_of_the_folds_these_judge_from_the_middle_penalty_on(digits, monkeypatch):
    X, _, y, _ = digits
    monkeypatch.setattr("manyclass.choice.descent.seconds_of_path", lambda _, *counts: 3.0 * np.prod(counts))
    model = GLMClassifierCV(max_time=30.0).fit(X, y)  # 9 s for three penalties of a fold
    is_tried = np.isfinite(model.scores_)
    assert is_tried.shape == (2, 10) and not is_tried[:, :5].any() and is_tried[:, 5:7].all()
    assert model.coefs_paths_.shape[:2] == (2, 10)
    assert model.score(X, y) > 0.9


def test_a_path_that_time_ends_says_so_and_its_best_penalty_is_fitted_to_all_rows(digits, monkeypatch):
    X, _, y, _ = digits
    monkeypatch.setattr("manyclass.choice.descent.stride", lambda to_go, *_: int(to_go > 7))
    model = GLMClassifierCV(max_time=600.0).fit(X, y)
    is_tried = np.isfinite(model.scores_[0])
    assert is_tried.sum() == 3 and model.status_ is Status.MAX_TIME
    assert model.duality_gap_ <= 1e-3


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_columns_that_every_penalty_outweighs_are_told_of(loss, recwarn):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 450)
    X = rng.standard_normal((4, 20))[y] + rng.standard_normal((450, 20))
    GLMClassifierCV(loss=loss).fit(X, y)
    GLMClassifierCV(loss=loss).fit(load_wine().data, load_wine().target)
    pixels = X * np.where(rng.random(X.shape) < np.where(np.arange(20) < 2, 0.01, 1.0), 1.0, 0.0)  # two hardly ever on
    GLMClassifierCV(loss=loss).fit(np.hstack([pixels, 1e-3 * pixels[:, :2]]), y)
    assert not [one for one in recwarn if one.category is UserWarning]
    with pytest.warns(UserWarning, match="by a factor of 1e.16: standardise them"):
        GLMClassifierCV(loss=loss).fit(X * np.logspace(-8, 8, 20), y)


def test_folds_without_a_class_leave_a_model_of_all_rows_that_is_the_minimum():
    X, y = load_wine(return_X_y=True)
    X, cv = scale(X), KFold(3)  # sorted by class: each fold lacks one
    model = GLMClassifierCV(cv=cv, tol=1e-3).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.duality_gap_ <= 1e-3
    assert model.score(X, y) > 0.98


@pytest.mark.parametrize("n_labels", [2, 3])
def test_scorers_are_given_the_probabilities_of_every_label(n_labels):
    """Two labels are no two classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    Y = (X[:, :n_labels] + rng.standard_normal((300, n_labels)) > 0).astype(int)
    held_out = X[200:], Y[200:]
    model = GLMClassifierCV([1e-2], cv=held_out, scoring="roc_auc").fit(X[:200], Y[:200])
    expected = roc_auc_score(Y[200:], model.predict_proba(X[200:]))
    assert model.best_score_ == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_a_column_far_larger_than_the_others_does_not_set_the_penalties_of_all(loss):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((2000, 5)), 1.6e9 + rng.uniform(0.0, 1e8, 2000)])  # a date, in seconds
    y = X[:, 0] + X[:, 1] > 0
    model = GLMClassifierCV(loss=loss).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.95


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_columns_that_hardly_vary_do_not_take_the_largest_penalties_away(loss):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 60))
    y = Z[:, :5].sum(axis=1) + 1.5 * rng.standard_normal(200) > 0
    X = np.hstack([Z, 1e-6 * rng.standard_normal((200, 100))])
    model, alone = (GLMClassifierCV(loss=loss).fit(rows, y) for rows in (X, Z))
    assert model.alphas_[:10] == pytest.approx(alone.alphas_, rel=1e-6)
    assert model.best_score_ > alone.best_score_ - 0.01


def test_a_few_outlying_cells_do_not_decide_the_penalty():
    """The log loss of a row has a limit, as scikit-learn's has."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2600, 10))
        y = (X @ rng.standard_normal(10) + 0.3 * rng.standard_normal(2600) > 0).astype(int)
        X[rng.choice(2600, 26, replace=False), rng.integers(10, size=26)] = 1e4 * rng.standard_normal(26)
        assert GLMClassifierCV().fit(X[:600], y[:600]).score(X[600:], y[600:]) > 0.75
