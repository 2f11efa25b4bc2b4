"""L-BFGS and Newton-CG in turns."""

import math
from copy import deepcopy
from functools import partial
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from manyclass import GLMClassifier
from manyclass.curvature import kronecker
from manyclass.curvature.diagonal import Jacobi
from manyclass.curvature.kronecker import Kronecker
from manyclass.data import as_rows
from manyclass.data.targets import ClassTargets
from manyclass.fit import Iterate, Status
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.solvers.base import NOTHING, Solver, iterates_in
from manyclass.solvers.lbfgs import LBFGS
from manyclass.solvers.quasi_newton import Pace, QuasiNewton, Turn
from tests.problems import Callback

METHOD = {"alpha": 1e-4, "solver": "quasi-newton", "curvature": "jacobi", "max_iter": 20_000}


@pytest.fixture(autouse=True)
def plain_metric(monkeypatch):
    """That of the variances of columns, whichever rows still count: L-BFGS would converge in its first turn."""
    refresh = Jacobi.refresh
    monkeypatch.setattr(Jacobi, "refresh", lambda self, problem, theta, row_weight=None: refresh(self, problem, theta))


def problem_of(X, y, alpha, fit_intercept=True):
    targets = ClassTargets(y, int(y.max()) + 1, (0.0, 1.0))
    return Problem(as_rows(X), targets, SMOOTH_LOSSES["softmax"], alpha, fit_intercept=fit_intercept)


def counts(n, d, seed):
    """Of which a few are huge, in rows that are told apart by their logarithms."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.01, random_state=rng, format="csr")
    X.data = np.ceil(2.0 * rng.pareto(1.2, X.nnz))
    logs = X.copy()
    logs.data = np.log1p(logs.data)
    Z = logs @ (0.6 * rng.standard_normal((d, 3)))
    return X, (Z + rng.gumbel(size=Z.shape)).argmax(axis=1)


@pytest.mark.parametrize("power", [-60, -40, 40])
def test_the_unit_of_the_rows_changes_no_step(power):
    """Steps and gradients are then of very different size in W and in b, but not in the units of the curvature."""
    X, y = load_digits(return_X_y=True)
    method, size = {"solver": "quasi-newton", "curvature": "jacobi"}, 2.0**power
    usual = GLMClassifier(1e-2, **method).fit(X[:500], y[:500])
    other = GLMClassifier(1e-2 * size**2, **method).fit(size * X[:500], y[:500])
    assert other.n_iter_ == usual.n_iter_
    np.testing.assert_allclose(size * other.coef_, usual.coef_, rtol=1e-6, atol=1e-9)


def test_newton_steps_give_way_where_the_gap_falls_more_slowly(monkeypatch):
    """Few rows hold most of a column here, so that the variances of columns say little of what curves."""
    X, y = counts(450, 120, 3)
    in_turns = GLMClassifier(**METHOD, tol=1e-3).fit(X, y)
    monkeypatch.setattr("manyclass.solvers.quasi_newton.SLOW", -math.inf)
    never_back = GLMClassifier(**METHOD, tol=1e-3).fit(X, y)
    assert in_turns.status_ is never_back.status_ is Status.CONVERGED
    assert in_turns.n_passes_ < 0.5 * never_back.n_passes_


class Stopper(Callback):
    def __init__(self, at):
        self.at, self.n_seen = at, 0

    def on_fit_task_end(self, estimator, context, **_):
        self.n_seen += context.parent is not None
        return self.n_seen == self.at


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_goes_on_from_its_points_as_it_would_have(tmp_path, monkeypatch):
    monkeypatch.setattr("manyclass.solvers.quasi_newton.BEFORE_NEWTON", 12)
    X, y = counts(400, 80, 0)
    method = METHOD | {"tol": 1e-3, "max_iter": 60}
    whole = GLMClassifier(**method).fit(X, y)
    for at in range(1, len(whole.history_), 23):
        path = tmp_path / str(at)
        GLMClassifier(**method).set_callbacks(Stopper(at)).fit(X, y, checkpoint=path)
        again = GLMClassifier(**method).fit(X, y, checkpoint=path)
        np.testing.assert_array_equal(again.coef_, whole.coef_, str(at))
        assert (again.n_iter_, again.n_passes_) == (whole.n_iter_, whole.n_passes_)


@pytest.mark.parametrize("alpha", [0.0, 1e-4])
def test_its_metric_is_what_it_was_where_it_goes_on(alpha, monkeypatch):
    """Newton-CG estimates all of it anew, L-BFGS what is between the classes."""
    monkeypatch.setattr("manyclass.solvers.quasi_newton.BEFORE_NEWTON", 12)
    X, y = counts(400, 80, 0)

    def iterates(n, saved=None):
        rng = np.random.default_rng(0)
        found = iterates_in(Kronecker, QuasiNewton(), problem_of(X, y, alpha), rng, None, saved)
        return [(one.objective, one.n_iter, one.n_passes, deepcopy(one.state())) for one in islice(found, n)]

    whole = iterates(30)
    assert any(state["turn"].is_descent and state["turn"].each for *_, state in whole)
    for at, (*_, state) in enumerate(whole):
        again = iterates(min(8, 30 - at), state)
        assert [one[:3] for one in again] == [one[:3] for one in whole[at : at + 8]]


def test_a_turn_of_lbfgs_after_newtons_counts_as_many_iterations_as_that_would_have_taken():
    """So that a limit of iterations leaves as many passes as with Newton's method alone."""
    X, y = counts(450, 120, 1)
    model = GLMClassifier(**METHOD, tol=1e-3).fit(X, y)
    assert model.n_passes_ > 8 * model.n_iter_ > 800
    assert [record.n_iter for record in model.history_] == list(range(1, model.n_iter_ + 1))
    short = GLMClassifier(**METHOD | {"max_iter": model.n_iter_ - 1}, tol=1e-3)
    with pytest.warns(ConvergenceWarning):
        assert short.fit(X, y).n_iter_ == model.n_iter_ - 1


def seen(n_passes, gap, **more):
    return Iterate(dict, 1.0, 1, n_passes, gap, **more)


def test_a_pace_is_looked_at_after_as_many_passes():
    pace = Pace(40, 0).after(seen(1, 1.0)).after(seen(30, math.exp(-6))).after(seen(39, math.exp(-4)))
    assert (pace.n_looks, pace.left, pace.least) == (0, 0.0, -6.0)
    pace = pace.after(seen(60, math.exp(-5)))
    assert (pace.n_looks, pace.passes, pace.rate, pace.before) == (1, 60, 0.1, 0.0)
    pace = pace.after(seen(100, math.exp(-8)))
    assert (pace.n_looks, pace.passes, pace.rate, pace.before) == (2, 100, 0.05, 0.1)


def test_without_a_gap_it_is_that_of_what_tells_the_end():
    start = seen(1, math.nan, measure=1.0)
    assert Pace(10, 0).after(start).after(seen(10, math.nan, measure=math.exp(-5))).rate == 0.5


def test_lbfgs_has_twice_the_passes_of_its_last_turn():
    first = Turn(Pace(40, 0))
    assert not first.after(seen(40, 0.5)).is_over
    over = first.after(seen(1, 1.0)).after(seen(40, math.exp(-2))).after(seen(80, math.exp(-4)))
    assert over.is_over
    newtons = over.next(80, 70)
    assert not newtons.after(seen(119, math.exp(-4))).is_over
    assert not newtons.after(seen(120, math.exp(-5.1))).is_over
    slow = newtons.after(seen(120, math.exp(-4.9)))
    assert slow.is_over
    again = slow.next(120, 75)
    assert (again.pace.width, again.each, again.is_descent) == (80, 8.0, True)
    assert [again.is_iteration(seen(passes, 0.1)) for passes in (121, 127, 128, 136)] == [False, False, True, True]


def test_the_last_point_of_a_turn_is_an_iteration_however_few_its_passes():
    turn = Turn(Pace(40, 0), each=100.0)
    assert not turn.is_iteration(seen(50, 0.1))
    over = turn.after(seen(1, 1.0)).after(seen(41, 0.1)).after(seen(81, 0.01))
    assert over.is_over and over.is_iteration(seen(81, 0.01))


class Scripted(Solver):
    """Passes and gaps that are known beforehand."""

    name, needs_majorizer, refreshes = "scripted", False, False

    def __init__(self, points, reason):
        self.points, self.reason, self.n_begun = points, reason, 0

    def iterates(self, problem, curvature, theta, n_iter=0, saved=()):
        self.n_begun += 1
        for n_passes, gap in self.points:
            problem.n_passes = n_passes
            yield seen(n_passes, gap, state=partial(dict, theta=None))
        return self.reason


def test_a_turn_that_stalls_is_no_rate_to_be_compared_with():
    """Where L-BFGS finds no step any more it has no turn again, however fast it had been."""
    fast = [(1, 1.0), (60, 1e-4), (70, 1e-5)]
    slow = [(80 + 50 * i, 1e-5 * 0.99**i) for i in range(5)]
    solver = QuasiNewton(ending=Scripted(slow, Status.STALLED))
    solver.first = solver.again = Scripted(fast, Status.STALLED)
    found = list(solver.iterates(SimpleNamespace(n_passes=0.0), None, None, saved=NOTHING))
    assert [one.n_passes for one in found] == [n_passes for n_passes, _ in fast + slow]
    assert solver.first.n_begun == 1


def heavy_tails(n=1000, k=10):
    rng = np.random.default_rng(0)
    rates, y = 2.0 * rng.pareto(1.2, (k, 20)), rng.integers(k, size=n)
    return rng.poisson(rates[y] * rng.pareto(1.5, (n, 1))).astype(float), y


@pytest.mark.parametrize(("curvature", "name", "value"), [(Jacobi, "weighs_rows", False), (kronecker, "FITTED", 0.0)])
def test_rows_that_count_leave_less_to_be_gained_where_columns_have_heavy_tails(curvature, name, value, monkeypatch):
    monkeypatch.undo()  # the metric as it is
    X, y = heavy_tails()
    method = METHOD | {"tol": 1e-6, "curvature": "jacobi" if curvature is Jacobi else "kronecker"}
    least = GLMClassifier(**method).fit(X, y).history_[-1].objective
    left = []
    for weighs in (getattr(curvature, name), value):
        monkeypatch.setattr(curvature, name, weighs)
        with pytest.warns(ConvergenceWarning):
            model = GLMClassifier(**method | {"max_iter": 60}).fit(X, y)
        left.append(model.history_[-1].objective - least)
    assert left[0] < 0.05 * left[1]


@pytest.mark.parametrize(("X", "y", "weighs"), [(*heavy_tails(), True), (*load_digits(return_X_y=True), False)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_features_keep_their_factor_where_the_rows_that_count_have_their_variance(X, y, weighs, fit_intercept, offset):
    """Of variances about the mean, unless there is no intercept, and all rows have the offset."""
    F = problem_of(X + offset * X.std(axis=0), y, 1e-4, fit_intercept)
    rng, weighs = np.random.default_rng(0), weighs and (fit_intercept or not offset)
    points = [one.state()["theta"] for one in islice(iterates_in(Kronecker, LBFGS(), F, rng, None), 4)]
    curvature = Kronecker(F, rng)
    before = curvature._second.copy()
    curvature.refresh(F, points[-1])
    assert curvature.weighs_rows == weighs
    assert (np.median(np.diag(before)) > 10.0 * np.median(np.diag(curvature._second))) == weighs
    assert np.array_equal(before, curvature._second) != weighs


@pytest.mark.parametrize("seed", range(2))
def test_rows_weighed_once_are_weighed_again_where_it_goes_on(seed):
    X, y = heavy_tails()

    def iterates(n, saved=None):
        rng = np.random.default_rng(seed)
        found = iterates_in(Kronecker, LBFGS(), problem_of(X, y, 1e-4), rng, None, saved)
        return [(one.objective, one.n_iter, one.n_passes, deepcopy(one.state())) for one in islice(found, n)]

    whole = iterates(30)
    for at, (*_, state) in enumerate(whole):
        again = iterates(min(4, 30 - at), state)
        assert [one[:3] for one in again] == [one[:3] for one in whole[at : at + 4]]
