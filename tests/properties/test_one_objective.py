"""The same loss and alpha are the same objective in every estimator, whatever its method."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

import manyclass
from manyclass.estimators.vocabulary import LOSSES_OF
from manyclass.fit import Status
from tests.oracles.objective import objective

ALPHA = 0.05
TIGHT = {
    "GLMClassifier": {"tol": 1e-10, "max_iter": 5000},
    "SDCAClassifier": {"tol": 1e-8, "max_iter": 20_000},
    "SDCARegressor": {"tol": 1e-8, "max_iter": 20_000},
    "BoundMajorizationClassifier": {"tol": 1e-9, "max_iter": 5000},
    "PegasosClassifier": {"tol": 0, "max_iter": 200},
}
"""Estimators that minimise F(W, b), and what makes them do so to the last digits that they can give."""
LOOSE = {"PegasosClassifier": 0.03}
"""A share of F(zero model), where steps are random."""

LINEAR = {name: LOSSES_OF[name] for name in TIGHT}
PAIRS = sorted({(name, loss) for name, losses in LINEAR.items() for loss in losses if name != "SDCARegressor"})


@cache
def rows(kind, n=300, d=5):
    rng = np.random.default_rng(0)
    if kind == "multilabel":
        X, Y = make_multilabel_classification(n, d, n_classes=3, random_state=0)
        return (X - X.mean(0)) / X.std(0), Y
    k = 2 if kind == "binary" else 3
    X = rng.standard_normal((n, d))
    return X + 0.3, np.argmax(X @ rng.standard_normal((d, k)) + rng.gumbel(size=(n, k)), axis=1)


def fit(name, loss, X, y, **options):
    options = TIGHT[name] | options
    estimator = getattr(manyclass, name)
    if name == "BoundMajorizationClassifier":  # which takes softmax, or logistic for several labels
        return estimator(alpha=ALPHA, **options).fit(X, y)
    return estimator(alpha=ALPHA, loss=loss, **options).fit(X, y)


@cache
def fitted(name, loss, kind):
    return fit(name, loss, *rows(kind))


@cache
def lowest(loss, kind):
    """The least F and its model, of whichever estimator finds it."""
    X, y = rows(kind)
    found = []
    for name, losses in LINEAR.items():
        if loss in losses and name not in ("SDCARegressor", *LOOSE) and takes(name, loss, kind):
            model = fitted(name, loss, kind)
            found.append((value(loss, X, y, model), model))
    return min(found, key=lambda pair: pair[0]) if found else None


def value(loss, X, y, model):
    return objective(loss, X, y, ALPHA, model.coef_, model.intercept_)


def at_zero(loss, X, y, model):
    return objective(loss, X, y, ALPHA, 0 * model.coef_, 0.0)


JOINT = ("softmax", "sparsemax", "crammer_singer", "squared_crammer_singer")


def takes(name, loss, kind):
    if kind == "multilabel":
        return loss not in JOINT
    return not (name == "BoundMajorizationClassifier" and loss == "logistic" and kind == "multiclass")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "loss"), PAIRS)
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
def test_every_estimator_of_a_loss_finds_the_same_minimum(name, loss, kind):
    X, y = rows(kind)
    if not takes(name, loss, kind):
        if loss in JOINT:
            if name != "BoundMajorizationClassifier":
                with pytest.raises(ValueError, match="use loss='logistic'"):
                    fit(name, loss, X, y)
        return
    model = fitted(name, loss, kind)
    assert model.coef_.shape == ((1 if kind == "binary" else 3), X.shape[1])
    assert model.loss_ in (loss, "softmax", "logistic")
    best = lowest(loss, kind)
    if loss == "perceptron":  # whose minimum is the zero model
        assert value(loss, X, y, model) < at_zero(loss, X, y, model) + 0.1
        return
    if best is None:
        assert value(loss, X, y, model) < 0.8 * at_zero(loss, X, y, model)
        return
    least, other = best
    slack = LOOSE.get(name, 1e-6) * at_zero(loss, X, y, model)
    assert value(loss, X, y, model) <= least + slack
    # (alpha/2) ‖W − W*‖² ≤ F − F*, for a W that is the difference of two columns for twice of it.
    assert np.linalg.norm(model.coef_ - other.coef_) <= 2 * (2 * slack / ALPHA) ** 0.5


@pytest.mark.parametrize("name", [name for name in TIGHT if name != "SDCARegressor"])
def test_two_classes_are_one_column_and_the_same_as_one_label(name):
    """Softmax of two classes is logistic regression, and so is a multi-label fit of one of two."""
    X, y = rows("binary")
    if name == "BoundMajorizationClassifier":
        joint = fitted(name, "softmax", "binary")
    else:
        joint, column = (fitted(name, loss, "binary") for loss in ("softmax", "logistic"))
        np.testing.assert_allclose(joint.coef_, column.coef_, atol=1e-9)
    labels = np.c_[y, 1 - y]
    several = fit(name, "logistic", X, labels)
    atol = 0.15 if name in LOOSE else 1e-3
    np.testing.assert_allclose(several.coef_[:1], joint.coef_, atol=atol)
    np.testing.assert_allclose(several.coef_[1:], -joint.coef_, atol=atol)


@pytest.mark.parametrize("loss", LOSSES_OF["SDCARegressor"])
def test_regressors_minimise_what_they_say(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) + 0.2
    Y = X @ rng.standard_normal((4, 2)) + 0.3 * rng.standard_normal((300, 2))
    model = fit("SDCARegressor", loss, X, Y, epsilon=0.2)
    least = objective(loss, X, Y, ALPHA, model.coef_, model.intercept_, epsilon=0.2)
    assert model.history_[-1].objective == pytest.approx(least, rel=1e-6)
    for _ in range(50):  # a convex function that rises in every direction is at its minimum
        step = 0.02 * rng.standard_normal(model.coef_.shape)
        lift = 0.02 * rng.standard_normal(2)
        there = objective(loss, X, Y, ALPHA, model.coef_ + step, model.intercept_ + lift, epsilon=0.2)
        assert there >= least - 1e-7


@pytest.mark.parametrize(("name", "loss"), [(n, o) for n, o in PAIRS if n in ("GLMClassifier", "SDCAClassifier")])
def test_the_objective_of_the_history_is_that_of_the_public_coefficients(name, loss):
    for kind in ("binary", "multiclass"):
        X, y = rows(kind)
        weight = np.random.default_rng(0).random(len(y))
        model = getattr(manyclass, name)(alpha=ALPHA, loss=loss).fit(X, y, weight)
        expected = objective(loss, X, y, ALPHA, model.coef_, model.intercept_, weight=weight)
        assert min(record.objective for record in model.history_) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", LOSSES_OF)
def test_a_refusal_names_the_estimator_to_use(name):
    X, y = rows("multiclass")
    estimator = getattr(manyclass, name)
    if "loss" not in estimator().get_params():
        return
    foreign = sorted({loss for losses in LOSSES_OF.values() for loss in losses} - set(LOSSES_OF[name]))
    for loss in foreign:
        with pytest.raises(ValueError, match=f"{name} does not fit loss='{loss}'; use ") as refusal:
            estimator(loss=loss).fit(X, y)
        others = [other for other, losses in LOSSES_OF.items() if loss in losses]
        assert all(other in str(refusal.value) for other in others)
    with pytest.raises(ValueError, match=f"There is no loss='probit'; {name} fits"):
        estimator(loss="probit").fit(X, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_classes_without_weight_leave_the_others_their_model_and_its_certificate(dtype):
    """What a finite intercept gave them was lost to all others, and no gap could close."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 300)
    X = (rng.standard_normal((6, 8))[y] + rng.standard_normal((300, 8))).astype(dtype)
    present = y < 4
    whole = manyclass.GLMClassifier(alpha=1e-2, tol=1e-5).fit(X, y, sample_weight=present.astype(float))
    alone = manyclass.GLMClassifier(alpha=1e-2, tol=1e-5).fit(X[present], y[present])
    assert whole.status_ is Status.CONVERGED
    np.testing.assert_allclose(whole.predict_proba(X)[:, :4], alone.predict_proba(X), atol=2e-3)
    assert (whole.predict_proba(X)[:, 4:] == 0.0).all()


@pytest.mark.parametrize(("loss", "kind"), [("softmax", "classes"), ("logistic", "multilabel"), ("softmax", "binary")])
def test_few_random_steps_end_at_the_best_scale(loss, kind):
    X, y = rows(kind)
    model = manyclass.PegasosClassifier(1e-4, loss=loss, max_iter=2, tol=0).fit(X, y)
    values = [objective(loss, X, y, 1e-4, s * model.coef_, s * model.intercept_) for s in (0.98, 1.0, 1.02)]
    assert values[1] == min(values)
