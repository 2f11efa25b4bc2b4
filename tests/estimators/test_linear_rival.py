"""Where a linear model with a link predicts better than least squares on any features, it is what loss="auto" fits."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score

from manyclass import GLMClassifier, GLMClassifierCV, StagewiseClassifier
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.estimators.linear_rival import LINKED, LinearRival, _penalty_of_labels, _splits
from manyclass.features import RandomFourierFeatures
from manyclass.fit import Status
from manyclass.model import SMOOTH_LOSSES, Problem
from tests.problems import Callback


def taught(n=900, d=10, k=6, seed=0):
    """Heavy tails and no noise: what least squares is led astray by."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, (n, d))
    return X, (X @ rng.standard_normal((d, k))).argmax(axis=1)


@pytest.fixture(scope="module")
def linear():
    X, y = taught()
    return X, y, StagewiseClassifier(n_components=256, block_size=128, random_state=0).fit(X[:600], y[:600])


def test_it_is_taken_where_labels_follow_from_linear_scores(linear):
    X, y, model = linear
    assert model.choice_["features"] == LINKED and model.loss_ == "softmax"
    assert model.choice_["errors"][LINKED] == min(model.choice_["errors"].values())
    squared = StagewiseClassifier(loss="squared", n_components=256, block_size=128, random_state=0).fit(
        X[:600], y[:600]
    )
    assert 1 - model.score(X[600:], y[600:]) < 0.7 * (1 - squared.score(X[600:], y[600:]))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_it_is_the_model_whose_penalty_cross_validation_chooses(linear):
    X, y, model = linear
    assert model.alpha_ == GLMClassifierCV(10, cv=5).fit(X[:600], y[:600]).alpha_
    other = GLMClassifier(model.alpha_).fit(X[:600], y[:600])
    assert_allclose(model.coef_, other.coef_)
    assert_allclose(model.predict_proba(X[600:]), other.predict_proba(X[600:]))
    assert (model.status_, model.n_iter_, model.duality_gap_) == (Status.FINISHED, 1, other.duality_gap_)


def test_of_rows_that_are_all_but_fitted_it_is_as_near_to_the_minimum():
    """It had ended at `tol`, which was more than was left: 22 % errors where that model has 15."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 10)
    X = 0.45 * rng.standard_normal((40, 100))[y] + rng.standard_normal((400, 100))
    model = StagewiseClassifier(n_components=256, block_size=128, random_state=0).fit(X, y)
    other = GLMClassifier(model.alpha_).fit(X, y)
    assert model.choice_["features"] == LINKED and other.history_[-1].objective < 1e-3 * np.log(40)
    assert_allclose(model.coef_, other.coef_)


def test_sizes_and_origins_of_columns_do_not_matter_to_it(linear):
    X, y, _ = linear
    X = X[:, :8]
    y = (X @ np.random.default_rng(1).standard_normal((8, 4))).argmax(axis=1)
    scores = []
    for rows in (X, X * np.logspace(-4, 4, 8), (X + 1e3) * np.logspace(-4, 4, 8)):
        model = StagewiseClassifier(n_components=128, block_size=64, random_state=0).fit(rows[:600], y[:600])
        assert model.choice_["features"] == LINKED
        scores.append(model.score(rows[600:], y[600:]))
    assert min(scores) > scores[0] - 0.02


def test_several_labels_are_compared_by_their_squared_errors():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, (900, 10))
    Y = (X @ rng.standard_normal((10, 4)) > 0).astype(int)
    model = StagewiseClassifier(n_components=256, block_size=128, random_state=0).fit(X[:600], Y[:600])
    assert (model.choice_["features"], model.loss_) == (LINKED, "logistic")
    probability = model.predict_proba(X[600:])
    assert probability.shape == (300, 4) and ((probability > 0.5) == Y[600:]).mean() > 0.95


def test_rare_labels_are_predicted_where_that_leaves_no_more_of_them_wrong():
    """The model of the least log loss is hardly ever sure of one."""
    rng = np.random.default_rng(1)
    topics, Y = rng.random((40, 150)) < 0.06, (rng.random((1200, 40)) < 0.05).astype(int)
    X = ((Y @ topics) * (rng.random((1200, 150)) < 0.3) > 0) + 1.0 * (rng.random((1200, 150)) < 0.03)
    model = StagewiseClassifier(n_components=128, block_size=64, random_state=0).fit(X[:600], Y[:600])
    likely = GLMClassifierCV(10).fit(X[:600], Y[:600])
    assert model.choice_["features"] == LINKED and model.alpha_ < likely.alpha_
    predicted, other = model.predict(X[600:]), likely.predict(X[600:])
    assert f1_score(Y[600:], predicted, average="micro") > 1.1 * f1_score(Y[600:], other, average="micro")
    assert (predicted != Y[600:]).sum() < 1.03 * (other != Y[600:]).sum()


def test_labels_that_cannot_be_foretold_have_the_penalty_of_the_least_log_loss():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (500, 3))
    Y = (rng.random((500, 3)) < 0.3 * (X > 0)).astype(int)  # likelier or not, and never likely
    problem = Problem(as_rows(X), MatrixTargets(Y.astype(float)), SMOOTH_LOSSES["logistic"], 0.0)
    splits = _splits(problem, Y)
    model = GLMClassifierCV([10.0, 0.1], cv=splits).fit(X, Y)
    assert not model.predict(X).any() and model.alpha_ == 0.1
    assert _penalty_of_labels(model, problem, Y, splits) == model.alpha_


def test_folds_that_there_was_no_time_for_choose_no_penalty_of_labels():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6))
    Y = (X @ rng.standard_normal((6, 5)) + rng.standard_normal((400, 5)) > 1.0).astype(int)
    problem = Problem(as_rows(X), MatrixTargets(Y), SMOOTH_LOSSES["logistic"], 0.0)
    splits = _splits(problem, Y)
    model = GLMClassifierCV([1.0, 1e-2, 1e-4], cv=splits).fit(X, Y)
    model.coefs_paths_ = model.coefs_paths_[:2]
    assert _penalty_of_labels(model, problem, Y, splits) == _penalty_of_labels(model, problem, Y, splits[:2])


def test_of_hundreds_of_labels_the_most_frequent_are_compared(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr("manyclass.choice.features.MOST_OUTPUTS", 8)
    X, share = rng.standard_t(3, (900, 10)), rng.permutation(np.linspace(0.02, 0.4, 16))
    scores = X @ rng.standard_normal((10, len(share)))
    Y = (scores.argsort(axis=0).argsort(axis=0) >= 900 * (1.0 - share)).astype(int)
    looked, fit, options = [], LinearRival._fit, {"n_components": 64, "block_size": 64, "random_state": 0}

    def seen(self, model, part, y, *given):
        looked.append(y.mean(axis=0))
        return fit(self, model, part, y, *given)

    monkeypatch.setattr(LinearRival, "_fit", seen)
    model = StagewiseClassifier(**options).fit(X, Y)
    assert model.choice_["features"] == LINKED and model.coef_.shape == (16, 10)
    assert all(len(found) == 8 and found.min() > 0.15 for found in looked) and len(looked) > 1
    some = StagewiseClassifier(**options).fit(X, Y[:, share > np.median(share)])
    assert some.choice_["errors"] == pytest.approx(model.choice_["errors"], rel=1e-2)


def test_a_look_that_time_has_cut_short_says_nothing(monkeypatch):
    X, y = taught(n=600)
    fit = LinearRival._fit

    def late(self, model, part, y, *share):
        found = fit(self, model, part, y, *share)
        found.status_ = Status.MAX_TIME
        return found

    monkeypatch.setattr(LinearRival, "_fit", late)
    model = StagewiseClassifier(n_components=64, block_size=64, random_state=0).fit(X, y)
    assert np.isnan(model.choice_["errors"][LINKED]) and model.choice_["features"] != LINKED


def test_what_no_line_divides_is_left_to_generated_features():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    y = np.digitize(np.linalg.norm(X, axis=1), [1.2, 1.6, 2.0])
    model = StagewiseClassifier(n_components=512, block_size=256, random_state=0).fit(X[:2000], y[:2000])
    assert model.choice_["features"] == "RandomFourierFeatures" and model.loss_ == "squared"
    linear = GLMClassifier().fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > linear.score(X[2000:], y[2000:]) + 0.2


def test_more_rows_are_looked_at_where_generated_features_are_near(monkeypatch):
    """Which gain more by them than a linear model."""
    X, y = taught(n=3000)
    looked = []
    monkeypatch.setattr(LinearRival, "_error", lambda self, n_rows: 0.3)
    monkeypatch.setattr(LinearRival, "_errs_less", lambda self, other: looked.append(other) or False)
    monkeypatch.setattr("manyclass.estimators.stagewise.better_bandwidths", lambda *_: {})
    for error, expected in ((0.31, 1), (0.9, 0)):
        looked.clear()
        found = {"columns": 0.5, "RandomFourierFeatures": error}
        monkeypatch.setattr("manyclass.estimators.stagewise.errors_of_representations", lambda *_, f=found: dict(f))
        model = StagewiseClassifier(n_components=64, block_size=64, random_state=0).fit(X, y)
        assert len(looked) == expected
        assert (model.choice_["features"] == LINKED) == (not expected)
    assert looked == [] and model.loss_ == "softmax"


@pytest.mark.parametrize(
    ("n", "of_columns", "is_taken"), [(3000, 0.297, True), (3000, 0.285, False), (1200, 0.297, False)]
)
def test_of_more_rows_least_squares_on_the_columns_has_to_be_clearly_better(monkeypatch, n, of_columns, is_taken):
    X, y = taught(n=n)
    monkeypatch.setattr(LinearRival, "_error", lambda self, n_rows: 0.3)
    monkeypatch.setattr(LinearRival, "_gains_more", lambda self: False)
    found = {"columns": of_columns, "RandomFourierFeatures": 0.6}
    monkeypatch.setattr("manyclass.estimators.stagewise.errors_of_representations", lambda *_: dict(found))
    monkeypatch.setattr("manyclass.estimators.stagewise.better_bandwidths", lambda *_: {})
    model = StagewiseClassifier(random_state=0).fit(X, y)
    assert model.choice_["features"] == (LINKED if is_taken else "columns")


@pytest.mark.parametrize(("of_columns", "is_near"), [(0.28, True), (0.25, False)])
def test_more_rows_are_looked_at_where_least_squares_on_the_columns_are_near(monkeypatch, of_columns, is_near):
    """768 rows may say that these are a little better where a link is far better with all rows."""
    X, y = taught(n=3000)
    error, looked = LinearRival._error, []
    errs_less = LinearRival._errs_less

    def near(self, n_rows):
        error(self, n_rows)
        return 0.3

    def judged(self, *models):
        looked.append(errs_less(self, *models))
        return looked[-1]

    monkeypatch.setattr(LinearRival, "_error", near)
    monkeypatch.setattr(LinearRival, "_errs_less", judged)
    found = {"columns": of_columns, "RandomFourierFeatures": 0.6}
    monkeypatch.setattr("manyclass.estimators.stagewise.errors_of_representations", lambda *_: dict(found))
    monkeypatch.setattr("manyclass.estimators.stagewise.better_bandwidths", lambda *_: {})
    model = StagewiseClassifier(random_state=0).fit(X, y)
    assert (model.choice_["features"], looked) == ((LINKED, [True]) if is_near else ("columns", []))


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "squared"},
        {"alpha": 1e-3},
        {"n_models": 2},
        {"early_stopping": True},
        {"features": RandomFourierFeatures()},
    ],
    ids=lambda options: next(iter(options)),
)
def test_it_is_not_asked_where_something_else_is_asked_for(options, monkeypatch):
    def refuse(*_):
        raise AssertionError("looked")

    monkeypatch.setattr(LinearRival, "wins", refuse)
    X, y = taught(n=300)
    model = StagewiseClassifier(n_components=64, block_size=32, random_state=0, **options).fit(X, y)
    assert model.loss_ == "squared"


def test_looks_see_the_weights_of_classes_once_and_no_callbacks(monkeypatch):
    X, codes = taught(n=1800, k=3)
    y = np.array(["first", "second", "third"])[codes]
    weights, seen = {"first": 2.0, "second": 1.0, "third": 0.5}, []

    class Seen(Callback):
        def on_fit_task_begin(self, estimator, context, **_):
            if context.parent is None:
                seen.append(estimator)

        def on_fit_task_end(self, estimator, context, **_):
            return False

    monkeypatch.setattr("manyclass.estimators.linear_rival.NEAR", np.inf)
    options = {"n_components": 128, "block_size": 64, "random_state": 0}
    model = StagewiseClassifier(class_weight=weights, **options).set_callbacks(Seen()).fit(X, y)
    other = StagewiseClassifier(**options).fit(X, codes, sample_weight=np.array([1.0, 0.5, 0.25])[codes])
    assert seen == [model]
    assert model.choice_["features"] == other.choice_["features"] == LINKED
    assert_allclose(model.coef_, other.coef_)


def test_wide_sparse_rows_and_weights():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 2000), density=0.02, format="csr", rng=rng)
    y = np.asarray(X @ rng.standard_normal((2000, 3))).argmax(axis=1)
    model = StagewiseClassifier(random_state=0).fit(X[:300], y[:300], sample_weight=rng.random(300) + 0.5)
    other = GLMClassifier(alpha=1e-3).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > other.score(X[300:], y[300:]) - 0.1


def test_without_time_for_the_penalty_it_is_that_of_a_look(monkeypatch):
    X, y = taught(n=1500)
    asked = []
    fit = LinearRival._fit

    def late(self, model, part, y, *share):
        found = fit(self, model, part, y, *share)
        asked.append(len(y))
        if len(y) == 1500:
            found.status_, found.alpha_ = Status.MAX_TIME, 1e6
        return found

    monkeypatch.setattr(LinearRival, "_fit", late)
    monkeypatch.setattr(LinearRival, "wins", lambda self, errors, generated: True)
    model = StagewiseClassifier(n_components=128, block_size=64, random_state=0).fit(X, y)
    assert asked == [1500, 768] and model.alpha_ < 1.0 and model.score(X, y) > 0.8


def test_few_rows_of_many_classes_are_looked_at_without_a_warning(monkeypatch):
    monkeypatch.setattr("manyclass.estimators.linear_rival.NEAR", np.inf)
    monkeypatch.setattr("manyclass.estimators.linear_rival.SAMPLED_ROWS", 192)
    rng = np.random.default_rng(0)
    y = np.arange(210) % 104
    X = 3.0 * rng.standard_normal((104, 30))[y] + rng.standard_normal((210, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StagewiseClassifier(n_components=64, block_size=64, random_state=0).fit(X, y)


def test_interrupted_in_a_look_there_is_a_model(monkeypatch):
    def interrupted(self, task):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(GLMClassifierCV, "_iterates", interrupted)
    X, y = taught(n=200)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = StagewiseClassifier(random_state=0).fit(X, y)
    assert model.status_ is Status.INTERRUPTED and model.predict(X).shape == (200,)


@pytest.mark.parametrize("max_time", [1e-3, 0.05, 0.3])
def test_out_of_time_there_is_a_model(max_time):
    X, y = taught(n=4000, d=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = StagewiseClassifier(random_state=0, max_time=max_time).fit(X, y)
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    "X", [np.ones((300, 3)), np.eye(2), np.repeat(np.eye(3), 4, axis=0)], ids=["one", "two", "three"]
)
def test_rows_of_which_hardly_any_differ_are_fitted(X):
    y = np.arange(len(X)) % 2
    model = StagewiseClassifier(n_components=128, block_size=64).fit(X, y)
    assert model.predict(X).shape == y.shape


def test_units_are_those_of_the_look_and_folds_as_many_as_rows_allow(rng):
    def rival(X, errors=None):
        y = np.arange(len(X)) % 2
        problem = Problem(as_rows(X), ClassTargets(y, 2), SMOOTH_LOSSES["softmax"], 0.1)
        task = SimpleNamespace(problem=problem, encoded=SimpleNamespace(is_multilabel=False, is_binary=True))
        return StagewiseClassifier()._rival(task, errors or {}), problem

    X = rng.standard_normal((40, 3)) * [1.0, 1.0, 1e5]
    for in_units, has_unit in ((0.5, False), (0.19, True)):
        assert (rival(X, {"columns": 0.2, "standardized columns": in_units})[0].unit is not None) is has_unit
    for n, folds in ((12, 5), (40, 10)):
        one, problem = rival(X[:n])
        assert one._search(problem).cv == folds
    other = rival(rng.standard_normal((40, 3)))[0]
    assert len(one._search(problem).alphas) > len(other._search(rival(X[:, :2])[1]).alphas)


@pytest.mark.parametrize(("error", "clearly"), [(0.25, False), (0.247, False), (0.24, True)])
def test_a_link_is_clearly_better_than_least_squares_on_more_rows(error, clearly, monkeypatch, rng):
    """It takes longer; than generated features it need not be."""
    y = np.arange(60) % 3
    problem = Problem(as_rows(rng.standard_normal((60, 2))), ClassTargets(y, 3), SMOOTH_LOSSES["softmax"], 0.1)
    rival = StagewiseClassifier()._rival(SimpleNamespace(problem=problem, encoded=None), {})
    errors = {"link": error, "other": 0.25}
    monkeypatch.setattr(LinearRival, "_sample", lambda self, n_rows: (problem, y))
    monkeypatch.setattr(LinearRival, "_fit", lambda self, model, part, y: model if model in errors else "link")
    monkeypatch.setattr(LinearRival, "_error_on", lambda self, model, part, y: errors[model])
    assert rival._errs_less("other", "link") is clearly
    assert rival._errs_less("other") is (error < 0.25)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_tenth_of_the_rows_may_be_in_other_units(n_classes):
    """Penalties in the units of these, or by log losses of these, would leave the others without a model."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, n_classes, 1000)
    X = 1.5 * rng.standard_normal((n_classes, 12))[y] + rng.standard_normal((1000, 12))
    X[rng.random(1000) < 0.1] *= 1e4
    model = StagewiseClassifier(n_components=128, block_size=64, random_state=0).fit(X[:600], y[:600])
    assert model.choice_["features"] == LINKED
    assert model.choice_["errors"][LINKED] < 0.15
    assert model.score(X[600:], y[600:]) > 0.92
