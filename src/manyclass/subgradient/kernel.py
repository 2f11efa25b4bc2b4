"""The compiled loop: Algorithm 1 of the paper, at a cost per row of O(non-zeros × outputs) whatever n and d are."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from manyclass.solvers.prefetch import LINE, touch
from manyclass.solvers.subgradient.draws import draw
from manyclass.solvers.subgradient.losses import residual

# Positions in `Memory.totals`.
MEAN_WEIGHT, AVERAGE_WEIGHT, FACTOR, SQUARED_NORM, LOSS, LOSS_ROWS, BOUND, BOUND_ROWS, N_TOTALS = range(9)

prefetch: Any = touch  # of its arguments the first is Numba's own
_LEAST_FACTOR = 1e-6
# Draws between asking for the place of a row, for the row itself, and using it. Powers of two.
_PLACE_AHEAD = 8
_ROW_AHEAD = 4
# Writing a number by itself takes about as long as writing so many in vectors.
_FEW = 3


class Rows(NamedTuple):
    """Rows of a CSR matrix; or of a dense one, all of whose rows share `indices` 0 .. d − 1 (`stride` = d > 0)."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    stride: int


class Targets(NamedTuple):
    """Class codes; or, where `indicator` has rows, ±1 of every column. Output c stands for class c + `first`."""

    codes: np.ndarray
    indicator: np.ndarray
    first: int


class Weights(NamedTuple):
    """Weight of each row, empty if all are 1, and the reciprocal of their mean."""

    values: np.ndarray
    unit: float


class Memory(NamedTuple):
    """What is learnt.

    Attributes
    ----------
    table : array of shape (n_features · stride,)
        For each feature the row of V (`width` numbers) and, with averaging, that of U beside it. A sparse row of X
        touches as many contiguous pieces as it has non-zeros. W_t = FACTOR · V_t / (alpha (t + offset)), and
        the average is (MEAN_WEIGHT · V_t − U) / AVERAGE_WEIGHT.
    bias, bias_squares, bias_average, bias_gradient : arrays of shape (width,), float64
        b, the sums of its squared gradients, of its weighted iterates, and of its gradients.
    totals : array of shape (N_TOTALS,), float64
    """

    table: np.ndarray
    bias: np.ndarray
    bias_squares: np.ndarray
    bias_average: np.ndarray
    bias_gradient: np.ndarray
    totals: np.ndarray


class Rule(NamedTuple):
    """The constants of a run; `radius` = inf means no projection, `intercept` 0 none, 1 AdaGrad, 2 as a feature."""

    loss: int
    columns: bool
    n_outputs: int
    width: int
    batch_size: int
    alpha: float
    offset: float
    average: bool
    power: float
    radius: float
    intercept: int


@njit(cache=True, inline="always")
def row_of(rows, i):
    """Where row i begins and ends in `rows.data`, and by how much its place in `rows.indices` differs."""
    if rows.stride > 0:
        start = np.uint64(i) * np.uint64(rows.stride)
        return start, start + np.uint64(rows.stride), start
    return np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), np.uint64(0)


@njit(cache=True)
def signs(targets, i, k, sign):
    """±1 of the k columns for row i."""
    if len(targets.indicator):
        for c in range(k):
            sign[c] = targets.indicator[i, c]
    else:
        sign[:] = -1.0
        place = targets.codes[i] - targets.first
        if place >= 0:
            sign[place] = 1.0


@njit(cache=True, inline="always")
def ask_for_place(rows, targets, weights, i):
    """Start loading where row i lies, and its target and weight."""
    if rows.stride == 0:
        prefetch(rows.indptr, i)
    if len(targets.codes):
        prefetch(targets.codes, i)
    if len(weights.values):
        prefetch(weights.values, i)


@njit(cache=True, inline="always")
def ask_for_row(rows, i):
    """Start loading row i.

    Rows drawn at random from more data than the caches hold would each be waited for. Asked for some steps before their
    own, they come while other rows are worked on.
    """
    start, stop, base = row_of(rows, i)
    for p in range(start, stop, np.uint64(LINE // rows.data.itemsize)):
        prefetch(rows.data, p)
    if base == 0:
        for p in range(start, stop, np.uint64(LINE // rows.indices.itemsize)):
            prefetch(rows.indices, p)


@njit(cache=True)
def non_zeros(step, places):
    """Write where `step` is not zero to the start of `places`; how many places these are."""
    count = 0
    for c in range(len(step)):
        places[count] = c
        count += step[c] != 0
    return count


# Indices are unsigned throughout: numba checks signed ones for being negative, which keeps loops from being vectorised.
@njit(cache=True, fastmath={"contract", "nsz"})
def gather(rows, i, table, stride, width, v):
    """v = Vᵀx_i, and ‖x_i‖²."""
    start, stop, base = row_of(rows, i)
    squares = rows.data.dtype.type(0)
    for c in range(width):
        v[c] = 0
    for p in range(start, stop):
        x = rows.data[p]
        if x == 0:
            continue
        squares += x * x
        at = np.uint64(rows.indices[p - base]) * stride
        for c in range(width):
            v[c] += x * table[at + c]
    return float(squares)


@njit(cache=True, fastmath={"contract", "nsz"})
def scatter(rows, i, table, stride, step):
    """V and U less the outer products of x_i and `step`."""
    start, stop, base = row_of(rows, i)
    for p in range(start, stop):
        x = rows.data[p]
        if x == 0:
            continue
        at = np.uint64(rows.indices[p - base]) * stride
        for c in range(stride):
            table[at + c] -= x * step[c]


@njit(cache=True, fastmath={"contract", "nsz"})
def scatter_few(rows, i, table, stride, step, places, count):
    """What `scatter` does where `step` is zero but in the first `count` of `places`."""
    start, stop, base = row_of(rows, i)
    for p in range(start, stop):
        x = rows.data[p]
        at = np.uint64(rows.indices[p - base]) * stride
        for j in range(count):
            table[at + places[j]] -= x * step[places[j]]


@njit(cache=True)
def move_bias(rule, memory, gradient, factor):
    """One step of the intercept, which the penalty does not hold back.

    1/(alpha t) would be far too long a step for it. AdaGrad's, the mean gradient over the root of its sum of squares,
    needs no rate, as scores are in units of the margin (Duchi, Hazan and Singer, 2011). Where only ratios of scores
    matter, the intercept is the weight of a constant feature.
    """
    for c in range(rule.n_outputs):
        g = gradient[c]
        memory.bias_gradient[c] += g
        if g * g == 0.0:  # no division by a square that underflows
            continue
        if rule.intercept == 2:
            memory.bias[c] -= g / factor
            continue
        memory.bias_squares[c] += g * g
        memory.bias[c] -= g / math.sqrt(memory.bias_squares[c])


@njit(cache=True)
def project(rule, memory, size):
    """Shrink W onto the ball that holds the optimum; `size` is the multiple of ‖V‖ that ‖W‖ is."""
    totals = memory.totals
    norm = math.sqrt(max(totals[SQUARED_NORM], 0.0)) * size
    if norm > rule.radius:
        totals[FACTOR] *= rule.radius / norm
        if totals[FACTOR] < _LEAST_FACTOR:
            width, stride = rule.width, rule.width * (2 if rule.average else 1)
            shrink = memory.table.dtype.type(totals[FACTOR])
            # The average so far is moved from MEAN_WEIGHT·V to U, so that MEAN_WEIGHT restarts in the new units.
            for at in range(0, len(memory.table), stride):
                for c in range(at, at + width):
                    if rule.average:
                        memory.table[c + width] -= memory.table.dtype.type(totals[MEAN_WEIGHT]) * memory.table[c]
                    memory.table[c] *= shrink
            totals[SQUARED_NORM] *= totals[FACTOR] ** 2
            totals[FACTOR], totals[MEAN_WEIGHT] = 1.0, 0.0


@njit(cache=True)
def advance(rows, targets, weights, draws, memory, rule, t, position, stop):
    """Draws number `position` to `stop` − 1, a batch at a time, after step t. Returns the number of the last step.

    With W_t = V_t / (alpha (t + offset)), line 5 of Algorithm 1, W ← (1 − 1/t) W, is the change of the divisor, and
    line 8 subtracts the mean of g xᵀ from V, the same at every t.
    """
    table, totals, bias = memory.table, memory.totals, memory.bias
    k, width = rule.n_outputs, np.uint64(rule.width)
    stride = width * np.uint64(2) if rule.average else width
    size = min(rule.batch_size, stop - position)
    picked = np.empty(size, dtype=np.int64)
    upcoming = np.empty(_PLACE_AHEAD, dtype=np.int64)
    steps = np.zeros((size, stride), dtype=table.dtype)
    places = np.empty((size, stride), dtype=np.uint64)
    counts = np.empty(size, dtype=np.int64)
    v = np.empty(width, dtype=table.dtype)
    z, g, mean_g = np.empty(k), np.empty(k), np.empty(k)
    sign = np.empty(k)
    bits = np.empty(k, dtype=np.int64)
    label = 0
    for asked in range(position, min(position + _PLACE_AHEAD, stop)):
        upcoming[asked % _PLACE_AHEAD] = draw(draws, asked)
        ask_for_place(rows, targets, weights, upcoming[asked % _PLACE_AHEAD])
    for asked in range(position, min(position + _ROW_AHEAD, stop)):
        ask_for_row(rows, upcoming[asked % _PLACE_AHEAD])
    while position < stop:
        size = min(rule.batch_size, stop - position)
        before = t + rule.offset
        scale = totals[FACTOR] / (rule.alpha * before) if before > 0.0 else 0.0
        bias_scale = scale if rule.intercept == 2 else 1.0
        mean_g[:] = 0.0
        for a in range(size):
            place = position % _PLACE_AHEAD
            i = upcoming[place]
            if position + _ROW_AHEAD < stop:
                ask_for_row(rows, upcoming[(position + _ROW_AHEAD) % _PLACE_AHEAD])
            if position + _PLACE_AHEAD < stop:
                upcoming[place] = draw(draws, position + _PLACE_AHEAD)
                ask_for_place(rows, targets, weights, upcoming[place])
            position += 1
            picked[a] = i
            squares = gather(rows, i, table, stride, width, v)
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
            totals[BOUND] += weight * bound
            totals[BOUND_ROWS] += weight
            share = weight / size
            inner = 0.0
            length = 0.0
            for c in range(k):
                step = share * g[c]
                mean_g[c] += step
                step /= totals[FACTOR]
                steps[a, c] = step
                if rule.average:
                    steps[a, c + rule.width] = totals[MEAN_WEIGHT] * step
                inner += step * v[c]
                length += step * step
            counts[a] = non_zeros(steps[a], places[a])
            if size == 1:
                totals[SQUARED_NORM] += squares * length - 2.0 * inner
        for a in range(size):
            if size > 1 and rule.radius < np.inf:
                # Rows of a batch overlap: their inner products with V are those of the moment.
                squares = gather(rows, picked[a], table, stride, width, v)
                for c in range(k):
                    totals[SQUARED_NORM] += squares * float(steps[a, c]) ** 2 - 2.0 * steps[a, c] * v[c]
            if _FEW * counts[a] < stride:
                if counts[a] > 0:
                    scatter_few(rows, picked[a], table, stride, steps[a], places[a], counts[a])
            else:
                scatter(rows, picked[a], table, stride, steps[a])
        if rule.intercept > 0:
            move_bias(rule, memory, mean_g, totals[FACTOR])
        t += 1
        after = t + rule.offset
        if rule.radius < np.inf:
            project(rule, memory, totals[FACTOR] / (rule.alpha * after))
        if rule.average:
            emphasis = after**rule.power
            totals[AVERAGE_WEIGHT] += rule.alpha * emphasis
            totals[MEAN_WEIGHT] += totals[FACTOR] * emphasis / after
            bias_weight = rule.alpha * emphasis
            if rule.intercept == 2:
                bias_weight *= totals[FACTOR] / (rule.alpha * after)
            for c in range(k):
                memory.bias_average[c] += bias_weight * bias[c]
    return t
