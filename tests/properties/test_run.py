"""One table for all estimators: how fits end, what they leave behind, and what stops them."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import manyclass
from manyclass.cli.modelfile import trusted_types
from manyclass.fit import Clock, Record, Status
from manyclass.fit.run import OutOfTime
from tests.problems import ESTIMATORS, Callback

X, y = load_iris(return_X_y=True)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
LONG = {"tol": 1e-2, "max_iter": 100}
SHORT = {"max_iter": 1, "tol": 1e-12, "max_time": 1e-9}
OF_ITERATES = {"duality_gap_", "coefs_paths_"}


def make(name, **options):
    estimator = getattr(manyclass, name)(**ESTIMATORS[name])
    return estimator.set_params(**{k: v for k, v in options.items() if k in estimator.get_params()})


def quietly(estimator, **weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y, **weights)


def assert_usable(model):
    predicted = np.asarray(model.predict(X))
    assert predicted.shape == y.shape
    if hasattr(model, "classes_"):
        assert set(predicted) <= set(model.classes_)
    else:
        assert np.isfinite(predicted).all()


class Watcher(Callback):
    """A callback that keeps what it is shown, and does something at one of the iterations."""

    def __init__(self, at=None, action=lambda: True):
        self.at, self.action = at, action
        self.records, self.models, self.ended, self.torn_down = [], [], 0, 0

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
        if context.parent is None:
            self.ended += 1
            return False
        self.records.append((metadata or {})["record"])
        self.models.append(fitted_estimator)
        return self.at == len(self.records) and self.action()


def interrupt():
    raise KeyboardInterrupt


def test_every_public_estimator_is_among_them():
    assert set(ESTIMATORS) == set(manyclass.__all__) - {"ClassMoments", "Moments", "analyze", "AutoClassifier"}


@every_estimator
@pytest.mark.parametrize("limits", [LONG, SHORT], ids=["long", "short"])
def test_a_warning_comes_if_and_only_if_the_status_is_a_failure(name, limits):
    model = make(name, **limits)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    told = [warning for warning in caught if warning.category is ConvergenceWarning]
    assert isinstance(model.status_, Status)
    assert len(told) == model.status_.is_failure
    if told:
        assert (str(model.status_) if model.history_ else "nothing was learned") in str(told[0].message)
        assert told[0].filename == __file__  # the line that called fit


@every_estimator
def test_a_status_advises_only_what_the_estimator_has(name):
    advice = str(quietly(make(name, **SHORT)).status_)
    for option in ("warm_start", "max_iter", "max_time", "max_steps"):
        assert option not in advice or option in make(name).get_params()


@every_estimator
def test_the_history_counts_iterations_and_passes(name):
    model = quietly(make(name))
    assert all(isinstance(record, Record) for record in model.history_)
    last = model.history_[-1]
    assert (model.n_iter_, model.n_passes_) == (last.n_iter, last.n_passes)
    limit = model.get_params()["max_iter"]
    assert 0 < model.n_iter_ <= (np.inf if limit == "auto" else limit)
    assert model.n_passes_ > 0
    for field in ("n_iter", "n_passes", "seconds"):
        values = [record[field] for record in model.history_]
        assert values == sorted(values)
    gaps = [record.duality_gap for record in model.history_]
    assert hasattr(model, "duality_gap_") == (not all(np.isnan(gaps)))
    if hasattr(model, "duality_gap_"):
        assert model.duality_gap_ in gaps


@every_estimator
@pytest.mark.parametrize("max_iter", [1, 2])
def test_max_iter_is_kept(name, max_iter):
    model = quietly(make(name, max_iter=max_iter, tol=0))
    assert model.n_iter_ <= max_iter
    assert_usable(model)


@every_estimator
def test_no_time_at_all_leaves_a_usable_model_and_says_so(name):
    with pytest.warns(ConvergenceWarning, match="raise max_time") as told:
        model = make(name, max_time=1e-9).fit(X, y)
    assert any("nothing was learned" in str(one.message) for one in told) == (not model.history_)
    assert model.status_ is Status.MAX_TIME
    assert model.n_iter_ == (model.history_[-1].n_iter if model.history_ else 0)
    assert_usable(model)
    assert_usable(pickle.loads(pickle.dumps(model)))


@every_estimator
@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_time_may_be_over_at_any_look_at_the_clock(name, at, monkeypatch):
    fitted = quietly(make(name, **LONG))
    looks = iter(range(1, at))

    def check(clock, ahead=0.0):
        if clock.max_time is not None and next(looks, None) is None:
            raise OutOfTime

    monkeypatch.setattr(Clock, "check", check)
    model = quietly(make(name, max_time=1e3))
    assert_usable(model)
    assert model.status_ is Status.MAX_TIME
    assert {one for one in vars(fitted) if one.endswith("_")} - set(vars(model)) <= OF_ITERATES


@every_estimator
@pytest.mark.parametrize("at", [1, 2])
def test_ctrl_c_leaves_a_usable_model(name, at):
    watcher = Watcher(at, interrupt)
    model = make(name, tol=0).set_callbacks(watcher)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    if len(watcher.records) < at:  # one iteration is all there is
        return
    assert model.status_ is Status.INTERRUPTED
    assert any("Interrupted" in str(warning.message) for warning in caught)
    assert len(model.history_) == at
    assert_usable(model)


@every_estimator
def test_callbacks_see_records_and_models_that_predict_and_may_stop(name):
    watcher = Watcher()
    model = quietly(make(name).set_callbacks(watcher))
    assert watcher.records == model.history_ or str(watcher.records) == str(model.history_)  # nan is not nan
    assert (watcher.ended, watcher.torn_down) == (1, 1)
    for shown in watcher.models:
        assert_usable(shown)
    assert not hasattr(model, "_callback_fit_ctx")
    np.testing.assert_array_equal(model.predict(X), quietly(make(name)).predict(X))
    stopper = Watcher(at=1)
    stopped = quietly(make(name, tol=0).set_callbacks(stopper))
    assert stopped.status_ is Status.STOPPED_BY_CALLBACK and len(stopped.history_) == 1
    np.testing.assert_array_equal(stopped.predict(X), stopper.models[0].predict(X))


@every_estimator
def test_the_progress_bar_of_scikit_learn_runs(name, capsys):
    model = quietly(make(name).set_callbacks(ProgressBar()))
    assert_usable(model)
    assert name in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if hasattr(make(name), "early_stopping")])
def test_early_stopping_scores_rows_that_are_held_out(name):
    model = quietly(make(name).set_params(early_stopping=True, validation_fraction=0.3))
    scores = [record.validation_score for record in model.history_]
    assert scores and np.isfinite(scores).all()
    assert_usable(model)
    if "tol" in model.get_params():
        watched = Watcher()
        model.set_params(tol=0, n_iter_no_change=2).set_callbacks(watched)
        model = quietly(model)
        best = int(np.argmax([record.validation_score for record in model.history_]))
        np.testing.assert_array_equal(model.predict(X), watched.models[best].predict(X))
        if model.status_ is Status.EARLY_STOPPED:
            assert len(model.history_) == best + 1 + 2


@every_estimator
def test_parameters_come_back_and_survive_cloning(name):
    model = make(name)
    twin = clone(model)
    assert str(twin.get_params()) == str(model.get_params())
    fitted = quietly(clone(model))
    assert str(fitted.get_params()) == str(model.get_params())
    again = quietly(clone(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.n_iter_ == fitted.n_iter_


@pytest.fixture(params=ESTIMATORS, scope="module")
def fitted(request):
    return quietly(make(request.param))


def assert_same(restored, fitted):
    assert restored.status_ is fitted.status_
    assert str(restored.history_) == str(fitted.history_) and isinstance(restored.history_[0], Record)
    assert str(restored.get_params()) == str(fitted.get_params())
    np.testing.assert_array_equal(restored.predict(X), fitted.predict(X))


def test_skops_files_of_every_estimator_load_again_with_only_our_own_types(fitted, tmp_path):
    path = tmp_path / "model.skops"
    skops.io.dump(fitted, path)
    assert set(skops.io.get_untrusted_types(file=path)) <= trusted_types()
    assert_same(skops.io.load(path, trusted=sorted(trusted_types())), fitted)


def test_pickles_and_copies_keep_status_and_history(fitted):
    assert_same(pickle.loads(pickle.dumps(fitted)), fitted)
    assert_same(copy.deepcopy(fitted), fitted)
    assert isinstance(fitted.status_, Status)  # being written has not changed the estimator itself


@every_estimator
def test_a_class_derived_from_an_estimator_is_fitted_as_that_is(name):
    given = make(name, random_state=0)
    mine = type("Mine", (type(given),), {})(**given.get_params(deep=False))
    found, wanted = (quietly(clone(one)).predict(X) for one in (mine, given))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name.endswith(("Classifier", "CV"))])
def test_weights_that_are_none_leave_the_model_that_was_there(name):
    model = quietly(make(name, random_state=0))
    wanted = model.predict(X)
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(X, np.array(["a", "b", "c"])[y], sample_weight=-np.ones(len(y)))
    np.testing.assert_array_equal(model.predict(X), wanted)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, None, "1"])
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name.endswith(("Classifier", "CV"))])
def test_weights_of_classes_are_numbers_from_0_up(name, weight):
    with pytest.raises(ValueError, match="class_weight gives class 1 the weight"):
        make(name, class_weight={1: weight}).fit(X, y)
