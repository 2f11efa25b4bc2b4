"""How far from the minimum a point is, by the dual of its problem."""

from typing import Any

import numpy as np

from manyclass.data.pieces import pieces
from manyclass.data.rows import Array, to_numpy
from manyclass.model.problem import Evaluation, Problem


def duality_gap(problem: Problem, theta: Array, evaluation: Evaluation) -> Any:
    """A bound on F(theta) − min F that needs no further pass; infinite for alpha = 0.

    The dual of F is max D(P) = mean Φ*(y) − mean Φ*(p_i) − ‖G(P)‖²/(2 alpha), G(P) = Σ s_i x_i (p_i − y_i)ᵀ/S,
    over p_i in the domain of the loss with Σ s_i (p_i − y_i) = 0 when there is an intercept. At p_i = g(z_i) the
    Fenchel equality turns F − D into ‖∇_W F‖²/(2 alpha) + bᵀ(p̄ − ȳ); where p̄ ≠ ȳ, all p_i are first moved by
    theta towards one point q that mends the mean, and Φ* of the result is bounded by convexity: of each of the
    independent problems by a theta and towards a q of its own.

    A number, or an array of those of the problems side by side.
    """
    if problem.alpha <= 0:
        return float("inf")
    xp, n, inner, residual = problem.xp, problem.n_independent, problem.inner_of_each, evaluation.mean_residual
    alpha = problem.alpha_of_each
    of_columns = alpha if np.ndim(alpha) == 0 else problem.spread(alpha, xp.float64)
    share: Any = np.zeros(n) if n > 1 else 0.0
    q = residual[None, :]
    if problem.fit_intercept:
        # Of a class that nobody has, what is left in the sums over rows and classes is rounding.
        nothing = (problem.target_mean <= 0) & (xp.abs(residual) <= problem.rows.precision)
        residual = xp.where(nothing, xp.zeros_like(residual), residual)
        wanted = xp.reshape(problem.target_mean, (n, -1))
        found, q = problem.loss.domain.blend(wanted + xp.reshape(residual, (n, -1)), wanted, xp)
        share = float(found[0]) if n == 1 else to_numpy(found)
    moves = share > 0 if n == 1 else share.any()
    # G(P) moves towards T = x̄wᵀ − Σ s x yᵀ/S, whose inner products with it take no array of its size.
    w = (problem.target_mean if problem.centred else xp.reshape(q, (-1,)))[None, :]
    W = problem.penalised(theta)
    square = along = size = towards = 0.0
    for part in pieces(problem.rows, W):
        wide = xp.astype(W[part, :], xp.float64)
        G = xp.astype(evaluation.gradient[part, :], xp.float64) - of_columns * wide
        square, along, size = square + inner(wide, wide), along + inner(wide, G), size + inner(G, G)
        if moves:
            of_mean, of_product = (
                inner(problem.at(problem.feature_mean[part, ...], G)[None, :], w),
                problem.target_product[part, :],
            )
            towards = towards + of_mean - inner(G, of_product)
    penalty = 0.5 * alpha * square
    loss = evaluation.of_each - penalty
    conjugate = along - loss
    if problem.fit_intercept:
        conjugate = conjugate + inner(residual[None, :], xp.astype(theta[-1:, :], xp.float64))
    if moves:
        of_q = problem.loss.conjugate(q, xp)
        conjugate = (1.0 - share) * conjugate + share * (float(of_q[0]) if n == 1 else to_numpy(of_q))
        of_mean, with_mean, of_product = problem.target_products
        limit = of_mean * inner(w, w) - 2.0 * inner(with_mean[None, :], w) + of_product
        size = (1.0 - share) ** 2 * size + 2.0 * share * (1.0 - share) * towards + share**2 * limit
    gap = loss + penalty + conjugate + (size if n > 1 else max(size, 0.0)) / (2.0 * alpha)
    gaps = np.reshape(gap, (problem.n_problems, -1)).sum(axis=1)
    # Less than what rounding adds to the losses of single rows is luck, and certifies nothing.
    rounding = problem.rows.precision * abs(evaluation.value) / problem.n_problems / problem.rows.n_rows**0.5
    gaps = np.maximum(gaps, rounding)
    return float(gaps[0]) if problem.n_problems == 1 else gaps
