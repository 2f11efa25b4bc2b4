"""The terms of the duality gap, each told in another way."""

import math

import numpy as np
import pytest
from numba import njit
from scipy.optimize import brentq
from scipy.special import expit, xlogy

from manyclass.dual import column_losses
from manyclass.dual.ascent import start_state
from manyclass.dual.losses import DUAL_LOSSES
from manyclass.model.sets import Simplex
from tests.dual.given import problem, small

NAMES = ["squared", "hinge", "squared_hinge", "logistic", "epsilon_insensitive", "squared_epsilon_insensitive", "huber"]


@pytest.mark.parametrize("name", NAMES)
def test_the_share_of_the_gap_is_the_fenchel_inequality(name, rng):
    phi = DUAL_LOSSES[name](0.3)

    @njit
    def of(phi, a, z, y):
        return column_losses.fenchel(phi, a, z, y), column_losses.loss(phi, z, y) + column_losses.conjugate(
            phi, a, y
        ) + a * z

    top = min(phi.top, 2.0)
    for _ in range(300):
        y = rng.choice([-1.0, 1.0]) if phi.labels else rng.normal()
        a = rng.choice([0.0, top, rng.random() * top]) * (y if phi.labels else rng.choice([-1.0, 1.0]))
        found, wanted = of(phi, float(a), 2 * rng.normal(), float(y))
        assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("q", [1e-2, 1.0, 1e4, 1e9, 1e12])
def test_a_logistic_step_solves_its_equation_for_rows_of_any_length(q):
    step = njit(lambda a, z, y, q: column_losses.logistic_step(a, z, y, q))
    for old in (0.0, 1e-8, 0.3, 1.0 - 1e-8):
        for margin in (-1e5, -3.0, 0.0, 5.0, 1e5):
            ends = -margin - q * (1.0 - old) - 1.0, -margin + q * old + 1.0
            t = brentq(lambda t, margin, old: t + margin + q * (expit(t) - old), *ends, args=(margin, old))
            assert -step(-old, -margin, -1.0, q) == pytest.approx(expit(t), rel=1e-5, abs=1e-300)


@pytest.mark.parametrize("pulled", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", ["squared", "hinge", "squared_hinge", "logistic", "epsilon_insensitive", "huber"])
def test_the_gap_summed_over_rows_is_the_objective_less_the_dual(name, fit_intercept, pulled, rng):
    X = rng.standard_normal((40, 3)) + 1.0
    Y = (
        np.sign(rng.standard_normal((40, 1)) + 0.5)
        if name in ("hinge", "squared_hinge", "logistic")
        else rng.standard_normal((40, 1))
    )
    built = problem(name, X, Y, 0.1, fit_intercept=fit_intercept)
    state = start_state(built)
    state.set_alpha(0.1)
    state.epoch()
    if pulled:
        state.pull(np.array([0.3, 1.0, 2.0]), rng.standard_normal((3, 1)), rng.standard_normal(1))
        state.epoch()
    terms = state.gap_terms()
    whole = terms.primal(0.1) - terms.dual(0.1)
    assert whole > 1e-6
    assert terms.own_gap == math.inf or terms.own_gap == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("name", ["softmax", "crammer_singer"])
def test_the_dual_point_of_a_joint_loss_is_that_of_all_rows_moved_to_one(name, rng):
    X, codes, weight = small()
    built = problem(name, X, codes, 0.1, weight=weight)
    state = start_state(built)
    state.set_alpha(0.1)
    P = rng.dirichlet(np.ones(3), len(X))
    state.a[:] = P
    terms = state.gap_terms()
    r, E = weight / weight.sum(), np.eye(3)[codes]
    (theta,), (q,) = Simplex().blend((r @ P)[None], (r @ E)[None], np)
    assert theta > 0.01

    def conjugate(P):
        return r @ (xlogy(P, P).sum(axis=1) if name == "softmax" else np.sum(P * E, axis=1) - 1.0)

    moved = (1 - theta) * P + theta * q
    np.testing.assert_allclose(r @ moved, r @ E)
    G = (X - r @ X).T @ (r[:, None] * (E - moved))
    assert terms.dual_square == pytest.approx(np.sum(G**2))
    assert terms.conjugates == pytest.approx((1 - theta) * conjugate(P) + theta * conjugate(np.tile(q, (len(P), 1))))
