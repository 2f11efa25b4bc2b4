"""The formulas of losses that see all classes of a row together, compiled; arguments are those of `kernels.step_row`.

The dual point of a row is a probability vector p; the dual variables are a = e_y − p. With the row's own weight
q = s_i‖x_i‖²/(alpha·S) in its scores, the exact step maximises

- Crammer–Singer: p'ᵀ(z + Δ) − (q/2)‖p' − p‖², Δ_j = [j ≠ y]: the projection of p + (z + Δ)/q onto the simplex;
- softmax: H(p') + p'ᵀz − (q/2)‖p' − p‖²: log p'_j + q p'_j = z_j + q p_j − λ with λ such that Σ p' = 1.
"""

import math

from manyclass.data.compiled import clip, inner, log_sum_exp, project_simplex
from manyclass.dual.column_losses import IDLE

NEWTON_STEPS = 25
NEWTON_TOLERANCE = 1e-6
TINY = 1e-300
SMALLEST = -690.0
"""Logarithm of a probability whose exponential does not underflow."""


def step_crammer_singer(phi, targets, i, q, z, threshold, a, change, worst, work):
    p = a
    slack = crammer_singer_slack(p, z, targets.codes[i], p.size)
    if slack > 0.0:
        for j in range(p.size):
            change[j] = 0.0
        return IDLE if slack > threshold[0] else 0.0
    worst[0] = max(worst[0], -slack)
    gap = crammer_singer_step(p, z, q, p.size, work[0])
    for j in range(p.size):
        change[j] = p[j] - work[0, j]
        p[j] = work[0, j]
    return gap


def softmax_terms(phi, targets, i, z, threshold, a):
    """Of the conjugate −H(p); every row needs visits."""
    p, conjugate = a, 0.0
    for j in range(p.size):
        if p[j] > 0.0:
            conjugate += p[j] * math.log(p[j])
    return log_sum_exp(z, p.size) - z[targets.codes[i]], conjugate, 0.0, True


def crammer_singer_terms(phi, targets, i, z, threshold, a):
    """Of the conjugate −pᵀΔ."""
    p, y = a, targets.codes[i]
    matched, slack = z[y], crammer_singer_slack(p, z, y, p.size)
    best = z[0]
    for j in range(1, p.size):
        best = max(best, z[j])
    return best - matched, p[y] - 1.0, 0.0, slack <= threshold[0]


@inner
def crammer_singer_slack(p, z, y, k):
    """How far a row at a corner of the simplex is from leaving it, or minus how far p is from optimal.

    Adds Δ to z in place.
    """
    for j in range(k):
        z[j] += j != y
    best, other, lowest, corner = -math.inf, -math.inf, math.inf, -1
    for j in range(k):
        if p[j] == 1.0:
            corner = j
        if p[j] > 0.0:
            lowest = min(lowest, z[j])
        best = max(best, z[j])
    if corner >= 0:
        for j in range(k):
            if j != corner:
                other = max(other, z[j])
        return z[corner] - other
    return lowest - best


@inner
def crammer_singer_step(p, z, q, k, new):
    """The best p for scores z with Δ added; the row's share of the gap."""
    best, matched, winner = -math.inf, 0.0, 0
    for j in range(k):
        matched += p[j] * z[j]
        if z[j] > best:
            best, winner = z[j], j
    if q > 0.0:
        for j in range(k):
            z[j] = p[j] + (z[j] - best) / q
        project_simplex(z, k, new)
    else:
        for j in range(k):
            new[j] = 1.0 if j == winner else 0.0
    return best - matched


def step_softmax(phi, targets, i, q, z, threshold, a, change, worst, work):
    """The best p for scores z, by Newton's method in u = log p; the row's share of the gap, KL(p ‖ softmax z).

    Logarithms keep p positive, and p ≤ 1 bounds u. Where Newton has not settled, the step towards softmax(z) of
    length 1/(1 + q) raises the dual by strong convexity (Shalev-Shwartz and Zhang, 2013).
    """
    p, k, new, u = a, a.size, work[0], work[1]
    level = log_sum_exp(z, k)
    gap = level
    for j in range(k):
        if p[j] > 0.0:
            u[j] = math.log(p[j])
            gap += p[j] * (u[j] - z[j])
            # A corner is a bad place to begin: beside it everything is flat.
            new[j] = p[j]
        else:
            u[j], new[j] = math.log(TINY), 0.0
        if p[j] < 1e-12 or p[j] == 1.0:
            u[j] = clip(z[j] - level, SMALLEST, 0.0)
            new[j] = math.exp(u[j])
    settled = False
    for _ in range(NEWTON_STEPS):
        excess, weight = -1.0, 0.0
        for j in range(k):
            residual = u[j] + q * (new[j] - p[j]) - z[j]
            slope = 1.0 + q * new[j]
            excess += new[j] - new[j] * residual / slope
            weight += new[j] / slope
        lagrange = excess / (TINY if weight < TINY else weight)
        largest = 0.0
        for j in range(k):
            residual = u[j] + q * (new[j] - p[j]) - z[j]
            u[j] = clip(u[j] - (residual + lagrange) / (1.0 + q * new[j]), SMALLEST, 0.0)
            value = math.exp(u[j])
            if abs(value - new[j]) > largest:
                largest = abs(value - new[j])
            new[j] = value
        if largest <= NEWTON_TOLERANCE:
            settled = True
            break
    total = 0.0
    for j in range(k):
        total += new[j]
    if settled and abs(total - 1.0) < 1e-3:
        for j in range(k):
            new[j] /= total
    else:
        for j in range(k):
            new[j] = p[j] + (math.exp(z[j] - level) - p[j]) / (1.0 + q)
    for j in range(k):
        change[j] = p[j] - new[j]
        p[j] = new[j]
    return 0.0 if gap < 0.0 else gap
