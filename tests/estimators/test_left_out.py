"""What GLMClassifierCV makes of rows left out one at a time: scores, temperatures and prediction sets."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from manyclass import GLMClassifierCV
from manyclass.choice import left_out
from manyclass.fit import Status
from manyclass.fit.run import OutOfTime
from tests.problems import rows

ALPHAS = np.logspace(1, -3, 5)
LOSSES = ["softmax", "logistic", "squared", "sparsemax"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, train_size=0.5, random_state=1)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_newton_step_is_close_to_refits(loss, n_classes):
    X, y, s = rows(6, n=200, d=4, k=n_classes)
    model = GLMClassifierCV([0.1], loss=loss, loo_refits=30, tol=1e-8).fit(X, y, s)
    check = model.loo_check_
    assert check["rows"] == 30 and check["correlation"] > 0.9999
    assert abs(check["mean_difference"]) < 6e-3
    assert model.loo_proba_.shape == (200, n_classes)
    seen = -log_loss(y, model.predict_proba(X), sample_weight=s)
    assert model.loo_score_ < seen  # who has seen a row knows it better


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_intercepts_of_columns_apart_are_left_out_of_like_their_coefficients(n_classes):
    X, y, _ = rows(6, n=200, d=4, k=n_classes)
    model = GLMClassifierCV([0.1], loss="logistic", loo_refits=30, tol=1e-8).fit(X, y)
    assert abs(model.loo_check_["mean_difference"]) < 5e-4
    assert model.loo_check_["largest"] < 5e-3


def test_leaving_out_does_not_see_a_class_whose_rows_weigh_nothing():
    X, y = load_wine(return_X_y=True)
    X = X / X.std(0)
    three = GLMClassifierCV([0.02], leave_one_out=True, tol=1e-8).fit(X, y, y > 0)
    two = GLMClassifierCV([0.01], leave_one_out=True, tol=1e-8).fit(X[y > 0], y[y > 0])  # one column for two classes
    np.testing.assert_allclose(three.loo_proba_[y > 0, 1:], two.loo_proba_, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
@pytest.mark.parametrize("weighted", [False, True])
def test_outputs_by_themselves_come_close_where_the_hessian_would_be_too_large(digits, monkeypatch, alpha, weighted):
    from manyclass.choice import left_out

    X, _, y, _ = digits
    X, y, weight = X[:300, 16:48] / 16, y[:300], np.arange(300) % 3 + 0.5 if weighted else None
    options = {"leave_one_out": True, "tol": 1e-6}
    exact = GLMClassifierCV([alpha], **options).fit(X, y, weight)
    monkeypatch.setattr(left_out, "EXACT", 0)
    apart = GLMClassifierCV([alpha], **options).fit(X, y, weight)
    assert apart.loo_score_ == pytest.approx(exact.loo_score_, rel=0.1)
    own = [np.log(m.loo_proba_[np.arange(300), y]) for m in (apart, exact)]
    assert np.corrcoef(*own)[0, 1] > 0.995


def test_a_temperature_mends_scores_that_are_too_sure(digits):
    X, X_test, y, y_test = digits
    X, X_test, y = X[:250, 16:48], X_test[:, 16:48], y[:250]
    plain = GLMClassifierCV([1e-5], leave_one_out=True, cv=2, tol=1e-4).fit(X, y)
    mended = GLMClassifierCV([1e-5], calibrate="temperature", cv=2, tol=1e-4).fit(X, y)
    assert plain.temperature_ == 1.0 and mended.temperature_ > 1.2
    assert mended.loo_score_ == plain.loo_score_
    before, after = (log_loss(y_test, model.predict_proba(X_test)) for model in (plain, mended))
    assert after < before
    np.testing.assert_array_equal(plain.predict(X_test), mended.predict(X_test))


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_sets_cover_new_rows(digits, loss):
    X, X_test, y, y_test = digits
    model = GLMClassifierCV(8, loss=loss, leave_one_out=True).fit(X, y)
    own = np.arange(len(y_test)), y_test
    for coverage in (0.8, 0.95):
        sets = model.predict_set(X_test, coverage)
        assert sets[own].mean() == pytest.approx(coverage, abs=0.03)
        by_class = model.predict_set(X_test, coverage, by_class=True)
        covered = [by_class[own][y_test == j].mean() for j in range(10)]
        assert np.mean(covered) == pytest.approx(coverage, abs=0.03) and min(covered) > coverage - 0.12


def test_sets_of_several_labels_hold_all_of_them():
    X, Y = make_multilabel_classification(1200, n_classes=4, random_state=0)
    model = GLMClassifierCV(6, leave_one_out=True).fit(X[:600], Y[:600])
    sets, truth = model.predict_set(X[600:], 0.85), Y[600:] > 0
    assert (sets | ~truth).all(axis=1).mean() == pytest.approx(0.85, abs=0.04)
    by_label = model.predict_set(X[600:], 0.85, by_class=True)
    for j in range(4):
        assert by_label[truth[:, j], j].mean() == pytest.approx(0.85, abs=0.08)
    squared = GLMClassifierCV(6, loss="squared", leave_one_out=True).fit(X[:600], Y[:600])
    assert (squared.predict_set(X[600:], 0.85) | ~truth).all(axis=1).mean() == pytest.approx(0.85, abs=0.04)


def test_sets_need_scores_of_rows_left_out():
    X, y = load_iris(return_X_y=True)
    model = GLMClassifierCV(3, leave_one_out=True).fit(X, y)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_set(X, 1.0)
    with pytest.raises(ValueError, match="leave_one_out=True"):
        model.set_params(leave_one_out=False).fit(X, y).predict_set(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3])
def test_leave_one_out_does_not_depend_on_the_size_of_the_columns(size, dtype):
    X, y, _ = rows(n=120)
    wanted, found = (
        GLMClassifierCV(alphas=[1e-3 * one**2], cv="loo", tol=1e-7).fit((one * X).astype(dtype), y).scores_
        for one in (1.0, size)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-3)


def test_prediction_sets_do_not_shrink_where_all_weigh_less(digits):
    X, X_test, y = digits[0][:250, 16:48], digits[1][:, 16:48], digits[2][:250]
    wanted, found = (
        GLMClassifierCV(alphas=[1e-3], leave_one_out=True, tol=1e-5)
        .fit(X, y, np.full(len(y), size))
        .predict_set(X_test)
        for size in (1.0, 1e-6)
    )
    assert np.mean(found != wanted) < 1e-3


@pytest.mark.parametrize("options", [{"cv": "loo"}, {"cv": 2, "leave_one_out": True}])
def test_a_hessian_that_does_not_fit_is_refused_before_anything_is_fitted(monkeypatch, options):
    monkeypatch.setattr(left_out, "MATRICES", 1e12)
    X, y = load_digits(return_X_y=True)
    with pytest.raises(MemoryError, match=r"Leaving rows of 64 features out one by one would take .*; use cv=5"):
        GLMClassifierCV(**options).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_time_for_the_next_factor_no_row_is_left_out_and_the_middle_penalty_is_kept(digits, monkeypatch):
    X, _, y, _ = digits
    monkeypatch.setattr(left_out, "EXACT", 0)
    monkeypatch.setattr(left_out, "_seconds_of_output", lambda shape: 1e6)
    monkeypatch.setattr("manyclass.choice.left_out.seconds_left_out", lambda *given, **more: 0.0)
    model = GLMClassifierCV(cv="loo", max_time=60.0).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.alpha_ == model.alphas_[len(model.alphas_) // 2] and model.score(X, y) > 0.9


def test_where_leaving_out_each_row_takes_longer_than_there_is_time_it_is_not_begun(digits, monkeypatch):
    X, _, y, _ = digits
    monkeypatch.setattr("manyclass.choice.left_out.seconds_left_out", lambda *given, **more: 100.0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = GLMClassifierCV(cv="loo", max_time=30.0).fit(X, y)
    assert model.alpha_ == model.alphas_[len(model.alphas_) // 2] and np.isnan(model.scores_).all()


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_are_left_out_alike_in_the_space_that_they_span(sparse, monkeypatch):
    monkeypatch.setattr(left_out, "EXACT", 0)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 90)) * (rng.random((60, 90)) < 0.3), rng.integers(0, 3, 60)
    X[:, :2] += y[:, None]
    X = sp.csr_array(X) if sparse else X
    options = {"alphas": [1.0, 0.1], "cv": "loo", "tol": 1e-6}
    sizes = []
    factor = left_out.Metric
    monkeypatch.setattr(left_out, "Metric", lambda H, *given: sizes.append(len(H)) or factor(H, *given))
    rotated = GLMClassifierCV(**options).fit(X, y)
    assert max(sizes) <= 61
    monkeypatch.setattr("manyclass.choice.left_out.wants_row_space", lambda problem: False)
    given = GLMClassifierCV(**options).fit(X, y)
    np.testing.assert_allclose(rotated.scores_, given.scores_, rtol=1e-4)


def test_folds_are_fitted_no_sharper_where_rows_are_left_out_of_the_last_fit():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=50)
    X = rng.standard_normal((50, 45)) * np.exp(1.5 * rng.standard_normal((50, 45))) + 0.3 * y[:, None]
    plain, left_out = (GLMClassifierCV([1e-5], leave_one_out=one).fit(X, y) for one in (False, True))
    assert left_out.n_passes_ < 10 * plain.n_passes_
    assert left_out.duality_gap_ < 1e-2 * left_out.tol


def test_few_rows_of_many_classes_are_left_out_as_far_as_refits_say():
    """One Newton step is too short by 5 to 9 %, which made the log loss left out a tenth less than it is."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(120) % 20)
    X = 0.5 * rng.standard_normal((20, 40))[y] + rng.standard_normal((120, 40))
    model = GLMClassifierCV([5e-3], leave_one_out=True, loo_refits=60, cv=2).fit(X, y)
    assert abs(model.loo_check_["mean_difference"]) < -0.04 * model.loo_score_


@pytest.mark.parametrize("kind", ["class", "label"])
def test_the_only_row_of_a_class_tells_nothing_of_the_steps_of_others(kind):
    """Without it nothing is known of its class, and the refit is far from one step: all steps had become 2.5 times."""
    rng = np.random.default_rng(0)
    y = np.r_[np.repeat(np.arange(12), 8), 12 + np.arange(3)]
    X = 0.8 * rng.standard_normal((15, 12))[y] + rng.standard_normal((len(y), 12))
    Y = y if kind == "class" else (y[:, None] == np.arange(15)).astype(int)
    alpha = 1e-1 if kind == "class" else 1e-2
    model = GLMClassifierCV([alpha], leave_one_out=True, loo_refits=len(y), cv=2).fit(X, Y)
    assert model.loo_check_["mean_difference"] < 0.02
    of_others = -np.log(model.loo_proba_[: 12 * 8][np.arange(12 * 8), y[: 12 * 8]])
    if kind == "class":
        alone = GLMClassifierCV([alpha], leave_one_out=True, cv=2).fit(X[: 12 * 8], y[: 12 * 8])
        assert of_others.mean() == pytest.approx(-alone.loo_score_, rel=0.25)


def test_no_step_of_a_left_out_row_is_made_shorter(monkeypatch):
    """Where the penalty is tiny some steps go far too far, and of all together a factor below 1 would be told."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 20)), rng.integers(0, 6, 60)
    model = GLMClassifierCV([1e-6], leave_one_out=True, cv=2)
    mended = model.fit(X, y).loo_score_
    monkeypatch.setattr("manyclass.choice.left_out.mended", lambda full, model, Z: Z)
    assert mended <= model.fit(X, y).loo_score_ + 1e-9


def test_refits_for_which_there_is_no_time_leave_the_steps_as_they_are(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(100) % 10)
    X = 0.5 * rng.standard_normal((10, 40))[y] + rng.standard_normal((100, 40))  # steps are too short by some per cent

    def out_of_time(*given):
        raise OutOfTime

    options = {"alphas": [5e-3], "leave_one_out": True, "cv": 2}
    mended = GLMClassifierCV(**options).fit(X, y)
    monkeypatch.setattr(left_out, "refits", out_of_time)
    model = GLMClassifierCV(**options).fit(X, y)
    assert model.status_ is mended.status_ and np.isfinite(model.loo_score_)
    assert model.loo_score_ > mended.loo_score_ + 0.01


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_score_of_a_path_is_that_of_the_model_at_its_end(seed, monkeypatch):
    monkeypatch.setattr("manyclass.choice.left_out.mended", lambda full, model, Z: Z)  # as along the path
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=60)
    X = rng.standard_normal((60, 100)) * np.exp(rng.standard_normal((60, 100))) + 0.5 * y[:, None]
    model = GLMClassifierCV([1e-3], cv="loo", leave_one_out=True).fit(X, y)
    assert np.ravel(model.scores_)[0] == pytest.approx(model.loo_score_, abs=5e-3)


@pytest.mark.parametrize("shape", [(12, 20), (50, 20)])
def test_labels_that_all_rows_have_are_left_out_like_others(shape, rng):
    X, Y = rng.standard_normal(shape), (rng.random((shape[0], 3)) < 0.5).astype(int)
    Y[:, 1] = 1
    model = GLMClassifierCV(cv="loo", leave_one_out=True).fit(X, Y)
    assert np.isfinite(model.scores_).any() and (model.loo_proba_[:, 1] > 0.9).all()


def test_rows_that_are_all_but_fitted_are_moved_by_a_tiny_penalty():
    """Of more than 1024 parameters: a difference of 1e-4 from the target, times what a penalty of 1e-6 leaves open."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=1150)
    X = 0.2 * rng.standard_normal((10, 200))[y] + rng.standard_normal((1150, 200))
    model = GLMClassifierCV(cv="loo", leave_one_out=True).fit(X[:150], y[:150])
    loss = log_loss(y[150:], model.predict_proba(X[150:]))
    assert model.alpha_ > 1e-5 and model.loo_score_ == pytest.approx(-loss, abs=0.4)
    sets = model.predict_set(X[150:], coverage=0.8)
    assert 0.65 < sets[np.arange(1000), y[150:]].mean() < 0.95


def test_rows_that_a_tiny_penalty_fits_are_left_out_all_the_same(rng):
    """Of labels that nothing tells of, no model is better than the shares of the classes."""
    X, y = rng.standard_normal((98, 399)), rng.integers(0, 12, 98)
    model = GLMClassifierCV(cv="loo").fit(X, y)
    assert np.all(np.diff(model.scores_[0, -4:]) < 0)
    assert model.alpha_ > 1.0 and model.best_score_ > -2.6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [2.0**-60, 2.0**-30, 2.0**40])
def test_scores_do_not_depend_on_the_unit_of_the_rows(unit, dtype):
    X, y = load_iris(return_X_y=True)
    alphas = np.logspace(1, -6, 8)
    one, other = (GLMClassifierCV(alphas * u**2, cv="loo", tol=1e-8).fit((X * u).astype(dtype), y) for u in (1.0, unit))
    np.testing.assert_allclose(other.scores_, one.scores_, rtol=0.02)
    assert other.alpha_ == pytest.approx(one.alpha_ * unit**2)


@pytest.mark.parametrize("most, dtype", [(1 << 22, np.float64), (1000, np.float32)])
def test_only_few_rows_are_copied_in_float64_to_be_left_out(most, dtype, monkeypatch):
    monkeypatch.setattr("manyclass.estimators.descent_search.BLOCK_BYTES", most)
    seen = []
    scores = left_out._exactly
    monkeypatch.setattr(
        left_out, "_exactly", lambda problem, theta: seen.append(problem.rows.dtype) or scores(problem, theta)
    )
    X, y = load_iris(return_X_y=True)
    GLMClassifierCV([0.1, 0.01], cv="loo").fit(X.astype(np.float32), y)
    assert {np.dtype(one) for one in seen} == {np.dtype(dtype)}


@pytest.mark.parametrize("cv", [5, "loo"])
def test_rows_of_classes_that_no_other_row_has_say_nothing_of_the_temperature(cv):
    rng = np.random.default_rng(0)
    centers, y = rng.normal(size=(24, 12)), np.r_[np.arange(24), rng.integers(24, size=40)]
    X = centers[y] + 0.9 * rng.normal(size=(64, 12))
    alone = np.bincount(y)[y] == 1
    assert alone.any()

    def likelihood(P, power=1.0):
        P = P**power / np.sum(P**power, axis=1, keepdims=True)
        return np.log(P[~alone, y[~alone]]).mean()

    plain = GLMClassifierCV(7, cv=cv, leave_one_out=True).fit(X, y)
    assert plain.loo_score_ == pytest.approx(likelihood(plain.loo_proba_))
    P = GLMClassifierCV(7, cv=cv, calibrate="temperature").fit(X, y).loo_proba_
    assert likelihood(P) > max(likelihood(P, power) for power in (0.9, 1.1))


@pytest.mark.parametrize("loss", ["softmax", "squared"])
@pytest.mark.parametrize("weight", [None, 2.0])
def test_rows_of_classes_that_no_row_of_a_fold_is_fitted_to_do_not_judge_there(loss, weight):
    X, y = load_iris(return_X_y=True)
    train, test = np.flatnonzero((y < 2) & (np.arange(150) % 2 == 0)), np.arange(1, 150, 2)
    s = None if weight is None else np.full(150, weight)
    found, known = (GLMClassifierCV(loss=loss, cv=[(train, rows)]).fit(X, y, s) for rows in (test, test[y[test] < 2]))
    np.testing.assert_allclose(found.scores_, known.scores_)
    unknown = GLMClassifierCV([1.0, 0.1], loss=loss, cv=[(train, test[y[test] == 2])]).fit(X, y, s)
    assert np.isfinite(unknown.scores_).all()  # where there is no other row, they do
