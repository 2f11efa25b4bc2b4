"""What a user of scikit-learn expects of GLMClassifier."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier

from manyclass import GLMClassifier
from manyclass.data.rows import to_numpy
from manyclass.estimators.vocabulary import LOSSES_OF
from manyclass.fit import Status
from manyclass.model import SMOOTH_LOSSES
from manyclass.solvers import SOLVERS
from tests.covering import every_pair
from tests.problems import Callback, rows

GLM_LOSSES = LOSSES_OF["GLMClassifier"]
DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits, "breast-cancer": load_breast_cancer}


def logistic_regression(alpha, n, **options):
    return LogisticRegression(C=1 / (alpha * n), tol=1e-10, max_iter=20_000, solver="newton-cholesky", **options)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_optimum_is_that_of_logistic_regression_at_the_same_alpha(name, fit_intercept):
    X, y = DATA[name](return_X_y=True)
    X = X / X.std(0).clip(1e-9)
    ours = GLMClassifier(1e-2, tol=1e-12, fit_intercept=fit_intercept).fit(X, y)
    theirs = logistic_regression(1e-2, len(y), fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert ours.coef_.shape == theirs.coef_.shape and ours.intercept_.shape == theirs.intercept_.shape


def test_two_classes_of_least_squares_are_ridge_classifier():
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.std(0)
    for labels in (y, load_iris().target):
        data = X if labels is y else load_iris().data
        ours = GLMClassifier(1e-2, loss="squared", tol=1e-12).fit(data, labels)
        theirs = RidgeClassifier(1e-2 * len(labels)).fit(data, labels)
        np.testing.assert_allclose(ours.coef_, np.atleast_2d(theirs.coef_), atol=1e-5)
        np.testing.assert_array_equal(ours.predict(data), theirs.predict(data))


def test_one_factor_solves_least_squares():
    X, y, _ = rows(5, n=4000, d=30)
    model = GLMClassifier(1e-6, loss="squared", tol=1e-10).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ <= 2


def test_labels_of_any_kind_come_back():
    X, y = load_iris(return_X_y=True)
    for labels in (
        y,
        np.array(["setosa", "versicolor", "virginica"])[y],
        y * 10.0 - 3,
        y - 5,
        list("abc"[i] for i in y),
    ):
        model = GLMClassifier().fit(X, labels)
        assert set(model.predict(X)) == set(labels)
        assert model.score(X, labels) > 0.9


def test_classes_may_be_permuted_and_rows_reordered(rng):
    X, y = load_wine(return_X_y=True)
    renamed, order = np.array([2, 0, 1])[y], rng.permutation(len(y))
    a = GLMClassifier(1e-2, tol=1e-10).fit(X, y)
    b = GLMClassifier(1e-2, tol=1e-10).fit(X[order], renamed[order])
    np.testing.assert_allclose(b.predict_proba(X)[:, [2, 0, 1]], a.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("loss", ["auto", "logistic", "squared"])
def test_multilabel(loss):
    X, Y = make_multilabel_classification(n_samples=300, n_classes=4, random_state=0)
    for target in (Y, sp.csr_matrix(Y)):
        model = GLMClassifier(1e-2, loss=loss, tol=1e-9).fit(X, target)
        assert model.multilabel_ and model.coef_.shape == (4, X.shape[1])
        assert set(np.unique(model.predict(X))) <= {0, 1}
        assert ((model.predict(X) != Y).mean()) < 0.2
    if loss != "squared":
        theirs = OneVsRestClassifier(logistic_regression(1e-2, len(X))).fit(X, Y)
        np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("loss", ["softmax", "sparsemax"])
def test_losses_of_one_class_a_row_refuse_several_labels(loss):
    X, Y = make_multilabel_classification(random_state=0)
    with pytest.raises(ValueError, match="use loss='logistic'"):
        GLMClassifier(loss=loss).fit(X, Y)


@pytest.mark.parametrize("loss", GLM_LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(loss, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    model = GLMClassifier(1e-2, loss=loss).fit(X, y)
    if not SMOOTH_LOSSES[loss].probabilistic:
        with pytest.raises(AttributeError) as refusal:
            model.predict_proba(X)
        assert "no probabilities; use loss='softmax'" in str(refusal.value.__cause__)
        return
    P = model.predict_proba(X)
    assert P.shape == (len(y), n_classes) and P.min() >= 0
    np.testing.assert_allclose(P.sum(1), 1)
    np.testing.assert_array_equal(model.classes_[P.argmax(1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P)


def test_sparsemax_probabilities_can_be_zero():
    X, y = load_iris(return_X_y=True)
    assert (GLMClassifier(1e-3, loss="sparsemax").fit(X, y).predict_proba(X) == 0).mean() > 0.3


@pytest.mark.parametrize("kind", ["csr", "csc", "csr64", "frame", "list", "F", "read-only"])
def test_containers_do_not_matter(kind):
    X, y = load_wine(return_X_y=True)
    X = np.where(np.abs(X) < 1, 0, X)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    frozen = X.copy()
    frozen.flags.writeable = False
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    data = {
        "csr": sp.csr_array(X),
        "csc": sp.csc_matrix(X),
        "csr64": wide,
        "frame": frame,
        "list": X.tolist(),
        "F": np.asfortranarray(X),
        "read-only": frozen,
    }[kind]
    a, b = GLMClassifier(1e-2, tol=1e-10).fit(X, y), GLMClassifier(1e-2, tol=1e-10).fit(data, y)
    np.testing.assert_allclose(b.predict_proba(data), a.predict_proba(X), atol=1e-7)
    if kind == "frame":
        assert list(b.feature_names_in_) == list(frame.columns)


def test_float32_stays_float32_and_the_data_are_not_touched():
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    before = X.copy()
    model = GLMClassifier().fit(X, y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.decision_function(X).dtype == model.predict_proba(X).dtype == np.float32
    np.testing.assert_array_equal(X, before)


NAMESPACES = ["torch", "array_api_strict"]


@pytest.mark.parametrize(("solver", "loss", "namespace"), every_pair(list(SOLVERS), list(GLM_LOSSES), NAMESPACES))
def test_array_api_results_stay_in_the_namespace(namespace, solver, loss):
    xp = pytest.importorskip(namespace)
    X, y = load_iris(return_X_y=True)
    # Steepest descent makes much of rounding: two runs agree where both are at the optimum, here an easy one.
    alpha, tol = (10.0, 1e-8) if "gradient" in solver else (1e-2, 1e-3)
    options = {"alpha": alpha, "solver": solver, "loss": loss, "max_iter": 3000, "tol": tol}
    reference = GLMClassifier(**options).fit(X, y)
    data, labels = xp.asarray(X), xp.asarray(y)
    model = GLMClassifier(**options).fit(data, labels)
    assert type(model.coef_) is type(data) and type(model.predict(data)) is type(data)
    np.testing.assert_allclose(to_numpy(model.coef_), reference.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(to_numpy(model.predict(data)), reference.predict(X))
    if SMOOTH_LOSSES[loss].probabilistic:
        assert type(model.predict_proba(data)) is type(data)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_names_of_classes_are_no_numbers_of_a_namespace(namespace):
    X, y = load_iris(return_X_y=True)
    data = pytest.importorskip(namespace).asarray(X)
    model = GLMClassifier().fit(data, np.array(list("abc"))[y])
    assert set(model.predict(data)) <= set("abc")


def test_sample_weight_repeats_rows(rng):
    X, y = load_wine(return_X_y=True)
    times = rng.integers(0, 3, len(y))
    a = GLMClassifier(1e-2, tol=1e-10).fit(X, y, sample_weight=times)
    b = GLMClassifier(1e-2, tol=1e-10).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-5)


def test_class_weight_multiplies_sample_weight():
    X, y = load_iris(return_X_y=True)
    weight = {0: 1.0, 1: 5.0, 2: 0.5}
    a = GLMClassifier(1e-2, class_weight=weight, tol=1e-10).fit(X, y)
    b = GLMClassifier(1e-2, tol=1e-10).fit(X, y, sample_weight=np.vectorize(weight.get)(y))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-8)
    balanced = GLMClassifier(1e-2, class_weight="balanced").fit(X[25:], y[25:])
    assert balanced.score(X, y) > 0.9


def test_warm_start_continues():
    X, y = load_digits(return_X_y=True)
    model = GLMClassifier(1e-4, tol=1e-6, max_iter=8, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        model.fit(X, y)
    reached = model.history_[-1].objective
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.history_[0].objective == pytest.approx(reached, rel=1e-9)
    assert model.history_[-1].objective < reached
    model.set_params(max_iter=500).fit(X, y)
    again = model.fit(X, y)
    assert again.n_iter_ == 1 and again.status_ is Status.CONVERGED


def test_tolerance_means_the_same_for_any_scaling():
    X, y = load_wine(return_X_y=True)
    exact = {"solver": "accelerated", "max_iter": 5000}  # whose curvature is no sample of the rows
    alone = GLMClassifier(1e-2, **exact).fit(X, y)
    doubled = GLMClassifier(1e-2, **exact).fit(np.vstack([X, X]), np.r_[y, y])
    assert [r.duality_gap for r in doubled.history_] == pytest.approx([r.duality_gap for r in alone.history_], rel=1e-2)
    # alpha in the units of X²
    scaled = GLMClassifier(1e-2 * 1e6, **exact).fit(1e3 * X, y)
    assert scaled.n_iter_ == alone.n_iter_
    assert scaled.duality_gap_ == pytest.approx(alone.duality_gap_, rel=1e-3)


def test_history():
    X, y = load_digits(return_X_y=True)
    model = GLMClassifier().fit(X, y)
    assert [record.n_iter for record in model.history_] == list(range(1, model.n_iter_ + 1))
    assert model.history_[-1].duality_gap == model.duality_gap_
    assert model.history_[-1].n_passes == model.n_passes_ >= model.n_iter_
    seconds = [r.seconds for r in model.history_]
    assert seconds == sorted(seconds)


def test_max_time_keeps_the_model_so_far():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        nothing = GLMClassifier(1e-9, max_time=1e-9).fit(X, y)
    assert nothing.status_ is Status.MAX_TIME and nothing.n_iter_ == len(nothing.history_) == 0
    frequent = np.bincount(y).argmax()
    np.testing.assert_array_equal(nothing.predict(X), frequent)
    np.testing.assert_allclose(nothing.predict_proba(X[:1])[0], np.bincount(y) / len(y), rtol=1e-6)
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        some = GLMClassifier(0, tol=0, max_iter=10**6, solver="accelerated", max_time=0.5).fit(X, y)
    assert some.status_ is Status.MAX_TIME and some.score(X, y) > 0.8


class Models(Callback):
    """A callback that keeps the coefficients after each iteration."""

    def __init__(self):
        self.coefs = []

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "iteration":
            self.coefs.append(fitted_estimator.coef_)


@pytest.mark.parametrize("namespace", ["numpy", "torch"])
@pytest.mark.parametrize("labels", ["classes", "indicator"])
def test_early_stopping_keeps_the_model_that_is_best_on_held_out_rows(namespace, labels):
    X, y, _ = rows(3, n=200, d=30, k=3)
    y = np.eye(3, dtype=int)[y] if labels == "indicator" else y
    if namespace == "torch":
        X, y = (pytest.importorskip("torch").asarray(part) for part in (X, y))
    options = {"alpha": 1e-9, "tol": 0, "early_stopping": True, "validation_fraction": 0.3}
    models = Models()
    model = GLMClassifier(**options).set_callbacks(models).fit(X, y)
    scores = [record.validation_score for record in model.history_]
    best = int(np.argmax(scores))
    assert best < len(scores) - 1
    assert len(scores) == best + 1 + model.n_iter_no_change
    assert model.status_ is Status.EARLY_STOPPED
    np.testing.assert_array_equal(to_numpy(model.coef_), to_numpy(models.coefs[best]))


def test_early_stopping_does_not_look_at_rows_without_weight():
    X, y, _ = rows(4, n=200)
    weight = np.ones(len(y))
    weight[150:] = 0
    model = GLMClassifier(early_stopping=True).fit(X, y, weight)
    for factor, digits in ((-1, 0.0), (-100, 1e-9)):  # large scores in a block change the last digits of the others
        spoiled = X.copy()
        spoiled[150:] *= factor
        expected = GLMClassifier(early_stopping=True).fit(spoiled, y, weight)
        # Of coefficients near 1, the smallest of which has fewer.
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=digits, atol=0.1 * digits)
    with pytest.raises(ValueError, match="early_stopping=False"):
        GLMClassifier(early_stopping=True, validation_fraction=0.02).fit(X, y, np.arange(len(y)) == 199)


def test_random_state_changes_the_path_not_the_solution(rng):
    X = rng.standard_normal((3000, 4))
    y = (X @ rng.standard_normal((4, 3))).argmax(1)
    a, b, c = (GLMClassifier(1e-2, tol=1e-10, random_state=s).fit(X, y) for s in (None, 1, np.random.RandomState(2)))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-4)
    np.testing.assert_allclose(a.coef_, c.coef_, atol=1e-4)
    np.testing.assert_array_equal(a.coef_, GLMClassifier(1e-2, tol=1e-10).fit(X, y).coef_)


X4, Y4 = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.array([[1.0, np.nan]] * 4), Y4, "NaN"),
        (np.array([[1.0, np.inf]] * 4), Y4, "infinity"),
        (np.empty((0, 2)), Y4[:0], "minimum of 1"),
        (X4, Y4[:3], "inconsistent numbers of samples"),
        (X4, np.zeros(4), "only one class"),
        (X4, np.array([0.1, 0.2, 0.3, 0.4]), "continuous"),
        (X4, np.array([0, 1, np.nan, 1]), "NaN"),
        (X4[:, 0], Y4, "2D array"),
        (np.array([["a", "b"]] * 4), Y4, "could not convert string to float"),
        (sp.csr_array(np.array([[1.0, np.nan]] * 4)), Y4, "NaN"),
        (X4[:1], Y4[:1], "only one class"),
    ],
)
def test_bad_input_is_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        GLMClassifier().fit(X, y)


def test_bad_weights_parameters_and_widths_are_refused():
    with pytest.raises(ValueError, match="at least one non-zero"):
        GLMClassifier().fit(X4, Y4, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="All sample weights are zero"):
        GLMClassifier(class_weight={0: 0, 1: 0}).fit(X4, Y4)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        GLMClassifier().fit(X4, Y4, sample_weight=[1, 1, -1, 1])
    with pytest.raises(ValueError, match="use curvature='second-moment'"):
        GLMClassifier(solver="majorize", curvature="kronecker").fit(X4, Y4)
    with pytest.raises(ValueError, match="There is no loss='probit'; GLMClassifier fits 'auto', 'softmax'"):
        GLMClassifier(loss="probit").fit(X4, Y4)
    with pytest.raises(ValueError, match="does not fit loss='hinge'; use PegasosClassifier or SDCAClassifier"):
        GLMClassifier(loss="hinge").fit(X4, Y4)
    for wrong in ({"alpha": -1}, {"solver": "lbfgs"}, {"max_iter": 0}, {"tol": "small"}):
        with pytest.raises(ValueError, match="must be"):
            GLMClassifier(**wrong).fit(X4, Y4)
    model = GLMClassifier().fit(X4, Y4)
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.predict(np.ones((3, 5)))


def test_more_features_than_rows_and_huge_values():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 300)) * np.logspace(-3, 6, 300)
    y = np.arange(20) % 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GLMClassifier(1e-3).fit(X, y)
    assert np.isfinite(model.coef_).all() and model.score(X, y) == 1.0
