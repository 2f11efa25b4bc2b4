"""An epoch of exact block steps, and its duality gap, for losses that see all classes of a row together, compiled.

The dual point of a row is a probability vector p; the dual variables are a = e_y − p. With the row's own weight
q = s_i‖x_i‖²/(alpha·S) in its scores, the exact step maximises

- Crammer–Singer: p'ᵀ(z + Δ) − (q/2)‖p' − p‖², Δ_j = [j ≠ y]: the projection of p + (z + Δ)/q onto the simplex;
- softmax: H(p') + p'ᵀz − (q/2)‖p' − p‖²: log p'_j + q p'_j = z_j + q p_j − λ with λ such that Σ p' = 1.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from manyclass.data.compiled import log_sum_exp, project_simplex
from manyclass.data.prefetch import ask_ahead
from manyclass.dual.column_kernels import DUAL_SUM, LIFT, MEAN_SCORE, OFFSET, beside_product
from manyclass.dual.losses import CRAMMER_SINGER
from manyclass.dual.row_kernels import FAST, row_scores, row_spread_moved

NEWTON_STEPS = 25
NEWTON_TOLERANCE = 1e-6
TINY = 1e-300


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def softmax_step(p, z, q, k, new, u):
    """The best p for scores z, by Newton's method in u = log p; the row's share of the gap, KL(p ‖ softmax z).

    Logarithms keep p positive, and p ≤ 1 bounds u. Where Newton has not settled, the step towards softmax(z) of
    length 1/(1 + q) raises the dual by strong convexity (Shalev-Shwartz and Zhang, 2013).
    """
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
            u[j] = min(max(z[j] - level, -690.0), 0.0)
            new[j] = math.exp(u[j])
    settled = False
    for _ in range(NEWTON_STEPS):
        excess, weight = -1.0, 0.0
        for j in range(k):
            residual = u[j] + q * (new[j] - p[j]) - z[j]
            slope = 1.0 + q * new[j]
            excess += new[j] - new[j] * residual / slope
            weight += new[j] / slope
        lagrange = excess / max(weight, TINY)
        largest = 0.0
        for j in range(k):
            residual = u[j] + q * (new[j] - p[j]) - z[j]
            following = min(u[j] - (residual + lagrange) / (1.0 + q * new[j]), 0.0)
            u[j] = max(following, -690.0)
            value = math.exp(u[j])
            largest = max(largest, abs(value - new[j]))
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
    return max(gap, 0.0)


@njit(cache=True, fastmath=FAST, nogil=True)
def complete_scores(affine, product, k, z):
    """Add to Vᵀx what a score holds beside it, in place."""
    for j in range(k):
        z[j] += beside_product(affine[OFFSET, j], affine[DUAL_SUM, j], affine[MEAN_SCORE, j], affine[LIFT, j], product)


@njit(cache=True, fastmath=FAST, nogil=True)
def visit(code, data, indices, indptr, codes, per_row, affine, P, V, order, first, n_visits, n_active, threshold):
    """A part of an epoch, see `column_kernels.visit_many`; P of shape (n_rows, n_classes) holds the dual points."""
    k = P.shape[1]
    estimate, worst = 0.0, 0.0
    z, change, new, work = np.zeros(V.shape[1]), np.zeros(V.shape[1]), np.zeros(k), np.zeros(k)
    moved = np.empty(k, np.int64)
    t = first
    for _ in range(n_visits):
        if t >= n_active:
            break
        ask_ahead(data, indices, indptr, order, t, n_active)
        i = order[t]
        start, stop, p, y = indptr[i], indptr[i + 1], P[i], codes[i]
        share, rise, product = per_row[i, 0], per_row[i, 1], per_row[i, 2]
        row_scores(data, indices, start, stop, V, z)
        complete_scores(affine, product, k, z)
        if code == CRAMMER_SINGER:
            slack = crammer_singer_slack(p, z, y, k)
            if slack > threshold:
                n_active -= 1
                order[t], order[n_active] = order[n_active], order[t]
                continue
            t += 1
            if slack > 0.0:
                continue
            worst = max(worst, -slack)
            estimate += share * crammer_singer_step(p, z, rise, k, new)
        else:
            t += 1
            estimate += share * softmax_step(p, z, rise, k, new, work)
        n_moved = 0
        for j in range(k):
            change[j] = share * (p[j] - new[j])
            if change[j] != 0.0:
                moved[n_moved] = j
                n_moved += 1
            affine[DUAL_SUM, j] += change[j]
            affine[MEAN_SCORE, j] += change[j] * product
            p[j] = new[j]
        row_spread_moved(data, indices, start, stop, change, moved[:n_moved], V)
    return t, n_active, estimate, worst


@njit(cache=True, nogil=True)
def gap_terms(code, data, indices, indptr, codes, r, per_row, affine, P, V, threshold, active):
    """Σ r ℓ(z) and Σ r φ*(p), φ* being −H(p) or −pᵀΔ, over all rows; and which rows still need visits."""
    k = P.shape[1]
    losses, conjugates = 0.0, 0.0
    z = np.zeros(V.shape[1])
    for i in range(P.shape[0]):
        active[i] = False
        if r[i] == 0.0:
            continue
        p, y = P[i], codes[i]
        row_scores(data, indices, indptr[i], indptr[i + 1], V, z)
        complete_scores(affine, per_row[i, 2], k, z)
        matched = z[y]
        if code == CRAMMER_SINGER:
            active[i] = crammer_singer_slack(p, z, y, k) <= threshold
            best = z[0]
            for j in range(1, k):
                best = max(best, z[j])
            losses += r[i] * (best - matched)
            conjugates -= r[i] * (1.0 - p[y])
        else:
            active[i] = True
            losses += r[i] * (log_sum_exp(z, k) - matched)
            for j in range(k):
                if p[j] > 0.0:
                    conjugates += r[i] * p[j] * math.log(p[j])
    return losses, conjugates
