"""What users see of dual coordinate ascent, against scikit-learn and against itself."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

from manyclass import GLMClassifier, SDCAClassifier, SDCARegressor
from manyclass.fit import Status
from tests.covering import in_turn

CLASSIFIERS = ["squared", "hinge", "squared_hinge", "logistic", "crammer_singer", "softmax"]
REGRESSORS = ["squared", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return 10 * X, y / 100


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_learns_digits(loss):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = SDCAClassifier(loss, alpha=1e-3).fit(X[:1200], y[:1200])
    assert model.status_ is Status.CONVERGED
    assert model.score(X[1200:], y[1200:]) > 0.85


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


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_two_classes_have_one_score(cancer, loss):
    X, y = cancer
    model = SDCAClassifier(loss, alpha=0.01, tol=1e-4).fit(X, y)
    assert model.coef_.shape == (1, X.shape[1]) and model.intercept_.shape == (1,)
    assert model.dual_coef_.shape == (len(y), 1)
    assert model.decision_function(X).shape == y.shape
    assert model.score(X, y) > 0.93
    # Proximal points keep W beside the dual variables, and only the minimum makes them one.
    between = 0.5 * 0.01 * np.sum((model.dual_coef_.T @ X - model.coef_) ** 2)
    assert between <= 4 * model.duality_gap_ * {"softmax": np.log(2), "logistic": np.log(2), "squared": 0.5}.get(
        loss, 1
    )
    model = SDCAClassifier(loss, alpha=0.01, homotopy=False, tol=1e-2).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_.T @ X, model.coef_, atol=1e-9)


def test_float32_stays_float32(cancer):
    X, y = cancer
    single = SDCAClassifier(alpha=0.01, tol=1e-6).fit(X.astype(np.float32), y)
    double = SDCAClassifier(alpha=0.01, tol=1e-6).fit(X, y)
    assert single.coef_.dtype == np.float32 and double.coef_.dtype == np.float64
    assert single.decision_function(X[:3].astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-3)


def test_probabilities_only_where_the_loss_has_them(iris):
    X, y = iris
    model = SDCAClassifier("logistic").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert not hasattr(SDCAClassifier("hinge"), "predict_proba")
    with pytest.raises(AttributeError) as refusal:
        SDCAClassifier("hinge").fit(X, y).predict_proba(X)
    assert "use loss='softmax'" in str(refusal.value.__cause__)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "hinge"])
def test_warm_start_continues(cancer, loss):
    X, y = cancer
    cold = SDCAClassifier(loss, alpha=1e-3, tol=1e-4, max_iter=5000, homotopy=False).fit(X, y)
    model = SDCAClassifier(loss, alpha=1e-3, tol=1e-2, max_iter=5000, homotopy=False, warm_start=True).fit(X, y)
    model.set_params(tol=1e-4).fit(X, y)
    assert model.n_iter_ < cold.n_iter_
    again = model.fit(X, y)
    assert again.n_iter_ < cold.n_iter_ and again.duality_gap_ <= 1e-4
    model.fit(X[:50], y[:50])  # other rows: a new start, not an error
    assert model.dual_coef_.shape == (50, 1)


def test_warm_start_across_alphas(diabetes):
    X, y = diabetes
    model = SDCARegressor(alpha=1e-1, tol=1e-8, warm_start=True).fit(X, y)
    model.set_params(alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(model.coef_, SDCARegressor(alpha=1e-2, tol=1e-8).fit(X, y).coef_, atol=1e-3)


def test_limits_warn_and_say_what_to_do(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = SDCAClassifier("hinge", alpha=1e-7, tol=1e-9, max_iter=3).fit(X, y)
    assert model.status_ is Status.MAX_ITER and model.n_iter_ == 3
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        SDCAClassifier("hinge", alpha=1e-9, tol=0.0, max_time=0.05, max_iter=10**9).fit(X, y)


def test_history_gap_and_its_cost(cancer):
    X, y = cancer
    model = SDCAClassifier(alpha=1e-3, tol=1e-5).fit(X, y)
    last = model.history_[-1]
    assert model.duality_gap_ == last.duality_gap <= 1e-5
    assert 0 < last["gap_seconds"] <= last.seconds
    assert model.n_iter_ == last.n_iter == sum(last["phase_epochs"])
    assert model.n_passes_ == model.n_iter_ + 2 * len(model.history_)


def test_pickles(cancer):
    X, y = cancer
    model = SDCAClassifier(alpha=1e-2).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "log_loss"}, "no loss='log_loss'"),
        ({"loss": "perceptron"}, "use PegasosClassifier"),
        ({"alpha": 0}, "alpha"),
        ({"homotopy": 1}, "homotopy"),
    ],
)
def test_bad_parameters_are_named(iris, options, message):
    with pytest.raises(ValueError, match=message):
        SDCAClassifier(**options).fit(*iris)


def test_joint_losses_refuse_several_labels_per_row(iris):
    X, y = iris
    with pytest.raises(ValueError, match="exactly one class"):
        SDCAClassifier("crammer_singer").fit(X, np.eye(3, dtype=int)[y])


def test_arrays_of_other_libraries_are_refused_with_the_way_out(iris):
    torch = pytest.importorskip("torch")
    X, y = iris
    with pytest.raises(ValueError, match="GLMClassifier"):
        SDCAClassifier().fit(torch.as_tensor(X), torch.as_tensor(y))


def test_wide_and_degenerate_data():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 300)), np.arange(30) % 3
    model = SDCAClassifier(alpha=1e-4, tol=1e-6, max_iter=5000).fit(sp.csr_array(X), y)
    assert model.status_ is Status.CONVERGED and model.score(X, y) == 1
    one = SDCARegressor().fit([[1.0, 2.0]], [3.0])
    assert one.predict([[1.0, 2.0]]) == pytest.approx([3.0])
    constant = SDCARegressor().fit(np.ones((5, 2)), np.full(5, 7.0))
    np.testing.assert_allclose(constant.predict(np.ones((2, 2))), 7.0)
    np.testing.assert_array_equal(constant.coef_, 0)
    assert constant.status_ is Status.CONVERGED


def test_huge_scores_stay_finite():
    rng = np.random.default_rng(0)
    X, y = 1e6 * rng.standard_normal((50, 3)), rng.integers(0, 3, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for loss in CLASSIFIERS:
            model = SDCAClassifier(loss, max_iter=200).fit(X, y)
            assert np.isfinite(model.coef_).all() and 0 <= model.duality_gap_ < np.inf


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 20))
    y = np.argmax(X @ rng.standard_normal((20, 4)) + 1.5 * rng.gumbel(size=(4000, 4)), axis=1)
    return X, y


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


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_early_stopping_measures_each_epoch_and_keeps_the_best(loss):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 60)), rng.integers(0, 3, 300)  # nothing to learn, so soon enough
    model = SDCAClassifier(loss, alpha=1e-6, early_stopping=True, tol=0.0, max_iter=500).fit(X, y)
    scores = [record.validation_score for record in model.history_]
    assert model.status_ is Status.EARLY_STOPPED and model.n_iter_ == len(scores) < 500
    assert np.argmax(scores) == len(scores) - 1 - model.n_iter_no_change
    assert np.count_nonzero(model.dual_coef_.any(axis=1)) <= 270  # held-out rows have no dual variable


def test_early_stopping_of_a_regressor():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 100)), rng.standard_normal(200)
    model = SDCARegressor(alpha=1e-8, early_stopping=True, tol=0.0).fit(X, y)
    assert model.status_ is Status.EARLY_STOPPED


def test_no_time_for_an_epoch_gives_the_constant_model(noisy):
    X, y = noisy
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        model = SDCAClassifier("hinge", max_time=1e-9).fit(X, y)
    assert model.predict(X).shape == y.shape and not model.dual_coef_.all()


def test_few_rows_that_are_hard_get_more_than_a_thousand_epochs():
    """Raw columns of wine differ by a factor of 1000, which penalties alone do not mend."""
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ConvergenceWarning):
        short, long = (SDCAClassifier(homotopy=False, max_iter=most).fit(X, y) for most in (1000, "auto"))
    assert short.n_iter_ == 1000 < long.n_iter_
    assert long.duality_gap_ < short.duality_gap_ and long.score(X, y) >= short.score(X, y)


@pytest.mark.parametrize(
    ("loss", "held"), in_turn(["softmax", "logistic", "squared"], ["float64", "sparse", "float32"])
)
def test_the_optimum_is_that_of_glm_on_columns_of_any_size_within_few_epochs(noisy, loss, held):
    X, y = noisy
    sizes = np.random.default_rng(0).permutation(np.logspace(-3, 3, 20))
    X = (X * sizes).astype(np.float32 if held == "float32" else np.float64)
    rows = sp.csr_array(X) if held == "sparse" else X
    dual = SDCAClassifier(loss, tol=1e-6, max_iter=100).fit(rows, y)
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


def test_several_labels_weights_and_warm_starts_of_columns_of_any_size(noisy):
    X, y = noisy
    X, Y = X * np.logspace(-3, 3, 20), np.eye(4, dtype=int)[y]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = SDCAClassifier(tol=1e-6, max_iter=200, warm_start=True).fit(X, Y, sample_weight=weight)
    first = model.n_iter_
    primal = GLMClassifier(alpha=1e-4, tol=1e-8).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), primal.predict_proba(X), atol=1e-3)
    assert model.fit(X, Y, sample_weight=weight).n_iter_ < first / 2
    model.set_params(alpha=5e-5).fit(X, Y, sample_weight=weight)
    assert model.status_ is Status.CONVERGED


def test_who_stops_early_is_told_of_columns_of_very_different_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 4))
    y = X.sum(axis=1) > 0
    with pytest.warns(ConvergenceWarning, match="by a factor of .*standardise"):
        SDCAClassifier(max_iter=1, tol=1e-12).fit(X * np.logspace(-3, 3, 4), y)
    with pytest.warns(ConvergenceWarning, match=r"\)$"):
        SDCAClassifier(max_iter=1, tol=1e-12).fit(X, y)
