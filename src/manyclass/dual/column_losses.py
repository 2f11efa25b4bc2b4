"""The formulas of each loss of one score, compiled.

For a loss φ(z, y) the dual variable is a = −∂φ/∂z, and each loss gives these functions:

- ``step``: the a' that maximises −φ*(−a') − (a' − a) z − (q/2)(a' − a)², the exact coordinate step, where
  q = s_i‖x_i‖²/(alpha·S) is what a unit of a_i adds to the row's own score;
- ``loss``: φ(z, y), and ``conjugate``: φ*(−a);
- ``slack``: positive where a sits at a bound and is pushed outwards, by how much; otherwise minus the size of the
  derivative of the dual. Coordinates with slack need no visit (Hsieh et al., 2008, shrink on the same quantity);
- ``nearest``: the feasible a next to a given one, where not every number is feasible;
- ``fenchel``: φ(z) + φ*(−a) + az, where the sum of the three would lose digits.

Numba cannot cache a kernel that takes functions as arguments (it would compile anew in each process), so the
kernels take a code, and the dispatchers at the end have one line for each loss. The branch is the same for
every row, and so costs nothing beside reading the row.
"""

from __future__ import annotations

import math

from numba import njit

from manyclass.data.compiled import clip, sigmoid, soft_threshold, softplus
from manyclass.dual.losses import (
    EPSILON_INSENSITIVE,
    HINGE,
    HUBER,
    LOGISTIC,
    SQUARED,
    SQUARED_EPSILON_INSENSITIVE,
    SQUARED_HINGE,
)

NEWTON_STEPS = 30
NEWTON_TOLERANCE = 1e-4
"""Newton's error is squared in each step, so the logit ends within about 1e-8."""


# -- ½(y − z)²: φ*(−a) = ½a² − ay ---------------------------------------------------------------------------------


@njit(cache=True)
def squared_step(a, z, y, q):
    return a + (y - z - a) / (1.0 + q)


# -- max(0, 1 − yz): φ*(−a) = −ay for ay in [0, 1] ----------------------------------------------------------------


@njit(cache=True)
def hinge_step(a, z, y, q):
    room = 1.0 - y * z
    if q > 0.0:
        return y * clip(y * a + room / q, 0.0, 1.0)
    return y if room > 0.0 else (0.0 if room < 0.0 else a)


@njit(cache=True)
def hinge_slack(a, z, y):
    excess = y * z - 1.0
    if a == 0.0:
        return excess
    return -excess if y * a >= 1.0 else -abs(excess)


# -- max(0, 1 − yz)²: φ*(−a) = ¼a² − ay for ay ≥ 0 ----------------------------------------------------------------


@njit(cache=True)
def squared_hinge_step(a, z, y, q):
    return y * max(y * a + (1.0 - y * z - 0.5 * y * a) / (q + 0.5), 0.0)


@njit(cache=True)
def squared_hinge_slack(a, z, y):
    return y * z - 1.0 if a == 0.0 else -abs(1.0 - y * z - 0.5 * y * a)


# -- log(1 + exp(−yz)): φ*(−a) = β log β + (1 − β) log(1 − β) for β = ay in [0, 1] --------------------------------


@njit(cache=True)
def logistic_step(a, z, y, q):
    """Newton's method for the logit t of β: t + yz + q(σ(t) − β₀) = 0, kept inside its bracket."""
    margin, old = y * z, y * a
    low, high = -margin - q * (1.0 - old), -margin + q * old
    t = math.log(old / (1.0 - old)) if 0.0 < old < 1.0 else -margin
    t = clip(t, low, high)
    for _ in range(NEWTON_STEPS):
        p = sigmoid(t)
        value = t + margin + q * (p - old)
        if value > 0.0:
            high = t
        else:
            low = t
        following = t - value / (1.0 + q * p * (1.0 - p))
        if not low <= following <= high:
            following = 0.5 * (low + high)
        change, t = abs(following - t), following
        if change <= NEWTON_TOLERANCE:
            break
    return y * sigmoid(t)


@njit(cache=True)
def logistic_conjugate(a, y):
    beta = y * a
    value = 0.0
    if beta > 0.0:
        value += beta * math.log(beta)
    if beta < 1.0:
        value += (1.0 - beta) * math.log1p(-beta)
    return value


# -- max(0, |y − z| − ε): φ*(−a) = ε|a| − ay for |a| ≤ 1 ----------------------------------------------------------


@njit(cache=True)
def epsilon_step(a, z, y, q, epsilon):
    error = y - z
    if q > 0.0:
        return clip(soft_threshold(a + error / q, epsilon / q), -1.0, 1.0)
    return math.copysign(1.0, error) if abs(error) > epsilon else (a if abs(error) == epsilon else 0.0)


@njit(cache=True)
def epsilon_slack(a, z, y, epsilon):
    if a == 0.0:
        return epsilon - abs(y - z)
    outwards = math.copysign(1.0, a) * (y - z) - epsilon
    return outwards if abs(a) >= 1.0 else -abs(outwards)


# -- max(0, |y − z| − ε)²: φ*(−a) = ε|a| + ¼a² − ay ---------------------------------------------------------------


@njit(cache=True)
def squared_epsilon_step(a, z, y, q, epsilon):
    return soft_threshold(q * a + y - z, epsilon) / (q + 0.5)


@njit(cache=True)
def squared_epsilon_slack(a, z, y, epsilon):
    if a == 0.0:
        return epsilon - abs(y - z)
    return -abs(math.copysign(1.0, a) * (y - z) - epsilon - 0.5 * abs(a))


# -- Huber: φ*(−a) = ½a² − ay for |a| ≤ ε -------------------------------------------------------------------------


@njit(cache=True)
def huber_step(a, z, y, q, epsilon):
    return clip(a + (y - z - a) / (1.0 + q), -epsilon, epsilon)


@njit(cache=True)
def huber_slack(a, z, y, epsilon):
    outwards = math.copysign(1.0, a) * (y - z) - abs(a)
    return outwards if abs(a) >= epsilon else -abs(outwards)


# -- dispatch -----------------------------------------------------------------------------------------------------


@njit(cache=True)
def step(code, a, z, y, q, epsilon):
    if code == SQUARED:
        return squared_step(a, z, y, q)
    if code == HINGE:
        return hinge_step(a, z, y, q)
    if code == SQUARED_HINGE:
        return squared_hinge_step(a, z, y, q)
    if code == LOGISTIC:
        return logistic_step(a, z, y, q)
    if code == EPSILON_INSENSITIVE:
        return epsilon_step(a, z, y, q, epsilon)
    if code == SQUARED_EPSILON_INSENSITIVE:
        return squared_epsilon_step(a, z, y, q, epsilon)
    return huber_step(a, z, y, q, epsilon)


@njit(cache=True)
def loss(code, z, y, epsilon):
    if code == SQUARED:
        return 0.5 * (y - z) ** 2
    if code == HINGE:
        return max(1.0 - y * z, 0.0)
    if code == SQUARED_HINGE:
        return max(1.0 - y * z, 0.0) ** 2
    if code == LOGISTIC:
        return softplus(-y * z)
    if code == EPSILON_INSENSITIVE:
        return max(abs(y - z) - epsilon, 0.0)
    if code == SQUARED_EPSILON_INSENSITIVE:
        return max(abs(y - z) - epsilon, 0.0) ** 2
    error = abs(y - z)
    return 0.5 * error**2 if error <= epsilon else epsilon * (error - 0.5 * epsilon)


@njit(cache=True)
def conjugate(code, a, y, epsilon):
    if code == SQUARED or code == HUBER:
        return 0.5 * a * a - a * y
    if code == HINGE:
        return -a * y
    if code == SQUARED_HINGE:
        return 0.25 * a * a - a * y
    if code == LOGISTIC:
        return logistic_conjugate(a, y)
    if code == EPSILON_INSENSITIVE:
        return epsilon * abs(a) - a * y
    return epsilon * abs(a) + 0.25 * a * a - a * y


@njit(cache=True)
def slack(code, a, z, y, epsilon):
    if code == HINGE:
        return hinge_slack(a, z, y)
    if code == SQUARED_HINGE:
        return squared_hinge_slack(a, z, y)
    if code == EPSILON_INSENSITIVE:
        return epsilon_slack(a, z, y, epsilon)
    if code == SQUARED_EPSILON_INSENSITIVE:
        return squared_epsilon_slack(a, z, y, epsilon)
    if code == HUBER:
        return huber_slack(a, z, y, epsilon)
    return -math.inf


@njit(cache=True)
def fenchel(code, a, z, y, epsilon):
    """φ(z) + φ*(−a) + az ≥ 0, the row's share of the duality gap, in a form that loses no digits near 0."""
    if code == SQUARED:
        return 0.5 * (z + a - y) ** 2
    if code == HINGE or code == SQUARED_HINGE:
        beta, room = y * a, 1.0 - y * z
        if code == HINGE:
            return (1.0 - beta) * room if room > 0.0 else -beta * room
        return (max(room, 0.0) - 0.5 * beta) ** 2 + beta * max(-room, 0.0)
    return max(loss(code, z, y, epsilon) + conjugate(code, a, y, epsilon) + a * z, 0.0)


@njit(cache=True)
def fenchel_estimate(code, a, z, y, epsilon):
    """As `fenchel`; for the logistic loss about half the squared distance of the logits: one logarithm, not four."""
    if code == LOGISTIC:
        beta = y * a
        if not 0.0 < beta < 1.0:
            return max(y * z if beta > 0.5 else -y * z, 0.0) + 0.5
        distance = math.log(beta / (1.0 - beta)) + y * z
        return min(0.5 * beta * (1.0 - beta) * distance**2, abs(distance))
    return fenchel(code, a, z, y, epsilon)


@njit(cache=True)
def nearest(code, a, y, epsilon):
    """The feasible dual variable nearest to a."""
    if code == HINGE or code == LOGISTIC:
        return y * clip(y * a, 0.0, 1.0)
    if code == SQUARED_HINGE:
        return y * max(y * a, 0.0)
    if code == EPSILON_INSENSITIVE:
        return clip(a, -1.0, 1.0)
    if code == HUBER:
        return clip(a, -epsilon, epsilon)
    return a
