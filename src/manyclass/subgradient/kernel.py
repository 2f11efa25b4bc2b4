"""The compiled loop: Algorithm 1 of the paper, at a cost per row of O(non-zeros × outputs) whatever n and d are."""

import math
from typing import Any, NamedTuple

import numpy as np

from manyclass.data.compiled import entry, inner, number
from manyclass.data.penalty import OUTLYING
from manyclass.data.prefetch import LINE, touch
from manyclass.subgradient.draws import draw
from manyclass.subgradient.losses import JointMargin, residual

# Positions in `Memory.totals`.
STEPS, DRAWN, MEAN_WEIGHT, AVERAGE_WEIGHT, LOSS, LOSS_ROWS, BOUND, BOUND_ROWS, N_TOTALS = range(9)
# Values of `Rule.intercept`.
NO_INTERCEPT, ADAGRAD, AS_FEATURE = range(3)

prefetch: Any = touch  # Numba itself passes the first argument
# How many draws before its use the address of a row, and the row itself, are prefetched. Powers of two.
_ADDRESS_AHEAD = 8
_ROW_AHEAD = 4
# A scalar write takes about as long as so many vectorised ones.
_FEW = 3


class Rows(NamedTuple):
    """`data.rows.RowArrays`, but that dense rows share `indices` 0 .. d − 1."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    dense: bool


class Targets(NamedTuple):
    """Class codes; or, end to end, rows of one number per output that is positive where the label is present."""

    codes: np.ndarray
    indicator: np.ndarray


class Weights(NamedTuple):
    """Weight of each row, empty if all are 1, and the reciprocal of their mean."""

    values: np.ndarray
    unit: float


class Memory(NamedTuple):
    """The parameters, in the form that steps update.

    For each feature, `table` has the row of V (`width` numbers) and, with averaging, that of U beside it. A sparse row
    of X touches as many contiguous pieces as it has non-zeros. W_t = V_t / (alpha (t + offset)), and the average with
    weights t (t + offset) is (MEAN_WEIGHT · V_t − U) / (AVERAGE_WEIGHT + alpha·offset·MEAN_WEIGHT). All else is in
    float64.
    """

    table: np.ndarray  # (n_features · stride,)
    offsets: np.ndarray  # of each feature, where they differ; else empty
    bias: np.ndarray  # b
    bias_squares: np.ndarray  # Σ of its squared gradients
    bias_average: np.ndarray  # Σ of its weighted iterates
    bias_gradient: np.ndarray  # Σ of its gradients
    totals: np.ndarray  # (N_TOTALS,)


class Rule(NamedTuple):
    """The constants of a run."""

    loss: JointMargin
    columns: bool
    n_outputs: int
    width: int
    batch_size: int
    alpha: float
    offset: float
    least_offset: float
    average: bool
    intercept: int
    unit: float
    curvature: float  # of the loss, which caps the length of steps; 0 for no cap
    unbounded: bool  # whether subgradients grow with the scores: then all steps are capped, not those on outliers only


class Scratch(NamedTuple):
    """Work arrays of `advance` for the rows of a step: to allocate them in the loop would take longer to compile."""

    rows: np.ndarray  # (3, ...): rows of the present step, the non-zeros of their steps, rows that are prefetched
    steps: np.ndarray  # (size, stride)
    places: np.ndarray  # (size, stride)
    v: np.ndarray  # (width,)
    scores: np.ndarray  # (4, n_outputs): z, g, the mean of g, and the signs
    bits: np.ndarray  # (n_outputs,)


def make_scratch(rule: Rule, n_draws: int, dtype: Any) -> Scratch:
    size, stride = min(rule.batch_size, n_draws), rule.width * (2 if rule.average else 1)
    return Scratch(
        np.empty((3, max(size, _ADDRESS_AHEAD)), dtype=np.int64),
        np.zeros((size, stride), dtype=dtype),
        np.empty((size, stride), dtype=np.uint64),
        np.empty(rule.width, dtype=dtype),
        np.empty((4, rule.n_outputs)),
        np.empty(rule.n_outputs, dtype=np.int64),
    )


@inner
def row_of(rows, i):
    """Where row i begins and ends in `rows.data`, and by how much its place in `rows.indices` differs."""
    start = np.uint64(rows.indptr[i])
    return start, np.uint64(rows.indptr[i + 1]), start if rows.dense else np.uint64(0)


@inner
def signs(targets, i, k, sign):
    """±1 of the k columns for row i."""
    if len(targets.indicator):
        for c in range(k):
            sign[c] = 1.0 if targets.indicator[i * k + c] > 0 else -1.0
    else:
        sign[:] = -1.0
        sign[targets.codes[i]] = 1.0


@inner
def prefetch_address(rows, targets, weights, k, i):
    """Start loading the address of row i, and its target and weight."""
    prefetch(rows.indptr, i)
    if len(targets.codes):
        prefetch(targets.codes, i)
    else:
        prefetch(targets.indicator, i * k)
    if len(weights.values):
        prefetch(weights.values, i)


@inner
def prefetch_row(rows, i):
    """Start loading row i, some steps before its own: a random row of large data would be waited for."""
    start, stop, _ = row_of(rows, i)
    for p in range(start, stop, np.uint64(LINE // rows.data.itemsize)):
        prefetch(rows.data, p)
    if not rows.dense:
        for p in range(start, stop, np.uint64(LINE // rows.indices.itemsize)):
            prefetch(rows.indices, p)


@inner
def non_zeros(step, places):
    """Write where `step` is not zero to the start of `places`; how many places these are."""
    count = 0
    for c in range(len(step)):
        places[count] = c
        count += step[c] != 0
    return count


# Indices are unsigned throughout: numba checks signed ones for being negative, which keeps loops from being vectorised.
@inner(fastmath={"contract", "nsz"})
def gather(rows, i, table, stride, width, v):
    """v = Vᵀx_i."""
    start, stop, base = row_of(rows, i)
    for c in range(width):
        v[c] = 0
    for p in range(start, stop):
        x = number(rows.data, p)
        if x == 0:
            continue
        at = np.uint64(rows.indices[p - base]) * stride
        for c in range(width):
            v[c] += x * table[at + c]


@inner(fastmath={"contract", "nsz", "reassoc"})
def squared_norm(rows, i):
    start, stop, _ = row_of(rows, i)
    square = 0.0
    for p in range(start, stop):
        x = np.float64(number(rows.data, p))
        square += x * x
    return square


@inner
def raise_offsets(rows, i, offsets, least_offset):
    """Raise the offset of each feature whose value in row i is so large that its step alone would overshoot.

    A row in other units than most, of which at least half of the values are so large, raises none, or it would shorten
    the steps of all rows to come. Returns whether it is one.
    """
    start, stop, base = row_of(rows, i)
    n_seen, n_large, excess = 0, 0, 0.0
    for p in range(start, stop):
        x = np.float64(number(rows.data, p))
        feature = np.uint64(rows.indices[p - base])
        least = least_offset * x * x
        if offsets[feature] == 0.0:
            offsets[feature] = least
        elif x != 0:
            n_seen += 1
            if least > offsets[feature]:
                n_large += 1
                excess += least / offsets[feature]
    if n_large == 0:
        return False
    if 2 * n_large >= n_seen and excess > OUTLYING:
        return True
    for p in range(start, stop):
        x = np.float64(number(rows.data, p))
        feature = np.uint64(rows.indices[p - base])
        offsets[feature] = max(offsets[feature], least_offset * x * x)
    return False


@inner(fastmath={"contract", "nsz"})
def gather_in_units(rows, i, table, offsets, t, stride, width, v):
    """v = Σ_j x_ij V_j/(t + offset_j); Σ_j x_ij²/(t + offset_j) is returned."""
    start, stop, base = row_of(rows, i)
    reach = 0.0
    for c in range(width):
        v[c] = 0
    for p in range(start, stop):
        x = np.float64(number(rows.data, p))
        if x == 0:
            continue
        feature = np.uint64(rows.indices[p - base])
        reach += x * x / (t + offsets[feature])
        x /= t + offsets[feature]
        at = feature * stride
        for c in range(width):
            v[c] += x * table[at + c]
    return reach


@inner(fastmath={"contract", "nsz"})
def scatter(rows, i, table, stride, step):
    """V and U less the outer products of x_i and `step`."""
    start, stop, base = row_of(rows, i)
    for p in range(start, stop):
        x = number(rows.data, p)
        if x == 0:
            continue
        at = np.uint64(rows.indices[p - base]) * stride
        for c in range(stride):
            table[at + c] -= x * step[c]


@inner(fastmath={"contract", "nsz"})
def scatter_few(rows, i, table, stride, step, places, count):
    """What `scatter` does where `step` is zero but in the first `count` of `places`."""
    start, stop, base = row_of(rows, i)
    for p in range(start, stop):
        x = number(rows.data, p)
        at = np.uint64(rows.indices[p - base]) * stride
        for j in range(count):
            table[at + places[j]] -= x * step[places[j]]


@inner
def move_bias(rule, memory, gradient):
    """One step of the intercept, which the penalty does not hold back.

    1/(alpha t) would be far too long a step for it. AdaGrad's, the mean gradient over the root of its sum of squares,
    needs no rate, as scores are in units of the margin (Duchi, Hazan and Singer, 2011). Where only ratios of scores
    matter, the intercept is the weight of a constant feature as long as a row, so that the unit of X does not matter
    (Cristianini and Shawe-Taylor, 2000, Table 2.1).
    """
    for c in range(rule.n_outputs):
        g = gradient[c]
        memory.bias_gradient[c] += g
        if g * g == 0.0:  # no division by a square that underflows
            continue
        if rule.intercept == AS_FEATURE:
            memory.bias[c] -= rule.unit * g
            continue
        memory.bias_squares[c] += g * g
        memory.bias[c] -= g / math.sqrt(memory.bias_squares[c])


@entry
def advance(rows, targets, weights, draws, memory, rule, scratch, stop):
    """All draws up to number `stop` − 1, a batch at a time.

    With W_t = V_t / (alpha (t + offset)), line 5 of Algorithm 1, W ← (1 − 1/t) W, is the change of the divisor, and
    line 8 subtracts the mean of g xᵀ from V, the same at every t.
    """
    table, offsets, totals, bias = memory.table, memory.offsets, memory.totals, memory.bias
    t, position = np.int64(totals[STEPS]), np.int64(totals[DRAWN])
    k, width = rule.n_outputs, np.uint64(rule.width)
    stride = width * np.uint64(2) if rule.average else width
    picked, counts, upcoming = scratch.rows[0], scratch.rows[1], scratch.rows[2]
    steps, places, v, bits = scratch.steps, scratch.places, scratch.v, scratch.bits
    z, g, mean_g, sign = scratch.scores[0], scratch.scores[1], scratch.scores[2], scratch.scores[3]
    label = 0
    for ahead in range(position, min(position + _ADDRESS_AHEAD, stop)):
        upcoming[ahead % _ADDRESS_AHEAD] = draw(draws, ahead)
        prefetch_address(rows, targets, weights, k, upcoming[ahead % _ADDRESS_AHEAD])
    for ahead in range(position, min(position + _ROW_AHEAD, stop)):
        prefetch_row(rows, upcoming[ahead % _ADDRESS_AHEAD])
    while position < stop:
        size = min(rule.batch_size, stop - position)
        before = t + rule.offset
        scale = 1.0 / (rule.alpha * before) if before > 0.0 else 0.0
        bias_scale = scale if rule.intercept == AS_FEATURE else 1.0
        if offsets.size:
            scale = 1.0 / rule.alpha
        mean_g[:] = 0.0
        for a in range(size):
            place = position % _ADDRESS_AHEAD
            i = upcoming[place]
            if position + _ROW_AHEAD < stop:
                prefetch_row(rows, upcoming[(position + _ROW_AHEAD) % _ADDRESS_AHEAD])
            if position + _ADDRESS_AHEAD < stop:
                upcoming[place] = draw(draws, position + _ADDRESS_AHEAD)
                prefetch_address(rows, targets, weights, k, upcoming[place])
            position += 1
            picked[a] = i
            if offsets.size:
                is_outlier = raise_offsets(rows, i, offsets, rule.least_offset)
                reach = gather_in_units(rows, i, table, offsets, t, stride, width, v)
            else:
                gather(rows, i, table, stride, width, v)
                square = squared_norm(rows, i) if rule.curvature > 0.0 else 0.0
                is_outlier = square > OUTLYING * rule.unit
                reach = (square + rule.unit if rule.intercept == AS_FEATURE else square) / (before + 1.0)
            for c in range(k):
                z[c] = scale * v[c] + bias_scale * bias[c]
            if rule.columns:
                signs(targets, i, k, sign)
            else:
                label = targets.codes[i]
            loss, bound = residual(rule.loss, z, k, label, sign, bits, g)
            weight = weights.values[i] * weights.unit if len(weights.values) else 1.0
            totals[LOSS] += weight * loss
            totals[LOSS_ROWS] += weight
            totals[BOUND_ROWS] += weight
            share = weight / size
            if (is_outlier or weight > OUTLYING or rule.unbounded) and rule.curvature * share * reach > rule.alpha:
                # The bound holds: a share of a tangent also lies below a loss that is nowhere negative.
                weight *= rule.alpha / (rule.curvature * share * reach)
                share = weight / size
            totals[BOUND] += weight * bound
            for c in range(k):
                step = share * g[c]
                mean_g[c] += step
                steps[a, c] = step
                if rule.average:
                    steps[a, c + rule.width] = totals[MEAN_WEIGHT] * step
            counts[a] = non_zeros(steps[a], places[a])
        for a in range(size):
            if _FEW * counts[a] < stride:
                if counts[a] > 0:
                    scatter_few(rows, picked[a], table, stride, steps[a], places[a], counts[a])
            else:
                scatter(rows, picked[a], table, stride, steps[a])
        if rule.intercept != NO_INTERCEPT:
            move_bias(rule, memory, mean_g)
        t += 1
        if rule.average:
            totals[AVERAGE_WEIGHT] += rule.alpha * t * t
            totals[MEAN_WEIGHT] += t
            bias_weight = t if rule.intercept == AS_FEATURE else rule.alpha * t * (t + rule.offset)
            for c in range(k):
                memory.bias_average[c] += bias_weight * bias[c]
    totals[STEPS], totals[DRAWN] = t, position
