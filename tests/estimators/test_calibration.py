"""Probabilities of models whose losses have none."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import log_loss

from manyclass import GLMClassifier, PegasosClassifier, SDCAClassifier
from manyclass.choice.methods import Shape
from manyclass.estimators.calibration import CrossCalibrated
from manyclass.fit import Status
from tests.covering import every_pair

WAYS = ["sigmoid", "temperature"]
EACH = pytest.mark.parametrize("calibrate", WAYS)


def problem(n_classes, seed=0):
    X, y = make_classification(
        3000, 8, n_informative=5, n_classes=n_classes, n_clusters_per_class=1, class_sep=0.8, random_state=seed
    )
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.mark.parametrize(
    ("calibrate", "loss", "n_classes"),
    every_pair(["sigmoid", "temperature"], ["hinge", "squared_hinge", "crammer_singer"], [2, 4]),
)
def test_log_loss_is_near_that_of_logistic_regression(calibrate, loss, n_classes):
    X, y, X_test, y_test = problem(n_classes)
    model = SDCAClassifier(loss, calibrate=calibrate, alpha=1e-3).fit(X, y)
    P = model.predict_proba(X_test)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    logistic = GLMClassifier(alpha=1e-3).fit(X, y)
    assert log_loss(y_test, P) < log_loss(y_test, logistic.predict_proba(X_test)) + 0.1
    if calibrate == "temperature":
        np.testing.assert_array_equal(P.argmax(axis=1), model.predict(X_test))
    plain = SDCAClassifier(loss, alpha=1e-3).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert not hasattr(plain, "predict_proba")


def test_near_what_scikit_learn_makes_of_the_same_scores():
    X, y, X_test, _ = problem(3)
    model = SDCAClassifier("hinge", calibrate="sigmoid", alpha=1e-3).fit(X, y)
    theirs = CalibratedClassifierCV(SDCAClassifier("hinge", alpha=1e-3), cv=5, ensemble=False).fit(X, y)
    assert np.abs(model.predict_proba(X_test) - theirs.predict_proba(X_test)).max() < 0.05


@EACH
def test_several_labels_one_of_which_no_row_has(calibrate):
    X, y, X_test, y_test = problem(3)
    Y = np.stack([y == 0, y > 0, y > 2], axis=1).astype(int)
    P = SDCAClassifier("hinge", calibrate=calibrate, alpha=1e-3).fit(X, Y).predict_proba(X_test)
    assert log_loss(y_test == 0, P[:, 0]) < 0.6
    assert np.all((P >= 0) & (P <= 1))
    assert np.all(P[:, 2] < 0.5)


@EACH
def test_a_weight_of_two_is_a_row_given_twice(calibrate):
    X, y, _, _ = problem(3)
    X, y = X[:300], y[:300]
    twice = np.repeat(np.arange(300), 2)
    options = {"loss": "squared_hinge", "alpha": 0.1, "calibrate": calibrate, "tol": 1e-8}
    weighted = SDCAClassifier(**options).fit(X, y, sample_weight=np.full(300, 2.0))
    repeated = SDCAClassifier(**options).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=2e-3)


def test_rows_of_another_array_library():
    xp = pytest.importorskip("array_api_strict")
    X, y, X_test, _ = problem(3)
    model = SDCAClassifier("hinge", calibrate="sigmoid", alpha=1e-2).fit(X, y)
    found = model.predict_proba(xp.asarray(X_test))
    np.testing.assert_allclose(np.asarray(found), model.predict_proba(X_test), atol=1e-12)


def test_sparse_rows_labels_that_are_text_and_little_time():
    X, y, _, _ = problem(3)
    names = np.array(["x", "y", "z"])[y]
    dense, sparse = (
        SDCAClassifier("hinge", calibrate="sigmoid", class_weight={"x": 2.0}, alpha=1e-2, tol=1e-4).fit(rows, names)
        for rows in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(dense.predict_proba(X), sparse.predict_proba(sp.csr_array(X)), atol=1e-2)
    hurried = SDCAClassifier("hinge", calibrate="temperature", max_time=1e-6).fit(X, names)
    assert np.all(np.isfinite(hurried.predict_proba(X)))


@EACH
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pegasos_calibrates_the_same_way(calibrate):
    X, y, X_test, y_test = problem(3)
    plain = PegasosClassifier(1e-3, loss="hinge", max_iter=60).fit(X, y)
    model = PegasosClassifier(1e-3, loss="hinge", max_iter=60, calibrate=calibrate).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert not hasattr(plain, "predict_proba")
    P = model.predict_proba(X_test)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    logistic = GLMClassifier(alpha=1e-3).fit(X, y)
    assert log_loss(y_test, P) < log_loss(y_test, logistic.predict_proba(X_test)) + 0.1
    with pytest.raises(ValueError, match="takes all rows at once"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X_test), P)
    model.set_params(calibrate=None).partial_fit(X, y)
    assert not hasattr(model, "calibration_") and not hasattr(model, "predict_proba")


def test_sigmoids_do_not_depend_on_the_unit_of_weights_below_one():
    X, y = load_digits(return_X_y=True)
    X, weight = X[:400] / 16, np.random.default_rng(0).random(400) * 0.9 + 0.1
    wanted, found = (
        SDCAClassifier("hinge", alpha=1e-3, calibrate="sigmoid", random_state=0).fit(X, y[:400], unit * weight)
        for unit in (1.0, 1e-4)
    )
    np.testing.assert_allclose(found.predict_proba(X), wanted.predict_proba(X), atol=0.02)


def test_too_few_rows_to_calibrate_by_are_told_so():
    X = np.random.default_rng(0).standard_normal((4, 3))
    with pytest.raises(ValueError, match="calibrate='sigmoid' leaves one part of 5 out"):
        SDCAClassifier("hinge", calibrate="sigmoid").fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("kind", [SDCAClassifier, partial(PegasosClassifier, 1e-2, max_iter=100)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_label_in_a_sparse_column_is_that_label_in_a_vector(kind, rng):
    X = rng.standard_normal((150, 3))
    y = (X[:, 0] + rng.standard_normal(150) > 0).astype(int)
    one = kind(loss="hinge", calibrate="sigmoid", random_state=0).fit(X, sp.csr_array(y[:, None]))
    other = kind(loss="hinge", calibrate="sigmoid", random_state=0).fit(X, y)
    assert one.predict_proba(X).shape == (150, 1)
    np.testing.assert_allclose(one.predict_proba(X)[:, 0], other.predict_proba(X)[:, 1], atol=0.05)


@pytest.mark.parametrize(("kind", "max_iter"), [(SDCAClassifier, 2000), (PegasosClassifier, 100)])
@EACH
def test_scores_that_tell_nothing_give_the_share_of_each_class(calibrate, kind, max_iter):
    """The optimum of the hinge of a rare class is a constant, and scores are what the tolerance has left of it."""
    for seed, rate, n in ((7, 0.05, 300), (10, 0.2, 60), (23, 0.2, 60), (8, 0.05, 300)):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((n + 1000, 3)), (rng.random(n + 1000) < rate).astype(int)
        y[:6] = 1
        model = kind(loss="hinge", calibrate=calibrate, random_state=0, max_iter=max_iter).fit(X[:n], y[:n])
        share = np.full(1000, y[:n].mean())
        limit = 1.25 if calibrate == "sigmoid" else 2.5  # one slope alone cannot say how rare a class is
        assert log_loss(y[n:], model.predict_proba(X[n:])) < limit * log_loss(y[n:], np.c_[1 - share, share])


@EACH
def test_scores_that_a_strong_penalty_makes_small_still_tell(calibrate, rng):
    y = np.arange(1200) % 2
    X = rng.standard_normal((1200, 5))
    X[:, 0] = np.where(y == 1, 3.0, -3.0) + 0.3 * X[:, 0]
    model = SDCAClassifier(alpha=1000.0, loss="hinge", calibrate=calibrate, random_state=0).fit(X[:600], y[:600])
    assert np.abs(model.decision_function(X)).max() < 0.1
    assert log_loss(y[600:], model.predict_proba(X[600:])) < 0.05


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@EACH
def test_a_tolerance_of_zero_and_class_weights_are_no_matter(calibrate, rng):
    X, y = rng.standard_normal((400, 3)), (rng.random(400) < 0.05).astype(int)
    options = {"loss": "hinge", "calibrate": calibrate, "max_iter": 20, "random_state": 0}
    assert np.isfinite(SDCAClassifier(tol=0.0, **options).fit(X, y).predict_proba(X)).all()
    P = SDCAClassifier(class_weight="balanced", **options | {"max_iter": 500}).fit(X, y).predict_proba(X)
    assert P[:, 1].mean() == pytest.approx(0.5, abs=0.15)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("calibrate", "kind", "several"),
    every_pair(WAYS, [SDCAClassifier, partial(PegasosClassifier, max_iter=40)], [False, True]),
)
def test_without_time_for_five_more_fits_the_model_keeps_rows_of_its_own_aside(calibrate, several, kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 6))
    signal = X @ rng.standard_normal((6, 4)) + rng.gumbel(size=(1500, 4))
    y = (signal > 1.0).astype(int) if several else np.where(np.arange(1500) == 900, 4, signal.argmax(axis=1))
    weight = rng.uniform(0.5, 1.0, 1500)
    whole = kind(loss="hinge", calibrate=calibrate, random_state=0).fit(X, y, weight)
    monkeypatch.setattr(Shape, "seconds_of_pass", lambda shape: 0.5)
    model = kind(loss="hinge", calibrate=calibrate, max_time=60, random_state=0).fit(X, y, weight)
    assert model.calibration_.shape == (2, 4 if several else 5) and not hasattr(model, "_aside")
    np.testing.assert_allclose(model.predict_proba(X[:500]), whole.predict_proba(X[:500]), atol=0.2)
    if hasattr(model, "dual_coef_"):
        assert np.count_nonzero(~model.dual_coef_.any(axis=1)) >= 300 > np.count_nonzero(~whole.dual_coef_.any(axis=1))


@EACH
def test_links_belong_to_the_model_that_time_leaves_and_not_to_others_cut_short(calibrate, monkeypatch):
    """Scores of fits that are cut short are ten times as large here as those of the model itself."""
    X, y, X_test, y_test = problem(3)
    fit = SDCAClassifier.fit

    def cut_short(model, rows, *given, **more):
        fit(model, rows, *given, **more)
        if model.calibrate is None:
            model.coef_, model.intercept_, model.status_ = 10.0 * model.coef_, 10.0 * model.intercept_, Status.MAX_TIME
        return model

    whole = SDCAClassifier("hinge", calibrate=calibrate, random_state=0).fit(X, y)
    monkeypatch.setattr(SDCAClassifier, "fit", cut_short)
    model = SDCAClassifier("hinge", calibrate=calibrate, max_time=60, random_state=0).fit(X, y)
    losses = [log_loss(y_test, one.predict_proba(X_test)) for one in (model, whole)]
    assert losses[0] < losses[1] + 0.05


def test_a_fit_with_rows_aside_goes_on_from_a_checkpoint(tmp_path, monkeypatch):
    X, y, _, _ = problem(3)
    monkeypatch.setattr(Shape, "seconds_of_pass", lambda shape: 0.5)
    options = {"loss": "hinge", "calibrate": "sigmoid", "max_time": 60, "random_state": 0}
    first = SDCAClassifier(**options).fit(X, y, checkpoint=tmp_path / "fit")
    again = SDCAClassifier(**options).fit(X, y, checkpoint=tmp_path / "fit")
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))
    np.testing.assert_array_equal(again.dual_coef_, first.dual_coef_)


def test_a_link_is_fitted_to_as_many_rows_as_leave_time_for_the_model(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6))
    y = np.where(np.arange(4000) == 2500, 4, (X @ rng.standard_normal((6, 4))).argmax(axis=1))
    fitted_link, seen = CrossCalibrated._fitted_link, []

    def watched(model, task, Z):
        seen.append((task.rows.n_rows, len(Z), len(np.unique(task.encoded.strata))))
        return fitted_link(model, task, Z)

    monkeypatch.setattr(CrossCalibrated, "_fitted_link", watched)
    whole = SDCAClassifier("hinge", calibrate="sigmoid").fit(X, y)
    monkeypatch.setattr("manyclass.estimators.calibration.SECONDS_OF_LINK", 1.0)
    some = SDCAClassifier("hinge", calibrate="sigmoid", max_time=600).fit(X, y)
    assert seen[0] == (4000, 4000, 5) and seen[1] in [(n, n, 5) for n in range(1000, 1006)]
    np.testing.assert_allclose(some.predict_proba(X[:500]), whole.predict_proba(X[:500]), atol=0.1)


def test_time_is_left_for_a_link_that_follows_the_run(monkeypatch):
    X, y, _, _ = problem(4)
    monkeypatch.setattr(Shape, "seconds_of_pass", lambda shape: 5.0)
    monkeypatch.setattr("manyclass.estimators.calibration.SECONDS_OF_LINK", 2.4e-3)  # 200 rows, four outputs: 1.9 s
    model = SDCAClassifier("hinge", calibrate="sigmoid", tol=0.0, max_iter=10**9, max_time=2.0).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.history_[-1].seconds < 1.0


@pytest.mark.parametrize("max_time", [None, 60])
def test_rows_of_classes_that_no_other_row_has_say_nothing_of_the_temperature(max_time, monkeypatch):
    X, y, _, _ = problem(4)
    monkeypatch.setattr(Shape, "seconds_of_pass", lambda shape: 0.5)  # so rows are kept aside where time is limited
    y = np.where(np.arange(len(y)) < 40, 100 + np.arange(len(y)), y)  # names that no score could tell
    known = y < 100
    found, without = (
        SDCAClassifier(calibrate="temperature", tol=1e-4, max_time=max_time).fit(X[rows], y[rows])
        for rows in (known | True, known)
    )
    assert found.calibration_[0, 0] > 0.8 * without.calibration_[0, 0]


def test_the_only_weighted_row_of_a_class_is_not_kept_aside(monkeypatch):
    X, y = np.random.default_rng(0).standard_normal((102, 4)), np.r_[2, 2, np.arange(100) % 2]
    X[:2] += 5.0
    weight = np.where(np.arange(102) == 0, 0.0, 1.0)  # of the third class it is the second row
    monkeypatch.setattr(Shape, "seconds_of_pass", lambda shape: 5.0)
    for place in range(1, 102, 3):  # some of these places are drawn
        order = np.r_[0, np.insert(np.arange(2, 102), place - 1, 1)]
        model = SDCAClassifier("hinge", calibrate="sigmoid", max_time=10, random_state=0)
        model.fit(X[order], y[order], weight[order])
        assert model.dual_coef_[place].any()


@pytest.mark.parametrize("calibrate", ["temperature", "sigmoid"])
def test_one_row_in_other_units_does_not_choose_the_link(calibrate, rng):
    y = rng.integers(0, 3, 400)
    X = 1.5 * rng.standard_normal((3, 8))[y] + rng.standard_normal((400, 8))
    X[0] *= 1e8
    model = SDCAClassifier("squared_hinge", calibrate=calibrate).fit(X, y)
    assert log_loss(y[1:], model.predict_proba(X[1:])) < 0.2
