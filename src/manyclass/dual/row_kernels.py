"""Reading a row and adding a multiple of it, compiled; the one place that knows how rows are stored.

Rows come as `RowArrays`, that is (data, indices, indptr): CSR with unsigned integers (which spares the loops Python's
negative indices), or dense rows end to end in `data` with empty `indices`. Numbers may be of any kind that
`number` reads; all sums are float64.
``fastmath`` lets the sums be reordered, so that they fill vector registers.
"""

import numpy as np

from manyclass.data.compiled import entry, inner, number

LANES = 8
"""Outputs that a row meets together in registers: one cache line of float64."""

HALF_LANES = LANES // 2
"""What is left of the outputs after those in full lanes is rounded up to this, so that V stays small."""

FAST = {"reassoc", "contract", "nsz", "arcp"}


def width(n_outputs: int) -> int:
    """Columns of V for so many outputs."""
    if n_outputs == 1:
        return 1
    return -(-n_outputs // HALF_LANES) * HALF_LANES


@inner(fastmath=FAST)
def row_dot(data, indices, start, stop, v):
    """xᵀv."""
    total = 0.0
    if indices.size:
        for p in range(start, stop):
            total += number(data, p) * v[indices[p]]
    else:
        for p in range(start, stop):
            total += number(data, p) * v[p - start]
    return total


@inner(fastmath=FAST)
def row_add(data, indices, start, stop, by, metric, v):
    """v += by·Px for P = diag(metric), which is the identity where `metric` is empty."""
    if metric.size:
        sparse = indices.size > 0
        for p in range(start, stop):
            at = indices[p] if sparse else p - start
            v[at] += by * number(data, p) * metric[at]
    elif indices.size:
        for p in range(start, stop):
            v[indices[p]] += by * number(data, p)
    else:
        for p in range(start, stop):
            v[p - start] += by * number(data, p)


@inner(fastmath=FAST)
def row_scores(data, indices, start, stop, V, z):
    """z = Vᵀx for V of shape (n_features, `width`), or (n_features,) where there is one score."""
    if V.ndim == 1:  # decided when it is compiled
        z[0] = row_dot(data, indices, start, stop, V)
        return
    sparse = indices.size > 0
    first = 0
    while first + LANES <= z.size:
        z0, z1, z2, z3, z4, z5, z6, z7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for p in range(start, stop):
            x = np.float64(number(data, p))
            row = V[indices[p] if sparse else p - start]
            z0 += x * row[first]
            z1 += x * row[first + 1]
            z2 += x * row[first + 2]
            z3 += x * row[first + 3]
            z4 += x * row[first + 4]
            z5 += x * row[first + 5]
            z6 += x * row[first + 6]
            z7 += x * row[first + 7]
        z[first], z[first + 1], z[first + 2], z[first + 3] = z0, z1, z2, z3
        z[first + 4], z[first + 5], z[first + 6], z[first + 7] = z4, z5, z6, z7
        first += LANES
    if first < z.size:
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for p in range(start, stop):
            x = np.float64(number(data, p))
            row = V[indices[p] if sparse else p - start]
            s0 += x * row[first]
            s1 += x * row[first + 1]
            s2 += x * row[first + 2]
            s3 += x * row[first + 3]
        z[first], z[first + 1], z[first + 2], z[first + 3] = s0, s1, s2, s3


@inner(fastmath=FAST)
def row_spread_moved(data, indices, start, stop, change, moved, metric, V):
    """V += Px·changeᵀ where only the outputs in `moved` change; the others are not even touched if they are most."""
    sparse, scaled, most = indices.size > 0, metric.size > 0, moved.size * 4 > change.size
    for p in range(start, stop):
        at = indices[p] if sparse else p - start
        x = np.float64(number(data, p))
        if scaled:
            x *= metric[at]
        row = V[at]
        if most:
            for j in range(change.size):
                row[j] += x * change[j]
        else:
            for m in range(moved.size):
                row[moved[m]] += x * change[moved[m]]


@entry
def products_and_norms(data, indices, indptr, v, metric, products, norms):
    """Write x_iᵀv and x_iᵀPx_i, of shape (n_rows,), in one pass."""
    for i in range(products.size):
        products[i] = row_dot(data, indices, indptr[i], indptr[i + 1], v)
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = np.float64(number(data, p))
            total += x * x * metric[indices[p] if indices.size else p - indptr[i]] if metric.size else x * x
        norms[i] = total


@entry
def gather(data, indices, indptr, weight, metric, V, by, moved):
    """V += Σ_i Px_i weight_iᵀ for weight of shape (n_rows, n_outputs).

    `by` is zero and as long as a row of V, `moved` is of uint64 and overwritten.
    """
    for i in range(weight.shape[0]):
        n_moved = 0
        for j in range(weight.shape[1]):
            by[j] = weight[i, j]
            if by[j] != 0.0:
                moved[n_moved] = j
                n_moved += 1
        if n_moved:
            row_spread_moved(data, indices, indptr[i], indptr[i + 1], by, moved[:n_moved], metric, V)


@entry
def gather_one(data, indices, indptr, weight, metric, v):
    """v += Σ_i Px_i weight_i."""
    for i in range(weight.size):
        if weight[i] != 0.0:
            row_add(data, indices, indptr[i], indptr[i + 1], weight[i], metric, v)


@entry
def shuffle(order, size, state):
    """A fresh random permutation of the first `size` entries (Fisher and Yates).

    By a 64-bit xorshift generator (Marsaglia, 2003), whose state is one non-zero word.
    """
    x = state[0]
    for i in range(size - 1):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        j = i + np.int64(np.float64(x >> np.uint64(11)) * 1.1102230246251565e-16 * (size - i))
        order[i], order[j] = order[j], order[i]
    state[0] = x
