"""An epoch of exact dual steps, and its duality gap, compiled."""

from typing import NamedTuple

import numpy as np

from manyclass.data.compiled import by_type, entry, inner
from manyclass.data.prefetch import ask_ahead
from manyclass.dual import column_losses, joint_losses
from manyclass.dual.losses import DualLoss, JointLoss, SoftmaxLoss
from manyclass.dual.row_kernels import FAST, row_add, row_dot, row_scores, row_spread_moved

OFFSET, DUAL_SUM, MEAN_SCORE, LIFT = range(4)
"""Rows of ``affine``."""


class Point(NamedTuple):
    """The state of the ascent, for rows x_i with mean x̄ and share c_i = s_i/(alpha·S) of W.

    a, of shape (n_rows, n_outputs), are the dual variables; for a joint loss the probability vector p of each row,
    whose dual variables are e_y − p. V, of shape (n_features, `row_kernels.width` of n_outputs), is (I − P) Y + P Σ_i
    c_i x_i a_iᵀ, kept up to date. `affine`, of shape (4, n_outputs), is what scores hold beside Vᵀx: b₀, Σ_i c_i a_i,
    x̄ᵀV and κ² + x̄ᵀPx̄, see `beside_product`. `per_row`, of shape (n_rows, 3), has side by side in one cache line c_i,
    q_i = c_i (κ² + (x_i − x̄)ᵀP(x_i − x̄)), which a unit of a_i adds to the row's own score, and x_iᵀPx̄. P is
    diag(metric), which is empty for the identity, where no centre Y pulls.
    """

    a: np.ndarray
    V: np.ndarray
    affine: np.ndarray
    per_row: np.ndarray
    metric: np.ndarray


@inner
def beside_product(offset, dual_sum, mean_score, lift, product):
    """What the score of a row holds beside Vᵀx: b₀ + κ² Σ c a + (x − x̄)ᵀ(V − Px̄ Σ c a) − xᵀV, `product` being xᵀPx̄.

    The rows are centred without being touched, and κ² Σ c a is the share of the intercept that a constant feature κ
    has.
    """
    return offset + dual_sum * (lift - product) - mean_score


@inner(fastmath=FAST)
def complete_scores(affine, product, z):
    """Add to Vᵀx what a score holds beside it, in place."""
    for j in range(affine.shape[1]):
        z[j] += beside_product(affine[OFFSET, j], affine[DUAL_SUM, j], affine[MEAN_SCORE, j], affine[LIFT, j], product)


@inner
def target(targets, i, j):
    """y of row i in output j: −1 or 1 from class codes, else an entry of Y."""
    if targets.codes.size:
        return 1.0 if targets.codes[i] == j else -1.0
    return targets.Y[i, j]


@by_type
def step_row(phi, targets, i, q, z, threshold, a, change, worst, work):
    """A step of all dual variables of a row; its share of the gap, or `IDLE` if none needs a visit."""
    return _STEPS[phi.instance_class]


def step_columns(phi, targets, i, q, z, threshold, a, change, worst, work):
    gap, idle = 0.0, True
    for j in range(a.size):
        change[j] = 0.0
        old, y = a[j], target(targets, i, j)
        slack = column_losses.slack(phi, old, z[j], y)
        idle = idle and slack > threshold[j]
        if slack > 0.0:
            continue
        worst[j] = max(worst[j], -slack)
        gap += column_losses.fenchel_estimate(phi, old, z[j], y)
        a[j] = column_losses.step(phi, old, z[j], y, q)
        change[j] = a[j] - old
    return column_losses.IDLE if idle else gap


@by_type
def row_terms(phi, targets, i, z, threshold, a):
    """φ(z), φ*(−a) and φ(z) + φ*(−a) + az of a row, and whether it needs a visit; the third only of one score."""
    return _TERMS[phi.instance_class]


def column_terms(phi, targets, i, z, threshold, a):
    loss, conjugate, gap, active = 0.0, 0.0, 0.0, False
    for j in range(a.size):
        y = target(targets, i, j)
        loss += column_losses.loss(phi, z[j], y)
        conjugate += column_losses.conjugate(phi, a[j], y)
        gap += column_losses.fenchel(phi, a[j], z[j], y)
        active |= column_losses.slack(phi, a[j], z[j], y) <= threshold[j]
    return loss, conjugate, gap, active


# One call deep: the code of each function is generated once more for every one that calls it.
_STEPS = {DualLoss: step_columns, JointLoss: joint_losses.step_crammer_singer, SoftmaxLoss: joint_losses.step_softmax}
_TERMS = {DualLoss: column_terms, JointLoss: joint_losses.crammer_singer_terms, SoftmaxLoss: joint_losses.softmax_terms}


@entry(fastmath=FAST)
def visit(phi, rows, targets, point, order, first, n_visits, n_active, threshold, worst, work, moved):
    """A part of an epoch: all outputs of a row together, n_outputs contiguous numbers for each of its non-zeros.

    Of `order` the first n_active entries are the rows to visit; those before `first` have been. Above the slack
    `threshold` an output needs no visit; a row is dropped when this holds for all its outputs (a joint loss has one
    slack for all). `worst` is raised to the largest violation of optimality met, which is the next epoch's `threshold`.
    `work`, of shape (4, columns of V), zero in the columns beyond n_outputs, and `moved`, uint64 of shape (n_outputs,),
    are overwritten: arrays made here would be compiled with the loop.

    Returns first and n_active to go on with, and the duality gap times 1/alpha, each row's share taken when it is
    visited.
    """
    data, indices, indptr = rows
    a, V, affine, per_row, metric = point
    k = a.shape[1]
    z, change, work = work[0], work[1], work[2:]
    estimate, t = 0.0, first
    for _ in range(n_visits):
        if t >= n_active:
            break
        ask_ahead(data, indices, indptr, order, t, n_active)
        i = order[t]
        start, stop = indptr[i], indptr[i + 1]
        share, q, product = per_row[i, 0], per_row[i, 1], per_row[i, 2]
        row_scores(data, indices, start, stop, V, z)
        complete_scores(affine, product, z)
        gap = step_row(phi, targets, i, q, z, threshold, a[i], change, worst, work)
        if gap == column_losses.IDLE:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
            continue
        t += 1
        estimate += share * gap
        n_moved = 0
        for j in range(k):
            if change[j] != 0.0:
                change[j] *= share
                moved[n_moved] = j
                n_moved += 1
                affine[DUAL_SUM, j] += change[j]
                affine[MEAN_SCORE, j] += change[j] * product
        row_spread_moved(data, indices, start, stop, change, moved[:n_moved], metric, V)
    return t, n_active, estimate


@entry(fastmath=FAST)
def visit_one(phi, rows, y, point, order, first, n_visits, n_active, threshold):
    """`visit` for one output, at twice the speed: what has a column per output is a vector; `worst` is returned."""
    data, indices, indptr = rows
    a, v, affine, per_row, metric = point
    estimate, worst, t = 0.0, 0.0, first
    offset, dual_sum, mean_score, lift = affine[OFFSET], affine[DUAL_SUM], affine[MEAN_SCORE], affine[LIFT]
    for _ in range(n_visits):
        if t >= n_active:
            break
        ask_ahead(data, indices, indptr, order, t, n_active)
        i = order[t]
        start, stop = indptr[i], indptr[i + 1]
        share, old, y_i, product = per_row[i, 0], a[i], y[i], per_row[i, 2]
        z = row_dot(data, indices, start, stop, v) + beside_product(offset, dual_sum, mean_score, lift, product)
        slack = column_losses.slack(phi, old, z, y_i)
        if slack > threshold:
            n_active -= 1
            order[t], order[n_active] = order[n_active], order[t]
            continue
        t += 1
        if slack > 0.0:
            continue
        worst = max(worst, -slack)
        estimate += share * column_losses.fenchel_estimate(phi, old, z, y_i)
        change = column_losses.step(phi, old, z, y_i, per_row[i, 1]) - old
        if change != 0.0:
            a[i] = old + change
            by = share * change
            row_add(data, indices, start, stop, by, metric, v)
            dual_sum += by
            mean_score += by * product
    affine[DUAL_SUM], affine[MEAN_SCORE] = dual_sum, mean_score
    return t, n_active, estimate, worst


@entry
def gap_terms(phi, rows, targets, share, point, threshold, active, z):
    """Σ r φ(z), Σ r φ*(−a) and Σ r (φ(z) + φ*(−a) + az) over all rows, r = s_i/S; and which rows still need visits.

    The last is of losses of one score only (`row_terms`); `active` and `z` are overwritten.
    """
    data, indices, indptr = rows
    a, V, affine, per_row, _ = point
    losses, conjugates, gap = 0.0, 0.0, 0.0
    for i in range(a.shape[0]):
        active[i] = False
        r = share[i]
        if r == 0.0:
            continue
        row_scores(data, indices, indptr[i], indptr[i + 1], V, z)
        complete_scores(affine, per_row[i, 2], z)
        loss, conjugate, own, active[i] = row_terms(phi, targets, i, z, threshold, a[i])
        losses += r * loss
        conjugates += r * conjugate
        gap += r * own
    return losses, conjugates, gap


@entry
def scaled_conjugates(phi, targets, share, a, scale):
    """Σ r φ*(−a') with the positive entries of a scaled by scale[0] and the negative ones by scale[1]."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            by = scale[0, j] if a[i, j] > 0.0 else scale[1, j]
            total += share[i] * column_losses.conjugate(phi, by * a[i, j], target(targets, i, j))
    return total


@entry
def constant_loss(phi, targets, share, z):
    """Σ_i r_i Σ_j φ(z_j, y_ij)."""
    total = 0.0
    for i in range(share.size):
        for j in range(z.size):
            total += share[i] * column_losses.loss(phi, z[j], target(targets, i, j))
    return total


@entry
def make_feasible(phi, targets, a):
    """Move every dual variable to the nearest feasible one, in place: what a warm start may need."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = column_losses.nearest(phi, a[i, j], target(targets, i, j))
