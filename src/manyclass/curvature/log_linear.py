"""Quadratic upper bounds on log partition functions (*Stochastic Bound Majorization*, Algorithm 1 and Theorem 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from manyclass.data.rows import Array


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

    def log_value(self, step: np.ndarray) -> float:
        """The bound on log Z at θ̃ + step."""
        return float(self.log_z + step @ self.gradient + 0.5 * step @ self.curvature @ step)


def log_linear_bound(theta: Any, features: Any, measure: Any = None) -> LogLinearBound:
    """The bound on Z(θ) = Σ_y h(y) exp(θᵀf(y)) around θ̃ (Algorithm 1), in the log domain.

    Parameters
    ----------
    theta : array-like of shape (n_parameters,)
        θ̃.
    features : array-like of shape (n_outcomes, n_parameters)
        f(y), one outcome a row. Σ depends on their order; the bound holds for every order.
    measure : array-like of shape (n_outcomes,), optional
        h(y) ≥ 0, not all zero; 1 by default.

    Raises
    ------
    ValueError
        If shapes disagree, numbers are not finite, or h is negative or zero everywhere.
    """
    F = np.asarray(features, dtype=np.float64)
    theta = np.asarray(theta, dtype=np.float64)
    if F.ndim != 2 or theta.shape != F.shape[1:]:
        raise ValueError(f"features must have one row of {theta.size} numbers per outcome, got shape {F.shape}.")
    h = np.ones(len(F)) if measure is None else np.asarray(measure, dtype=np.float64)
    if h.shape != (len(F),):
        raise ValueError(f"measure must hold one number for each of the {len(F)} outcomes, got shape {h.shape}.")
    if not (np.isfinite(F).all() and np.isfinite(theta).all() and np.isfinite(h).all()):
        raise ValueError("theta, features and measure must be finite.")
    if (h < 0).any() or not (h > 0).any():
        raise ValueError("measure must be non-negative and positive for at least one outcome.")
    possible = np.flatnonzero(h)
    log_a = np.log(h[possible]) + F[possible] @ theta
    log_z, g = float(log_a[0]), F[possible[0]].copy()
    sigma = np.zeros((theta.size, theta.size))
    for y, log_ay in zip(possible[1:], log_a[1:], strict=True):
        difference = F[y] - g
        sigma += float(curving(log_ay - log_z, np)) * np.outer(difference, difference)
        g += expit(log_ay - log_z) * difference
        log_z = float(np.logaddexp(log_z, log_ay))
    return LogLinearBound(log_z, g, sigma)


def curving(log_ratio: Array, xp: Any) -> Array:
    """β(u) = tanh(u/2)/(2u) for u = log(a/z), with β(0) = ¼ and β(±∞) = 0."""
    log_ratio = xp.asarray(log_ratio)
    near = abs(log_ratio) < 1e-3  # where the quotient loses digits and ¼ − u²/48 has them all
    safe = xp.where(near, xp.ones_like(log_ratio), log_ratio)
    return xp.where(near, 0.25 - log_ratio**2 / 48.0, xp.tanh(0.5 * safe) / (2.0 * safe))


@dataclass(frozen=True)
class ClassBound:
    """The bound in the space of scores: Φ(z + u) ≤ Φ(z) + g(z)ᵀu + ½ uᵀB(z)u for every u.

    With z = Wᵀx the features of Algorithm 1 are f(x, y) = e_y ⊗ x, every l of the algorithm is c ⊗ x, and so the Σ of
    a row is B ⊗ xxᵀ: only B, of shape (n_outputs, n_outputs), has to be found.

    Attributes
    ----------
    pairs : callable
        ``pairs(n_outputs)`` gives the output numbers (a, b), a ≤ b, of the entries of B that may differ from zero.
    weights : callable
        ``weights(Z, xp)`` gives those entries for each row of Z, of shape (n_rows, n_pairs).
    free_shift : bool
        Whether B annihilates the vector of ones, as scores of a softmax are free to shift.
    """

    pairs: Callable[[int], tuple[np.ndarray, np.ndarray]]
    weights: Callable[[Array, Any], Array]
    free_shift: bool


def _softmax_pairs(k: int) -> tuple[np.ndarray, np.ndarray]:
    b, a = np.tril_indices(k)
    return a, b


def _softmax_weights(Z: Array, xp: Any) -> Array:
    """B without a loop over pairs, or any k×k product.

    Let L_b = log Σ_{j≤b} exp z_j, u_b = z_b − L_{b−1}, κ_b = σ(u_b) and q_b = softmax of the classes before b.
    Algorithm 1 adds β_b c cᵀ with c = e_b − q_b. Summed over b, the upper triangle has rank one in each column:

        B_ab = q_b[a] · (κ_b (1 − κ_b) ρ_b − β_b) for a < b,     B_bb = β_b + κ_b² ρ_b,

    where ρ_{b−1} = β_b + (1 − κ_b)² ρ_b, ρ_last = 0, collects the later classes.
    """
    k = int(Z.shape[1])
    L = [Z[:, 0]]
    for b in range(1, k):
        L.append(xp.logaddexp(L[-1], Z[:, b]))
    later = xp.zeros_like(L[0])
    columns: list[Array] = []
    for b in range(k - 1, 0, -1):
        beta = curving(Z[:, b] - L[b - 1], xp)
        kappa, rest = xp.exp(Z[:, b] - L[b]), xp.exp(L[b - 1] - L[b])
        column = xp.exp(Z[:, :b] - L[b - 1][:, None]) * (kappa * rest * later - beta)[:, None]
        columns.append(xp.concat([column, (beta + kappa**2 * later)[:, None]], axis=1))
        later = beta + rest**2 * later
    columns.append(later[:, None])
    return xp.concat(columns[::-1], axis=1)


def _logistic_pairs(k: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(k), np.arange(k)


def _logistic_weights(Z: Array, xp: Any) -> Array:
    """Each label has a partition function 1 + exp z of its own, whose bound is that of Jaakkola and Jordan (2000)."""
    return curving(Z, xp)


CLASS_BOUNDS: dict[str, ClassBound] = {
    "softmax": ClassBound(_softmax_pairs, _softmax_weights, free_shift=True),
    "logistic": ClassBound(_logistic_pairs, _logistic_weights, free_shift=False),
}
"""By name of the loss whose potential is the log partition function."""


def class_bound(loss_name: str) -> ClassBound:
    """The bound of a loss, or an error that says what would work."""
    if loss_name not in CLASS_BOUNDS:
        raise ValueError(
            f"There is no partition function behind loss {loss_name!r}; a partition bound exists for "
            f"{' and '.join(map(repr, CLASS_BOUNDS))}. Use curvature='second-moment' instead."
        )
    return CLASS_BOUNDS[loss_name]
