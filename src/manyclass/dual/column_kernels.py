"""An epoch of exact coordinate steps, and its duality gap, for losses of one score, compiled.

The state of the ascent, for rows x_i with mean x̄ and share c_i = s_i/(alpha·S) of W:

- ``a`` (n_rows, n_outputs): the dual variables; ``V`` (n_features, n_outputs): Σ_i c_i x_i a_iᵀ, kept up to date;
- ``affine`` (4, n_outputs): what scores hold beside Vᵀx, namely b₀, Σ_i c_i a_i, x̄ᵀV and κ² + ‖x̄‖², see
  `beside_product`;
- ``per_row`` (n_rows, 3), side by side in one cache line: c_i, what a unit of a_i adds to the row's own score,
  q_i = c_i (κ² + ‖x_i − x̄‖²), and x_iᵀx̄.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from manyclass.data.prefetch import ask_ahead
from manyclass.dual import column_losses
from manyclass.dual.row_kernels import FAST, row_add, row_dot, row_scores, row_spread_moved

OFFSET, DUAL_SUM, MEAN_SCORE, LIFT = range(4)
"""Rows of ``affine``."""


@njit(cache=True, nogil=True)
def beside_product(offset, dual_sum, mean_score, lift, product):
    """What the score of a row holds beside Vᵀx: b₀ + κ² Σ c a + (x − x̄)ᵀ(V − x̄ Σ c a) − xᵀV, `product` being xᵀx̄.

    The rows are centred without being touched, and κ² Σ c a is the share of the intercept that a constant feature κ
    has.
    """
    return offset + dual_sum * (lift - product) - mean_score


@njit(cache=True, nogil=True)
def target(codes, Y, i, j):
    """y of row i in output j: −1 or 1 from class codes, else an entry of Y."""
    if codes.size:
        return 1.0 if codes[i] == j else -1.0
    return Y[i, j]


@njit(cache=True, fastmath=FAST, nogil=True)
def visit_one(
    code, epsilon, data, indices, indptr, y, per_row, affine, a, v, order, first, n_visits, n_active, threshold
):
    """One output; see `visit_many`, whose arrays of shape (·, n_outputs) are one-dimensional here."""
    estimate, worst = 0.0, 0.0
    offset, dual_sum, mean_score, lift = affine[OFFSET], affine[DUAL_SUM], affine[MEAN_SCORE], affine[LIFT]
    t = first
    for _ in range(n_visits):
        if t >= n_active:
            break
        ask_ahead(data, indices, indptr, order, t, n_active)
        i = order[t]
        start, stop = indptr[i], indptr[i + 1]
        old, y_i, product = a[i], y[i], per_row[i, 2]
        z = row_dot(data, indices, start, stop, v) + beside_product(offset, dual_sum, mean_score, lift, product)
        slack = column_losses.slack(code, old, z, y_i, epsilon)
        if slack > threshold:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
            continue
        t += 1
        if slack > 0.0:
            continue
        worst = max(worst, -slack)
        share = per_row[i, 0]
        estimate += share * column_losses.fenchel_estimate(code, old, z, y_i, epsilon)
        change = column_losses.step(code, old, z, y_i, per_row[i, 1], epsilon) - old
        if change != 0.0:
            a[i] = old + change
            by = share * change
            row_add(data, indices, start, stop, by, v)
            dual_sum += by
            mean_score += by * product
    affine[DUAL_SUM], affine[MEAN_SCORE] = dual_sum, mean_score
    return t, n_active, estimate, worst


@njit(cache=True, fastmath=FAST, nogil=True)
def visit_many(
    code, epsilon, data, indices, indptr, codes, Y, per_row, affine, a, V, order, first, n_visits, n_active, threshold,
    estimate, worst,
):  # fmt: skip
    """A part of an epoch: all outputs of a row together, n_outputs contiguous numbers for each of its non-zeros.

    Parameters
    ----------
    V : array of shape (n_features, `row_kernels.width` of n_outputs)
    order : integer array of shape (n_rows,)
        The first n_active entries are the rows to visit; those before `first` have been.
    n_visits : int
        At most.
    threshold : array of shape (n_outputs,)
        Slack above which an output needs no visit; a row is dropped when this holds for all its outputs.
    estimate, worst : arrays of shape (n_outputs,), added to
        The duality gap times 1/alpha, each row's share taken when it is visited; and the largest violation of
        optimality met, which is the next epoch's `threshold`.

    Returns
    -------
    first, n_active : int
        With which to go on.
    """
    k = a.shape[1]
    z, change = np.zeros(V.shape[1]), np.zeros(V.shape[1])
    moved = np.empty(k, np.int64)
    t = first
    for _ in range(n_visits):
        if t >= n_active:
            break
        ask_ahead(data, indices, indptr, order, t, n_active)
        i = order[t]
        start, stop = indptr[i], indptr[i + 1]
        share, rise, product = per_row[i, 0], per_row[i, 1], per_row[i, 2]
        row_scores(data, indices, start, stop, V, z)
        n_moved, drop = 0, True
        for j in range(k):
            score = z[j] + beside_product(
                affine[OFFSET, j], affine[DUAL_SUM, j], affine[MEAN_SCORE, j], affine[LIFT, j], product
            )
            old, y = a[i, j], target(codes, Y, i, j)
            change[j] = 0.0
            slack = column_losses.slack(code, old, score, y, epsilon)
            if slack > threshold[j]:
                continue
            drop = False
            if slack > 0.0:
                continue
            worst[j] = max(worst[j], -slack)
            estimate[j] += share * column_losses.fenchel_estimate(code, old, score, y, epsilon)
            step = column_losses.step(code, old, score, y, rise, epsilon) - old
            if step != 0.0:
                a[i, j] = old + step
                change[j] = share * step
                moved[n_moved] = j
                n_moved += 1
                affine[DUAL_SUM, j] += change[j]
                affine[MEAN_SCORE, j] += change[j] * product
        if drop:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
            continue
        t += 1
        row_spread_moved(data, indices, start, stop, change, moved[:n_moved], V)
    return t, n_active


@njit(cache=True, nogil=True)
def gap_terms(code, epsilon, data, indices, indptr, codes, Y, r, per_row, affine, a, V, threshold, active):
    """Losses and conjugates at the present point, over all rows, and which rows still need visits.

    Parameters
    ----------
    r : array of shape (n_rows,)
        Weights s_i/S.
    active : bool array of shape (n_rows,), overwritten

    Returns
    -------
    losses, conjugates, inner : arrays of shape (n_outputs,)
        Σ r φ(z), Σ r φ*(−a), and Σ r (φ(z) + φ*(−a) + az).
    """
    k = a.shape[1]
    losses, conjugates, inner = np.zeros(k), np.zeros(k), np.zeros(k)
    z = np.zeros(V.shape[1])
    for i in range(a.shape[0]):
        active[i] = False
        if r[i] == 0.0:
            continue
        row_scores(data, indices, indptr[i], indptr[i + 1], V, z)
        for j in range(k):
            score = z[j] + beside_product(
                affine[OFFSET, j], affine[DUAL_SUM, j], affine[MEAN_SCORE, j], affine[LIFT, j], per_row[i, 2]
            )
            y = target(codes, Y, i, j)
            losses[j] += r[i] * column_losses.loss(code, score, y, epsilon)
            conjugates[j] += r[i] * column_losses.conjugate(code, a[i, j], y, epsilon)
            inner[j] += r[i] * column_losses.fenchel(code, a[i, j], score, y, epsilon)
            if column_losses.slack(code, a[i, j], score, y, epsilon) <= threshold[j]:
                active[i] = True
    return losses, conjugates, inner


@njit(cache=True, nogil=True)
def scaled_conjugates(code, epsilon, codes, Y, r, a, scale):
    """Σ r φ*(−a') with the positive entries of a scaled by scale[0] and the negative ones by scale[1]."""
    total = np.zeros(a.shape[1])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            by = scale[0, j] if a[i, j] > 0.0 else scale[1, j]
            total[j] += r[i] * column_losses.conjugate(code, by * a[i, j], target(codes, Y, i, j), epsilon)
    return total


@njit(cache=True, nogil=True)
def constant_loss(code, epsilon, codes, Y, r, z):
    """Σ_i r_i Σ_j φ(z_j, y_ij)."""
    total = 0.0
    for i in range(r.size):
        for j in range(z.size):
            total += r[i] * column_losses.loss(code, z[j], target(codes, Y, i, j), epsilon)
    return total


@njit(cache=True, nogil=True)
def make_feasible(code, epsilon, codes, Y, a):
    """Move every dual variable to the nearest feasible one, in place: what a warm start may need."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = column_losses.nearest(code, a[i, j], target(codes, Y, i, j), epsilon)
