"""What is refused, cut short or interrupted leaves what there was before."""

import multiprocessing
import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import manyclass
from manyclass.data.threads import blas_threads
from manyclass.dual import ascent
from manyclass.estimators import glm_cv
from manyclass.features import RandomFourierFeatures
from manyclass.fit import Clock, Status
from tests.problems import ESTIMATORS, Callback

X, y = load_iris(return_X_y=True)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def make(name, **options):
    return getattr(manyclass, name)(**ESTIMATORS[name], **options)


@every_estimator
@pytest.mark.parametrize(
    "refused",
    [{"checkpoint": "/nowhere/at/all"}, {"memory_limit": "1kB"}, {"sample_weight": -np.ones(75)}],
    ids=lambda one: next(iter(one)),
)
def test_a_fit_that_is_refused_changes_nothing(name, refused):
    model = make(name).fit(X, y)
    before, predicted = dict(vars(model)), model.predict(X)
    with pytest.raises((ValueError, MemoryError)):
        model.fit(np.hstack([X, X])[::2], 7 - y[::2], **refused)
    assert vars(model).keys() == before.keys() and model.n_features_in_ == 4
    assert np.array_equal(model.predict(X), predicted)


@every_estimator
def test_a_first_fit_that_is_refused_leaves_nothing(name):
    model = make(name)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="/nowhere"):
        model.fit(X, y, checkpoint="/nowhere/at/all")
    assert vars(model) == before


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if hasattr(make(name), "warm_start")])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_warm_fit_without_time_keeps_the_model(name, outputs):
    wanted = (y > 0).astype(int) if outputs == 1 else y
    model = make(name, warm_start=True).fit(X, wanted)
    score, duals = model.score(X, wanted), getattr(model, "dual_coef_", None)
    model.set_params(max_time=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, wanted)
    assert model.status_ is Status.MAX_TIME and model.score(X, wanted) == pytest.approx(score, abs=1e-6)
    assert duals is None or np.array_equal(model.dual_coef_, duals)


def test_a_chunk_that_is_refused_does_not_stop_the_stream():
    model, other = manyclass.PegasosClassifier(), manyclass.PegasosClassifier()
    for part in (slice(0, 150, 3), slice(1, 150, 3)):
        for one in (model, other):
            one.partial_fit(X[part], y[part], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 4), np.nan), y[:5])
    for one in (model, other):
        one.partial_fit(X[2::3], y[2::3])
    assert np.array_equal(model.coef_, other.coef_) and model.t_ == other.t_


@pytest.mark.parametrize("size", [1e10, 1e300])
def test_a_chunk_in_other_units_undoes_nothing(size):
    parts = [(X[start::3], y[start::3]) for start in range(3)]
    wild = np.full((5, 4), size), y[:5]
    scores = []
    for chunks in (parts, [parts[0], wild, *parts[1:]]):
        model = manyclass.PegasosClassifier()
        for chunk in chunks:
            model.partial_fit(*chunk, classes=[0, 1, 2])
        scores.append(model.score(X, y))
    assert scores[1] > scores[0] - 0.1 > 0.6


def test_an_interrupt_while_a_stream_is_solved_goes_through_and_loses_nothing(monkeypatch):
    model = manyclass.CalibratedLeastSquaresClassifier().partial_fit(X, y)
    check = Clock.check

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Clock, "check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.predict(X)
    monkeypatch.setattr(Clock, "check", check)
    assert model.score(X, y) > 0.9


def test_an_interrupt_while_the_first_dual_model_is_taken_leaves_one(monkeypatch):
    take, taken = ascent._Ascent._take_model, []

    def interrupted(run):
        taken.append(run)
        if len(taken) == 1:
            raise KeyboardInterrupt
        take(run)

    monkeypatch.setattr(ascent._Ascent, "_take_model", interrupted)
    model = manyclass.SDCAClassifier("hinge").fit(X, y)
    assert model.status_ is Status.INTERRUPTED and np.isfinite(model.coef_).all()


def _predict(model, rows, queue):
    queue.put(model.predict(rows))


def test_generated_features_work_in_a_process_that_was_forked():
    rows = np.random.default_rng(0).standard_normal((4000, 20))
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    model = manyclass.StagewiseClassifier(RandomFourierFeatures(), n_components=400).fit(rows, labels)
    expected, context = model.predict(rows), multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_predict, args=(model, rows, queue), daemon=True)
    child.start()
    assert np.array_equal(queue.get(timeout=60), expected)
    child.join()


def test_blas_has_its_threads_again_when_the_last_that_asked_for_one_is_done():
    def counts():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = counts()
        first, second = blas_threads(1), blas_threads(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(counts()) == {1}
        second.__exit__(None, None, None)
        assert counts() == before
        with pytest.raises(ZeroDivisionError), blas_threads(1):
            raise ZeroDivisionError
        assert counts() == before


class Torn(Callback):
    def __init__(self):
        self.n_torn = 0

    def on_fit_task_end(self, estimator, context, **_):
        return False

    def teardown(self, estimator, context):
        self.n_torn += 1


@pytest.mark.parametrize("name", ["GLMClassifier", "SDCAClassifier", "PegasosClassifier"])
def test_callbacks_are_taken_down_where_a_fit_is_refused(name):
    callback = Torn()
    model = getattr(manyclass, name)().set_callbacks(callback)
    with pytest.raises(ValueError):
        model.fit(X, y, checkpoint=__file__)
    assert callback.n_torn == 1 and not any(one.endswith("_") for one in vars(model))


@pytest.mark.parametrize("name", ["GLMClassifier", "SDCAClassifier", "BoundMajorizationClassifier"])
def test_a_warm_fit_without_time_does_not_tell_other_classes_by_old_coefficients(name):
    model = make(name, warm_start=True).fit(X, np.array(["a", "b", "c"])[y])
    others = np.array(["b", "c", "d"])[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_time=1e-9).fit(X, others)
    assert model.score(X, others) == pytest.approx(1 / 3)


def test_a_warm_fit_of_two_classes_in_two_columns_keeps_their_sides():
    two = (y > 0).astype(int)
    model = manyclass.GLMClassifier(loss="softmax", warm_start=True).fit(X, two)
    score = model.score(X, two)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_time=1e-9).fit(X, two)
    assert model.score(X, two) == score > 0.9


def test_a_warning_that_is_an_error_comes_after_the_model():
    model = manyclass.GLMClassifier(1e-8, max_iter=2, tol=1e-12)
    with warnings.catch_warnings(), pytest.raises(ConvergenceWarning):
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y)
    assert model.predict(X).shape == y.shape


def test_a_penalty_for_each_output_is_one_where_there_was_no_time_to_choose(monkeypatch):
    monkeypatch.setattr(glm_cv, "seconds_of_ridge", lambda problem: 1e9)
    for cv in (None, "gcv", 5):
        model = manyclass.GLMClassifierCV(loss="squared", alpha_per_output=True, cv=cv, max_time=60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        assert model.alpha_.shape == (3,) and model.score(X, y) > 0.3


@pytest.mark.parametrize("cv", [None, "gcv", 5])
def test_a_path_of_least_squares_keeps_its_time(cv):
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((2500, 2000)), rng.integers(5, size=2500)
    manyclass.GLMClassifierCV(loss="squared", cv=cv, max_time=0.05).fit(rows[:99, :9], labels[:99])  # rates, once
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = manyclass.GLMClassifierCV(loss="squared", cv=cv, max_time=0.05).fit(rows, labels)
    assert time.process_time() - began < 1.0  # a decomposition alone takes longer
    assert model.predict(rows).shape == (2500,)
