"""The claims of *Homotopic Initialization*, as they stand or as they hold; where a printed form does not, that too."""

import numpy as np
import pytest
from scipy.special import expit

from manyclass.data import MatrixTargets, as_rows
from manyclass.diagnostics import response_correlation
from manyclass.dual import DualProblem, Limits, ascend
from manyclass.fit import Clock, Run
from manyclass.model import LOSSES, Problem

MU, NU = 0.01, 0.2
STEPS = 1000


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


def test_lemma_9_bounds_the_distance_of_two_dual_optima(ridge):
    """By Lemma 6 and c² ≤ τσ⁴ direction i has at most nτ(μ − ν)²σ²/(σ² + ν)², and that is at most nτ(μ − ν)²/(4ν).

    (21) is printed with (d − r(ζ))ζ/ν for every ζ, which falls to 0 with ζ, and the distance does not.
    """
    X, y, values, _ = ridge
    tau, n = response_correlation(X, y).tau, len(y)
    distance = np.sum((dual_optimum(X, y, NU) - dual_optimum(X, y, MU)) ** 2)
    assert distance <= n * tau * (MU - NU) ** 2 * len(values) / (4 * NU)
    zeta = values[-1] / 2
    assert distance > 0.1 and (MU - NU) ** 2 / NU * np.sum(values <= zeta) * n * tau * zeta == 0


class Descent:
    """Random coordinate descent on ½Δᵀ𝐆Δ, its expectations followed exactly by those of ΔΔᵀ.

    Steps are those of (18), γ_r = 1/(G_rr + Σ_j |G_rj|).
    """

    def __init__(self, X, mu):
        self.n = len(X)
        self.G = (X @ X.T / (mu * self.n) + np.eye(self.n)) / self.n
        self.steps = 1 / (np.diag(self.G) + np.abs(self.G).sum(axis=1))
        self.values, self.vectors = np.linalg.eigh(self.G)
        self.ratio = self.steps.max() / self.steps.min()

    def after(self, second):
        """E[Δ₊Δ₊ᵀ] over the coordinate of the next step, from E[ΔΔᵀ]."""
        moved = self.steps[:, None] * (self.G @ second)
        jumps = self.steps**2 * np.sum((self.G @ second) * self.G, axis=1)
        return second - (moved + moved.T - np.diag(jumps)) / self.n

    def split(self, rho):
        """𝓛_ρ and 𝓢_ρ: 𝐆 on its eigenvectors with eigenvalues from ρ on, and on the others."""
        large = (self.vectors * np.where(self.values >= rho * (1 - 1e-12), self.values, 0)) @ self.vectors.T
        return large, self.G - large

    def excess(self, second):
        """E[𝒬 − 𝒬*]."""
        return 0.5 * np.sum(self.G * second)


def follow(descent, error, n_steps):
    second = np.outer(error, error)
    for _ in range(n_steps):
        yield second
        second = descent.after(second)


def long_and_short_rows(rng, n=30, d=3):
    return rng.standard_normal((n, d)) * np.exp(rng.standard_normal((n, 1)))


def test_lemma_12_bounds_the_distance_to_the_optimum(rng):
    """With Λ = diag(1/γ_r), which is above 𝐆, E‖Δ‖²_Λ never rises: so E‖Δ‖² stays below γmax/γmin of the start.

    (44) is printed with the ratio inverted, which fails before the first step; its proof ends with the ratio as here.
    """
    X = long_and_short_rows(rng)
    descent, y = Descent(X, MU), rng.standard_normal(len(X))
    for start in (np.zeros(len(X)), dual_optimum(X, y, NU)):
        error = start - dual_optimum(X, y, MU)
        weighted = [np.sum(np.diag(second) / descent.steps) for second in follow(descent, error, STEPS)]
        assert (np.diff(weighted) <= 1e-12 * weighted[0]).all()
        for second in follow(descent, error, STEPS):
            assert np.trace(second) <= descent.ratio * error @ error * (1 + 1e-12)
    assert error @ error > error @ error / descent.ratio


def decrement(descent, rho, error):
    """E‖Δ₊‖²_𝓛 − (1 − γmin ρ/n)‖Δ‖²_𝓛, which Lemma 11 says is not positive."""
    large, _ = descent.split(rho)
    later = descent.after(np.outer(error, error))
    return np.sum(large * later) - (1 - descent.steps.min() * rho / descent.n) * error @ large @ error


@pytest.mark.parametrize("steps", ["equal", "unequal"])
def test_lemma_11_on_the_large_directions(steps, rng):
    """As printed for equal steps of at most 1/(2 max G_rr); for unequal ones while ‖𝓛Δ‖²_Γ ≥ 6‖𝓢Δ‖²_Γ, Γ = diag(γ_r).

    By γ_r 𝓛_rr ≤ ½ the change is at most −(1/n)(1.5 uᵀΓu + uᵀΓv − ½ vᵀΓv), u = 𝓛Δ and v = 𝓢Δ. With equal steps the
    middle term is 0, as u and v are orthogonal.
    """
    descent, tried = Descent(long_and_short_rows(rng), MU), 0
    if steps == "equal":
        descent.steps = np.full(descent.n, 0.5 / np.diag(descent.G).max())
    metric, share = (np.ones(descent.n), 1.0) if steps == "equal" else (descent.steps, 6.0)
    for rho in descent.values[[1, -3, -2, -1]]:
        large, small = descent.split(rho)
        for error in rng.standard_normal((200, descent.n)) * 10.0 ** rng.uniform(-5, 0, (200, 1)):
            error = error + descent.vectors[:, -3:] @ rng.standard_normal(3)
            if np.sum(metric * (large @ error) ** 2) >= share * np.sum(metric * (small @ error) ** 2):
                assert decrement(descent, rho, error) <= 1e-12 * (error @ large @ error)
                tried += 1
    assert tried > 100


def test_lemma_11_as_printed_fails_for_a_long_and_a_short_row():
    """Condition (35) holds, steps are those of (18), and still the large direction gets worse, not better."""
    descent = Descent(np.array([[10.0], [0.1]]), MU)
    low, high = descent.values
    large, small = descent.split(high)
    assert (descent.steps <= 0.5 / np.diag(descent.G)).all()
    rises = []
    for sign in (1, -1):  # in one of them the step of the short row, which is the longer one, leads away
        error = descent.vectors @ np.array([0.99 * sign / low, 1 / high])
        assert np.sum((descent.G @ error) ** 2) >= 2 * np.sum((small @ error) ** 2)
        rises.append(decrement(descent, high, error) / (error @ large @ error))
    assert max(rises) > 0.5


def test_theorem_8_bounds_what_coordinate_descent_leaves(rng):
    """E[𝒬 − 𝒬*] ≤ (1 − γmin ρ/n)^t (𝒬(a₀) − 𝒬*) + ½ρ(γmax/γmin)‖a₀ − a*‖², with 1 before the first term.

    No step of this needs Lemma 11, nor the other case (19): by γ_r G_rr ≤ ½ a step gains ¾γmin‖𝒬'‖²/n at least, where
    ‖𝒬'‖² ≥ ρ(2(𝒬 − 𝒬*) − ρ‖Δ‖²), and E‖Δ‖² is bounded by Lemma 12. The rate is even 1 − 1.5 γmin ρ/n.
    """
    X = long_and_short_rows(rng)
    descent, y = Descent(X, MU), rng.standard_normal(len(X))
    for start in (np.zeros(len(X)), dual_optimum(X, y, NU)):
        error = start - dual_optimum(X, y, MU)
        excess = np.array([descent.excess(second) for second in follow(descent, error, STEPS)])
        for rho in np.geomspace(1 / descent.n, descent.values[-1], 12):
            rest = 0.5 * rho * descent.ratio * error @ error
            for factor in (1.0, 1.5):
                rate = 1 - factor * descent.steps.min() * rho / descent.n
                assert (excess <= rate ** np.arange(STEPS) * excess[0] + rest + 1e-12).all()


def test_theorem_8_as_printed_fails_on_rows_of_plus_and_minus_1():
    """d = 1, ρ = 1/n: neither (19) nor (20), which has ½ before its first term, holds at t = 0."""
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    descent, error = Descent(X, MU), X[:, 0]
    rho, excess = 1 / descent.n, 0.5 * error @ descent.G @ error
    rest = rho * descent.ratio * error @ error
    assert np.sum((descent.G @ error) ** 2) > 2 * rho * rest
    assert excess > 0.5 * excess + 0.5 * rest


class GaussianLogistic:
    """ℛ of equation 22 for x ~ N(0, Σ) and P(y = 1 | x) = σ(xᵀw), in expectation: xᵀz is Gaussian."""

    nodes, weights = np.polynomial.hermite_e.hermegauss(120)

    def __init__(self, covariance, truth):
        self.covariance = covariance
        self.best = truth  # of a well specified model
        self.bias = self.mean_curvature(truth) * covariance @ truth

    def mean_curvature(self, z):
        """E[φ''(xᵀz)]."""
        scores = self.nodes * np.sqrt(z @ self.covariance @ z)
        return float(self.weights @ (expit(scores) * expit(-scores))) / np.sqrt(2 * np.pi)

    def gradient(self, z):
        """(51)."""
        return self.mean_curvature(z) * self.covariance @ z - self.bias

    def constants(self, z):
        """ξ₁ and ξ₂ of Lemma 13, from (51) at z and at z*, without the mean value that its proof takes."""
        curvature = self.mean_curvature(z)
        return curvature, curvature / self.mean_curvature(self.best) - 1


def test_lemma_14_the_exact_schedule_contracts_as_least_squares_does(rng):
    """γ = 1/(Lξ₁) and η = −γξ₂ make (23) the step z − z* ← (I − Σ/L)(z − z*)."""
    A = rng.standard_normal((4, 4)) * np.logspace(0, -1, 4)
    R = GaussianLogistic(A.T @ A, np.array([3.0, -2.0, 1.0, 4.0]))
    L = np.linalg.norm(R.covariance, 2)
    contraction = np.eye(4) - R.covariance / L
    sample = rng.standard_normal((100_000, 4)) @ A
    residual = expit(sample @ np.ones(4)) - expit(sample @ R.best)
    np.testing.assert_allclose(R.gradient(np.ones(4)), residual @ sample / len(sample), atol=0.02)
    z = np.zeros(4)
    for t in range(40):
        first, second = R.constants(z)
        np.testing.assert_allclose(
            R.gradient(z), first * R.covariance @ (z - R.best) + second * R.bias, atol=1e-12
        )  # Lemma 13
        step = 1 / (L * first)
        z = z - step * R.gradient(z) + step * second * R.bias
        expected = np.linalg.matrix_power(contraction, t + 1) @ (0 - R.best)
        np.testing.assert_allclose(z - R.best, expected, rtol=1e-9, atol=1e-12)
