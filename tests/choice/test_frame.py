import numpy as np
import pytest
from numpy.testing import assert_allclose

from manyclass import GLMClassifier, GLMClassifierCV
from manyclass.choice.frame import Frame
from manyclass.data import ClassTargets, as_rows
from manyclass.fit import Clock, OutOfTime
from manyclass.model import SMOOTH_LOSSES, Problem


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("in_units", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_model_has_the_same_scores_in_every_frame(rotate, in_units, far, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 30)) + far
    targets = ClassTargets(np.arange(12) % 3, 3)
    given = Problem(as_rows(X), targets, SMOOTH_LOSSES["softmax"], 0.1, fit_intercept=fit_intercept)
    frame = Frame(given, rotate=rotate, unit=np.logspace(-0.5, 0.5, 30) if in_units else None)
    W, b = rng.standard_normal((frame.problem.rows.n_features, 3)), fit_intercept * rng.standard_normal(3)
    near = frame.problem.rows.matmat(W) + frame.problem.unshifted(W, b, back=True)
    W_near, b_near = frame.lift_near(W, frame.problem.unshifted(W, b, back=True))
    assert_allclose(given.rows.matmat(W_near) + b_near, near, rtol=1e-7, atol=1e-7 * (1.0 + far))
    coef, intercept = frame.lift(W, b)
    assert_allclose(X @ coef + intercept, near, rtol=1e-6, atol=1e-6 * (1.0 + far))
    back = frame.project((coef, intercept))
    assert_allclose(back[0], W, rtol=1e-6, atol=1e-6)
    assert_allclose(back[1], b, rtol=1e-6, atol=1e-5 * (1.0 + far))


def test_rows_are_not_rotated_where_there_is_no_time_to(rng):
    given = Problem(
        as_rows(rng.standard_normal((12, 30))), ClassTargets(np.arange(12) % 3, 3), SMOOTH_LOSSES["softmax"], 0.1
    )
    ahead = []
    given.on_block = lambda seconds=0.0: ahead.append(seconds)
    Frame(given, rotate=True)
    assert max(ahead) > 0.0
    given.on_block = Clock(1e-9).check
    with pytest.raises(OutOfTime):
        Frame(given, rotate=True)


def test_rows_from_elsewhere_judge_models_of_rotated_rows(rng):
    X, V = rng.standard_normal((40, 300)), rng.standard_normal((50, 300))
    y, v = (np.argmax(x[:, :3] * 3 + rng.gumbel(size=(len(x), 3)), axis=1) for x in (X, V))
    model = GLMClassifierCV([1.0, 0.1], cv=(V, v), tol=1e-7).fit(X, y)
    wanted = [
        np.mean(np.log(GLMClassifier(alpha=a, tol=1e-7).fit(X, y).predict_proba(V)[np.arange(50), v]))
        for a in model.alphas_
    ]
    np.testing.assert_allclose(np.ravel(model.scores_), wanted, rtol=1e-3)


def test_rows_are_not_rotated_where_there_is_no_room(monkeypatch):
    given = Problem(as_rows(np.ones((12, 30))), ClassTargets(np.arange(12) % 3, 3), SMOOTH_LOSSES["softmax"], 0.1)
    monkeypatch.setattr("manyclass.data.memory.free_memory", lambda: 5e3)
    with pytest.raises(MemoryError, match="The space of 12 rows would take"):
        Frame(given, rotate=True)
