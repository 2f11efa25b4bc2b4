"""Losses and their subgradients in the scores, each one line in `LOSSES`.

A formula takes the float64 scores z of one row, writes the subgradient g = ∂ℓ/∂z, and returns the loss ℓ(z) and
ℓ(z) − gᵀz, which is the row's share of a lower bound on the objective (see `State.lower_bound`). The subgradient in w_k
is g_k x, as in the equations of *Characterizing Inverse Time Dependency in Multi-class Learning*. The type of a loss
says which formula is compiled into the loop, so that nobody waits for those of other losses.
"""

import math
from typing import NamedTuple

import numpy as np

from manyclass.data.compiled import by_type, inner

_LOG2E = math.log2(math.e)
_LN2_HIGH = 6.93147180369123816490e-01  # the leading bits of ln 2: products with small integers are exact
_LN2_LOW = 1.90821492927058770002e-10
_SMALLEST_EXPONENT = -700.0


@inner(fastmath={"contract"})
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


def softmax_log(loss, z, n, label, sign, bits, g):
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


@inner
def shortfall(loss, short, g, at):
    """ℓ and ℓ − gᵀz of a margin that is missed by `short`, with the derivative written to ``g[at]``.

    Without a margin a score of zero counts as a mistake (any maximiser is a subgradient, footnote 1), or W = 0 would
    never change.
    """
    if not (short > 0.0 or (short == 0.0 and loss.margin == 0.0)):
        return 0.0, 0.0
    if loss.squared:
        g[at] = 2.0 * short
        return short * short, (2.0 * loss.margin - short) * short
    g[at] = 1.0
    return short, loss.margin


def joint_margin(loss, z, n, label, sign, bits, g):
    """Eq. 9, 11, 16 and 17: h = max(0, margin + max_{j≠y} z_j − z_y) or its square, g = h' (e_{k*} − e_y)."""
    best = -1
    for c in range(n):
        g[c] = 0.0
        if c != label and (best < 0 or z[c] > z[best]):
            best = c
    value, bound = shortfall(loss, loss.margin + (z[best] - z[label]), g, best)
    g[label] = -g[best]
    return value, bound


def column_log(loss, z, n, label, sign, bits, g):
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


def column_margin(loss, z, n, label, sign, bits, g):
    """K-Pegasos: Σ_j max(0, margin − s_j z_j), or of squares: the loss of LIBLINEAR's solvers 1 and 2."""
    total, bounds = 0.0, 0.0
    for c in range(n):
        g[c] = 0.0
        value, bound = shortfall(loss, loss.margin - sign[c] * z[c], g, c)
        total += value
        bounds += bound
        g[c] *= -sign[c]
    return total, bounds


class Formula(NamedTuple):
    """The parameters of a loss, whose type says the formula: functions would be compiled anew in every process.

    Scores must differ by `margin`, 0 for the perceptron. |g| grows with z if the loss is `squared`: Theorem 2, which
    needs a bound, does not hold then, and a step that overshoots is followed by a longer one.
    """

    margin: float = 1.0
    squared: bool = False


class JointMargin(Formula):
    columns = False
    """Whether each column has a binary loss, rather than all classes one."""
    slope = 2.0

    def curvature(self) -> float:
        """How much g can move when z moves by one, or across one unit of margin; it bounds the first step."""
        return 2.0 * self.slope if self.squared else self.slope


class JointLog(JointMargin):
    slope = 0.5


class ColumnMargin(JointMargin):
    columns, slope = True, 1.0


class ColumnLog(JointMargin):
    columns, slope = True, 0.25


_FORMULAS = {JointLog: softmax_log, JointMargin: joint_margin, ColumnLog: column_log, ColumnMargin: column_margin}


@by_type
def residual(loss, z, n, label, sign, bits, g):
    """ℓ and ℓ − gᵀz, with g written to `g`."""
    return _FORMULAS[loss.instance_class]


LOSSES: dict[str, JointMargin] = {
    "softmax": JointLog(),
    "crammer_singer": JointMargin(),
    "squared_crammer_singer": JointMargin(squared=True),
    "perceptron": JointMargin(margin=0.0),
    "logistic": ColumnLog(),
    "hinge": ColumnMargin(),
    "squared_hinge": ColumnMargin(squared=True),
    "column_perceptron": ColumnMargin(margin=0.0),
}
"""By the names of `model.losses`."""
