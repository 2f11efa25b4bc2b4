"""What *Least Squares Revisited* proves of Algorithm 1, and what Nesterov does of its accelerated variant."""

import numpy as np
import pytest

from manyclass.curvature import CURVATURES
from manyclass.data import ClassTargets, MatrixTargets, as_rows
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.model.losses.base import SmoothLoss
from manyclass.model.sets import WholeSpace
from manyclass.solvers import SOLVERS
from tests import problems


class Tilted(SmoothLoss):
    """Φ(z) = log Σ exp z_j + (μ/2)‖z‖²: a softmax that never levels off, so that its link is strongly monotone."""

    name, label_values, column_loss, label_loss = "tilted", None, None, None
    monotone, lipschitz = 0.1, 0.6
    domain, labels_cost = WholeSpace(), False

    def potential_and_mean(self, Z, xp):
        top = Z.max(axis=1, keepdims=True)
        P = np.exp(Z - top)
        total = P.sum(axis=1, keepdims=True)
        tilt = self.monotone * Z
        return (np.log(total) + top)[:, 0] + 0.5 * np.sum(tilt * Z, axis=1), P / total + tilt

    def scores(self, mean, xp):
        raise NotImplementedError

    def conjugate(self, P, xp):
        raise NotImplementedError

    def hessian(self, P, xp):
        raise NotImplementedError


def unpenalised(X, codes, loss="softmax"):
    loss = SMOOTH_LOSSES[loss] if isinstance(loss, str) else loss
    return Problem(as_rows(X), ClassTargets(codes, 3), loss, 0.0, fit_intercept=False)


def path(F, solver, n_iter):
    """The `Outcome` of so many iterations from zero in the metric of the second moment."""
    start = np.zeros((F.rows.n_features, F.n_outputs))
    return problems.run(F, SOLVERS[solver], CURVATURES["second-moment"], start, tol=0.0, max_iter=n_iter)


def errors(F, solver, n_iter, least):
    return np.array([record.objective for record in path(F, solver, n_iter).history]) - least


def squared_norm(W, X):
    """‖W‖²_Σ, Σ the second moment of the rows."""
    return np.sum((X @ W) ** 2) / len(X)


def optimum(F):
    best = path(F, "accelerated", 2000)
    return best.history[-1].objective, best.model[0]


def test_theorem_1_b_holds_in_the_norm_of_the_rows_and_not_in_that_of_frobenius():
    X, codes, _ = problems.rows(n=200)
    X = 10.0 * X
    loss = Tilted()
    F = unpenalised(X, codes, loss)
    least, W = optimum(F)
    ratio = loss.lipschitz / loss.monotone
    shrink = ((ratio - 1) / (ratio + 1)) ** np.arange(60)
    found = errors(F, "majorize", 60, least)
    assert (found <= 0.5 * loss.lipschitz * shrink * squared_norm(W, X) + 1e-9).all()
    # The statement has ‖W*‖_F, whose square is another number in every unit of X; the proof has ‖W*‖_Σ.
    assert (found > 0.5 * loss.lipschitz * shrink * np.sum(W**2) + 1e-9).any()


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_the_accelerated_variant_gains_a_power_of_the_steps(loss):
    """F(W_t) − F* ≤ 4L‖W*‖²_Σ/(t + 1)², where Algorithm 1 has 2L‖W*‖²_Σ/(t + 4)."""
    X, _, _ = problems.rows(n=150, seed=1)
    codes = np.argmax(X @ np.random.default_rng(0).standard_normal((5, 3)), axis=1)
    codes[0] = (codes[0] + 1) % 3  # one wrong label keeps the optimum finite, and far away
    F = unpenalised(X, codes, loss)
    least, W = optimum(F)
    size, steps = F.loss.lipschitz * squared_norm(W, X), np.arange(1, 301)
    slow, fast = (errors(F, solver, 300, least) for solver in ("majorize", "accelerated"))
    assert (slow <= 2 * size / (steps + 3) + 1e-9).all()
    assert (fast <= 4 * size / (steps + 1) ** 2 + 1e-9).all()
    assert fast[-1] < 0.2 * slow[-1]


@pytest.mark.parametrize("solver", ["majorize", "accelerated"])
def test_no_linear_map_of_the_features_changes_the_path(solver, rng):
    X, codes, _ = problems.rows(n=200)
    squeezed = X @ rng.standard_normal((5, 5)) * np.logspace(0, -4, 5)
    one, other = (path(unpenalised(data, codes), solver, 50) for data in (X, squeezed))
    np.testing.assert_allclose([r.objective for r in other.history], [r.objective for r in one.history], rtol=1e-7)
    np.testing.assert_allclose(squeezed @ other.model[0], X @ one.model[0], atol=1e-4)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "sparsemax"])
def test_fisher_consistency(loss):
    """E[y | x] = g(W*ᵀx): the minimiser tends to W* at the rate 1/√n."""
    rng = np.random.default_rng(0)
    W = 0.3 * rng.standard_normal((4, 3))
    distances = []
    for n in (300, 20_000):
        X = rng.uniform(-1, 1, (n, 4))
        P = SMOOTH_LOSSES[loss].mean(X @ W, as_rows(X).xp)
        if loss == "logistic":
            targets = MatrixTargets((rng.random(P.shape) < P).astype(float))
        else:
            targets = ClassTargets(np.minimum((rng.random((n, 1)) > np.cumsum(P, axis=1)).sum(axis=1), 2), 3)
        F = Problem(as_rows(X), targets, SMOOTH_LOSSES[loss], 0.0, fit_intercept=False)
        found = path(F, "accelerated", 40).model[0]
        # A constant added to all classes is free where they add up to 1.
        free = 0.0 if loss == "logistic" else (found - W).mean(axis=1, keepdims=True)
        distances.append(np.linalg.norm(found - W - free))
    assert distances[1] < 0.1
    assert distances[1] < 0.25 * distances[0]
