"""Sums of the calibrator."""

import numpy as np
import pytest

from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.data.moments import MomentSums
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.model.calibrator import Calibrator, sums_of_all, sums_of_each


def test_parts_of_the_sums_of_each_output_add_up(rng):
    V, codes, s = rng.random((40, 3)) + np.arange(40)[:, None] / 20, rng.integers(0, 3, 40), rng.random(40)
    cal = Calibrator((1, 2), SMOOTH_LOSSES["softmax"].domain)

    def sums(at):
        part = Problem(as_rows(V[at]), ClassTargets(codes[at], 3), SMOOTH_LOSSES["softmax"], 0.1, weight=s[at])
        return sums_of_each(part, V[at], cal)

    def central(found):
        mean = found.first / found.total
        return found.pilot + mean, found.second / found.total - mean[:, None] * mean[None, :2]

    one, parts = sums(slice(None)), sums(slice(0, 15)) + sums(slice(15, None))
    for a, b in zip(central(one), central(parts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def calibration(rng, n, k, dtype=np.float64, weight=None):
    """A problem and predictions that are a bent version of probabilities, with labels drawn from these."""
    P = rng.dirichlet(np.full(k, 0.3), n)
    codes = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    V = np.sqrt(P).astype(dtype)
    return Problem(as_rows(V), ClassTargets(codes, k), SMOOTH_LOSSES["softmax"], 0.1, weight=weight), V


def squared_error(problem, V, coef, intercept, cal):
    Y = problem.targets.dense(slice(None), V, np)
    return float(((cal.scores(V, (coef, intercept), np) - Y) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize(("weight", "is_joint"), [(None, False), (1.0, False), (4.0, True), (0.01, False)])
def test_outputs_share_many_functions_only_where_rows_are_ten_for_each(rng, weight, is_joint, monkeypatch):
    """Rows, or copies of these, which are what weights above 1 are."""
    monkeypatch.setattr("manyclass.model.calibrator.WIDE_FEATURES", 50)
    problem, V = calibration(rng, 300, 20, weight=None if weight is None else np.full(300, weight))
    cal = Calibrator((1, 2, 3), SMOOTH_LOSSES["softmax"].domain)
    coef, _ = cal.fit(problem, V)
    assert coef.shape == ((60, 20) if is_joint else (3, 20))


def test_functions_of_their_own_predict_other_rows_better_where_rows_are_few(rng, monkeypatch):
    (problem, V), (other, W) = calibration(rng, 400, 30), calibration(rng, 4000, 30)
    cal = Calibrator((1, 2, 3), SMOOTH_LOSSES["softmax"].domain)
    monkeypatch.setattr("manyclass.model.calibrator.WIDE_FEATURES", 50)
    own = squared_error(other, W, *cal.fit(problem, V), cal)
    monkeypatch.setattr("manyclass.model.calibrator.ROWS_A_FUNCTION", 1)
    assert own < 0.95 * squared_error(other, W, *cal.fit(problem, V), cal)


@pytest.mark.parametrize(("n", "is_joint"), [(300, False), (600, True)])
def test_labels_that_share_a_row_share_functions_only_where_rows_are_ten_for_each(rng, n, is_joint):
    V = rng.random((n, 20))
    targets = MatrixTargets((rng.random((n, 20)) < V**2).astype(float))
    problem = Problem(as_rows(V), targets, SMOOTH_LOSSES["squared"], 0.1)
    other = Problem(as_rows(V), ClassTargets(targets.Y.argmax(axis=1), 20), SMOOTH_LOSSES["squared"], 0.1)
    cal = Calibrator((1, 2, 3), SMOOTH_LOSSES["logistic"].domain)
    assert cal.fit(problem, V)[0].shape == ((60, 20) if is_joint else (3, 20))
    assert cal.fit(other, V)[0].shape == (60, 20)


def test_sums_in_float32_lead_to_nearly_the_least_error(rng, monkeypatch):
    problem, V = calibration(rng, 3000, 25, np.float32)
    V[:, 0] *= 1e-3  # whose cube is far below the rounding of the largest
    cal = Calibrator((1, 2, 3), SMOOTH_LOSSES["softmax"].domain)
    monkeypatch.setattr("manyclass.model.calibrator.WIDE_FEATURES", 10)
    found = squared_error(problem, V, *cal.fit(problem, V), cal)
    U = np.hstack([np.ones((3000, 1)), V, V**2, V**3]).astype(np.float64)
    Y = problem.targets.dense(slice(None), V, np).astype(np.float64)
    least = ((U @ np.linalg.lstsq(U, Y, rcond=None)[0] - Y) ** 2).sum(axis=1).mean()
    identity = ((V - Y) ** 2).sum(axis=1).mean()
    assert least - 1e-6 < found < least + 0.02 * (identity - least)


@pytest.mark.parametrize("sums", [sums_of_all, sums_of_each])
def test_rows_without_weight_are_no_part_of_the_centre_of_the_sums(rng, sums):
    """Cubes of one that lies far away would leave nothing of the digits of all others."""
    problem, V = calibration(rng, 60, 3, weight=np.where(np.arange(60) == 0, 0.0, 1.0))
    V[0] = 1e5
    found = sums(problem, V, Calibrator((1, 2, 3), SMOOTH_LOSSES["softmax"].domain))
    pilot = np.asarray(found.pilot)
    assert abs(pilot).max() < 1.0


def test_rows_that_are_left_out_take_no_products(rng, monkeypatch):
    weight = (np.arange(500) % 5 > 0).astype(float)
    problem, V = calibration(rng, 500, 4, weight=weight)
    cal, added, add = Calibrator((1, 2, 3), SMOOTH_LOSSES["softmax"].domain), [], MomentSums.add
    monkeypatch.setattr(
        MomentSums, "add", lambda self, block, *more: added.append(block.n_rows) or add(self, block, *more)
    )
    coef, intercept = cal.fit(problem, V)
    assert sum(added) == 400
    kept = weight > 0
    part = Problem(as_rows(V[kept]), problem.targets.take(np.flatnonzero(kept)), problem.loss, 0.1)
    for found, wanted in zip((coef, intercept), cal.fit(part, V[kept]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
