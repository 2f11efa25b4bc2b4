"""The yardstick: every solver is judged by this objective, computed in float64 from its iterates."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

BLOCK_BYTES = 1 << 25


def softmax_objective(X, y, coef, intercept, alpha: float) -> float:
    """Mean log loss + (alpha/2) ‖W‖²_F, the intercept unpenalised.

    Parameters
    ----------
    X : array of shape (n, d)
        Any floating type, possibly memory-mapped; rows are upcast to float64 a block at a time.
    y : integer array of shape (n,)
        Class indices 0..k-1.
    coef : array of shape (d, k)
    intercept : array of shape (k,)
    alpha : float
    """
    W = np.asarray(coef, dtype=np.float64)
    b = np.asarray(intercept, dtype=np.float64)
    n = X.shape[0]
    rows = max(1, BLOCK_BYTES // (8 * max(X.shape[1], W.shape[1])))
    loss = 0.0
    for start in range(0, n, rows):
        Z = np.asarray(X[start : start + rows], dtype=np.float64) @ W + b
        labels = y[start : start + rows]
        loss += float(np.sum(logsumexp(Z, axis=1) - Z[np.arange(len(labels)), labels]))
    return loss / n + 0.5 * alpha * float(np.sum(W * W))


def zero_objective(y) -> float:
    """F(0), the objective at W = 0, b = 0: log k."""
    return float(np.log(len(np.unique(y))))
