import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import cg
from sklearn.datasets import load_digits

from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier, SDCAClassifier
from manyclass.choice import choose
from manyclass.choice.costs import costs
from manyclass.choice.methods import Shape
from manyclass.choice.representations import fits_beside, represent, soon_enough
from manyclass.choice.spectrum import quadratic_steps
from manyclass.data import ClassTargets, MatrixTargets, as_rows, memory
from manyclass.data.labels import encode
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.solvers import SOLVERS
from manyclass.solvers.base import REFRESH


def problem(n, d, k, alpha=1e-4, sparse=False, loss="softmax", scale=None):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.01, format="csr", rng=rng) if sparse else rng.standard_normal((n, d))
    X = X if scale is None else X * scale
    return Problem(as_rows(X), ClassTargets(np.arange(n) % k, k), SMOOTH_LOSSES[loss], alpha)


def test_the_choice_is_the_least_of_the_estimates_and_all_can_be_read():
    choice = choose(problem(300, 20, 3), 1e-3)
    assert choice.method is choice.candidates[0]
    seconds = [one.seconds for one in choice.candidates]
    assert seconds == sorted(seconds) and all(np.isfinite(seconds)) and min(seconds) > 0


@pytest.mark.parametrize("alpha", [1e-1, 1e-8])
def test_a_fit_as_it_is_expected_takes_what_was_estimated(alpha):
    for one in choose(problem(3000, 60, 5, alpha), 1e-3).candidates:
        n_refreshed = sum(at < one.passes for at in REFRESH)
        assert one.taken(one.passes, n_refreshed) == pytest.approx(one.seconds)
        if one.look:
            assert one.taken(one.passes, n_refreshed + 1) > one.seconds


@pytest.mark.parametrize(("n", "d", "k", "sparse"), [(60, 900, 3, False), (60, 900, 3, True), (900, 60, 3, False)])
def test_rows_are_rotated_only_where_they_are_fewer_than_features(n, d, k, sparse):
    spaces = {one.row_space for one in choose(problem(n, d, k, sparse=sparse), 1e-3).candidates}
    assert spaces == ({False, True} if n < d else {False})


def test_only_few_parameters_get_the_hessian_of_all_of_them():
    assert any(one.curvature == "hessian" for one in choose(problem(200, 20, 3), 1e-3).candidates)
    many = choose(problem(3000, 200, 1000), 1e-3).candidates
    assert many and not any(one.curvature == "hessian" for one in many)


def test_what_does_not_fit_is_not_taken(monkeypatch):
    given = problem(60, 900, 3)
    least = min(one.memory for one in choose(given, 1e-3).candidates)
    monkeypatch.setattr(memory, "free_memory", lambda: 1.01 * least / memory.MEMORY_SHARE)
    assert choose(given, 1e-3).method.memory == least
    monkeypatch.setattr(memory, "free_memory", lambda: 0.5 * least)
    with pytest.raises(MemoryError, match="B beside X, more than half of the"):
        choose(given, 1e-3)


def test_the_squared_loss_is_solved_by_its_own_hessian():
    assert choose(problem(500, 30, 3, loss="squared"), 1e-3).method.curvature in ("second-moment", "hessian")


def test_partition_bounds_are_taken_in_the_metrics_of_l_bfgs_without_its_memory():
    given = problem(3000, 20, 3)
    by_bounds, by_pairs = (choose(given, 1e-3, SOLVERS[name]).candidates for name in ("majorize", "quasi-newton"))
    assert {one.solver for one in by_bounds} == {"majorize"}
    assert {one.curvature for one in by_bounds} == {one.curvature for one in by_pairs}
    of_pairs = {one.curvature: one.memory for one in by_pairs}
    assert all(0 < one.memory < of_pairs[one.curvature] for one in by_bounds)
    given.memory_limit = max(one.memory for one in by_bounds) / memory.WORK_SHARE  # less than all scores take
    slower = {one.curvature: one.seconds for one in choose(given, 1e-3, SOLVERS["majorize"]).candidates}
    assert all(slower[one.curvature] > one.seconds for one in by_bounds)
    with pytest.raises(ValueError, match="no partition function behind loss 'squared'"):
        choose(problem(300, 20, 3, loss="squared"), 1e-3, SOLVERS["majorize"])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_larger_penalty_never_takes_more_steps(sparse):
    steps = [quadratic_steps(problem(300, 80, 3, alpha, sparse), 1e-3) for alpha in (1e-6, 1e-4, 1e-2, 1.0)]
    assert steps == sorted(steps, reverse=True) and steps[0] > steps[-1]


def test_the_units_of_the_columns_do_not_matter_without_a_penalty():
    units = 10.0 ** np.linspace(-3, 3, 20)
    assert quadratic_steps(problem(300, 20, 3, 0.0), 1e-3) == quadratic_steps(
        problem(300, 20, 3, 0.0, scale=units), 1e-3
    )


@pytest.mark.parametrize(("n", "d"), [(150, 30), (40, 90), (100, 100)])
@pytest.mark.parametrize("alpha", [1e-4, 1e-1])
def test_the_steps_are_those_of_conjugate_gradients_on_the_rows_themselves(n, d, alpha):
    given = problem(n, d, 1, alpha, loss="squared")
    X = given.rows.dense() - given.rows.dense().mean(axis=0)
    H = X.T @ X / n + alpha * np.eye(d)
    y = np.arange(n) % 2
    given = Problem(given.rows, MatrixTargets(y[:, None].astype(float)), given.loss, alpha)
    gradient, unit = X.T @ (y - y.mean()) / n, np.diag(H) ** -0.5
    points = []
    cg(unit[:, None] * H * unit, unit * gradient, rtol=1e-12, callback=lambda x: points.append(unit * x))
    best = np.linalg.solve(H, gradient)
    height = [(w - best) @ H @ (w - best) / (best @ H @ best) for w in points]
    expected = 1 + next(i for i, left in enumerate(height) if left <= 1e-3)
    assert abs(quadratic_steps(given, 1e-3) - expected) <= 1


def test_no_tolerance_at_all_ends_too():
    assert 0 < quadratic_steps(problem(300, 20, 3), 0.0) <= 21


def test_sparse_rows_that_hold_nothing_have_a_constant_model():
    y = np.arange(60) % 3 == 0
    model = GLMClassifier().fit(sp.csr_array((60, 20)), y)
    np.testing.assert_allclose(model.predict_proba(sp.csr_array((1, 20)))[0], [2 / 3, 1 / 3], atol=1e-3)


def test_columns_that_are_hardly_ever_present_get_no_matrix_that_takes_longer_than_their_products():
    sparse, dense = problem(6000, 5000, 50, sparse=True), problem(6000, 300, 50)
    for given, name in ((sparse, "products"), (dense, "moments")):
        ways = represent(given, n_folds=5, chooses_alpha=True, tries=True)
        assert ways[0].name == name
        alone = {one.name: one.seconds for one in represent(given, n_folds=5, chooses_alpha=True)}
        for one in ways:
            assert (one.seconds > alone[one.name]) == (one.name != "products")


def test_what_stands_for_the_columns_has_a_solution_within_the_time_that_there_is():
    ways = represent(problem(2000, 4000, 10, sparse=False), n_folds=5, chooses_alpha=True)
    fastest, first = ways[0], min(ways, key=lambda way: way.set_up)
    assert all(0.0 < way.set_up < way.seconds for way in ways) and first is not fastest
    for seconds, wanted in ((np.inf, fastest), (fastest.set_up, first), (0.0, first)):
        assert soon_enough(ways, seconds) is wanted


def test_what_calibration_is_told_to_take_is_what_the_estimator_expects():
    X, y = (part[:600] for part in load_digits(return_X_y=True))
    told = {one.estimator: one.seconds for one in costs(as_rows(X), encode(y, "A test"))}
    expected = CalibratedLeastSquaresClassifier().fit(X, y).choice_["estimates"].values()
    assert told["CalibratedLeastSquaresClassifier"] == pytest.approx(min(expected), rel=1e-6)


def test_adapting_a_metric_that_weighs_rows_takes_their_second_moments_and_a_factor():
    given = problem(4000, 100, 20)
    shape, by_name = Shape.of(given), {one.curvature: one for one in choose(given, 1e-3).candidates}
    factor = shape.speed.seconds_of_cholesky(100)
    assert by_name["kronecker"].look > 2.0 * factor
    assert by_name["kronecker"].look < by_name["kronecker"].set_up + factor
    assert 0.0 < by_name["jacobi"].look < 0.5 * by_name["jacobi"].per_pass  # of one column of scores


@pytest.mark.parametrize("sparse", [False, True])
def test_rotated_rows_are_dense_and_as_wide_as_many(sparse):
    shape = Shape.of(problem(200, 5000, 3, sparse=sparse))
    square = shape.rotated
    assert (square.n, square.d, square.k, square.stored, square.dense) == (200, 200, 3, 200.0**2, True)
    assert square.seconds_of_pass() < Shape.of(problem(200, 5000, 3)).seconds_of_pass()


@pytest.mark.parametrize("shape", [(3000, 10, 40), (1500, 10, 60), (1500, 10, 400)])
@pytest.mark.parametrize("kind", [CalibratedLeastSquaresClassifier, SDCAClassifier])
def test_the_memory_told_is_what_a_fit_asks_for(rng, shape, kind):
    """Few columns, so that it is arrays of the rows that count; of which it had told none for calibrated ones."""
    n, d, k = shape
    y = np.arange(n) % k
    X = (rng.standard_normal((k, d))[y] + rng.standard_normal((n, d))).astype(np.float32)
    model = kind(max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:200], y[:200] % 5)  # compiles, where that is needed
        tracemalloc.start()
        try:
            peak = model.fit(X, y) and tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    told = {one.estimator: one.memory for one in costs(as_rows(X), encode(y, "A test"))}[kind.__name__]
    assert 0.5 * peak < told < 2.0 * peak


def test_what_does_not_fit_into_memory_is_told(rng, monkeypatch):
    y = np.arange(4000) % 100
    rows, labels = as_rows(rng.standard_normal((4000, 5))), encode(y, "A test")
    monkeypatch.setattr("manyclass.choice.costs.room_for", lambda limit: 2e6)
    told = {one.estimator: one.fits for one in costs(rows, labels)}
    assert told == {**told, "CalibratedLeastSquaresClassifier": False, "SDCAClassifier": False}


def test_features_of_more_columns_take_longer_to_draw():
    row = sp.csr_array(np.eye(40, 50))
    wide = sp.csr_array((row.data, row.indices, row.indptr), (40, 500_000))
    labels = encode(np.arange(40) % 2, "A test")
    few, many = (
        next(one.seconds for one in costs(as_rows(X), labels) if one.estimator == "StagewiseClassifier")
        for X in (row, wide)
    )
    assert many > 2 * few


def test_folds_of_enough_rows_judge_where_calibration_takes_longer_than_least_squares():
    assert fits_beside(problem(6000, 30, 10), 5) == 5  # as many functions as features
    assert fits_beside(problem(6000, 29, 10), 5) == 2
    assert fits_beside(problem(1500, 29, 10), 5) == 5
    assert fits_beside(problem(6000, 29, 10), 5, 2) == 5
    assert fits_beside(problem(6000, 29, 10), 0) == 0
