"""Algorithm 1 of *Stochastic Bound Majorization* as printed, for any features, in the log domain."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit


@dataclass(frozen=True)
class LogLinearBound:
    """log Z(θ̃ + δ) ≤ log_z + δᵀg + ½ δᵀΣδ for every δ, with equality and equal gradients at δ = 0.

    Attributes
    ----------
    log_z : float
        log Z(θ̃).
    gradient : ndarray of shape (n_parameters,)
        g = ∇ log Z(θ̃), the mean of the features under p(y) ∝ h(y) exp(θ̃ᵀf(y)).
    curvature : ndarray of shape (n_parameters, n_parameters)
        Σ, positive semi-definite.
    """

    log_z: float
    gradient: np.ndarray
    curvature: np.ndarray

    def log_value(self, step):
        """The bound on log Z at θ̃ + step."""
        return float(self.log_z + step @ self.gradient + 0.5 * step @ self.curvature @ step)


def log_linear_bound(theta, features, measure=None):
    """The bound on Z(θ) = Σ_y h(y) exp(θᵀf(y)) around θ̃ (Algorithm 1), in the log domain.

    Parameters
    ----------
    theta : array-like of shape (n_parameters,)
        θ̃.
    features : array-like of shape (n_outcomes, n_parameters)
        f(y), one outcome a row. Σ depends on their order; the bound holds for every order.
    measure : array-like of shape (n_outcomes,), optional
        h(y) ≥ 0, not all zero; 1 by default.
    """
    F, theta = np.asarray(features, dtype=float), np.asarray(theta, dtype=float)
    h = np.ones(len(F)) if measure is None else np.asarray(measure)
    possible = np.flatnonzero(h)
    log_a = np.log(h[possible]) + F[possible] @ theta
    log_z, g = float(log_a[0]), F[possible[0]].copy()
    sigma = np.zeros((theta.size, theta.size))
    for y, log_ay in zip(possible[1:], log_a[1:], strict=True):
        difference = F[y] - g
        sigma += beta(log_ay - log_z) * np.outer(difference, difference)
        g += expit(log_ay - log_z) * difference
        log_z = float(np.logaddexp(log_z, log_ay))
    return LogLinearBound(log_z, g, sigma)


def beta(log_ratio):
    """tanh(½u)/(2u), with its limits ¼ at 0 and 0 at ±∞."""
    return np.tanh(0.5 * log_ratio) / (2.0 * log_ratio) if log_ratio else 0.25
