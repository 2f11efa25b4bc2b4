"""The closed forms of *Homotopic Initialization*: Lemmas 1, 4 and 6 as they stand, Lemmas 5 and 7 as bounds."""

import numpy as np
import pytest

from manyclass.data import MatrixTargets, as_rows
from manyclass.diagnostics import response_correlation
from manyclass.dual import DualProblem, Limits, ascend
from manyclass.fit import Clock, Run
from manyclass.model import LOSSES, Problem

MU, NU = 0.01, 0.2


@pytest.fixture(scope="module")
def ridge():
    """Centred X, y of unit variance, the eigenvalues σ² and eigenvectors of the covariance."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) * np.logspace(0, -1.5, 5)
    y = X @ rng.standard_normal(5) + rng.standard_normal(60)
    X, y = X - X.mean(axis=0), (y - y.mean()) / y.std()
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    return X, y, values[::-1], vectors[:, ::-1]


def objective(X, y, beta, mu):
    """𝒬 of equation 1."""
    return 0.5 * np.mean((X @ beta) ** 2) + 0.5 * mu * beta @ beta - beta @ X.T @ y / len(y)


def optimum(X, y, mu):
    return np.linalg.solve(X.T @ X / len(y) + mu * np.eye(X.shape[1]), X.T @ y / len(y))


def dual_optimum(X, y, mu):
    """The minimiser of equation 11: (XXᵀ/(mu n) + I) a = y."""
    return np.linalg.solve(X @ X.T / (mu * len(y)) + np.eye(len(y)), y)


def test_lemma_1_closed_form_of_the_iterates(ridge, rng):
    X, y, values, V = ridge
    start, best, step = rng.standard_normal(5), optimum(X, y, MU), 0.7 / values[0]
    beta = start
    for t in range(30):
        shrunk = (1 - step * (values + MU)) ** t * (V.T @ (start - best))
        np.testing.assert_allclose(beta, best + V @ shrunk, rtol=1e-9, atol=1e-12)
        beta = beta - step * (X.T @ (X @ beta - y) / len(y) + MU * beta)


def test_lemma_4_suboptimality_is_a_weighted_distance(ridge, rng):
    X, y, values, V = ridge
    best = optimum(X, y, MU)
    for beta in rng.standard_normal((5, 5)):
        distance = 0.5 * np.sum((values + MU) * (V.T @ (beta - best)) ** 2)
        assert objective(X, y, beta, MU) - objective(X, y, best, MU) == pytest.approx(distance, rel=1e-9)


def test_lemma_6_homotopy_leaves_the_kernel_alone(ridge):
    """The n − d coordinates in ker Xᵀ do not depend on the penalty; the others differ by a known amount.

    In the paper's (14) the numerator has σ_i² where E[YZ_i] = σ_i u_iᵀy/√n gives σ_i.
    """
    X, y, values, V = ridge
    n = len(y)
    change = dual_optimum(X, y, NU) - dual_optimum(X, y, MU)
    U = X @ V / np.sqrt(n * values)
    within = U.T @ change
    np.testing.assert_allclose(change - U @ within, 0, atol=1e-10)
    covariance = V.T @ X.T @ y / n
    expected = n * ((MU - NU) * np.sqrt(values) / ((values + MU) * (values + NU)) * covariance) ** 2
    np.testing.assert_allclose(within**2, expected, rtol=1e-7)


@pytest.mark.parametrize("alpha", [MU, NU])
def test_the_solver_finds_the_dual_optimum_of_the_paper(ridge, alpha):
    X, y, *_ = ridge
    problem = Problem(as_rows(X), MatrixTargets(y[:, None]), LOSSES["squared"], alpha, fit_intercept=False)
    run = Run(Clock(), tol=1e-22, max_iter=5000)
    found = run(ascend(DualProblem(problem), [alpha], Limits(run.tol, 5000, run.clock)), lambda: None).model
    np.testing.assert_allclose(found.dual[:, 0], dual_optimum(X, y, alpha), atol=1e-9)
    np.testing.assert_allclose(found.coef[:, 0], X.T @ dual_optimum(X, y, alpha) / (len(y) * alpha), atol=1e-8)


def bounds(values, step, t, zeta):
    """Σ_{σ² > ζ} σ²(1 − γζ)^{2t} + (d − r(ζ))ζ, the bracket of Lemmas 5 and 7 with σ² in its first term."""
    large = values > zeta
    return values[large].sum() * (1 - step * zeta) ** (2 * t) + (~large).sum() * zeta


def test_lemma_5_bounds_gradient_descent_from_zero(ridge):
    X, y, values, V = ridge
    tau, step = response_correlation(X, y).tau, 1 / (values[0] + MU)
    best = V.T @ optimum(X, y, MU)
    for t in (0, 1, 5, 30, 200):
        left = 0.5 * np.sum((values + MU) * ((1 - step * (values + MU)) ** t * best) ** 2)
        for zeta in np.geomspace(1e-6, values[0], 20):
            assert left <= 0.5 * tau * bounds(values, step, t, zeta) * (1 + 1e-12)


def test_lemma_7_bounds_dual_descent_from_the_homotopic_start(ridge):
    X, y, values, _ = ridge
    n, step = len(y), 1 / (values[0] + MU)
    tau, best, a = response_correlation(X, y).tau, dual_optimum(X, y, MU), dual_optimum(X, y, NU)
    for t in range(100):
        error = a - best
        left = (np.sum((X.T @ error) ** 2) / (MU * n) + error @ error) / (2 * n)
        for zeta in np.geomspace(1e-6, values[0], 10):
            factor = tau * (NU - MU) ** 2 / (8 * NU * MU)
            assert left <= factor * bounds(values, step, t, zeta) * (1 + 1e-12)
        a = a - step * (X @ (X.T @ error) / n + MU * error)
