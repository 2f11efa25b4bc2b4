"""Algorithm 2 of *Stochastic Bound Majorization* as printed, one class and one Sherman–Morrison update at a time."""

import numpy as np

from tests.oracles.log_linear import beta


def stochastic_bound(X, codes, k, alpha, order, prior, *, penalised=None):
    """θ after the rows in `order`, of shape (d, k), with the φ of the listing and the μ, M it stands for.

    λ = alpha·n and M₀ = (n·prior)⁻¹, both in the units of the sum; the step is 1/n. The listing adds
    ξ = κl − f_j + λθ/t for each class; here, as meant, f_j and λθ/t come once a row, with the last class.
    """
    n, d = X.shape
    theta, phi, mu = np.zeros(d * k), np.zeros(d * k), np.zeros(d * k)
    M = np.diag(1.0 / (n * prior.ravel()))
    lam = n * alpha * (np.ones(d) if penalised is None else penalised)
    lam = np.repeat(lam, k)
    for j in order:
        f = np.stack([np.outer(X[j], np.eye(k)[y]).ravel() for y in range(k)])
        g, log_z = np.zeros(d * k), -np.inf
        for y in range(k):
            log_a = theta @ f[y]
            direction = f[y] - g
            b = 0.0 if y == 0 else beta(log_a - log_z)
            kappa = 1.0 / (1.0 + np.exp(log_z - log_a))
            xi = kappa * direction
            if y == k - 1:
                xi = xi - f[codes[j]] + lam * theta / n
            Ml = M @ direction
            N = b * np.outer(Ml, Ml) / (1.0 + b * direction @ Ml)
            M = M - N
            phi = phi + M @ xi - N @ mu
            g = g + kappa * direction
            mu = mu + xi
            log_z = np.logaddexp(log_z, log_a)
        theta = theta - phi / n
    return theta.reshape(d, k), phi.reshape(d, k), mu.reshape(d, k), M
