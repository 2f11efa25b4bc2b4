"""The yardstick: every solver is judged by this objective, computed in float64 from its iterates."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

BLOCK_BYTES = 1 << 26


def softmax_objectives(X, y, iterates, alpha: float) -> list[float]:
    """Mean log loss + (alpha/2) ‖W‖²_F at several iterates, the intercept unpenalised, in one pass over X.

    Parameters
    ----------
    X : array of shape (n, d)
        Any floating type, possibly memory-mapped; rows are upcast to float64 a block at a time.
    y : integer array of shape (n,)
        Class indices 0..k-1.
    iterates : list of (W of shape (d, k), b of shape (k,))
    alpha : float
    """
    weights = [np.asarray(W, dtype=np.float64) for W, _ in iterates]
    intercepts = [np.asarray(b, dtype=np.float64) for _, b in iterates]
    n, d = X.shape
    k = weights[0].shape[1]
    rows = max(1, BLOCK_BYTES // (8 * max(d, k)))
    losses = np.zeros(len(weights))
    for start in range(0, n, rows):
        block = np.asarray(X[start : start + rows], dtype=np.float64)
        labels = y[start : start + rows]
        for j, (W, b) in enumerate(zip(weights, intercepts, strict=True)):
            Z = block @ W + b
            losses[j] += np.sum(logsumexp(Z, axis=1) - Z[np.arange(len(labels)), labels])
    penalties = np.array([0.5 * alpha * np.sum(W * W) for W in weights])
    return (losses / n + penalties).tolist()


def zero_objective(y) -> float:
    """F(0), the objective at W = 0, b = 0: log k."""
    return float(np.log(len(np.unique(y))))
