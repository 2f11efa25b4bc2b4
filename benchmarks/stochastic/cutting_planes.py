"""The algorithm of SVM-multiclass: one slack variable, and one cutting plane an iteration.

It minimises (alpha/2) ‖W‖² + (1/n) Σ max(0, 1 + max_{j≠y} z_j − z_y). A plane W ↦ b − ⟨G, W⟩, the mean loss if the
labels that are worst at one W were so everywhere, lies below the mean loss; W minimises the penalty and the highest of
the planes so far, and gives the next one (Joachims, Finley and Yu, *Cutting-Plane Training of Structural SVMs*, 2009,
Algorithm 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

TOL = 1e-3
"""The default of SVM-multiclass, 0.1 where a wrong label costs 100."""
MOST_STEPS = 100_000


@dataclass(frozen=True)
class CuttingPlanes:
    """W of shape (n_features, n_classes), and how many planes it took."""

    W: np.ndarray
    n_planes: int

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.W).argmax(axis=1)


def fit(X: sparse.csr_matrix, y: np.ndarray, alpha: float, tol: float = TOL) -> CuttingPlanes:
    """W whose objective is at most `tol` above the least one; `y` holds class codes."""
    n, k = X.shape[0], int(y.max()) + 1
    columns, rows = sparse.csr_array(X.T), np.arange(n)
    W = np.zeros((X.shape[1], k), dtype=X.dtype)
    planes, offsets = [W], np.zeros(1)  # the first is 0: a mean loss is not below it
    gram, shares = np.zeros((1, 1)), np.ones(1)
    while True:
        highest = float(np.max(offsets - gram @ shares / alpha))
        scores = np.asarray(X @ W)
        scores += 1.0
        scores[rows, y] -= 1.0
        worst = scores.argmax(axis=1)
        if float(np.mean(scores[rows, worst] - scores[rows, y])) <= highest + tol:
            return CuttingPlanes(W, len(planes) - 1)
        wrong = np.flatnonzero(worst != y)
        signs = np.repeat(np.array([1.0, -1.0], dtype=X.dtype), len(wrong)) / n
        labels = np.concatenate([y[wrong], worst[wrong]])
        chosen = sparse.csr_matrix((signs, (np.tile(wrong, 2), labels)), shape=(n, k))
        planes.append((columns @ chosen).toarray())
        offsets = np.append(offsets, len(wrong) / n)
        products = np.array([float(np.vdot(G, planes[-1])) for G in planes])
        gram = np.block([[gram, products[:-1, None]], [products[None, :]]])
        shares = highest_shares(gram / alpha, offsets, np.append(shares, 0.0), 0.1 * tol)
        W = np.zeros_like(W)
        for share, G in zip(shares, planes, strict=True):
            W += float(share / alpha) * G


def highest_shares(Q: np.ndarray, b: np.ndarray, a: np.ndarray, tol: float) -> np.ndarray:
    """The a ≥ 0 with sum 1 that maximises bᵀa − ½ aᵀQa to within `tol`, by exchanges between two of its entries."""
    a, gradient = a.copy(), Q @ a - b
    for _ in range(MOST_STEPS):
        used = np.flatnonzero(a > 0)
        up, down = int(gradient.argmin()), int(used[gradient[used].argmax()])
        gain = gradient[down] - gradient[up]
        if gain <= tol:
            break
        step = min(a[down], gain / max(Q[up, up] + Q[down, down] - 2 * Q[up, down], 1e-300))
        a[up] += step
        a[down] -= step
        gradient += step * (Q[:, up] - Q[:, down])
    return a
