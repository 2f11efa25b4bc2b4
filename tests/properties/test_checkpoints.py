"""A fit that is stopped anywhere and begun again ends with the same model, whatever the estimator."""

import threading
import warnings
from functools import partial
from operator import itemgetter

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, make_scorer

import manyclass
from benchmarks import kills
from manyclass import features
from manyclass.estimators.fingerprint import _described
from manyclass.fit import CheckpointError, Status
from tests.covering import in_turn
from tests.problems import ESTIMATORS, Callback

IRIS = load_iris(return_X_y=True)
WIDE = (np.random.default_rng(0).standard_normal((30, 60)), np.arange(30) % 3)

FITS = {
    **{name: (name, options | {"tol": 1e-12}) for name, options in ESTIMATORS.items()},
    "PegasosClassifier": ("PegasosClassifier", {"tol": 1e-12, "max_iter": 30}),
    **{
        f"GLMClassifier {solver}": ("GLMClassifier", {"solver": solver, "tol": 1e-9, "max_iter": 80})
        for solver in ("quasi-newton", "newton-cg", "newton", "accelerated", "majorize", "gradient", "biased-gradient")
    },
    "GLMClassifier sampled": ("GLMClassifier", {"curvature": "sampled-hessian", "alpha": 1e-7, "tol": 1e-12}),
    "GLMClassifier sampled newton-cg": (
        "GLMClassifier",
        {"curvature": "sampled-hessian", "solver": "newton-cg", "alpha": 1e-7, "tol": 1e-12},
    ),
    "GLMClassifier kronecker": ("GLMClassifier", {"curvature": "kronecker", "alpha": 1e-7, "tol": 1e-12}),
    "GLMClassifier alpha=0": ("GLMClassifier", {"alpha": 0, "max_iter": 40, "tol": 1e-9}),
    "GLMClassifier held out": ("GLMClassifier", {"early_stopping": True, "alpha": 1e-6, "n_iter_no_change": 3}),
    "GLMClassifierCV accuracy": ("GLMClassifierCV", {"alphas": 5, "cv": 3, "scoring": "accuracy"}),
    "CalibratedLeastSquaresClassifier held out": (
        "CalibratedLeastSquaresClassifier",
        {"early_stopping": True, "tol": 0, "max_iter": 20},
    ),
    "CalibratedLeastSquaresClassifier given": (
        "CalibratedLeastSquaresClassifier",
        {"early_stopping": False, "alpha": 0.1, "tol": 0, "max_iter": 10},
    ),
    "StagewiseClassifier visits": (
        "StagewiseClassifier",
        {"features": features.RandomFourierFeatures(), "n_components": 60, "block_size": 20, "max_iter": 3},
    ),
    "StagewiseClassifier models": ("StagewiseClassifier", {"n_components": 40, "block_size": 20, "n_models": 2}),
    "StagewiseClassifier kernels": (
        "StagewiseClassifier",
        {"features": [features.RandomUnits(), features.RandomFourierFeatures()], "n_components": 40, "block_size": 20},
    ),
    "StagewiseClassifier softmax": (
        "StagewiseClassifier",
        {"loss": "softmax", "alpha": 1e-3, "n_components": 40, "block_size": 20, "max_iter": 2},
    ),
    "StagewiseClassifier calibrated": (
        "StagewiseClassifier",
        {
            "loss": "calibrated",
            "early_stopping": True,
            "n_components": 40,
            "block_size": 20,
            "max_iter": 3,
            "n_iter_no_change": 2,
        },
    ),
    "StagewiseClassifier greedy": (
        "StagewiseClassifier",
        {"features": features.FeatureSubset(order="gradient"), "n_components": None, "block_size": 2, "max_iter": 2},
    ),
    "PegasosClassifier paper": ("PegasosClassifier", {"schedule": "paper", "tol": 0, "max_iter": 4.5}),
    "SDCAClassifier softmax": ("SDCAClassifier", {"loss": "softmax", "homotopy": 4, "tol": 1e-10}),
    "SDCAClassifier held out": ("SDCAClassifier", {"early_stopping": True, "tol": 0}),
    "BoundMajorizationClassifier refreshed": (
        "BoundMajorizationClassifier",
        {"method": "stochastic", "max_iter": 8, "tol": 0},
    ),
    "BoundMajorizationClassifier batch paper": (
        "BoundMajorizationClassifier",
        {"method": "batch", "step": "paper", "max_iter": 30, "tol": 0},
    ),
    "BoundMajorizationClassifier paper": ("BoundMajorizationClassifier", {"max_iter": 6, "tol": 0, "step": "paper"}),
    "BoundMajorizationClassifier rank": ("BoundMajorizationClassifier", {"max_iter": 8, "tol": 0, "rank": 2}),
}
MANY = np.random.default_rng(1).standard_normal((3000, 6))
MANY = MANY, np.argmax(MANY[:, :4] + 0.5 * np.random.default_rng(2).standard_normal((3000, 4)), axis=1)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
every_fit = pytest.mark.parametrize("name", FITS)


class Stopper(Callback):
    """A callback that ends the fit at one of its iterates."""

    def __init__(self, at):
        self.at, self.n_seen = at, 0

    def on_fit_task_end(self, estimator, context, **_):
        if context.parent is not None:
            self.n_seen += 1
        return self.n_seen == self.at


def fit(name, data=IRIS, stop=None, path=None, **changes):
    kind, options = FITS[name]
    model = getattr(manyclass, kind)()
    known = model.get_params()
    model.set_params(**{key: value for key, value in (options | changes).items() if key in known})
    model.set_callbacks(Stopper(stop))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, checkpoint=path)


def plain(value):
    """Without what seconds say, as something to be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: plain(held) for name, held in value.items() if name not in ("phases", "gap_seconds", "estimates")}
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    if type(value).__module__.startswith("manyclass.") and hasattr(value, "__dict__"):
        return plain({name: held for name, held in vars(value).items() if name not in ("seconds", "_sample")})
    return value


def assert_same(model, other):
    assert model.status_ is other.status_
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and "seconds" not in name}
    for name, value in fitted.items():
        np.testing.assert_equal(plain(getattr(other, name)), plain(value), name)


@every_fit
def test_a_fit_that_is_stopped_after_any_iterate_ends_with_the_same_model(name, tmp_path):
    whole = fit(name)
    n_iterates = len(whole.history_)
    for at in sorted({1, (n_iterates + 1) // 2, n_iterates}) if name in ESTIMATORS else [(n_iterates + 1) // 2]:
        path = tmp_path / f"{at}.checkpoint"
        stopped = fit(name, stop=at, path=path)
        assert stopped.status_ is Status.STOPPED_BY_CALLBACK and len(stopped.history_) == at
        resumed = fit(name, path=path)
        assert_same(resumed, whole)
        # What follows the path of `GLMClassifierCV` is done again.
        if name != "GLMClassifierCV" or at < n_iterates:
            assert resumed._skl_callbacks[0].n_seen == n_iterates - at


@pytest.mark.parametrize("name", ["GLMClassifier sampled", "GLMClassifier sampled newton-cg"])
def test_a_sample_of_the_rows_is_drawn_again_as_it_was(name, tmp_path):
    whole = fit(name, MANY)
    for at in range(1, len(whole.history_), 6):
        fit(name, MANY, stop=at, path=tmp_path / f"{at}")
        assert_same(fit(name, MANY, path=tmp_path / f"{at}"), whole)


@pytest.mark.parametrize("name", ["GLMClassifier", "GLMClassifierCV", "CalibratedLeastSquaresClassifier"])
def test_rows_that_were_rotated_are_rotated_again(name, tmp_path):
    whole = fit(name, WIDE)
    fit(name, WIDE, stop=2, path=tmp_path / "c")
    assert_same(fit(name, WIDE, path=tmp_path / "c"), whole)


def test_rows_that_were_not_fitted_to_are_not_where_it_goes_on(tmp_path):
    X, y = (part[:800] for part in MANY)
    wild = X * np.where(np.arange(len(X)) < 5, 1e4, 1.0)[:, None], y
    whole = fit("CalibratedLeastSquaresClassifier", wild, max_iter=5)
    assert whole.choice_["rows"] == "in usual units"
    fit("CalibratedLeastSquaresClassifier", wild, stop=2, path=tmp_path / "c", max_iter=5)
    assert_same(fit("CalibratedLeastSquaresClassifier", wild, path=tmp_path / "c", max_iter=5), whole)


@pytest.mark.parametrize(
    ("name", "dtype"),
    in_turn(
        ["GLMClassifier", "CalibratedLeastSquaresClassifier", "StagewiseClassifier visits"],
        ["float32", "float64"],
        start=1,
    ),
)
def test_what_another_library_holds_goes_back_there(name, dtype, tmp_path):
    xp = pytest.importorskip("array_api_strict")
    data = xp.asarray(IRIS[0][::2], dtype=getattr(xp, dtype)), xp.asarray(IRIS[1][::2])
    whole = fit(name, data, max_iter=6)
    fit(name, data, stop=2, path=tmp_path / "c", max_iter=6)
    resumed = fit(name, data, path=tmp_path / "c", max_iter=6)
    scores = whole.decision_function(data[0])
    assert len(resumed.history_) == len(whole.history_) and resumed._skl_callbacks[0].n_seen == len(whole.history_) - 2
    np.testing.assert_array_equal(np.asarray(resumed.decision_function(data[0])), np.asarray(scores))


def test_a_method_that_gave_way_to_another_is_not_taken_again(tmp_path, monkeypatch):
    monkeypatch.setattr("manyclass.choice.relay.PATIENCE", 0.0)
    monkeypatch.setattr("manyclass.choice.methods.NEWTON_STEPS", 18)  # else it comes first, and stays
    whole = fit("GLMClassifier", alpha=1e-4, tol=1e-10)
    assert whole.choice_["changed_to"]
    for at in (1, 2, 3, 5, len(whole.history_) // 2):
        fit("GLMClassifier", stop=at, path=tmp_path / str(at), alpha=1e-4, tol=1e-10)
        assert_same(fit("GLMClassifier", path=tmp_path / str(at), alpha=1e-4, tol=1e-10), whole)


@every_estimator
def test_a_fit_that_has_ended_gives_its_model_at_once(name, tmp_path):
    whole = fit(name, path=tmp_path / "c")
    again = fit(name, path=tmp_path / "c")
    assert again._skl_callbacks[0].n_seen == 0
    assert_same(again, whole)
    np.testing.assert_array_equal(again.predict(IRIS[0]), whole.predict(IRIS[0]))


@every_estimator
def test_checkpoints_of_another_fit_are_refused(name, tmp_path):
    path = tmp_path / "c"
    fit(name, path=path)
    written = path.read_bytes()
    X, y = IRIS
    moved = X.copy()
    moved[0, 0] += 0.1
    for data, changes, told in [
        ((moved, y), {}, "sample of the rows"),
        ((X[1:], y[1:]), {}, "shape of X"),
        ((X.astype(np.float32), y), {}, "dtype of X"),
        ((X, np.roll(y, 1)), {}, "its y differs"),
        ((X, y, np.arange(1.0, 151.0)), {}, "sample weights"),
        ((X, y), {"alpha": 0.5, "alphas": 3}, "parameter alpha"),
        ((X, y), {"random_state": 7}, "random_state"),
    ]:
        with pytest.raises(CheckpointError, match=f"of another fit .*{told}.*; give another name, or delete"):
            fit(name, data, path=path, **changes)
    assert path.read_bytes() == written


def powers(exponent):
    return lambda v: v**exponent


def nested(exponent):
    return (lambda v: list(map(lambda one: one**2, v))) if exponent == 2 else lambda v: list(map(lambda one: one**3, v))


def recursive(base):
    def found(v):
        return found(v[1:]) if len(v) else base

    return found


def parity(first):
    def even(n):
        return odd(n - 1) if n else first

    def odd(n):
        return even(n - 1) if n else not first

    return even


def by_keyword(exponent):
    return lambda v, *, exponent=exponent: v**exponent


class Power:
    def __init__(self, exponent):
        self.exponent, self.itself, self.method, self.lock = exponent, self, self.of, threading.Lock()

    def __call__(self, v):
        return self.of(v)

    def of(self, v):
        return v**self.exponent


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (make_scorer(f1_score, average="macro"), make_scorer(f1_score, average="macro"), make_scorer(f1_score)),
        (make_scorer(f1_score), make_scorer(f1_score), make_scorer(accuracy_score)),
        (partial(np.power, 2), partial(np.power, 2), partial(np.power, 3)),
        (powers(2), powers(2), powers(3)),
        (nested(2), nested(2), nested(3)),
        (recursive(2), recursive(2), recursive(3)),
        (parity(2), parity(2), parity(3)),
        (by_keyword(2), by_keyword(2), by_keyword(3)),
        (Power(2).of, Power(2).of, Power(3).of),
        (Power(2), Power(2), Power(3)),
        (itemgetter(1), itemgetter(1), itemgetter(2)),
        (np.tanh, np.tanh, np.sin),
    ],
)
def test_functions_are_told_apart_by_what_they_do(one, same, other):
    assert _described(one) == _described(same) != _described(other)


def test_seconds_count_from_the_first_start_on(tmp_path):
    fit("GLMClassifier", stop=2, path=tmp_path / "c", max_time=100.0)
    resumed = fit("GLMClassifier", path=tmp_path / "c", max_time=100.0)
    seconds = [record.seconds for record in resumed.history_]
    assert seconds == sorted(seconds)


def test_a_warm_start_is_gone_on_from(tmp_path):
    def warm(**run):
        model = fit("PegasosClassifier", warm_start=True, max_iter=3)
        return model.set_params(tol=0, max_iter=5).set_callbacks(Stopper(run.pop("stop", None))).fit(*IRIS, **run)

    whole = warm()
    warm(stop=2, checkpoint=tmp_path / "c")
    for _ in range(2):  # in mid-fit, and at its end
        resumed = warm(checkpoint=tmp_path / "c")
        assert_same(resumed, whole)
        assert resumed.t_ == whole.t_


@pytest.mark.slow
def test_processes_that_are_killed_lose_nothing(capsys):
    kills.main(n=2, only="calibrated", scale=0.1)
    assert "2 kills; 0 of the fits" in capsys.readouterr().out
