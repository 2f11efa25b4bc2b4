"""What the tangents of all steps say of the least objective."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from manyclass.data import ClassTargets, as_rows
from manyclass.model import LOSSES, Problem
from manyclass.subgradient import Schedule
from manyclass.subgradient.draws import make_draws
from manyclass.subgradient.kernel import BOUND
from manyclass.subgradient.pegasos import Pegasos
from manyclass.subgradient.state import State


def rows(seed, n=60, d=5, k=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.argmax(X @ rng.standard_normal((d, k)) + np.array([2.0, 0.0, -1.0]) + rng.standard_normal((n, k)), axis=1)
    y[:k] = np.arange(k)
    return X, y, rng.random(n) + 0.2


def build(name, X, y, weight, alpha):
    loss = LOSSES[name]
    F = Problem(as_rows(X), ClassTargets(y, 3, loss.label_values or (0.0, 1.0)), loss, alpha, weight=weight)
    draws = make_draws(len(X), 0, False, weight)
    return Pegasos(F, as_rows(X), draws, State.begin(F, as_rows(X), Schedule(), draws), 1)


def value(name, X, y, weight, alpha, W, b):
    loss = LOSSES[name]
    return float(
        weight @ loss.values(X @ W + b, slice(0, len(X)), ClassTargets(y, 3, loss.label_values or (0.0, 1.0)), np)
    ) / weight.sum() + 0.5 * alpha * np.sum(W**2)


def least(name, X, y, weight, alpha, b):
    def of(w):
        return value(name, X, y, weight, alpha, w.reshape(5, 3), b)

    return minimize(of, np.zeros(15), method="L-BFGS-B", options={"maxiter": 2000, "maxfun": 10**6}).fun


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("name", ["softmax", "logistic", "squared_hinge"])
@pytest.mark.parametrize("size", [1.0, 20.0])
def test_the_lower_bound_is_one_at_the_present_intercept(name, weighted, size):
    X, y, s = rows(1)
    s = s if weighted else np.ones(len(X))
    X = X * size
    one = build(name, X, y, s if weighted else None, 0.05)
    for epoch in range(4):
        one.advance(len(X))
        D = one.state.lower_bound()
        assert D <= least(name, X, y, s, 0.05, one.state.memory.bias) + 1e-7, epoch


def test_tangents_below_zero_bound_by_zero():
    X, y, _ = rows(1)
    one = build("softmax", X, y, None, 0.05)
    one.advance(60)
    one.state.memory.totals[BOUND] = -1e3
    assert one.state.lower_bound() == 0.0


def test_no_bound_after_another_alpha_or_other_rows():
    X, y, _ = rows(1)
    for change in (lambda state: state.set_alpha(0.1), lambda state: state.start_rows(same_stream=False)):
        one = build("softmax", X, y, None, 0.05)
        one.advance(60)
        assert np.isfinite(one.state.lower_bound())
        change(one.state)
        assert one.state.lower_bound() == -np.inf


def test_the_intercept_has_its_part_where_columns_tell_nothing():
    X, y = np.full((30, 5), 1e-9), np.r_[np.zeros(28, dtype=int), 1, 2]
    one = build("softmax", X, y, None, 0.05)
    for _ in range(5):
        one.advance(30)
        bias = one.state.memory.bias
        assert one.state.lower_bound() <= np.mean(logsumexp(bias) - bias[y]) + 1e-12
