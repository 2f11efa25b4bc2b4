import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from manyclass import GLMClassifier
from manyclass.choice import Choice, Method, in_turn, relay
from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, as_rows
from manyclass.data.rows import to_numpy
from manyclass.fit import Clock, InOrder, Run, Status
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.solvers.start import least_squares_start
from tests import problems

SLOW = Method("gradient", "identity", False, passes=3, set_up=0.0, per_pass=1e-3, memory=0.0)
SURE = Method("newton", "hessian", False, passes=10, set_up=0.0, per_pass=1e-2, memory=0.0)
ROTATED = Method("quasi-newton", "kronecker", True, passes=10, set_up=0.0, per_pass=1e-2, memory=0.0)


def run(*methods, alpha=1e-6, start=None, **limits):
    given, *_ = problems.problem("softmax", alpha=alpha)
    changes = []
    iterates = in_turn(Choice(methods[0], methods), given, np.random.default_rng(0), start, changes.append)
    outcome = Run(Clock(None), **limits)(iterates, lambda: None)
    return given, outcome, changes


@pytest.mark.parametrize("second", [SURE, ROTATED])
def test_a_method_that_takes_far_longer_than_expected_gives_way(second):
    given, outcome, changes = run(SLOW, second, tol=1e-6, max_iter=1000)
    assert changes == [second]
    assert outcome.status is Status.CONVERGED
    assert [record.n_iter for record in outcome.history] == list(range(1, len(outcome.history) + 1))
    passes = [record.n_passes for record in outcome.history]
    assert passes == sorted(passes)
    # It goes on from where the first had come.
    objectives = [record.objective for record in outcome.history]
    assert all(after <= before * (1 + 1e-6) for before, after in itertools.pairwise(objectives))
    theta = given.pack(*outcome.model)
    assert given.value_and_gradient(theta).value == pytest.approx(objectives[-1], rel=1e-6)


def test_a_metric_gives_way_at_once_where_its_own_step_leads_less_far_than_one_without():
    """One class of six rows far away: the Hessian at the constant model takes their direction for flat."""
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((3000, 8)), rng.integers(0, 2, 3000)
    X[:, 0] += codes
    X[:6, 5], codes[:6] = 100.0, 2
    metric = Method("quasi-newton", "sampled-hessian", False, passes=10, set_up=0.0, per_pass=1e-3, memory=0.0)
    without, starts = replace(metric, curvature="jacobi", per_pass=1e3), []
    # At a thousand seconds a pass, the one without gives way in its turn.
    for methods, expected in (((metric, without), [without, metric]), ((without,), [])):
        given = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 1e-4)
        changes = []
        iterates = in_turn(Choice(methods[0], methods), given, np.random.default_rng(0), None, changes.append)
        outcome = Run(Clock(None), tol=1e-3, max_iter=500)(iterates, lambda: None)
        assert outcome.status is Status.CONVERGED and changes == expected
        starts.append(outcome.history[0].objective)
    assert starts[0] <= starts[1] * (1 + 1e-3)


@pytest.mark.parametrize("doubt", [0.5, 4.0])
def test_what_stands_in_for_a_metric_in_doubt_does_so_for_longer_the_stronger_the_doubt(monkeypatch, doubt):
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((3000, 8)), rng.integers(0, 2, 3000)
    X[:, 0] += codes
    X[:6, 5], codes[:6] = 100.0, 2
    metric = Method("quasi-newton", "sampled-hessian", False, passes=5, set_up=0.0, per_pass=1e-3, memory=0.0)
    without = replace(metric, curvature="jacobi", passes=100)
    given = Problem(as_rows(X), ClassTargets(codes, 3), SMOOTH_LOSSES["softmax"], 1e-6)
    begun = least_squares_start(given, CURVATURES["sampled-hessian"](given, np.random.default_rng(0)))
    monkeypatch.setattr("manyclass.choice.relay.DOUBT", doubt / begun.doubts)
    changes, passes = [], []

    def change(new):
        changes.append(new)
        passes.append(given.n_passes)

    iterates = in_turn(Choice(metric, (metric, without)), given, np.random.default_rng(0), None, change)
    Run(Clock(None), tol=1e-9, max_iter=200)(iterates, lambda: None)
    assert changes[:2] == [without, metric]
    taken = passes[1] - passes[0]
    assert doubt * metric.passes <= taken <= doubt * metric.passes + 3  # a line search, and the look at the metric


def test_a_method_that_keeps_what_is_expected_of_it_stays():
    _, outcome, changes = run(SURE, replace(ROTATED, per_pass=1.0), tol=1e-6, max_iter=1000)
    assert not changes and outcome.status is Status.CONVERGED


def test_none_gives_way_to_what_is_expected_to_take_longer_than_all_that_was_spent():
    _, outcome, changes = run(SLOW, replace(SURE, per_pass=1e3), tol=1e-9, max_iter=50)
    assert not changes and outcome.n_iter == 50


def test_none_gives_way_to_what_does_not_fit():
    _, _, changes = run(SLOW, replace(SURE, fits=False), tol=1e-9, max_iter=200)
    assert not changes


@pytest.mark.parametrize("look, changes", [(0.0, []), (1.0, [SURE])])
def test_what_a_method_takes_includes_adapting_its_metric_more_often_than_expected(look, changes):
    adapting = replace(ROTATED, solver="newton-cg", row_space=False, passes=1000, per_pass=1e-3, looks=3, look=look)
    assert adapting.taken(500, 2) == adapting.taken(500, 0) == pytest.approx(0.5)
    assert adapting.taken(500, 3) == pytest.approx(0.5 + look)
    *_, found = run(adapting, SURE, tol=1e-9, max_iter=100)
    assert found == changes


def test_what_was_asked_for_stays():
    given, *_ = problems.problem("softmax", alpha=1e-6)
    changes = []
    iterates = in_turn(Choice.of("gradient", "identity"), given, np.random.default_rng(0), None, changes.append)
    assert Run(Clock(None), max_iter=300)(iterates, lambda: None).n_iter == 300 and not changes


@pytest.mark.parametrize("seed", range(3))
def test_a_metric_is_not_doubted_where_the_sample_cannot_tell_its_step_from_one_without(seed):
    """Classes of one size and columns of one variance: the two steps are the same but for what the sample says."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 200, 20_000)
    X = rng.standard_normal((200, 64))[codes] / 2 + rng.standard_normal((20_000, 64))
    given = Problem(as_rows(X), ClassTargets(codes, 200), SMOOTH_LOSSES["softmax"], 1e-4)
    assert not least_squares_start(given, CURVATURES["kronecker"](given, rng)).doubts


@pytest.mark.parametrize("seed", range(3))
def test_a_metric_is_doubted_where_little_is_left_and_less_without_it(seed):
    """Classes that are all but told apart, one of which is rare."""
    rng = np.random.default_rng(seed)
    codes = np.where(np.arange(4000) < 5, 0, rng.integers(1, 10, 4000))
    X = rng.standard_normal((10, 20))[codes] + 0.5 * rng.standard_normal((4000, 20))
    given = Problem(as_rows(X), ClassTargets(codes, 10), SMOOTH_LOSSES["softmax"], 1e-5)
    hessian = CURVATURES["sampled-hessian"](given, rng)
    start = least_squares_start(given, hessian)
    cross = np.vstack([given.cross_covariance, np.zeros((1, 10))])
    base = given.constant_model()
    along = hessian.solve(cross) * (np.arange(21) < 20)[:, None]
    least = min(given.value_and_gradient(base + length * along).value for length in np.logspace(-2, 2, 60))
    assert start.doubts > 0.5 and given.value_and_gradient(start.theta).value < 0.8 * least


def as_given(kind, X):
    if kind == "torch":
        return pytest.importorskip("torch").asarray(X)
    return sp.csr_array(X) if kind == "csr" else X


@pytest.mark.parametrize("row_space", [False, True])
@pytest.mark.parametrize("kind", ["array", "csr", "torch"])
def test_what_rounding_keeps_from_the_tolerance_goes_on_in_float64(kind, row_space):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((16, 40)) * 10.0 ** rng.uniform(-3, 3, 40)).astype(np.float32)
    codes, tol = np.arange(16) % 4, 1e-9

    def problem_of(X):
        rows = as_rows(X)
        return Problem(rows, ClassTargets(rows.asarray(codes, rows.xp.int64), 4), SMOOTH_LOSSES["softmax"], 1e-4)

    given, changes, states = problem_of(as_given(kind, X)), [], []
    method = Method("newton-cg", "jacobi", row_space, passes=1e3, set_up=0.0, per_pass=1e-3, memory=0.0)
    choice = Choice(method, (method,))

    def remember(record, iterate):
        if changes:
            states.append(copy.deepcopy(iterate.state()))

    iterates = in_turn(choice, given, np.random.default_rng(0), None, changes.append)
    outcome = Run(Clock(None), tol=tol, max_iter=10_000, on_iterate=remember)(iterates, lambda: None)
    assert [one.wide for one in changes] == [True] and outcome.status is Status.CONVERGED
    coef, intercept = outcome.model
    assert coef.dtype == intercept.dtype == given.rows.dtype
    wide = problem_of(X.astype(np.float64))
    theta = wide.pack(*(to_numpy(one).astype(np.float64) for one in outcome.model))
    evaluation = wide.value_and_gradient(theta)
    assert evaluation.value == pytest.approx(outcome.history[-1].objective, rel=1e-4)
    # A fit that was cut off there goes on there.
    iterates = in_turn(choice, problem_of(as_given(kind, X)), np.random.default_rng(0), None, changes.append, states[1])
    again = Run(Clock(None), tol=tol, max_iter=10_000)(iterates, lambda: None)
    assert again.status is Status.CONVERGED and len(changes) == 1
    np.testing.assert_array_equal(to_numpy(again.model[0]), to_numpy(coef))


@pytest.mark.parametrize(("seconds", "max_time"), [(1e3, None), (20.0, 10.0), (20.0, None)])
def test_a_method_without_a_step_gives_way_to_none_that_takes_far_longer(monkeypatch, seconds, max_time):
    begins = relay._at_work

    def stalls(*given):
        yield next(begins(*given))
        return Status.STALLED

    monkeypatch.setattr(relay, "_at_work", stalls)
    given, *_ = problems.problem("softmax")
    changes, second = [], replace(SURE, set_up=seconds)
    choice, clock = Choice(SLOW, (SLOW, second)), Clock(max_time)
    iterates = InOrder(in_turn(choice, given, np.random.default_rng(0), None, changes.append, clock=clock))
    assert list(iterates) and iterates.reason is Status.STALLED
    assert changes == [second] * (seconds < 1e3 and max_time is None)


def test_a_method_without_a_step_gives_way_to_others():
    """Where every probability is 0 or 1 the Hessian says nothing, and Newton's method finds no way out."""
    X, y = load_iris(return_X_y=True)
    model = GLMClassifier(1 / 150, warm_start=True).fit(1e3 * X, y).fit(X, y)
    assert model.status_ is Status.CONVERGED and model.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("max_time", "first"),
    [(None, "newton"), (1e4, "newton"), (500.0, "quasi-newton"), (20.0, "gradient"), (1.0, "gradient")],
)
def test_the_first_is_the_one_that_gets_farthest_in_the_time_that_there_is(max_time, first):
    given, *_ = problems.problem("softmax", alpha=1e-6)
    best = replace(SURE, set_up=900.0, per_pass=1.0)
    middle = replace(ROTATED, row_space=False, set_up=100.0, passes=1000, per_pass=1.0)
    worst = replace(SLOW, set_up=5.0, passes=1000, per_pass=10.0)
    changes, choice = [], Choice(best, (best, middle, worst, replace(worst, set_up=0.0, fits=False)))
    iterates = in_turn(choice, given, np.random.default_rng(0), None, changes.append, clock=Clock(max_time))
    next(iterates)
    assert [one.solver for one in changes] == ([] if first == best.solver else [first])
