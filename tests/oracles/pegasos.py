"""Algorithms 1 to 4 of *Characterizing Inverse Time Dependency in Multi-class Learning*, line by line, and the losses
written out plainly."""

import numpy as np
from scipy.special import logsumexp


def loss(name, z, y):
    """ℓ of one row from its scores; eq. 6, 9 and 11, a square, and one binary loss per class."""
    gap = np.delete(z, y).max() - z[y] if len(z) > 1 else np.nan
    margin = np.where(np.arange(len(z)) == y, z, -z)
    return {
        "softmax": lambda: logsumexp(z) - z[y],
        "crammer_singer": lambda: max(0.0, 1 + gap),
        "squared_crammer_singer": lambda: max(0.0, 1 + gap) ** 2,
        "perceptron": lambda: max(0.0, gap),
        "logistic": lambda: np.logaddexp(0, -margin).sum(),
        "hinge": lambda: np.maximum(0, 1 - margin).sum(),
        "squared_hinge": lambda: (np.maximum(0, 1 - margin) ** 2).sum(),
        "column_perceptron": lambda: np.maximum(0, -margin).sum(),
    }[name]()


def step(name, W, x, y, length):
    """The change of w_1 … w_K (columns of W) by one row: Algorithms 2, 3 and 4. `length` is 1/(λ t r)."""
    n_classes = W.shape[1]
    change = np.zeros_like(W)
    z = np.array([W[:, k] @ x for k in range(n_classes)])
    if name == "softmax":
        o = np.exp(z - z.max())
        for k in range(n_classes):
            change[:, k] -= length * o[k] / o.sum() * x
        change[:, y] += length * x
        return change
    others = [k for k in range(n_classes) if k != y]
    best = max(others, key=lambda k: (z[k], -k))
    # Footnote 1 of the paper: of several maximisers any may be taken. A tie with y counts as a mistake.
    wrong = 1 + z[best] - z[y] > 0 if name == "crammer_singer" else z[best] >= z[y]
    if wrong:
        change[:, best] -= length * x
        change[:, y] += length * x
    return change


def algorithm_1(name, X, y, n_classes, alpha, batches, offset=0.0):
    """W⁽⁰⁾ … W⁽ᵀ⁾ for given batches of row numbers. `offset` > 0 takes t + offset in place of t."""
    W = np.zeros((X.shape[1], n_classes))
    iterates = [W]
    for t, rows in enumerate(batches, start=1):
        at = t + offset
        shrunk = (at - 1) / at * W
        W = shrunk + sum(step(name, W, X[i], y[i], 1 / (alpha * at * len(rows))) for i in rows)
        iterates.append(W)
    return iterates


def objective(name, X, y, alpha, W, b=0.0):
    losses = [loss(name, x @ W + b, c) for x, c in zip(X, y, strict=True)]
    return np.mean(losses) + alpha / 2 * (W**2).sum()
