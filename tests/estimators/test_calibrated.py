import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyclass import CalibratedLeastSquaresClassifier, Moments
from manyclass.solvers import Status


def expected_failures(estimator):
    exact = "projection onto [0, 1] gives probabilities of exactly 0 and 1, which the check does not allow"
    failures = {"check_classifiers_multilabel_output_format_predict_proba": exact}
    if estimator.early_stopping is True:
        rows = "which rows are held out depends on how rows are repeated"
        failures["check_sample_weight_equivalence_on_dense_data"] = rows
        failures["check_sample_weight_equivalence_on_sparse_data"] = rows
    return failures


@parametrize_with_checks(
    [CalibratedLeastSquaresClassifier(), CalibratedLeastSquaresClassifier(early_stopping=True)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, test_size=0.4, random_state=0, stratify=y)


def test_better_than_least_squares_and_calibrated(digits):
    from sklearn.linear_model import RidgeClassifier
    from sklearn.metrics import log_loss

    X, X_test, y, y_test = digits
    model = CalibratedLeastSquaresClassifier(1e-4, max_iter=15).fit(X, y)
    assert model.score(X_test, y_test) > RidgeClassifier(1e-4 * len(X)).fit(X, y).score(X_test, y_test)
    P = model.predict_proba(X_test)
    assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert (P >= 0).all()
    assert log_loss(y_test, np.clip(P, 1e-3, None) / np.clip(P, 1e-3, None).sum(axis=1, keepdims=True)) < 0.5
    assert_array_equal(model.predict(X_test), model.classes_[model.decision_function(X_test).argmax(axis=1)])


def test_early_stopping_repeats_the_chosen_number_of_steps_with_all_rows(digits):
    X, _, y, _ = digits
    model = CalibratedLeastSquaresClassifier(early_stopping=True, max_iter=60).fit(X, y)
    again = CalibratedLeastSquaresClassifier(max_iter=model.n_iter_, tol=0.0).fit(X, y)
    for one, two in zip(model.steps_, again.steps_, strict=True):
        assert_allclose(one.coef, two.coef, atol=1e-8)
    held_out = [r.held_out for r in model.history_ if r.held_out == r.held_out]
    assert np.argmin(held_out) + 1 == model.n_iter_
    assert model.status_ in (Status.EARLY_STOPPED, Status.CONVERGED, Status.FINISHED)


def test_moments_at_hand_save_the_pass_and_change_nothing(digits):
    X, _, y, _ = digits
    moments = Moments.zeros(64, 10).update(X[:300], np.eye(10)[y[:300]]).update(X[300:], np.eye(10)[y[300:]])
    before = moments.xx.copy()
    for early_stopping in (False, True):
        with_moments = CalibratedLeastSquaresClassifier(early_stopping=early_stopping).fit(X, y, moments=moments)
        without = CalibratedLeastSquaresClassifier(early_stopping=early_stopping).fit(X, y)
        assert_allclose(with_moments.decision_function(X), without.decision_function(X), atol=1e-8)
    assert_array_equal(moments.xx, before)
    with pytest.raises(ValueError, match="one 0/1 column per class"):
        CalibratedLeastSquaresClassifier().fit(X, y, moments=Moments.zeros(64, 3).update(X, np.eye(10)[y][:, :3]))


def test_multilabel():
    X, Y = make_multilabel_classification(400, 20, n_classes=6, random_state=0)
    model = CalibratedLeastSquaresClassifier().fit(X[:300], Y[:300])
    P = model.predict_proba(X[300:])
    assert P.shape == (100, 6)
    assert ((P >= 0) & (P <= 1)).all()
    predicted = model.predict(X[300:])
    assert_array_equal(predicted, model.decision_function(X[300:]) > 0)
    constant = np.maximum(Y[:300].mean(axis=0), 1 - Y[:300].mean(axis=0)).mean()
    assert (predicted == Y[300:]).mean() > constant + 0.02


def test_labels_of_any_kind_and_order_of_rows(digits):
    X, X_test, y, _ = digits
    names = np.array([f"digit {i}" for i in range(10)], dtype=object)
    model = CalibratedLeastSquaresClassifier(1e-4).fit(X, y)
    named = CalibratedLeastSquaresClassifier(1e-4).fit(X[::-1], names[y[::-1]])
    assert_array_equal(named.predict(X_test), names[model.predict(X_test)])


def test_float32_stays_float32_and_agrees(digits):
    X, X_test, y, _ = digits
    wide = CalibratedLeastSquaresClassifier(1e-3, max_iter=5).fit(X, y)
    narrow = CalibratedLeastSquaresClassifier(1e-3, max_iter=5).fit(X.astype(np.float32), y)
    P = narrow.predict_proba(X_test.astype(np.float32))
    assert P.dtype == np.float32
    assert_allclose(P, wide.predict_proba(X_test), atol=2e-3)


def test_edge_cases():
    X = np.array([[0.0], [1.0]])
    assert CalibratedLeastSquaresClassifier().fit(X, ["a", "b"]).predict(X).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="StagewiseClassifier"):
        CalibratedLeastSquaresClassifier().fit(sp.csr_array((3, 40_000)), [0, 1, 1])
    huge = np.random.default_rng(0).standard_normal((50, 3)) * 1e60
    assert np.isfinite(CalibratedLeastSquaresClassifier().fit(huge, np.arange(50) % 2).predict_proba(huge)).all()
    wide = sp.random_array((20, 60), density=0.2, rng=np.random.default_rng(0), format="csr", dtype=np.float64)
    assert CalibratedLeastSquaresClassifier(0.0).fit(wide, np.arange(20) % 2).score(wide, np.arange(20) % 2) > 0.9


def test_saved_and_loaded_model_predicts_the_same_bits(digits, tmp_path):
    import pickle

    X, X_test, y, _ = digits
    model = CalibratedLeastSquaresClassifier().fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))
