"""An epoch of exact coordinate steps for losses of one score, compiled.

The state of the ascent, for rows x_i with share c_i = s_i/(alpha·S) of W:

- ``a`` (n_rows, n_outputs): the dual variables; ``V`` (n_features, n_outputs): Σ_i c_i x_i a_iᵀ, kept up to date;
- ``affine`` (5, n_outputs): what scores hold beside Vᵀx, namely b₀, Σ_i c_i a_i, x̄ᵀV, ‖x̄‖² and κ². The constant
  feature κ adds b₀ + κ² Σ c a to a score; a centred row, with ``shift`` x_iᵀx̄, adds Σ c a (‖x̄‖² − x_iᵀx̄) − x̄ᵀV:
  X is centred without being touched.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from manyclass.solvers.dual import scalar
from manyclass.solvers.dual.rows import FAST, row_add, row_dot, row_scores, row_spread, row_spread_moved, shuffle
from manyclass.solvers.prefetch import ask_ahead

OFFSET, DUAL_SUM, MEAN_SCORE, MEAN_SQUARE, KAPPA = range(5)
"""Rows of ``affine``."""


@njit(cache=True, nogil=True)
def target(codes, Y, i, j):
    """y of row i in output j: −1 or 1 from class codes, else an entry of Y."""
    if codes.size:
        return 1.0 if codes[i] == j else -1.0
    return Y[i, j]


@njit(cache=True, fastmath=FAST, nogil=True)
def epoch_one(code, epsilon, data, indices, indptr, y, c, q, shift, affine, a, v, order, n_active, threshold, state):
    """One output; see `epoch_many`, whose arrays of shape (·, n_outputs) are one-dimensional here.

    Returns
    -------
    n_active : int
        Rows that stay in order[:n_active].
    estimate : float
        The duality gap times 1/alpha, each row's share taken when it was visited.
    worst : float
        Largest violation of optimality met: the next epoch's `threshold`.
    """
    shuffle(order, n_active, state)
    estimate, worst = 0.0, 0.0
    centred = shift.size > 0
    offset, dual_sum, mean_score = affine[OFFSET], affine[DUAL_SUM], affine[MEAN_SCORE]
    mean_square, kappa = affine[MEAN_SQUARE], affine[KAPPA]
    t = 0
    while t < n_active:
        ask_ahead(data, indices, indptr, order, t, n_active)
        i = order[t]
        start, stop = indptr[i], indptr[i + 1]
        old, wanted = a[i], y[i]
        z = row_dot(data, indices, start, stop, v) + offset + kappa * dual_sum
        if centred:
            z += dual_sum * (mean_square - shift[i]) - mean_score
        spare = scalar.slack(code, old, z, wanted, epsilon)
        if spare > threshold:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
            continue
        t += 1
        if spare > 0.0:
            continue
        worst = max(worst, -spare)
        estimate += c[i] * scalar.fenchel_estimate(code, old, z, wanted, epsilon)
        change = scalar.step(code, old, z, wanted, q[i], epsilon) - old
        if change != 0.0:
            a[i] = old + change
            by = c[i] * change
            row_add(data, indices, start, stop, by, v)
            dual_sum += by
            if centred:
                mean_score += by * shift[i]
    affine[DUAL_SUM], affine[MEAN_SCORE] = dual_sum, mean_score
    return n_active, estimate, worst


@njit(cache=True, fastmath=FAST, nogil=True)
def epoch_many(
    code, epsilon, data, indices, indptr, codes, Y, c, q, shift, affine, a, V, order, n_active, threshold, state
):
    """All outputs of a row together: each row is read once, and touches n_outputs contiguous numbers per non-zero.

    Parameters
    ----------
    V : array of shape (n_features, `rows.width` of n_outputs)
    order : integer array of shape (n_rows,)
        The first n_active entries are the rows to visit; they are permuted afresh.
    threshold : array of shape (n_outputs,)
        Slack above which an output needs no visit; a row is dropped when this holds for all its outputs.

    Returns
    -------
    n_active : int
    estimate, worst : arrays of shape (n_outputs,)
    """
    shuffle(order, n_active, state)
    k = a.shape[1]
    estimate, worst = np.zeros(k), np.zeros(k)
    z, change = np.zeros(V.shape[1]), np.zeros(V.shape[1])
    moved = np.empty(k, np.int64)
    centred = shift.size > 0
    t = 0
    while t < n_active:
        ask_ahead(data, indices, indptr, order, t, n_active)
        i = order[t]
        start, stop = indptr[i], indptr[i + 1]
        row_scores(data, indices, start, stop, V, z)
        n_moved, drop = 0, True
        for j in range(k):
            score = z[j] + affine[OFFSET, j] + affine[KAPPA, j] * affine[DUAL_SUM, j]
            if centred:
                score += affine[DUAL_SUM, j] * (affine[MEAN_SQUARE, j] - shift[i]) - affine[MEAN_SCORE, j]
            old, wanted = a[i, j], target(codes, Y, i, j)
            change[j] = 0.0
            spare = scalar.slack(code, old, score, wanted, epsilon)
            if spare > threshold[j]:
                continue
            drop = False
            if spare > 0.0:
                continue
            worst[j] = max(worst[j], -spare)
            estimate[j] += c[i] * scalar.fenchel_estimate(code, old, score, wanted, epsilon)
            step = scalar.step(code, old, score, wanted, q[i], epsilon) - old
            if step != 0.0:
                a[i, j] = old + step
                change[j] = c[i] * step
                moved[n_moved] = j
                n_moved += 1
                affine[DUAL_SUM, j] += change[j]
                if centred:
                    affine[MEAN_SCORE, j] += change[j] * shift[i]
        if drop:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
            continue
        t += 1
        row_spread_moved(data, indices, start, stop, change, moved[:n_moved], V)
    return n_active, estimate, worst


@njit(cache=True, fastmath=FAST, nogil=True)
def gather(data, indices, indptr, weight, V):
    """V += Σ_i x_i weight_iᵀ for weight of shape (n_rows, n_outputs)."""
    k = weight.shape[1]
    by = np.zeros(V.shape[1])
    for i in range(weight.shape[0]):
        n_used = 0
        for j in range(k):
            by[j] = weight[i, j]
            n_used += by[j] != 0.0
        if n_used == 0:
            continue
        if V.shape[1] > 1 and n_used * 4 > k:
            row_spread(data, indices, indptr[i], indptr[i + 1], by, V)
        else:
            for j in range(k):
                if by[j] != 0.0:
                    row_add(data, indices, indptr[i], indptr[i + 1], by[j], V[:, j])


@njit(cache=True, nogil=True)
def judge(code, epsilon, data, indices, indptr, codes, Y, r, shift, affine, a, V, threshold, active):
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
            score = z[j] + affine[OFFSET, j] + affine[KAPPA, j] * affine[DUAL_SUM, j]
            if shift.size:
                score += affine[DUAL_SUM, j] * (affine[MEAN_SQUARE, j] - shift[i]) - affine[MEAN_SCORE, j]
            wanted = target(codes, Y, i, j)
            losses[j] += r[i] * scalar.loss(code, score, wanted, epsilon)
            conjugates[j] += r[i] * scalar.conjugate(code, a[i, j], wanted, epsilon)
            inner[j] += r[i] * scalar.fenchel(code, a[i, j], score, wanted, epsilon)
            if scalar.slack(code, a[i, j], score, wanted, epsilon) <= threshold[j]:
                active[i] = True
    return losses, conjugates, inner


@njit(cache=True, nogil=True)
def scaled_conjugates(code, epsilon, codes, Y, r, a, scale):
    """Σ r φ*(−a') with the positive entries of a scaled by scale[0] and the negative ones by scale[1]."""
    total = np.zeros(a.shape[1])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            by = scale[0, j] if a[i, j] > 0.0 else scale[1, j]
            total[j] += r[i] * scalar.conjugate(code, by * a[i, j], target(codes, Y, i, j), epsilon)
    return total


@njit(cache=True, nogil=True)
def constant_loss(code, epsilon, codes, Y, r, z):
    """Σ_i r_i Σ_j φ(z_j, y_ij)."""
    total = 0.0
    for i in range(r.size):
        for j in range(z.size):
            total += r[i] * scalar.loss(code, z[j], target(codes, Y, i, j), epsilon)
    return total


@njit(cache=True, nogil=True)
def dot_rows(data, indices, indptr, v):
    """x_iᵀv, of shape (n_rows,)."""
    products = np.empty(indptr.size - 1)
    for i in range(products.size):
        products[i] = row_dot(data, indices, indptr[i], indptr[i + 1], v)
    return products


@njit(cache=True, nogil=True)
def square_norms(data, indptr):
    """‖x_i‖², of shape (n_rows,)."""
    norms = np.zeros(indptr.size - 1)
    for i in range(norms.size):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[p]) ** 2
        norms[i] = total
    return norms


@njit(cache=True, nogil=True)
def restrict(code, epsilon, codes, Y, a):
    """Move every dual variable to the nearest feasible one, in place: what a warm start may need."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = scalar.nearest(code, a[i, j], target(codes, Y, i, j), epsilon)
