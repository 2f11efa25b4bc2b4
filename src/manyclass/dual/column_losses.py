"""The formulas of losses of one score, compiled; `phi` is a `DualLoss`."""

import math

from manyclass.data.compiled import clip, inner, sigmoid, soft_threshold, softplus

NEWTON_STEPS = 100
"""At most: as many as halve a bracket of 1e16, which one row may have that is long beside all others, and go on along a
tail of the sigmoid, by 1 each. Few rows take more than five."""
NEWTON_TOLERANCE = 1e-4
"""Newton's error is squared in each step, so the logit ends within about 1e-8."""
IDLE = -math.inf
"""In place of its share of the gap, of a row that needs no visit."""


@inner
def nearest(phi, a, y):
    """The feasible dual variable nearest to a."""
    return y * clip(y * a, 0.0, phi.top) if phi.labels else clip(a, -phi.top, phi.top)


@inner
def step(phi, a, z, y, q):
    """The a' that maximises −φ*(−a') − (a' − a) z − (q/2)(a' − a)², the exact coordinate step.

    Here q = s_i‖x_i‖²/(alpha·S) is what a unit of a_i adds to the row's own score.
    """
    if phi.entropic:
        return logistic_step(a, z, y, q)
    rise, bend = y - z - phi.curvature * a, q + phi.curvature
    if bend > 0.0:
        return nearest(phi, soft_threshold(a + rise / bend, phi.kink / bend), y)
    if abs(rise) > phi.kink:
        return nearest(phi, math.copysign(math.inf, rise), y)
    return a if abs(rise) == phi.kink else 0.0


@inner
def logistic_step(a, z, y, q):
    """Newton's method for the logit t of β = ay: t + yz + q(σ(t) − β₀) = 0, kept inside its bracket."""
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
        if not low < following < high:  # where σ is flat a step leads from end to end
            following = 0.5 * (low + high)
        change, t = abs(following - t), following
        if change <= NEWTON_TOLERANCE:
            break
    return y * sigmoid(t)


@inner
def loss_of_room(phi, room):
    """φ by how far y lies beyond z and the kink."""
    if room <= 0.0:
        return 0.0
    if room < phi.curvature * phi.top:
        return 0.5 * room**2 / phi.curvature
    return phi.top * (room - 0.5 * phi.curvature * phi.top)


@inner
def loss(phi, z, y):
    """φ(z, y)."""
    if phi.entropic:
        return softplus(-y * z)
    return loss_of_room(phi, (y * (y - z) if phi.labels else abs(y - z)) - phi.kink)


@inner
def conjugate(phi, a, y):
    """φ*(−a)."""
    if not phi.entropic:
        return phi.kink * abs(a) + 0.5 * phi.curvature * a * a - a * y
    beta, value = y * a, 0.0
    if beta > 0.0:
        value += beta * math.log(beta)
    if beta < 1.0:
        value += (1.0 - beta) * math.log1p(-beta)
    return value


@inner
def slack(phi, a, z, y):
    """How hard a is pushed outwards where it sits at a bound; else minus the size of the derivative of the dual.

    Coordinates with slack need no visit (Hsieh et al., 2008, shrink on the same quantity).
    """
    if phi.entropic:
        return -math.inf
    rise = y - z - phi.curvature * a
    if a == 0.0:
        return -y * rise if phi.labels else phi.kink - abs(rise)
    outwards = math.copysign(1.0, a) * rise - phi.kink
    return outwards if abs(a) >= phi.top else -abs(outwards)


@inner
def fenchel(phi, a, z, y):
    """φ(z) + φ*(−a) + az ≥ 0, the row's share of the duality gap, in a form that loses no digits near 0."""
    if phi.entropic:
        return max(loss(phi, z, y) + conjugate(phi, a, y) + a * z, 0.0)
    side = y if phi.labels else math.copysign(1.0, a)
    size, beyond = abs(a), side * (y - z)
    room = beyond - phi.kink
    if room <= 0.0:
        other_side = 0.0 if phi.labels else loss_of_room(phi, -beyond - phi.kink)
        return size * (0.5 * phi.curvature * size - room) + other_side
    if room < phi.curvature * phi.top:
        return 0.5 * (room - phi.curvature * size) ** 2 / phi.curvature
    return (phi.top - size) * (room - 0.5 * phi.curvature * (phi.top + size))


@inner
def fenchel_estimate(phi, a, z, y):
    """As `fenchel`; for the logistic loss about half the squared distance of the logits: one logarithm, not four."""
    if not phi.entropic:
        return fenchel(phi, a, z, y)
    beta = y * a
    if not 0.0 < beta < 1.0:
        return max(y * z if beta > 0.5 else -y * z, 0.0) + 0.5
    distance = math.log(beta / (1.0 - beta)) + y * z
    return min(0.5 * beta * (1.0 - beta) * distance**2, abs(distance))
