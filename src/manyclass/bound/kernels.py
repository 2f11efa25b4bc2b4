"""The recursion over the rows of a block of stochastic bound majorization, and what its curvatures loop over."""

import math

import numpy as np

from manyclass.data.compiled import entry, inner, sigmoid


@entry
def run_block(softmax, grow, Z, phi, psi, H, Y, weight, eta, classes, old, C, U, sums, work, scores):
    """Rows of a block in order: bound, update of M, of μ, and step, all within the span of the block's rows.

    With X̂ = (x_1 ⊗ I, ..., x_b ⊗ I), M₀ and μ₀ at the start of the block, everything Algorithm 2 does is

        M_j μ_j = φ₀ + c_j ψ + M₀ X̂ v_j,   v_j = R_j − T_j (X̂ᵀφ₀ + H R_j + c_j X̂ᵀψ),   T_j = Cᵀ(I + C H Cᵀ)⁻¹C,

    for φ₀ = M₀μ₀, ψ = M₀Λθ₀, the residuals R of the rows so far, c_j their weight, and H = X̂ᵀM₀X̂. The Cholesky factor
    U of I + C H Cᵀ grows by the rank of one row at a time.

    `softmax`: one partition function over all outputs, or one for each; `grow`: whether M takes in the rows (T = 0
    otherwise). Z, phi, psi and Y, of shape (b, m), are the scores at the start of the block, X̂ᵀφ₀, X̂ᵀψ and the
    targets; `weight` is s_j / S; `eta` the length of the steps in a pass together, that after a row being its weight
    times this; `classes`, of shape (b, m), the order in which Algorithm 1 takes the classes of each row.

    Written to: `old`, of shape (b, m), residuals to be replaced by the new ones, zero where these are added; C, of
    shape (b, rank, m), and the upper triangle of U, of shape (b·rank, b·rank); `sums`, of shape (3, b·m), zero before:
    R = Σ of residuals, −Σ step·v, and −Σ_j weight_j times the latter as it stood before row j. `work`, of shape (4 +
    rank, b·m), and `scores`, of shape (2, m), are overwritten: arrays made here would be compiled with the loop.

    Returns the coefficients of φ₀ and ψ in the movement of theta, and in its lagged sum.
    """
    b, m = Z.shape
    R, moved, lagged = sums[0], sums[1], sums[2]
    base, v, T, x, g = work[0], work[1], work[2], work[3], work[4:]
    z, p = scores[0], scores[1]
    start = np.int64(0)  # the literal has a type of its own, for which callees would be compiled again
    for j in range(b):
        for a in range(m):
            base[j * m + a] = phi[j, a]
    by_phi = by_psi = lag_phi = lag_psi = weight_sum = 0.0
    for j in range(b):
        lo, hi, step = j * m, (j + 1) * m, eta * weight[j]
        for a in range(m):
            z[a] = Z[j, a] + by_phi * phi[j, a] + by_psi * psi[j, a] + dot(H[lo + a], moved, start, hi)
        bound_of_scores(z, softmax, math.sqrt(weight[j]), classes[j], p, C[j])
        for i in range(lo):
            lagged[i] += weight[j] * moved[i]
        lag_phi += weight[j] * by_phi
        lag_psi += weight[j] * by_psi
        for a in range(m):
            residual = weight[j] * (p[a] - Y[j, a])
            change = residual - old[j, a]
            old[j, a] = residual
            R[lo + a] = change
            add_scaled(change, H[lo + a], base, start, b * m)
        if grow:
            weight_sum += weight[j]
            for i in range(b):
                for a in range(m):
                    base[i * m + a] += weight[j] * psi[i, a]
            extend_cholesky(H, C, U, T, g, start, j)
        for i in range(hi):
            v[i] = R[i]
        if grow:
            remove_bound(C, U, base, x, v, j)
        for i in range(hi):
            moved[i] -= step * v[i]
        by_phi -= step
        by_psi -= step * weight_sum
    return by_phi, by_psi, lag_phi, lag_psi


@inner
def tanh_ratio(u):
    """β(u) = tanh(u/2)/(2u), the curvature of the bound."""
    return 0.25 - u * u / 48.0 if abs(u) < 1e-3 else math.tanh(0.5 * u) / (2.0 * u)


@inner
def bound_of_scores(z, softmax, scale, order, p, C):
    """The mean p and the factors C, of shape (rank, n_outputs), of scale²·B = CᵀC, classes taken in `order`."""
    m = z.shape[0]
    for y in range(C.shape[0]):
        for a in range(m):
            C[y, a] = 0.0
    if not softmax:
        for a in range(m):
            p[a] = sigmoid(z[a])
            C[a, a] = scale * math.sqrt(tanh_ratio(z[a]))
        return
    log_z = z[order[0]]
    p[order[0]] = 1.0
    for i in range(1, m):
        y = order[i]
        u = z[y] - log_z
        root, rest = scale * math.sqrt(tanh_ratio(u)), sigmoid(-u)
        for earlier in range(i):
            a = order[earlier]
            C[i - 1, a] = -root * p[a]
            p[a] *= rest
        C[i - 1, y] = root
        p[y] = sigmoid(u)
        log_z = (z[y] if u > 0.0 else log_z) + math.log1p(math.exp(-abs(u)))


@inner(fastmath={"reassoc", "contract"})
def dot(u, v, first, last):
    """u[first:last] · v[first:last], summed in whatever order is fastest."""
    u, v, total = u[first:last], v[first:last], 0.0
    for i in range(len(u)):
        total += u[i] * v[i]
    return total


@inner
def add_scaled(factor, source, target, first, last):
    """target[first:last] += factor · source[first:last], without the temporary arrays of slices."""
    for i in range(first, last):
        target[i] += factor * source[i]


@inner
def extend_cholesky(H, C, U, T, g, start, j):
    """Rows and columns of example j in the Cholesky factor U of I + C H Cᵀ."""
    rank, m = C.shape[1], C.shape[2]
    n, width = j * rank, (j + 1) * m
    for r in range(rank):
        for i in range(width):
            T[i] = 0.0
        for a in range(m):
            if C[j, r, a] != 0.0:
                add_scaled(C[j, r, a], H[j * m + a], T, start, width)
        for i in range(j + 1):
            for q in range(rank):
                total = 0.0
                for a in range(m):
                    total += T[i * m + a] * C[i, q, a]
                g[r, i * rank + q] = total
    for s in range(n):
        for r in range(rank):
            value = g[r, s] / U[s, s]
            U[s, n + r] = value
            add_scaled(-value, U[s], g[r], s + 1, n + r + 1)
    for s in range(rank):
        row = n + s
        U[row, row] = math.sqrt(1.0 + g[s, row])
        for r in range(s + 1, rank):
            U[row, n + r] = g[r, row] / U[row, row]
            for q in range(s + 1, r + 1):
                g[r, n + q] -= U[row, n + r] * U[row, n + q]


@inner
def remove_bound(C, U, base, x, v, j):
    """v −= Cᵀ (I + C H Cᵀ)⁻¹ C base, over the rows up to j."""
    rank, m = C.shape[1], C.shape[2]
    n = (j + 1) * rank
    for i in range(j + 1):
        for q in range(rank):
            total = 0.0
            for a in range(m):
                total += C[i, q, a] * base[i * m + a]
            x[i * rank + q] = total
    for s in range(n):
        x[s] /= U[s, s]
        add_scaled(-x[s], U[s], x, s + 1, n)
    for s in range(n - 1, -1, -1):
        x[s] = (x[s] - dot(U[s], x, s + 1, n)) / U[s, s]
    for i in range(j + 1):
        for q in range(rank):
            for a in range(m):
                v[i * m + a] -= C[i, q, a] * x[i * rank + q]


@entry
def copy_upper_to_lower(M):
    """Make M symmetric, tile by tile."""
    n = M.shape[0]
    tile = 32
    for i0 in range(0, n, tile):
        for j0 in range(0, i0 + 1, tile):
            for i in range(i0, min(i0 + tile, n)):
                for j in range(j0, min(j0 + tile, i)):
                    M[i, j] = M[j, i]
