"""What benchmarks record of a fit, every iterate, whatever the estimator; and what they draw."""

import json

import numpy as np
import pytest
from scipy import sparse

import manyclass
from benchmarks import report
from benchmarks.battery import drawn, errors, methods
from benchmarks.recorder import Recorder, fit_watched
from tests.problems import ESTIMATORS, rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_iteration_is_seen(name):
    X, y, _ = rows()
    seen = []
    model = getattr(manyclass, name)(**ESTIMATORS[name])
    model.set_params(**{option: value for option, value in (("tol", 0), ("max_iter", 4)) if hasattr(model, option)})
    fit_watched(model, X, y, lambda record, make: seen.append(record))
    assert [str(record) for record in seen] == [str(record) for record in model.history_]  # nan is not nan


@pytest.mark.parametrize("curvature", ["kronecker", "jacobi", "hessian"])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_iterates_are_models_of_the_rows_as_given(curvature, shift):
    X, y, _ = rows()
    made = []
    model = manyclass.GLMClassifier(curvature=curvature)
    fit_watched(model, X + shift, y, lambda record, make: made.append(make()))
    coef, intercept = made[-1]
    np.testing.assert_allclose(coef, model.coef_.T)
    np.testing.assert_allclose(intercept, model.intercept_)
    assert np.abs(made[0][0] - coef).max() > 0


def test_what_it_returns_may_end_the_fit():
    X, y, _ = rows()
    model = fit_watched(manyclass.GLMClassifier(tol=0), X, y, lambda *_: True)
    assert len(model.history_) == 1


def test_what_recording_takes_is_not_counted(tmp_path):
    """The making of an iterate is, once."""
    now = [0.0]

    def make():
        now[0] += 1.0
        return np.zeros((2, 3)), np.zeros(3)

    record = Recorder(tmp_path, 60.0, clock=lambda: now[0])
    for _ in range(3):
        now[0] += 10.0
        record.of(make)
    assert [float(np.load(path)["seconds"]) for path in sorted(tmp_path.glob("*.npz"))] == [11.0, 21.0, 31.0]


@pytest.mark.parametrize("method", ["quasi-newton/jacobi", "newton/hessian"])
def test_the_battery_runs_the_method_that_it_names(method, tmp_path):
    X, y, _ = rows()
    methods.fit(methods.OWN + method, X, y, 1e-3, Recorder(tmp_path, 60.0))
    assert json.loads((tmp_path / "choice.json").read_text())["chosen"] == method


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 8])
def test_rows_drawn_at_random_are_the_same_each_time_and_have_several_classes(seed):
    X, y = drawn.arrays(seed)
    drawn._drawn.cache_clear()
    again, labels = drawn.arrays(seed)
    assert X.shape[0] == len(y) and len(np.unique(y)) >= 2 and X.dtype == np.float32
    values = X.data if sparse.issparse(X) else X
    assert np.isfinite(values).all() and np.array_equal(y, labels)
    assert np.array_equal(values, again.data if sparse.issparse(again) else again)


def test_errors_that_are_clearly_more_than_published_are_told():
    results = [
        errors.Result("one", (700, 4, 3), {"GLM": 0.05, "stagewise": 0.05, "LinearSVC": 0.9}, n_judged=1000),
        errors.Result("other", (70, 4, 3), {"GLM": 0.05}, n_judged=30),
    ]
    table = report.Table("", ["case", "n×d×k", *errors.peers(False), *errors.ours()])
    for case, glm in (("one", 0.035), ("other", 0.035)):
        table.add(case, "", "2.0", "-", "90.0", f"{100 * glm:.1f}", "-", "3.0", "-", "-", "-")
    before = errors.published(str(table))
    assert before["one"] == {"LogisticRegression": 0.02, "LinearSVC": 0.9, "GLM": 0.035, "stagewise": 0.03}
    assert errors.worse(results, before) == [
        "GLM on one: 5.0 %, published 3.5 %",
        "stagewise on one: 5.0 %, published 3.0 %",
    ]
    assert errors.worse(results[1:], before) == []
