"""The bounds of `class_bounds` for the scores of one row, compiled."""

from __future__ import annotations

import math

from manyclass.data.compiled import inner, sigmoid


@inner
def curving(u):
    """β(u) = tanh(u/2)/(2u)."""
    return 0.25 - u * u / 48.0 if abs(u) < 1e-3 else math.tanh(0.5 * u) / (2.0 * u)


@inner
def bound_of_scores(z, softmax, scale, order, p, C):
    """The mean p and the factors C, of shape (rank, n_outputs), of scale²·B = CᵀC, classes taken in `order`."""
    m = z.shape[0]
    for y in range(C.shape[0]):
        for a in range(m):
            C[y, a] = 0.0
    if not softmax:
        for a in range(m):
            p[a] = sigmoid(z[a])
            C[a, a] = scale * math.sqrt(curving(z[a]))
        return
    log_z = z[order[0]]
    p[order[0]] = 1.0
    for i in range(1, m):
        y = order[i]
        u = z[y] - log_z
        root, rest = scale * math.sqrt(curving(u)), sigmoid(-u)
        for earlier in range(i):
            a = order[earlier]
            C[i - 1, a] = -root * p[a]
            p[a] *= rest
        C[i - 1, y] = root
        p[y] = sigmoid(u)
        log_z = (z[y] if u > 0.0 else log_z) + math.log1p(math.exp(-abs(u)))
