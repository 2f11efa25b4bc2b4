"""The same models as scikit-learn's, from the same parameters."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context, datasets
from sklearn import linear_model as theirs
from sklearn.base import clone
from sklearn.callback import ScoringMonitor
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold, LeaveOneOut, cross_val_score

from manyclass import StagewiseClassifier
from manyclass import linear_model as ours

NAMES = ours.__all__
LOADERS = {name: getattr(datasets, f"load_{name}") for name in ("digits", "iris", "wine", "breast_cancer")}


def real(name):
    X, y = LOADERS[name](return_X_y=True)
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-3), y


def random_problem(seed):
    """Of a random shape, condition, number of classes, weights and options."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(20, 120)), int(rng.integers(1, 30)), int(rng.integers(2, 6))
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(0, 1, d)) + rng.normal(0, 1, d)
    y = np.argmax(X @ rng.standard_normal((d, k)) + 2 * rng.gumbel(size=(n, k)), axis=1)
    y[:k] = np.arange(k)
    labels = np.array(["a", "b", "c", "d", "e"])[y] if seed % 3 else y
    weight = rng.integers(0, 4, n) + (0.5 if seed % 2 else 1.0) if seed % 4 else None
    options = {
        "fit_intercept": bool(seed % 5),
        "class_weight": [None, "balanced", {label: 1.0 + i for i, label in enumerate(np.unique(labels))}][seed % 3],
    }
    return X, labels, weight, options


def assert_close(found, expected, rtol=1e-4):
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=rtol * scale, rtol=0)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=10 * rtol * scale, rtol=0)
    assert found.coef_.shape == expected.coef_.shape
    if not isinstance(expected.intercept_, float):  # which a ridge classifier without an intercept has
        assert found.intercept_.shape == expected.intercept_.shape
    np.testing.assert_array_equal(found.classes_, expected.classes_)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_their_order_and_defaults_are_theirs(name):
    expected = inspect.signature(getattr(theirs, name)).parameters
    found = inspect.signature(getattr(ours, name)).parameters
    assert [(p.name, p.kind, p.default) for p in found.values()] == [
        (p.name, p.kind, p.default) for p in expected.values()
    ]
    assert getattr(ours, name)().get_params() == getattr(theirs, name)().get_params()


@pytest.mark.parametrize(
    ("name", "C"), [(name, C) for name in LOADERS for C in (0.01, 1.0, 100.0) if (name, C) != ("digits", 100.0)]
)
def test_logistic_regression_on_real_data(name, C):
    X, y = real(name)
    expected = theirs.LogisticRegression(C=C, solver="newton-cg", tol=1e-8, max_iter=2000).fit(X, y)
    found = ours.LogisticRegression(C=C, tol=1e-8, max_iter=1000).fit(X, y)
    assert_close(found, expected)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-4)
    assert found.n_iter_.shape == (1,) and found.duality_gap_ < 1e-10


@pytest.mark.parametrize("seed", range(20))
def test_logistic_regression_on_random_shapes(seed):
    X, y, weight, options = random_problem(seed)
    expected = theirs.LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=500, **options)
    found = ours.LogisticRegression(tol=1e-9, **options).fit(sp.csr_array(X) if seed % 2 else X, y, weight)
    assert_close(found, expected.fit(X, y, weight))


@pytest.mark.parametrize("name", NAMES)
def test_a_number_is_the_weight_of_each_row(name):
    X, y, _, _ = random_problem(1)
    weight = np.full(len(y), 3.0)
    assert_close(getattr(ours, name)().fit(X, y, 3.0), getattr(ours, name)().fit(X, y, weight), rtol=1e-12)


def test_a_ridge_classifier_says_what_solved_it():
    X, y, _, _ = random_problem(1)
    model = ours.RidgeClassifier().fit(X, y)
    assert model.solver_ == model.choice_["solver"]
    assert not hasattr(ours.RidgeClassifier(), "solver_")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["RidgeClassifier", "RidgeClassifierCV"])
def test_ridge_classifiers_on_random_shapes(name, seed):
    X, y, weight, options = random_problem(seed)
    if weight is not None:
        options["class_weight"] = None  # theirs balances the rows, ours their weights
    expected = getattr(theirs, name)(**options).fit(X, y, weight)
    found = getattr(ours, name)(**options).fit(X, y, weight)
    assert_close(found, expected)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    if name == "RidgeClassifierCV":
        assert found.alpha_ == expected.alpha_


def test_without_a_penalty():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    y = np.argmax(X[:, :3] + 2 * rng.gumbel(size=(300, 3)), axis=1)
    expected = theirs.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(X, y)
    assert_close(ours.LogisticRegression(C=np.inf, tol=1e-8).fit(X, y), expected)
    assert_close(ours.LogisticRegression(penalty=None, tol=1e-8).fit(X, y), expected)


CV_OPTIONS = {
    "new": {"use_legacy_attributes": False, "l1_ratios": (0,), "scoring": "neg_log_loss"},
    "legacy": {"use_legacy_attributes": True, "l1_ratios": None, "scoring": "accuracy"},
    "legacy, ratios": {"use_legacy_attributes": True, "l1_ratios": [0.0], "scoring": "neg_brier_score"},
    "legacy, mean of the folds": {"use_legacy_attributes": True, "scoring": "accuracy", "refit": False},
    "mean of the folds": {"use_legacy_attributes": False, "l1_ratios": (0,), "scoring": None, "refit": False},
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("options", CV_OPTIONS.values(), ids=CV_OPTIONS)
@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_logistic_regression_cv(name, options):
    X, y = real(name)
    weight = np.random.default_rng(0).random(len(y)) + 0.1
    options = {"Cs": [1.0, 0.01, 10.0], "cv": 3, "class_weight": "balanced", **options}
    expected = theirs.LogisticRegressionCV(solver="newton-cg", tol=1e-8, max_iter=2000, **options).fit(X, y, weight)
    found = ours.LogisticRegressionCV(tol=1e-8, **options).fit(X, y, weight)
    assert_close(found, expected, rtol=1e-3 if options.get("refit") is False else 1e-4)
    for attribute in ("C_", "Cs_", "l1_ratio_", "l1_ratios_", "scores_", "coefs_paths_", "n_iter_"):
        one, other = getattr(found, attribute), getattr(expected, attribute)
        assert type(one) is type(other)
        if isinstance(one, dict):
            assert list(one) == list(other)
            one, other = np.stack(list(one.values())), np.stack(list(other.values()))
        assert np.shape(one) == np.shape(other)
        if attribute in ("l1_ratio_", "l1_ratios_"):
            np.testing.assert_array_equal(one, other)
        if attribute in ("C_", "Cs_", "scores_", "coefs_paths_"):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    assert found.score(X, y) == pytest.approx(expected.score(X, y), abs=1e-6)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("Cs", [[1.0, 0.1], [0.1, 1.0], [1.0, 0.1, 1.0]])
def test_of_equally_good_penalties_the_first_is_fitted(Cs):
    X, y = (part[:300] for part in real("breast_cancer"))
    options = {"Cs": Cs, "max_iter": 1000, "tol": 1e-8}
    one, other = (module.LogisticRegressionCV(**options).fit(X, y) for module in (ours, theirs))
    totals = one.scores_[1].sum(axis=0)
    assert totals == pytest.approx(totals[0])
    assert one.C_ == other.C_ == Cs[0]
    assert_close(one, other)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", ["digits", "iris", "wine", "breast_cancer"])
def test_penalties_far_apart_are_told_apart_with_the_default_tol(name):
    X, y = real(name)
    some = np.flatnonzero(y < 5)[: 100 if name == "digits" else 300]
    X, y = X[some], y[some]
    options = {"Cs": 3, "scoring": "neg_log_loss", "max_iter": 2000}
    expected = ours.LogisticRegressionCV(tol=1e-8, **options).fit(X, y).C_
    np.testing.assert_array_equal(ours.LogisticRegressionCV(**options).fit(X, y).C_, expected)


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_what_a_ridge_search_stores(scoring):
    X, y = real("iris")
    options = {"store_cv_results": True, "scoring": scoring, "alphas": (10.0, 0.1)}
    expected = theirs.RidgeClassifierCV(**options).fit(X, y)
    found = ours.RidgeClassifierCV(**options).fit(X, y)
    np.testing.assert_allclose(found.cv_results_, expected.cv_results_, atol=1e-8)
    assert found.best_score_ == pytest.approx(expected.best_score_) and found.alpha_ == expected.alpha_


def test_several_labels_per_row_are_for_the_ridge_classifiers():
    X, y = real("iris")
    Y = np.stack([y == 0, y > 0], axis=1).astype(int)
    expected = theirs.RidgeClassifierCV().fit(X, Y)
    found = ours.RidgeClassifierCV().fit(X, Y)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="GLMClassifier for several labels"):
        ours.LogisticRegression().fit(X, Y)


@pytest.mark.parametrize(
    ("kind", "options", "told"),
    [
        ("LogisticRegression", {"penalty": "l1"}, "saga"),
        ("LogisticRegression", {"l1_ratio": 0.5}, "saga"),
        ("LogisticRegression", {"dual": True, "solver": "liblinear"}, "SDCAClassifier"),
        ("LogisticRegressionCV", {"l1_ratios": (0, 0.5)}, "saga"),
        ("LogisticRegressionCV", {"Cs": [1.0, np.inf]}, r"LogisticRegression\(C=np.inf\)"),
        ("RidgeClassifier", {"positive": True}, "scikit-learn's"),
        ("RidgeClassifierCV", {"store_cv_results": True, "cv": 3}, "leave one of them out"),
    ],
)
def test_another_model_is_refused(kind, options, told):
    with pytest.raises(ValueError, match=told):
        getattr(ours, kind)(**options).fit(*real("iris"))


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_files(name):
    X, y = real("iris")
    model = clone(getattr(ours, name)()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.status_) == str(model.status_)


def test_callbacks_see_every_iteration():
    X, y = real("iris")
    monitor = ScoringMonitor(scoring=make_scorer(lambda y, predicted: float((y == predicted).mean())))
    model = ours.LogisticRegression(solver="saga").set_callbacks(monitor).fit(X, y)
    assert len(model.history_) == model.n_iter_[0]


def test_weights_balance_classes_as_repetition_does():
    X, y, _, _ = random_problem(1)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    weighted = ours.LogisticRegression(class_weight="balanced", tol=1e-8).fit(X, y, weight)
    repeated = ours.LogisticRegression(class_weight="balanced", tol=1e-8).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_sparse_coefficients_predict():
    X, y = real("iris")
    model = ours.LogisticRegression().fit(X, y)
    expected = model.predict_proba(X)
    np.testing.assert_allclose(model.sparsify().predict_proba(X), expected)
    np.testing.assert_allclose(model.densify().predict_proba(X), expected)


@pytest.mark.parametrize("name", ["RidgeClassifier", "RidgeClassifierCV", "LogisticRegression"])
def test_balanced_classes_of_weighted_rows_are_those_of_scikit_learn(name):
    X, y = datasets.load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 130)
    options = {"class_weight": "balanced"} | ({} if name.endswith("CV") else {"tol": 1e-10, "max_iter": 1000})
    one, other = (getattr(module, name)(**options).fit(X[20:], y[20:], weight) for module in (ours, theirs))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


@pytest.mark.parametrize(
    "options", [{"cv": 3}, {"scoring": "accuracy"}, {"cv": 3, "scoring": "neg_mean_squared_error"}]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_classifier_cv_weighs_classes_in_its_scores(options, weighted):
    X, y = datasets.load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 150) if weighted else None
    options = {"class_weight": {0: 1, 1: 5, 2: 0.5}, "alphas": [1.0, 30.0]} | options
    one, other = (module.RidgeClassifierCV(**options).fit(X, y, weight) for module in (ours, theirs))
    assert one.best_score_ == pytest.approx(other.best_score_)
    assert one.alpha_ == other.alpha_


@pytest.mark.parametrize("class_weight", [None, {0: 1, 1: 5, 2: 0.5}])
def test_ridge_classifier_cv_weighs_the_squared_errors_it_reports(class_weight):
    X, y = datasets.load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 150)
    one, other = (module.RidgeClassifierCV(class_weight=class_weight).fit(X, y, weight) for module in (ours, theirs))
    assert one.best_score_ == pytest.approx(other.best_score_)


def test_two_classes_left_out_in_turn_are_compared_with_their_own():
    X, y = (part[::9] for part in real("breast_cancer"))
    alphas = [1e4, 1.0]
    model = ours.RidgeClassifierCV(alphas, scoring="accuracy").fit(X, y)
    left_out = [cross_val_score(theirs.RidgeClassifier(alpha), X, y, cv=LeaveOneOut()).mean() for alpha in alphas]
    assert model.best_score_ == pytest.approx(max(left_out)) and model.alpha_ == alphas[np.argmax(left_out)]


def test_several_columns_of_signs_are_labels():
    X, y = datasets.load_iris(return_X_y=True)
    Y = np.where(np.column_stack([y > 0, y > 1]), 1, -1)
    one, other = (module.RidgeClassifier(tol=1e-10).fit(X, Y) for module in (ours, theirs))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-6)


def test_several_columns_of_text_are_refused():
    X, y = datasets.load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="must be an indicator matrix"):
        ours.RidgeClassifier().fit(X, np.array([["a", "b"]] * len(y)))


def test_weights_of_rows_and_of_classes_that_leave_none_are_refused():
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 2
    model = ours.RidgeClassifier(class_weight={0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match="weights are zero"):
        model.fit(X, y, sample_weight=1.0 - y)


@pytest.mark.parametrize("alphas", [[], [[1.0, 2.0], [3.0, 4.0]]])
def test_penalties_are_one_or_a_list(alphas):
    with pytest.raises(ValueError, match="must be one penalty or a list"):
        ours.RidgeClassifierCV(alphas=alphas).fit(np.eye(6), [0, 1] * 3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_iterations_leave_the_zero_model(n_classes):
    X, y = datasets.load_iris(return_X_y=True)
    y = np.minimum(y, n_classes - 1)  # of sizes that differ where there are two, so that the intercept would not be 0
    one, other = (module.LogisticRegression(max_iter=0, solver="newton-cg").fit(X, y) for module in (ours, theirs))
    assert not np.any(one.intercept_) and not np.any(one.coef_)
    assert_close(one, other)


def test_groups_reach_the_splitter():
    X, y = real("iris")
    options = {"Cs": [1e-3, 1.0], "cv": GroupKFold(3), **CV_OPTIONS["new"]}
    groups = np.arange(150) % 7
    with config_context(enable_metadata_routing=True):
        one, other = (
            module.LogisticRegressionCV(tol=1e-8, max_iter=1000, **options).fit(X, y, groups=groups)
            for module in (ours, theirs)
        )
    np.testing.assert_allclose(one.scores_, other.scores_, rtol=1e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_mean_of_the_folds_has_an_intercept_where_they_have_one(fit_intercept):
    X, y = datasets.load_iris(return_X_y=True)
    options = {"Cs": [1.0, 0.1], "cv": 3, "fit_intercept": fit_intercept, **CV_OPTIONS["mean of the folds"]}
    one, other = (
        module.LogisticRegressionCV(tol=1e-8, max_iter=5000, **options).fit(X, y) for module in (ours, theirs)
    )
    assert np.any(one.intercept_) == np.any(other.intercept_) == fit_intercept
    assert_close(one, other, rtol=1e-3)


def test_a_penalty_whose_score_is_no_number_is_not_chosen():
    X, y = real("iris")
    scoring = make_scorer(lambda y, predicted: 0.9 if np.mean(y == predicted) > 0.9 else np.nan)
    options = {"cv": 3, **CV_OPTIONS["new"], "scoring": scoring}
    for Cs in ([1e-4, 1.0], [1.0, 1e-4]):
        model = ours.LogisticRegressionCV(Cs=Cs, tol=1e-8, max_iter=1000, **options).fit(X, y)
        assert model.C_ == 1.0
        assert_close(model, theirs.LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(X, y), rtol=1e-3)


def test_a_row_that_is_surely_mistaken_costs_as_much_as_in_scikit_learn():
    """Its probability rounds to 0, whose logarithm is that of the smallest number that makes a difference to 1."""
    X = np.linspace(-2, 2, 60)[:, None]
    y = (X[:, 0] > 0).astype(int)
    X[7] = 1e4
    folds = [(np.delete(np.arange(60), 7), np.array([7, 50]))]
    options = {"Cs": [1.0], "cv": folds, **CV_OPTIONS["new"]}
    one, other = (module.LogisticRegressionCV(**options).fit(X, y) for module in (ours, theirs))
    np.testing.assert_allclose(one.scores_, other.scores_, rtol=1e-3)
    np.testing.assert_allclose(one.scores_, np.log(np.finfo(float).eps) / 2.0, rtol=0.02)


def test_nothing_is_fitted_again_where_that_is_not_asked_for(monkeypatch):
    X, y = datasets.load_iris(return_X_y=True)
    expected = ours.LogisticRegressionCV(Cs=4, cv=3, refit=False).fit(X, y)
    assert not np.allclose(expected.coef_, ours.LogisticRegressionCV(Cs=4, cv=3).fit(X, y).coef_)

    def refuse(*_):
        raise AssertionError("fitted again")

    monkeypatch.setattr("manyclass.estimators.descent_search.DescentSearch._refitted", refuse)
    assert np.array_equal(ours.LogisticRegressionCV(Cs=4, cv=3, refit=False).fit(X, y).coef_, expected.coef_)
    StagewiseClassifier(n_components=64, block_size=64, random_state=0).fit(X, y)  # asks for a penalty only
    with pytest.raises(AssertionError, match="again"):
        ours.LogisticRegressionCV(Cs=4, cv=3).fit(X, y)
