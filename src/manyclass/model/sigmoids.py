"""The sigmoids of Platt (1999), of many outputs at once."""

import numpy as np
from scipy.special import expit, logit

MAX_STEPS, DIGITS, CELLS = 100, 1e-12, 1 << 16
"""Newton's steps at most, the gain per row below which they end, and scores that are looked at together."""


def fit_sigmoids(Z: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Slopes and offsets (2, outputs) of the least log loss of 1/(1 + exp(−slope·z − offset)), a column each.

    Y is 1 or 0. It is met halfway by one more row of each kind, so that slopes stay finite where scores part the two.
    """
    width, w = max(1, CELLS // len(Z)), _weights(Y, weight)
    parts = [slice(start, start + width) for start in range(0, Z.shape[1], width)]
    return np.concatenate([_newton(Z.T[part], _softened(Y.T[part], w), w) for part in parts], axis=1)


def constant_sigmoids(Y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The same of scores that tell nothing: slopes of 0, and the offsets."""
    w = _weights(Y, weight)
    offset = logit(_softened(Y.T, w) @ w / w.sum())
    return np.stack([np.zeros_like(offset), offset])


def _weights(Y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return np.ones(len(Y)) if weight is None else weight


def _softened(Y: np.ndarray, w: np.ndarray) -> np.ndarray:
    ones = (Y > 0) @ w
    high, low = (ones + 1) / (ones + 2), 1 / (w.sum() - ones + 2)
    T: np.ndarray = np.where(Y > 0, high[:, None], low[:, None])
    return T


def _newton(Z: np.ndarray, T: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Newton's steps in two unknowns of a row each, halved where they go beyond the least of their line by half."""
    total = w.sum()
    mean = Z @ w / total
    S = Z - mean[:, None]
    scale = np.sqrt(S**2 @ w / total)
    scale[scale <= 1e-12 * np.abs(mean)] = np.inf  # a constant, whose slope is 0
    S /= scale[:, None]
    S2 = S**2
    at = np.stack([np.zeros_like(mean), logit(T @ w / total)])
    step, length = np.zeros_like(at), np.ones_like(mean)
    slope = np.full_like(mean, -np.inf)
    for _ in range(MAX_STEPS):
        tried = at + length * step
        P = expit(S * tried[0][:, None] + tried[1][:, None])
        R, H = w * (P - T), w * P * (1 - P)
        g = np.stack([np.vecdot(R, S), R.sum(axis=1)])
        a, b, c = np.vecdot(H, S2) + 1e-12 * total, np.vecdot(H, S), H.sum(axis=1)
        newton = np.stack([b * g[1] - c * g[0], b * g[0] - a * g[1]]) / (a * c - b**2)
        is_beyond = (g * step).sum(axis=0) > -0.5 * slope
        length = np.where(is_beyond, 0.5 * length, 1.0)
        at, step = np.where(is_beyond, at, tried), np.where(is_beyond, step, newton)
        slope = np.where(is_beyond, slope, (g * newton).sum(axis=0))
        if np.all(-slope <= DIGITS * total):
            break
    return np.stack([at[0] / scale, at[1] - at[0] * mean / scale])
