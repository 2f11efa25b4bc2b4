"""Quadratic upper bounds on log partition functions (*Stochastic Bound Majorization*, Algorithm 1 and Theorem 1).

In score space, for arrays of any namespace; `manyclass.bound.kernels` has the same for one row, compiled.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.data.rows import Array


def curving(log_ratio: Array, xp: Any) -> Array:
    """β(u) = tanh(u/2)/(2u) for u = log(a/z), with β(0) = ¼ and β(±∞) = 0."""
    log_ratio = xp.asarray(log_ratio)
    return _of_apart(abs(log_ratio), xp)[0]


def _of_apart(apart: Array, xp: Any) -> tuple[Array, Array, Array]:
    """β(u) of u ≥ 0, exp(−u) and σ(u)."""
    falling = xp.exp(-apart)
    larger = 1.0 / (1.0 + falling)
    near = apart < 1e-3  # where the quotient loses digits and ¼ − u²/48 has them all
    safe = xp.where(near, xp.ones_like(apart), apart)
    beta = xp.where(near, 0.25 - xp.where(near, apart, xp.zeros_like(apart)) ** 2 / 48.0, (larger - 0.5) / safe)
    return beta, falling, larger


@dataclass(frozen=True)
class ClassBound:
    """The bound in the space of scores: Φ(z + u) ≤ Φ(z) + g(z)ᵀu + ½ uᵀB(z)u for every u.

    With z = Wᵀx the features of Algorithm 1 are f(x, y) = e_y ⊗ x, every l of the algorithm is c ⊗ x, and so the Σ of
    a row is B ⊗ xxᵀ: only B, of shape (n_outputs, n_outputs), has to be found.

    ``pairs(n_outputs)`` gives the output numbers (a, b), a ≤ b, of the entries of B that may differ from zero;
    ``weights(Z, xp)`` these entries for each row of Z, of shape (n_rows, n_pairs); ``along(pieces, n_moves, xp)``
    uᵀB(z)v for each row of Z and each pair of moves u, v of its scores, v not after u, each of shape (n_rows,), in
    O(n_outputs) a row: no matrix is made. It is given Z and the moves as pieces of their columns, from left to right:
    each is a list of arrays of shape (some outputs, n_rows).
    """

    pairs: Callable[[int], tuple[np.ndarray, np.ndarray]]
    weights: Callable[[Array, Any], Array]
    along: Callable[[Iterable[list[Array]], int, Any], list[list[Array]]]


def _softmax_weights(Z: Array, xp: Any) -> Array:
    """B without a loop over pairs, or any k×k product.

    Let L_b = log Σ_{j≤b} exp z_j, u_b = z_b − L_{b−1}, κ_b = σ(u_b) and q_b = softmax of the classes before b.
    Algorithm 1 adds β_b c cᵀ with c = e_b − q_b. Summed over b, the upper triangle has rank one in each column:

        B_ab = q_b[a] · (κ_b (1 − κ_b) ρ_b − β_b) for a < b,     B_bb = β_b + κ_b² ρ_b,

    where ρ_{b−1} = β_b + (1 − κ_b)² ρ_b, ρ_last = 0, collects the later classes.
    """
    k = int(Z.shape[1])
    L = [Z[:, 0]]
    for b in range(1, k):
        L.append(xp.logaddexp(L[-1], Z[:, b]))
    later = xp.zeros_like(L[0])
    columns: list[Array] = []
    for b in range(k - 1, 0, -1):
        beta = curving(Z[:, b] - L[b - 1], xp)
        kappa, rest = xp.exp(Z[:, b] - L[b]), xp.exp(L[b - 1] - L[b])
        column = xp.exp(Z[:, :b] - L[b - 1][:, None]) * (kappa * rest * later - beta)[:, None]
        columns.append(xp.concat([column, (beta + kappa**2 * later)[:, None]], axis=1))
        later = beta + rest**2 * later
    columns.append(later[:, None])
    return xp.concat(columns[::-1], axis=1)


def _softmax_along(pieces: Iterable[list[Array]], n_moves: int, xp: Any) -> list[list[Array]]:
    """Σ_b β_b (c_bᵀu)(c_bᵀv), where c_bᵀu = u_b − m_b and m_b is the mean of u over the classes before b."""
    log_z, means, total = None, list[Array](), list[list[Array]]()
    for Z, *moves in pieces:
        begin = 0
        if log_z is None:
            log_z, means, begin = Z[0, :], [move[0, :] for move in moves], 1
            total = [[xp.zeros_like(log_z) for _ in range(i + 1)] for i in range(n_moves)]
        for b in range(begin, int(Z.shape[0])):
            z = Z[b, :]
            log_ratio = z - log_z
            beta, falling, larger = _of_apart(abs(log_ratio), xp)
            kappa = xp.where(log_ratio >= 0, larger, 1.0 - larger)
            apart = [move[b, :] - mean for move, mean in zip(moves, means, strict=True)]
            for i, one in enumerate(apart):
                curved = beta * one
                for j in range(i + 1):
                    total[i][j] += curved * apart[j]
            means = [mean + kappa * one for mean, one in zip(means, apart, strict=True)]
            log_z = xp.maximum(z, log_z) + xp.log1p(falling)
    return total


def _logistic_along(pieces: Iterable[list[Array]], n_moves: int, xp: Any) -> list[list[Array]]:
    return products_along(pieces, n_moves, xp, lambda Z: curving(Z, xp))


def products_along(
    pieces: Iterable[list[Array]], n_moves: int, xp: Any, weights: Callable[[Array], Any]
) -> list[list[Array]]:
    """Σ_b β_b u_b v_b of each row and each pair of moves, β being weights of the scores."""
    total: list[list[Any]] = [[0.0] * (i + 1) for i in range(n_moves)]
    for Z, *moves in pieces:
        beta = weights(Z)
        for i, one in enumerate(moves):
            for j in range(i + 1):
                total[i][j] = total[i][j] + xp.sum(beta * one * moves[j], axis=0)
    return total


CLASS_BOUNDS: dict[str, ClassBound] = {
    "softmax": ClassBound(lambda k: np.tril_indices(k)[::-1], _softmax_weights, _softmax_along),
    # Each label has a partition function 1 + exp z of its own, whose bound is that of Jaakkola and Jordan (2000).
    "logistic": ClassBound(lambda k: (np.arange(k), np.arange(k)), curving, _logistic_along),
}
"""By name of the loss whose potential is the log partition function."""


def class_bound(loss_name: str) -> ClassBound:
    """The bound of a loss, or an error that says what would work."""
    if loss_name not in CLASS_BOUNDS:
        raise ValueError(
            f"There is no partition function behind loss {loss_name!r}; a partition bound exists for "
            f"{' and '.join(map(repr, CLASS_BOUNDS))}. Use curvature='second-moment' instead."
        )
    return CLASS_BOUNDS[loss_name]
