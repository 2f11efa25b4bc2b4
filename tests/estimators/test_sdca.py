"""How dual coordinate ascent runs: shapes and types, where it starts and stops, and what it says of itself."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from manyclass import GLMClassifier, SDCAClassifier, SDCARegressor
from manyclass.data import as_rows
from manyclass.estimators import sdca
from manyclass.estimators.parameters import epochs
from manyclass.estimators.vocabulary import LOSSES_OF
from manyclass.fit import Status

CLASSIFIERS = LOSSES_OF["SDCAClassifier"]
REGRESSORS = LOSSES_OF["SDCARegressor"]


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_learns_digits(digits, loss):
    X, y = digits
    model = SDCAClassifier(loss, alpha=1e-3).fit(X[:1200], y[:1200])
    assert model.status_ is Status.CONVERGED
    assert model.score(X[1200:], y[1200:]) > 0.85


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_a_class_without_weight_keeps_no_gap_open(loss):
    """No dual point gives it any probability, or its intercept would have to be finite."""
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weight = np.where(y == 2, 0.0, 1.0)
    model = SDCAClassifier(loss, alpha=0.01, max_iter=1000).fit(X, y, sample_weight=weight)
    assert model.status_ is Status.CONVERGED and model.score(X, y, weight) > 0.95
    if loss == "softmax":
        best = GLMClassifier(alpha=0.01, tol=1e-6).fit(X, y, sample_weight=weight)
        above = model.history_[-1].objective - best.history_[-1].objective
        assert -1e-6 <= above <= model.duality_gap_ * np.log(3)


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
    with pytest.raises(TypeError, match="GLMClassifier"):
        SDCAClassifier().fit(torch.as_tensor(X), torch.as_tensor(y))
    with pytest.raises(TypeError, match="use StagewiseRegressor"):
        SDCARegressor().fit(torch.as_tensor(X), torch.as_tensor(y, dtype=torch.float64))


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


def test_without_a_step_no_second_array_of_dual_variables_is_written(rng):
    """It took half a second with 40 million of them and ``max_time=0.1``."""
    n, k = 2000, 500
    X, y = rng.standard_normal((n, 2)), np.arange(n) % k
    model = SDCAClassifier("crammer_singer", max_time=1e-9)
    with pytest.warns(ConvergenceWarning):
        model.fit(X[:500], y[:500])  # what is imported for it is none of its memory
        tracemalloc.start()
        model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.dual_coef_.shape == (n, k) and peak < 1.5 * 8 * n * k


def test_few_rows_that_are_hard_get_more_than_a_thousand_epochs():
    """Raw columns of wine differ by a factor of 1000, which penalties alone do not mend."""
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ConvergenceWarning):
        short, long = (SDCAClassifier(homotopy=False, max_iter=most).fit(X, y) for most in (1000, "auto"))
    assert short.n_iter_ == 1000 < long.n_iter_
    assert long.duality_gap_ < short.duality_gap_ and long.score(X, y) >= short.score(X, y)


def test_epochs_that_visit_few_rows_are_no_more_work_than_they_are(monkeypatch):
    """Hinges are soon flat at most rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 100)) / np.arange(1, 101)
    y = X[:, 0] + X[:, 50:].sum(axis=1) + 0.3 * rng.standard_normal(400) > 0
    monkeypatch.setattr(sdca, "MULTIPLICATIONS", 1e8)
    monkeypatch.setattr(sdca, "FEWEST_EPOCHS", 10)
    with pytest.warns(ConvergenceWarning):
        model = SDCAClassifier("hinge", alpha=1e-9, tol=1e-12, homotopy=False).fit(X, y)
    assert model.n_iter_ > epochs("auto", as_rows(X), None, 1, 10, 1e8)


def test_several_labels_weights_and_warm_starts_of_columns_of_any_size(noisy):
    X, y = noisy
    X, Y = X * np.logspace(-3, 3, 20), np.eye(4, dtype=int)[y]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = SDCAClassifier(alpha=1e-4, tol=1e-6, max_iter=200, warm_start=True).fit(X, Y, sample_weight=weight)
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


def test_a_seed_decides_the_order_of_the_rows(cancer):
    options = {"alpha": 1e-3, "max_iter": 1, "tol": 0.0}
    one, again, other = (SDCAClassifier(random_state=seed, **options).fit(*cancer).coef_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_with_nearly_the_same_penalty_begins_near_its_optimum(iris):
    """There a row's dual variable is the derivative of its loss, and the fit to it hardly another."""
    options = {"loss": "squared", "tol": 1e-9, "homotopy": False, "random_state": 0}
    model = SDCAClassifier(alpha=0.01, warm_start=True, max_iter=3000, **options).fit(*iris)
    model.set_params(alpha=0.009, max_iter=1).fit(*iris)
    fresh = SDCAClassifier(alpha=0.009, max_iter=1, **options).fit(*iris)
    assert model.history_[0].duality_gap < 1e-3 * fresh.history_[0].duality_gap


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_held_out_rows_are_looked_at_after_each_pass(cancer):
    options = {"alpha": 1e-3, "early_stopping": True, "tol": 1e-9, "max_iter": 6, "homotopy": False}
    model = SDCAClassifier(**options).fit(*cancer)
    assert [record.n_iter for record in model.history_] == list(range(1, len(model.history_) + 1))
    assert not np.isnan([record.validation_score for record in model.history_]).any()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", REGRESSORS)
def test_the_unit_of_the_responses_changes_neither_the_model_nor_its_epochs(loss, fit_intercept):
    """Powers of two scale all numbers exactly; absolute errors and their penalty scale with the responses, squared ones
    with their squares."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 10))
    y = X @ rng.standard_normal(10) + 0.5 * rng.standard_normal(500) + 1.0
    one, *others = (
        SDCARegressor(
            loss,
            alpha=1e-4 / (unit if loss == "epsilon_insensitive" else 1.0),
            epsilon=0.125 * unit,
            fit_intercept=fit_intercept,
            max_iter=5000,
        ).fit(X, unit * y)
        for unit in (1.0, 2.0**-14, 2.0**14)
    )
    for unit, other in zip((2.0**-14, 2.0**14), others, strict=True):
        assert other.status_ is Status.CONVERGED
        assert other.n_iter_ <= 1.5 * one.n_iter_
        np.testing.assert_allclose(other.coef_ / unit, one.coef_, atol=0.01)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_responses_that_epsilon_does_not_see_are_told(loss, n_outputs, rng):
    X = rng.standard_normal((100, 3))
    y = X @ np.array([1.0, -1.0, 0.5])
    small = 1e-3 * y if n_outputs == 1 else np.c_[y, 1e-3 * y]
    with pytest.warns(UserWarning, match=r"All y of an output lie within epsilon=0.1 of one number.*units of y"):
        model = SDCARegressor(loss).fit(X, small)
    assert not np.atleast_2d(model.coef_)[-1].any()
    with pytest.warns(UserWarning, match="All y of an output lie"):
        SDCARegressor(loss, fit_intercept=False).fit(X, small)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SDCARegressor(loss, epsilon=1e-4).fit(X, small)
        SDCARegressor(loss).fit(X, np.full(100, 3.0))  # is constant
        SDCARegressor(loss, fit_intercept=False).fit(X + 5.0, 1e-3 * y + 1.0)


def test_a_huber_loss_that_is_always_zero_is_refused(rng):
    X = rng.standard_normal((20, 3))
    with pytest.raises(ValueError, match="0 whatever is predicted"):
        SDCARegressor("huber", epsilon=0).fit(X, X[:, 0])


@pytest.mark.parametrize("held", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("constant", [1e6, 1.7e9, 1e12])
@pytest.mark.parametrize("varies", [False, True])
def test_a_constant_however_large_changes_nothing(held, constant, varies):
    """Beside the intercept; nor does one that varies in a few of the rows alone, where a pilot does not see it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, 10)), rng.integers(0, 3, 5000)
    column = rng.standard_normal(5000) * ((np.arange(5000) // 500 == 4) & varies)
    plain, moved = (SDCAClassifier(alpha=1e-5).fit(held(np.c_[X, column + c]), y) for c in (0.0, constant))
    assert moved.status_ is Status.CONVERGED
    np.testing.assert_allclose(
        moved.decision_function(held(np.c_[X, column + constant])),
        plain.decision_function(held(np.c_[X, column])),
        atol=0.02,
    )
