"""PegasosClassifier on streams: chunks, and models that go on from where they stood."""

import pickle
from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp

from manyclass import PegasosClassifier
from manyclass.subgradient import Schedule

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def chunked(X, y, n_chunks, weight=None, **options):
    model = PegasosClassifier(**options)
    for part in np.array_split(np.arange(len(y)), n_chunks):
        model.partial_fit(X[part], y[part], np.unique(y), None if weight is None else weight[part])
    return model


def test_chunks_continue_the_stream(digits):
    """As many steps as one pass over everything, and nearly as good a model."""
    X, y = digits
    whole = PegasosClassifier(1e-3, max_iter=1, tol=0).fit(X[:1200], y[:1200])
    parts = chunked(X[:1200], y[:1200], 7, alpha=1e-3)
    assert parts.t_ == whole.t_ == 1200
    assert parts.score(X[1200:], y[1200:]) > whole.score(X[1200:], y[1200:]) - 0.03


def test_a_chunk_of_everything_is_a_pass(digits):
    """Same offset, same steps; only the order of the rows is another."""
    X, y = digits
    whole, part = PegasosClassifier(max_iter=1, tol=0).fit(X, y), chunked(X, y, 1)
    assert part.t_ == whole.t_
    assert part.step_offset_ == pytest.approx(whole.step_offset_, rel=0.1)


def test_chunks_of_weighted_rows_keep_ratios_between_chunks(rows):
    """A chunk of rows of weight 5 after one of weight 1: as scaled by the mean weight so far, known at its end."""
    X, y = rows
    weight = np.repeat([1.0, 5.0], 40)
    first, second = (chunked(X, y, 2, weight=c * weight, alpha=0.1).coef_ for c in (1.0, 10.0))
    np.testing.assert_allclose(first, second, rtol=1e-9)
    assert not np.allclose(first, chunked(X, y, 2, alpha=0.1).coef_)


def test_classes_may_come_late(rows):
    X, y = rows
    order = np.argsort(y, kind="stable")
    model = chunked(X[order], y[order], 5, alpha=0.1)
    assert list(model.classes_) == ["a", "b", "c"]


def test_a_loaded_model_goes_on_where_it_stood(rows):
    X, y = rows
    model = PegasosClassifier(0.1).partial_fit(X[:40], y[:40], ["a", "b", "c"])
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.partial_fit(X[40:], y[40:]).coef_, twin.partial_fit(X[40:], y[40:]).coef_)


def test_partial_fit_after_fit_continues(rows):
    X, y = rows
    model = PegasosClassifier(0.1, max_iter=5, tol=0).fit(X, y)
    model.partial_fit(X, y)
    assert model.t_ == 480
    assert model.score(X, y) > 0.8


def test_indicators_in_chunks(rng):
    X = rng.standard_normal((90, 5))
    Y = (X @ rng.standard_normal((5, 3)) > 0).astype(int)
    model = PegasosClassifier(1e-2)
    for _ in range(5):
        for part in np.array_split(np.arange(90), 3):
            model.partial_fit(X[part], Y[part])
    assert model.multilabel_ and (model.predict(X) == Y).mean() > 0.9


def test_a_stream_goes_on_without_its_state(rows):
    """A model that was stored by its coefficients alone goes on from them."""
    X, y = rows
    model = PegasosClassifier(0.1, max_iter=30).fit(X, y)
    assert not hasattr(model, "_state")
    coef, offset = model.coef_.copy(), model.step_offset_
    model.set_params(schedule=Schedule(average=False)).partial_fit(X[:1], y[:1])
    assert (model.t_, model.step_offset_) == (2401, offset)
    assert np.abs(model.coef_ - coef).max() < 0.1 * np.abs(coef).max()


@pytest.mark.parametrize("chunks", [False, True])
def test_a_warm_start_goes_on(rows, chunks):
    X, y = rows
    model = PegasosClassifier(0.1, max_iter=2, tol=0, warm_start=True).fit(X, y)
    model.partial_fit(X, y) if chunks else model.set_params(max_iter=1).fit(X, y)
    assert model.t_ == 240
    assert model.set_params(warm_start=False, max_iter=1).fit(X, y).t_ == 80


def test_a_copy_goes_on_from_where_it_was_made(rows):
    X, y = rows
    options = {"alpha": 0.1, "max_iter": 1, "tol": 0, "warm_start": True, "random_state": 0}
    model, twin = (PegasosClassifier(**options).fit(X, y) for _ in range(2))
    before = copy(model)
    model.fit(X, y)
    np.testing.assert_array_equal(before.fit(X, y).coef_, twin.fit(X, y).coef_)


def test_weights_of_classes_are_weights_of_their_rows_in_chunks(rows):
    X, y = rows
    options = {"alpha": 0.1, "random_state": 0}
    weighted = chunked(X, y, 2, class_weight={"a": 5.0, "b": 1.0, "c": 1.0}, **options)
    np.testing.assert_allclose(weighted.coef_, chunked(X, y, 2, np.where(y == "a", 5.0, 1.0), **options).coef_)
    assert not np.allclose(weighted.coef_, chunked(X, y, 2, **options).coef_)


def test_a_chunk_ends_a_calibration_of_the_scores_before_it(rows):
    X, y = rows
    model = PegasosClassifier(0.1, loss="hinge", calibrate="sigmoid", max_iter=5).fit(X, y)
    assert model.predict_proba(X).shape == (80, 3)
    model.set_params(calibrate=None).partial_fit(X, y)
    assert not hasattr(model, "calibration_") and not hasattr(model, "predict_proba")


def test_an_offset_changes_nothing_in_chunks():
    """The first chunk decides by how much the rows of all are shifted."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 20)).astype(np.float32)
    y = np.argmax(X @ rng.standard_normal((20, 4)) + rng.standard_normal((4000, 4)), axis=1)
    moved = X + np.float32(1000)
    plain, far = (chunked(rows, y, 8) for rows in (X, moved))
    assert far.score(moved, y) > plain.score(X, y) - 0.01
    np.testing.assert_array_equal(far._state.shift, chunked(moved[:500], y[:500], 1)._state.shift)


def test_bad_chunks_are_refused_and_leave_the_model_as_it_was(rows):
    X, y = rows
    with pytest.raises(ValueError, match="first call"):
        PegasosClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        PegasosClassifier(class_weight="balanced").partial_fit(X, y, ["a", "b", "c"])
    with pytest.raises(ValueError, match="two classes"):
        PegasosClassifier().partial_fit(X, np.repeat("a", 80), ["a"])
    model = PegasosClassifier(0.1).partial_fit(X, y, ["a", "b", "c"])
    coef, spoiled = model.coef_.copy(), X.copy()
    spoiled[0, 0] = np.inf
    for bad_rows, labels, classes, message in (
        (X, np.repeat("z", 80), None, "label 'z', which is none of the 3 classes known, such as 'a'"),
        (X[:, :5], y, None, "5 features"),
        (X, y, ["a", "b"], "not the same"),
        (spoiled, y, None, "infinity"),
        (X, y[:70], None, "inconsistent"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad_rows, labels, classes)
    np.testing.assert_array_equal(model.coef_, coef)


def test_chunks_have_one_kind_of_labels(rng):
    X, codes = rng.standard_normal((30, 4)), np.arange(30) % 3
    indicators = (codes[:, None] == np.arange(3)).astype(int)
    for first, then in ((codes, indicators), (indicators, codes)):
        model = PegasosClassifier(loss="logistic").partial_fit(X, first, classes=[0, 1, 2])
        with pytest.raises(ValueError, match="of the same kind"):
            model.partial_fit(X, then)


def test_a_warm_start_without_an_intercept_has_none(rng):
    X = rng.standard_normal((200, 6)) + 1.0
    y = X[:, :4].argmax(axis=1)
    model = PegasosClassifier(warm_start=True, random_state=0).fit(X, y)
    assert model.intercept_.any()
    assert not model.set_params(fit_intercept=False).fit(X, y).intercept_.any()


def test_sparse_rows_that_follow_may_lack_a_column_that_all_before_them_hold(rng):
    A = sp.random_array((600, 8), density=0.3, format="csr", rng=rng)
    year = np.where(np.arange(600) == 500, 0.0, 2010 + rng.standard_normal(600))[:, None]
    X, y = sp.csr_array(sp.hstack([A, sp.csr_array(year)])).astype(np.float32), np.arange(600) % 3
    X.eliminate_zeros()
    stream = PegasosClassifier(random_state=0).partial_fit(X[:300], y[:300], [0, 1, 2]).partial_fit(X[300:], y[300:])
    again = PegasosClassifier(random_state=0, warm_start=True).fit(X[:300], y[:300]).fit(X, y)
    once = PegasosClassifier(random_state=0).fit(X, y)
    assert all(np.isfinite(model.coef_).all() for model in (stream, again, once))


@pytest.mark.parametrize("change", ["place", "unit", "labels"])
def test_a_warm_start_from_other_rows_or_labels_begins_anew(rows, change):
    X, y = rows
    before = {"place": (X + 1e3, y), "unit": (1e6 * X, y), "labels": (X, np.char.add(y, "!"))}[change]
    model = PegasosClassifier(0.1, warm_start=True, max_iter=3, random_state=0)
    once = PegasosClassifier(0.1, max_iter=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.fit(*before).fit(X, y).coef_, once.coef_, rtol=1e-5, atol=1e-6)
