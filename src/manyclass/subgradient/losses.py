"""Losses and their subgradients in the scores, one function and one line in `LOSSES` each.

Each compiled function takes the float64 scores z of one row, writes the subgradient g = ∂ℓ/∂z, and returns the loss
ℓ(z) and ℓ(z) − gᵀz, which is the row's share of a lower bound on the objective (see `State.lower_bound`). The
subgradient in w_k is g_k x, as in the equations of *Characterizing Inverse Time Dependency in Multi-class Learning*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

_LOG2E = math.log2(math.e)
_LN2_HIGH = 6.93147180369123816490e-01  # the leading bits of ln 2: products with small integers are exact
_LN2_LOW = 1.90821492927058770002e-10
_SMALLEST_EXPONENT = -700.0


@njit(cache=True, fastmath={"contract"})
def exp_in_place(z, n, bits):
    """z[:n] = exp(z[:n]) for z ≤ 0, in loops that compile to vector instructions; relative error below 1e-15.

    math.exp is called once per number: for 50 classes that costs as much as the scores themselves.
    """
    power = bits.view(np.float64)
    for c in range(n):
        x = max(z[c], _SMALLEST_EXPONENT)
        whole = np.floor(x * _LOG2E + 0.5)
        r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        z[c] = (p * r + 1.0) * r + 1.0
        bits[c] = (np.int64(whole) + 1023) << 52
    for c in range(n):
        z[c] *= power[c]


@njit(cache=True)
def softmax_log(z, n, label, bits, g):
    """Eq. 6 and 15: ℓ = log Σ exp z_j − z_y, g = softmax(z) − e_y. Overwrites z."""
    largest = z[0]
    for c in range(1, n):
        largest = max(largest, z[c])
    for c in range(n):
        z[c] -= largest
        g[c] = z[c]
    at_label = z[label]
    exp_in_place(z, n, bits)
    total = 0.0
    matched = 0.0
    for c in range(n):
        total += z[c]
        matched += z[c] * max(g[c], _SMALLEST_EXPONENT)
    inverse = 1.0 / total
    for c in range(n):
        g[c] = z[c] * inverse
    g[label] -= 1.0
    log_total = math.log(total)
    return log_total - at_label, log_total - matched * inverse


@njit(cache=True)
def _best_other(z, n, label):
    best = -1
    for c in range(n):
        if c != label and (best < 0 or z[c] > z[best]):
            best = c
    return best


@njit(cache=True)
def crammer_singer_hinge(z, n, label, bits, g):
    """Eq. 9 and 16: ℓ = max(0, 1 + max_{j≠y} z_j − z_y), g = e_{k*} − e_y where that is positive."""
    g[:n] = 0.0
    best = _best_other(z, n, label)
    loss = 1.0 + (z[best] - z[label])
    if not loss > 0.0:
        return 0.0, 0.0
    g[best], g[label] = 1.0, -1.0
    return loss, 1.0


@njit(cache=True)
def crammer_singer_squared(z, n, label, bits, g):
    """The square of Crammer and Singer's hinge h: ℓ = h², g = 2h (e_{k*} − e_y)."""
    h, active = crammer_singer_hinge(z, n, label, bits, g)
    if active > 0.0:
        for c in range(n):
            g[c] *= 2.0 * h
    return h * h, (2.0 - h) * h


@njit(cache=True)
def multiclass_perceptron(z, n, label, bits, g):
    """Eq. 11 and 17: ℓ = max_j z_j − z_y, g = e_{k*} − e_y.

    A tie of the label with another class counts as a mistake (any maximiser is a subgradient, footnote 1): nothing
    would ever be learnt from W = 0 otherwise.
    """
    g[:n] = 0.0
    best = _best_other(z, n, label)
    loss = z[best] - z[label]
    if loss < 0.0:
        return 0.0, 0.0
    g[best], g[label] = 1.0, -1.0
    return loss, 0.0


@njit(cache=True)
def column_log(z, n, sign, bits, g):
    """K-binaryLR: Σ_j log(1 + exp(−s_j z_j)), s = ±1. Overwrites z."""
    loss = 0.0
    entropy = 0.0
    for c in range(n):
        g[c] = sign[c] * z[c]
        z[c] = -abs(z[c])
    exp_in_place(z, n, bits)
    for c in range(n):
        small = z[c] / (1.0 + z[c])  # σ(−|z|)
        log_total = math.log1p(z[c])
        loss += log_total + max(-g[c], 0.0)
        entropy += log_total + small * min(abs(g[c]), -_SMALLEST_EXPONENT)
        g[c] = -sign[c] * (small if g[c] > 0.0 else 1.0 - small)
    return loss, entropy


@njit(cache=True)
def column_hinge(z, n, sign, bits, g):
    """K-Pegasos: Σ_j max(0, 1 − s_j z_j)."""
    loss = 0.0
    active = 0.0
    for c in range(n):
        short = 1.0 - sign[c] * z[c]
        g[c] = 0.0
        if short > 0.0:
            loss += short
            active += 1.0
            g[c] = -sign[c]
    return loss, active


@njit(cache=True)
def column_squared_hinge(z, n, sign, bits, g):
    """Σ_j max(0, 1 − s_j z_j)², the loss of LIBLINEAR's solvers 1 and 2."""
    loss = 0.0
    bound = 0.0
    for c in range(n):
        short = max(1.0 - sign[c] * z[c], 0.0)
        loss += short * short
        bound += (2.0 - short) * short
        g[c] = -2.0 * sign[c] * short
    return loss, bound


@njit(cache=True)
def column_perceptron(z, n, sign, bits, g):
    """Σ_j max(0, −s_j z_j); a score of zero counts as a mistake."""
    loss = 0.0
    for c in range(n):
        score = sign[c] * z[c]
        g[c] = 0.0
        if score <= 0.0:
            loss -= score
            g[c] = -sign[c]
    return loss, 0.0


@njit(cache=True)
def residual(code, z, n, label, sign, bits, g):
    """The loss with that code in `LOSSES`: ℓ and ℓ − gᵀz, with g written to `g`."""
    if code == 0:
        return softmax_log(z, n, label, bits, g)
    if code == 1:
        return crammer_singer_hinge(z, n, label, bits, g)
    if code == 2:
        return crammer_singer_squared(z, n, label, bits, g)
    if code == 3:
        return multiclass_perceptron(z, n, label, bits, g)
    if code == 4:
        return column_log(z, n, sign, bits, g)
    if code == 5:
        return column_hinge(z, n, sign, bits, g)
    if code == 6:
        return column_squared_hinge(z, n, sign, bits, g)
    return column_perceptron(z, n, sign, bits, g)


@dataclass(frozen=True)
class Compiled:
    """What the compiled loop has to know of a loss, beside what `model.losses` says.

    Attributes
    ----------
    code : int
        Its branch of `residual`: functions passed as arguments would be compiled anew in every process.
    curvature : float
        How much g can move when z moves by one (1/2 for softmax, 1/4 per column for logistic); for the losses with
        kinks, how much it moves across one unit of margin. It bounds the first step.
    at_zero : callable
        ℓ(0) from the number of outputs.
    bounded : bool
        Whether |g| stays below a constant, as Theorem 2 asks; where it grows with z, a step that overshoots leads to a
        longer one.
    """

    code: int
    curvature: float
    at_zero: Callable[[int], float]
    bounded: bool = True


LOSSES: dict[str, Compiled] = {
    "softmax": Compiled(0, 0.5, lambda k: math.log(k)),
    "crammer_singer": Compiled(1, 2.0, lambda k: 1.0),
    "squared_crammer_singer": Compiled(2, 4.0, lambda k: 1.0, bounded=False),
    "perceptron": Compiled(3, 2.0, lambda k: 0.0),
    "logistic": Compiled(4, 0.25, lambda k: k * math.log(2.0)),
    "hinge": Compiled(5, 1.0, lambda k: float(k)),
    "squared_hinge": Compiled(6, 2.0, lambda k: float(k), bounded=False),
    "column_perceptron": Compiled(7, 1.0, lambda k: 0.0),
}
"""By the names of `model.losses`."""
