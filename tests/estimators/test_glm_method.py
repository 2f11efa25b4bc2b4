"""The method that a fit of `GLMClassifier` takes, and where it ends."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from manyclass import BoundMajorizationClassifier, GLMClassifier, SDCAClassifier
from manyclass.fit import Status
from manyclass.solvers import SOLVERS


def test_every_solver_is_close_at_the_default_tolerance():
    X, y = load_digits(return_X_y=True)
    losses = {}
    for solver in set(SOLVERS) - {"majorize", "gradient", "biased-gradient"}:  # which need thousands of passes here
        model = GLMClassifier(1e-2, solver=solver, max_iter=5000).fit(X, y)
        assert model.status_ is Status.CONVERGED and model.duality_gap_ <= model.tol
        losses[solver] = model.history_[-1].objective
    assert max(losses.values()) - min(losses.values()) <= 1e-3 * np.log(10)


@pytest.mark.parametrize("curvature", ["kronecker", "second-moment"])
def test_a_matrix_that_was_asked_for_and_does_not_fit_is_refused(curvature, monkeypatch, rng):
    monkeypatch.setattr("manyclass.data.memory.free_memory", lambda: 1e6)
    X, y = rng.standard_normal((450, 400)), np.arange(450) % 3
    model = GLMClassifier(solver="quasi-newton", curvature=curvature)
    with pytest.raises(MemoryError, match=rf"curvature='{curvature}' would take 5.12 MB .* use curvature='auto'\."):
        model.fit(X, y)
    assert GLMClassifier().fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("method", [{"curvature": "kronecker"}, {"solver": "newton"}])
def test_rows_that_there_is_no_room_to_rotate_are_refused_before_it_is_taken(method, monkeypatch, rng):
    monkeypatch.setattr("manyclass.data.memory.free_memory", lambda: 1e6)
    monkeypatch.setattr("manyclass.choice.frame.RowSpace", None)
    X, y = rng.standard_normal((400, 450)), np.arange(400) % 3
    with pytest.raises(MemoryError, match=r"rotating the rows for curvature='.*' would take 3\.84 MB .* solver='auto'"):
        GLMClassifier(**method).fit(X, y)


@pytest.mark.parametrize("curvature", ["auto", "kronecker", "jacobi", "sampled-hessian"])
@pytest.mark.parametrize("seed", range(3))
def test_without_a_penalty_a_fit_goes_on_for_as_long_as_steps_gain_something(curvature, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 300)
    X = 4.0 * rng.standard_normal((3, 30))[y] + rng.standard_normal((300, 30))  # can be separated: inf F = 0
    X *= np.arange(1, 31) ** -1.0
    model = GLMClassifier(0.0, curvature=curvature).fit(X, y)
    assert model.status_ is Status.STATIONARY
    assert model.history_[-1].objective < 3 * model.tol * np.log(3)


def test_a_warm_start_that_is_worse_than_the_zero_model_is_left():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = GLMClassifier(alpha=1e-7, warm_start=True).fit(X, y)
    cold = clone(model).fit(X, 1 - y)
    model.fit(X, 1 - y)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ == cold.n_iter_


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_numbers_that_drown_all_others_are_no_quiet_end(loss):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 4)) + y[:, None]
    X[:5, 0] = 1e20
    with pytest.warns(ConvergenceWarning, match=r"Not converged: .* far from tol, .* rounding .*StandardScaler"):
        model = GLMClassifier(loss=loss).fit(X, y)
    assert model.duality_gap_ > 1.0 and model.status_.is_failure


@pytest.mark.parametrize(
    "method", [{"solver": "majorize"}, {"solver": "accelerated"}, {"curvature": "second-moment"}, {"solver": "newton"}]
)
def test_more_columns_than_rows_are_rotated_whatever_method_is_asked_for(method):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 200)), rng.integers(0, 3, 40)
    model, best = GLMClassifier(tol=1e-4, max_iter=5000, alpha=1e-2, **method).fit(X, y), GLMClassifier(1e-2, tol=1e-10)
    assert model.choice_["row_space"]
    np.testing.assert_allclose(model.coef_, best.fit(X, y).coef_, atol=0.02)
    assert not GLMClassifier(curvature="jacobi").fit(X, y).choice_["row_space"]


@pytest.mark.parametrize("solver", ["auto", "quasi-newton", "newton-cg"])
def test_rows_that_are_all_but_fitted_are_fitted_nearer_to_the_minimum(solver):
    """A gap of `tol` there says nothing: it had 49 % errors where the minimum has 44."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((160, 20))
    y = (Z[:, :5] @ rng.standard_normal((5, 5)) + rng.gumbel(size=(160, 5))).argmax(1)
    X = np.exp(0.15 * (Z @ rng.standard_normal((20, 5000))) + 1.5 * rng.standard_normal(5000))
    model, least = (GLMClassifier(1e-4, solver=solver, tol=tol, max_iter=5000).fit(X, y) for tol in (1e-3, 1e-7))
    F, zero = least.history_[-1].objective, np.log(5)
    assert F < 1e-4 * zero and model.status_ is Status.CONVERGED
    assert model.duality_gap_ < 0.1 * model.tol
    assert model.history_[-1].objective < 1.2 * F


@pytest.mark.parametrize("kind", [GLMClassifier, SDCAClassifier, BoundMajorizationClassifier])
def test_a_gap_is_a_small_part_of_what_is_left(kind):
    """Where it is as large as that, the minimum may be anywhere: 22 to 24 % errors where it has 17."""
    X, y = make_classification(200, 1000, n_informative=10, n_redundant=50, random_state=0)
    model = kind(alpha=1e-4).fit(X, y)
    assert model.status_ is Status.CONVERGED
    left = min(record.objective for record in model.history_) / np.log(2)
    assert left < 5e-3 and model.duality_gap_ < 0.2 * left


def test_other_rows_are_fitted_to_the_gap_that_was_asked_for():
    X, y = load_digits(return_X_y=True)
    model = GLMClassifier(1e-1, tol=1e-2).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert all(record.duality_gap > model.tol for record in model.history_[:-1])
