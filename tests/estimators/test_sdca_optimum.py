"""Which minimum dual coordinate ascent finds: that of scikit-learn, of GLM, and of the same data told otherwise."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, LinearSVC, LinearSVR

from manyclass import GLMClassifier, SDCAClassifier, SDCARegressor
from manyclass.estimators.vocabulary import LOSSES_OF
from manyclass.fit import Status
from tests.covering import in_turn

CLASSIFIERS = LOSSES_OF["SDCAClassifier"]
REGRESSORS = LOSSES_OF["SDCARegressor"]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_same_coefficients_as_linear_svc(cancer, loss):
    X, y = cancer
    ours = SDCAClassifier(loss, alpha=0.01, fit_intercept=False, tol=1e-9, max_iter=20_000).fit(X, y)
    theirs = LinearSVC(loss=loss, C=1 / (0.01 * len(y)), fit_intercept=False, tol=1e-9, max_iter=10**6, dual=True)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, atol=2e-4)


def test_same_optimum_as_libsvm_whose_intercept_is_free_too(cancer):
    X, y = cancer
    ours = SDCAClassifier("hinge", alpha=0.01, tol=1e-7, max_iter=50_000).fit(X, y)
    theirs = SVC(kernel="linear", C=1 / (0.01 * len(y)), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=3e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=3e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_same_coefficients_as_crammer_singer_of_liblinear_and_as_logistic_regression(iris, fit_intercept):
    X, y = iris
    alpha = 0.02
    ours = SDCAClassifier("softmax", alpha=alpha, fit_intercept=fit_intercept, tol=1e-10)
    theirs = LogisticRegression(C=1 / (alpha * len(y)), fit_intercept=fit_intercept, tol=1e-8, max_iter=10_000)
    ours.fit(X, y)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    if not fit_intercept:
        joint = SDCAClassifier("crammer_singer", alpha=alpha, fit_intercept=False, tol=1e-9)
        joint.set_params(max_iter=50_000).fit(X, y)
        svc = LinearSVC(multi_class="crammer_singer", C=1 / (alpha * len(y)), fit_intercept=False, tol=1e-8)
        np.testing.assert_allclose(joint.coef_, svc.set_params(max_iter=10**6).fit(X, y).coef_, atol=2e-3)


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared"])
def test_same_model_as_glm_classifier(cancer, loss):
    """One objective in the whole package: two roads, one minimum."""
    X, y = cancer
    dual = SDCAClassifier(loss, alpha=1e-2, tol=1e-10, max_iter=20_000).fit(X, y)
    primal = GLMClassifier(loss=loss, alpha=1e-2, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(dual.coef_, primal.coef_, atol=1e-4)
    np.testing.assert_allclose(dual.intercept_, primal.intercept_, atol=1e-4)
    assert dual.history_[-1].objective == pytest.approx(primal.history_[-1].objective, abs=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_ridge_is_ridge(diabetes, fit_intercept, n_outputs):
    X, y = diabetes
    if n_outputs > 1:
        y = np.stack([y, y**2, -y], axis=1)
    ours = SDCARegressor(alpha=0.01, fit_intercept=fit_intercept, tol=1e-20, max_iter=20_000).fit(X, y)
    theirs = Ridge(alpha=0.01 * len(y), fit_intercept=fit_intercept, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8, atol=1e-8)
    assert ours.dual_coef_.shape == y.shape and ours.coef_.shape == theirs.coef_.shape


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_same_coefficients_as_linear_svr(diabetes, loss):
    X, y = diabetes
    y = y - y.mean()
    ours = SDCARegressor(loss, epsilon=0.2, alpha=0.05, fit_intercept=False, tol=1e-8, max_iter=50_000).fit(X, y)
    theirs = LinearSVR(loss=loss, epsilon=0.2, C=1 / (0.05 * len(y)), fit_intercept=False, tol=1e-8, dual=True)
    np.testing.assert_allclose(ours.coef_, theirs.set_params(max_iter=10**6).fit(X, y).coef_, atol=1e-3)


@pytest.mark.parametrize("loss", CLASSIFIERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_are_repetitions(iris, loss, fit_intercept):
    X, y = iris
    times = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"alpha": 0.05, "tol": 1e-7, "max_iter": 50_000}
    weighted = SDCAClassifier(loss, fit_intercept=fit_intercept, **options).fit(X, y, sample_weight=times)
    repeated = SDCAClassifier(loss, fit_intercept=fit_intercept, **options).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=4e-3)
    assert weighted.history_[-1].objective == pytest.approx(repeated.history_[-1].objective, abs=1e-6)
    assert np.all(weighted.dual_coef_[times == 0] == 0)


@pytest.mark.parametrize("loss", REGRESSORS)
def test_weights_are_repetitions_in_regression(diabetes, loss):
    X, y = diabetes
    times = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"alpha": 0.05, "tol": 1e-7, "max_iter": 50_000}
    weighted = SDCARegressor(loss, **options).fit(X, y, sample_weight=times)
    repeated = SDCARegressor(loss, **options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=4e-3)


def test_class_weight_multiplies_sample_weight(cancer):
    X, y = cancer
    balanced = SDCAClassifier(alpha=0.01, class_weight="balanced", tol=1e-9).fit(X, y)
    by_hand = SDCAClassifier(alpha=0.01, tol=1e-9).fit(X, y, sample_weight=(len(y) / (2 * np.bincount(y)))[y])
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, atol=1e-9)


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_classes_may_be_permuted_and_have_any_labels(iris, loss):
    X, y = iris
    names = np.array(["zebra", "ant", "mole"])
    options = {"alpha": 0.05, "tol": 1e-6, "max_iter": 20_000}
    numbers = SDCAClassifier(loss, **options).fit(X, y)
    words = SDCAClassifier(loss, **options).fit(X, names[y])
    assert list(words.classes_) == sorted(names)
    same = names[numbers.predict(X)] == words.predict(X)
    assert same.mean() > 0.98


@pytest.mark.parametrize("loss", ["squared", "hinge", "squared_hinge", "logistic"])
def test_multilabel_is_one_fit_per_column(iris, loss):
    X, y = iris
    Y = np.stack([y == 0, y > 0, X[:, 0] > 0.3], axis=1).astype(int)
    model = SDCAClassifier(loss, alpha=0.05, tol=1e-9, max_iter=50_000).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    for j in range(3):
        alone = SDCAClassifier(loss, alpha=0.05, tol=1e-9, max_iter=50_000).fit(X, Y[:, j])
        np.testing.assert_allclose(model.coef_[j], alone.coef_[0], atol=2e-3)


@pytest.mark.parametrize(("loss", "held"), in_turn(CLASSIFIERS, ["float32", "float64", "sparse"]))
def test_an_offset_of_the_columns_changes_nothing(noisy, loss, held):
    X, y = noisy
    near, far = (rows.astype(np.float32 if held == "float32" else np.float64) for rows in (X, X + 1000))
    if held == "sparse":
        far = sp.csr_array(far)
    a, b = (SDCAClassifier(loss, alpha=1e-2).fit(rows, y) for rows in (near, far))
    assert a.status_ is b.status_ is Status.CONVERGED
    assert b.n_iter_ <= 1.5 * a.n_iter_
    assert abs(a.score(near, y) - b.score(far, y)) < 0.01


@pytest.mark.parametrize("loss", REGRESSORS)
def test_an_offset_of_the_columns_and_of_y_changes_nothing(noisy, loss):
    X, _ = noisy
    y = X @ np.arange(20.0) + np.random.default_rng(1).standard_normal(len(X))
    near = SDCARegressor(loss, alpha=1e-2, tol=1e-4).fit(X, y)
    far = SDCARegressor(loss, alpha=1e-2, tol=1e-4).fit(X + 1000, y + 1e5)
    assert far.n_iter_ <= 1.5 * near.n_iter_
    np.testing.assert_allclose(far.predict(X + 1000) - 1e5, near.predict(X), atol=0.05 * y.std())


def test_responses_far_from_zero_keep_their_digits_beside_rows_of_float32(noisy):
    X, _ = noisy
    y = X[:, 0] + 1e6
    model = SDCARegressor(alpha=1e-6, tol=1e-6).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(model.coef_, np.eye(20)[0], atol=1e-2)


@pytest.mark.parametrize(
    ("loss", "held"), in_turn(["softmax", "logistic", "squared"], ["float64", "sparse", "float32"])
)
def test_the_optimum_is_that_of_glm_on_columns_of_any_size_within_few_epochs(noisy, loss, held):
    X, y = noisy
    sizes = np.random.default_rng(0).permutation(np.logspace(-3, 3, 20))
    X = (X * sizes).astype(np.float32 if held == "float32" else np.float64)
    rows = sp.csr_array(X) if held == "sparse" else X
    dual = SDCAClassifier(loss, alpha=1e-4, tol=1e-6, max_iter=100).fit(rows, y)
    primal = GLMClassifier(loss=loss, alpha=1e-4, tol=1e-8).fit(X.astype(np.float64), y)
    assert dual.status_ is Status.CONVERGED
    assert dual.history_[-1].objective == pytest.approx(primal.history_[-1].objective, rel=1e-4)
    np.testing.assert_allclose(dual.coef_ * sizes, primal.coef_ * sizes, atol=0.01)
    ours, theirs = dual.decision_function(rows), primal.decision_function(X)
    if loss == "softmax":  # a constant for all classes is nothing
        ours, theirs = (Z - Z.mean(axis=1, keepdims=True) for Z in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, atol=0.05)


@pytest.mark.parametrize("loss", ["hinge", "crammer_singer"])
def test_hinges_come_nearer_on_columns_of_any_size(noisy, loss):
    X, y = noisy
    X = X * np.logspace(-3, 3, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        points, path = (SDCAClassifier(loss, homotopy=way, max_iter=400).fit(X, y) for way in ("auto", 6))
    assert points.history_[-1].objective < 0.9 * path.history_[-1].objective
    assert points.score(X, y) > path.score(X, y) + 0.03
