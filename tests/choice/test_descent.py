import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from manyclass import GLMClassifierCV
from manyclass.choice.descent import Descent, has_turned, stride
from manyclass.choice.methods import Method
from manyclass.choice.together import Together
from manyclass.curvature import CURVATURES
from manyclass.fit import Clock, Status
from manyclass.fit.run import OutOfTime
from tests import problems
from tests.covering import in_turn


@pytest.mark.parametrize("left", [1e3, math.inf])
def test_with_time_for_all_penalties_none_is_left_out(left):
    assert all(stride(to_go, 1.0, left) == 1 for to_go in range(1, 30))


def test_before_anything_is_known_of_their_cost_the_next_penalty_follows():
    assert stride(20, 0.0, 1.0) == 1


@pytest.mark.parametrize("seconds", [1.0, 5.0, 20.0])
def test_a_path_is_crossed_in_the_time_that_there_is(seconds):
    """Where each penalty takes no more than twice as long as the one before it, and as long as the first."""
    place, left, visited = 0, seconds, 0
    while place < 40 and (step := stride(40 - place, 0.5, left)):
        place += step
        left -= 1.0
        visited += 1
    assert place == 40 or (left < 1.0 and place >= 20)
    assert visited >= min(seconds, 40) / 2


@pytest.mark.parametrize("left", [-1.0, 1.9])
def test_without_time_for_twice_the_last_penalty_none_follows(left):
    assert stride(17, 1.0, left) == 0


def test_folds_behind_the_first_take_fewer_passes_than_by_themselves(monkeypatch):
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: False))
    options = {"alphas": np.logspace(-1, -5, 9), "cv": 5}
    behind = GLMClassifierCV(**options).fit(X / 16.0, y)
    monkeypatch.setattr(Descent, "_start", Descent._predicted)
    alone = GLMClassifierCV(**options).fit(X / 16.0, y)
    assert behind.n_passes_ < 0.95 * alone.n_passes_
    np.testing.assert_allclose(behind.scores_[:, :4], alone.scores_[:, :4], rtol=0.02)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("curvature", ["kronecker", "sampled-hessian", "jacobi"])
def test_a_path_looks_at_its_metric_once_for_each_penalty(curvature, together, monkeypatch):
    """However many folds share it: a look is worth several of their passes."""
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: together))
    looks, kind = [], CURVATURES[curvature]
    refresh = kind.refresh
    monkeypatch.setattr(kind, "refresh", lambda self, *given: looks.append(1) or refresh(self, *given))
    method = Method("quasi-newton", curvature, False, 1.0, 1.0, 1.0, 0.0)
    monkeypatch.setattr("manyclass.choice.descent.path_method", lambda *given: method)
    model = GLMClassifierCV(alphas=np.logspace(-1, -4, 5), cv=4).fit(X[:600] / 16.0, y[:600])
    # Folds of their own would take four for each; some begin by a look, or look once more.
    assert len(looks) < 2 * np.isfinite(model.scores_[0]).sum()


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_a_fold_learns_nothing_of_a_class_that_it_does_not_have(loss, together, monkeypatch):
    """From the folds before it, where its fits start."""
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: together))
    X, y = load_iris(return_X_y=True)
    model = GLMClassifierCV(alphas=np.logspace(0, -7, 10), cv=KFold(3), loss=loss, scoring="accuracy").fit(X, y)
    assert not np.nan_to_num(model.scores_).any()


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("n_rows", [60, 200])
def test_labels_that_are_noise_are_not_foretold_by_what_other_folds_know_of_them(n_rows, together, monkeypatch):
    """Where directions that no row of a fold has are left as the folds before it have them."""
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: together))
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n_rows, 4 * n_rows)), rng.integers(0, 2, n_rows)
    options = {"alphas": np.logspace(1, -4, 6), "cv": KFold(5), "scoring": "accuracy"}
    loose = GLMClassifierCV(**options, tol=3e-2).fit(X, y)
    tight = GLMClassifierCV(**options, tol=1e-8).fit(X, y)
    assert np.nanmax(loose.scores_.mean(axis=0)) <= np.nanmax(tight.scores_.mean(axis=0)) + 0.1


@pytest.mark.parametrize("curvature", ["jacobi", "sampled-hessian"])
def test_folds_that_hand_over_to_newton_keep_the_metric_that_they_share(curvature, monkeypatch):
    """Which was estimated from rows that a fold does not have."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6000, 3)), rng.integers(0, 3, 6000)
    method = Method("quasi-newton", curvature, False, 1.0, 1.0, 1.0, 0.0)
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: False))
    monkeypatch.setattr("manyclass.choice.descent.path_method", lambda *given: method)
    monkeypatch.setattr("manyclass.solvers.quasi_newton.BEFORE_NEWTON", 2)
    options = {"alphas": [1e-2, 1e-4], "cv": 3, "tol": 1e-6}
    handed_over = GLMClassifierCV(**options).fit(X, y)
    monkeypatch.undo()
    np.testing.assert_allclose(handed_over.scores_, GLMClassifierCV(**options).fit(X, y).scores_, rtol=1e-4)


@pytest.mark.parametrize(("seed", "together"), in_turn(range(3), [True, False], start=1))
def test_rows_that_can_be_separated_have_the_penalty_and_the_score_of_sharp_fits(seed, together, monkeypatch):
    """Where the objective is a thousandth of the zero model's, fits cut short have the scores of larger penalties."""
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: together))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 250)
    X = 4.0 / math.sqrt(50) * rng.standard_normal((3, 50))[y] + rng.standard_normal((250, 50))
    loose, sharp = GLMClassifierCV().fit(X, y), GLMClassifierCV(tol=1e-7).fit(X, y)
    score = dict(zip(sharp.alphas_, sharp.scores_.mean(axis=0), strict=True))
    assert score[loose.alpha_] >= 1.1 * sharp.best_score_
    assert loose.best_score_ == pytest.approx(sharp.best_score_, rel=0.25)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("status", [Status.MAX_TIME, Status.INTERRUPTED])
def test_cut_short_at_the_first_penalty_it_leaves_what_the_first_fit_has_come_to(together, status, monkeypatch):
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(Together, "pays", staticmethod(lambda *given: together))
    attempt = Descent.attempt

    def cut(self, *given, **options):
        return replace(attempt(self, *given, **options), status=status)

    monkeypatch.setattr(Descent, "attempt", cut)
    with pytest.warns(ConvergenceWarning):
        model = GLMClassifierCV([1e-1, 1e-2], cv=3).fit(X, y)
    assert model.status_ is status and model.alpha_ == pytest.approx(1e-1)
    assert model.score(X, y) > 0.9 and np.isnan(model.scores_).all()


def test_cut_short_before_the_first_fit_has_begun_it_leaves_the_zero_model(monkeypatch):
    X, y = load_digits(return_X_y=True)

    def late(*_, **options):
        raise OutOfTime

    monkeypatch.setattr(Descent, "attempt", late)
    with pytest.warns(ConvergenceWarning):
        model = GLMClassifierCV([1e-1, 1e-2], cv=3).fit(X, y)
    assert model.status_ is Status.MAX_TIME and not np.any(model.coef_)


@pytest.mark.parametrize("cv", [2, 5, "loo"])
@pytest.mark.parametrize("n_large", [1, 10])
def test_a_path_does_not_end_before_anything_is_learned(cv, n_large):
    """Penalties in units of columns that tell nothing leave nothing of the others, and scores go up and down there."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2000, 20))
        X[:, -n_large:] = rng.lognormal(8, 2, (2000, n_large))
        y = (X[:, 0] + X[:, 1] + 0.5 * rng.logistic(size=2000) > 0).astype(int)
        assert GLMClassifierCV(cv=cv).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.77


def test_a_score_turns_only_from_what_is_better_than_nothing():
    path = np.array([[-0.5, -0.4, -0.45, -0.46], [-0.5, -0.41, -0.46, -0.47], [-0.5, -0.4, -0.46, -0.46]])

    def nothing(score):
        return np.hstack([np.full((3, 1), score), path])

    values = [None] * 5
    assert has_turned(nothing(-0.7), values) and not has_turned(nothing(-0.405), values)
    assert not has_turned(nothing(-0.7)[:, :4], values)  # one worse after the best
    assert not has_turned(nothing(-0.7)[:, [0, 3, 1, 2, 2]], values)  # the last two as good as the best
    by_one_fold = np.array([[0.0, 1.0, 0.5, 0.4, 0.3], [0.0, -0.9, -1.4, -1.5, -1.6]])
    assert not has_turned(by_one_fold, values)


@pytest.mark.parametrize("objective", [0.5, 1e-2, 1e-5])
def test_the_gap_of_a_comparison_is_relative_to_what_is_reached_whatever_the_solver_says(objective):
    """Which is stricter by itself where rows are all but fitted."""
    rng = np.random.default_rng(0)
    F = problems.problem("softmax", alpha=0.1)[0]
    one = Descent(F, CURVATURES["jacobi"](F, rng), Clock(), 1e-3, 10)
    one.attempt(0.1, settles=True)
    iterate = SimpleNamespace(strictness=0.05)
    one._has_settled(SimpleNamespace(objective=objective * F.zero_value), iterate)
    assert one._run.tol * iterate.strictness == pytest.approx(1e-3 * min(1.0, objective / 0.1))
