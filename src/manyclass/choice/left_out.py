"""Scores of rows under the models of all other rows, without refits: one Newton step for each.

Leaving out u_i = min(s_i, 1) of row i moves the minimum by a Newton step on the objective that remains, so that with
g_i = p_i − y_i, A_i = ∇²Φ(z_i), C_i = (x̃_iᵀ ⊗ I) H⁻¹ (x̃_i ⊗ I) and H = ∇²F

    z_i + (u_i/S) C_i (I − (u_i/S) A_i C_i)⁻¹ g_i

(Beirami, Razaviyayn, Shahrampour and Tarokh, 2017; Rad and Maleki, 2020). For the squared loss it is exact. The
penalty of the sum, S·alpha, stays as it is, as in `RidgeSpectrum.leave_one_out`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.choice.descent import Descent
from manyclass.choice.methods import Shape
from manyclass.curvature.base import with_penalty
from manyclass.curvature.hessian import hessian_matrix, with_ones
from manyclass.curvature.kronecker import sampled_rows
from manyclass.curvature.sampling import RowSample, weighted_sample
from manyclass.data.factor import Metric
from manyclass.data.memory import require
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, add_to_diagonal, present_rows, to_numpy
from manyclass.fit import Clock
from manyclass.fit.run import OutOfTime
from manyclass.model import Problem

EXACT = 1024
"""Most parameters for which H is the whole Hessian. With more, H is a block for each output."""
NEGLIGIBLE, UNMOVED = 1e-5, 1e-2
"""Rows whose probability differs from its target by less than the first are not moved, unless the penalty is so small
that they could move by more than the second."""
MATRICES = 3
"""Matrices of the size of H: a block of H, its factor and a copy."""
JUDGES, FELT = 30, 0.25
"""Refits that correct the length of the steps; and the share by which the log loss has to fall from left-out to fitted
rows for that to matter. Below it, the coverage of prediction sets changes by a thousandth."""
UNSEEN = 1e-11
"""An intercept with less curvature than this would be rounding in the inverse of H."""
FEWEST_LEFT = 1e-3
"""A class is unknown without a row if no more than this share of the weight of the row is left of it."""
LEAST_LEFT = 0.05
"""The least value of 1 less a leverage, as rows outside the sample of H may have a leverage above 1."""


def check_room(problem: Problem) -> None:
    """Refuse a Hessian of the features that does not fit, before anything is fitted."""
    d, advice = problem.rows.n_features, "use cv=5 and leave_one_out=False, or fewer features"
    needed, what = MATRICES * 8.0 * (d + 1) ** 2, f"Leaving rows of {d} features out one by one"
    require(needed, problem.memory_limit, what, advice)


def is_exact(problem: Problem) -> bool:
    """Whether H is the whole Hessian (see `EXACT`)."""
    return (problem.rows.n_features + problem.fit_intercept) * problem.n_outputs <= EXACT


def wants_row_space(problem: Problem) -> bool:
    """Whether the factors are smaller in the space of the rows."""
    return problem.rows.has_row_space and not is_exact(problem)


def seconds_left_out(problem: Problem, *, rotated: bool = False) -> float:
    """Estimated seconds of `left_out_scores`, for rows in the space that they span if `rotated`."""
    shape = Shape.of(problem).rotated if rotated else Shape.of(problem)
    if is_exact(problem):
        return shape.hessian((shape.d + 1) * shape.k, shape.n)
    return shape.k * _seconds_of_output(shape)


def _seconds_of_output(shape: Shape) -> float:
    return shape.speed.seconds_of_cholesky(shape.d) + shape.gram(min(shape.n, 2 * sampled_rows(shape.d)))


def left_out_scores(problem: Problem, coef: Array, intercept: Array, clock: Clock) -> Array:
    """Scores of shape (n_rows, n_outputs), float64, for a loss with a Hessian, from the coefficients at the minimum.

    Raises `OutOfTime` if there is no time for the next factor.
    """
    theta = problem.pack(coef, intercept)
    if is_exact(problem):
        return _exactly(problem, theta)
    return _by_outputs(problem, *problem.unpack(theta), clock)


def _exactly(problem: Problem, theta: Array) -> Array:
    xp, k, size = problem.xp, problem.n_outputs, int(theta.shape[0])
    (W, b), H = problem.unpack(theta), hessian_matrix(problem, theta)
    if problem.fit_intercept:
        # The intercept of a class of next to no weight, or of a label that all rows have, has no curvature.
        unseen = xp.astype(xp.linalg.diagonal(H)[-k:] <= max(problem.rows.precision, UNSEEN), xp.float64)
        H[-k:, -k:] += xp.eye(k, dtype=xp.float64) * unseen
    if problem.fit_intercept and problem.loss.domain.exclusive:
        H[-k:, -k:] += 1.0 / k  # nor has a common shift of all intercepts
    # Relative to each entry, as features may be of any size.
    add_to_diagonal(H, 1e-3 * problem.rows.precision**0.75 * xp.linalg.diagonal(H))
    # Inverted in units in which the diagonal is 1; then ordered as (feature, output, output, feature).
    unit = xp.linalg.diagonal(H) ** -0.5
    inverse = xp.linalg.inv(H * unit[:, None] * unit[None, :]) * unit[:, None] * unit[None, :]
    inverse = xp.permute_dims(xp.reshape(inverse, (size, k, size, k)), (0, 1, 3, 2))
    inverse, found = xp.reshape(inverse, (size, -1)), []
    for part, block, weight in problem.blocks(GRAM_BLOCK_BYTES // (k * size)):
        X = xp.astype(with_ones(block, problem, problem.center), xp.float64)
        half = xp.reshape(X @ inverse, (-1, k * k, size))
        C = xp.reshape(half @ X[:, :, None], (-1, k, k))
        Z, g, P = _residuals(problem, part, problem.scores(block, W, b))
        v, u = problem.loss.hessian(P, xp)
        share = _share(problem, block.weights(weight))[:, None, None]
        AC = v[:, :, None] * C
        if u is not None:
            AC = AC - u[:, :, None] * (u[:, None, :] @ C)
        C, AC = C * share, AC * share
        step = xp.linalg.solve(xp.eye(k, dtype=xp.float64) - AC, g[:, :, None])
        found.append(Z + (C @ step)[:, :, 0])
    return xp.concat(found)


def _by_outputs(problem: Problem, W: Array, b: Array, clock: Clock) -> Array:
    """With a block of H for each output, H_j = (1/S) Σ_i s_i v_ij x̃_i x̃_iᵀ + alpha·I with v_ij = ∂²Φ(z_i)/∂z_j².

    The part of a row in H_j is exactly what is removed with it, so no leverage v_ij c_ij u_i/S exceeds 1. H_j is summed
    over the rows that carry it, and only rows with a residual in output j are moved: few if classes are many.
    """
    xp, rows, rng = problem.xp, problem.rows, np.random.default_rng(0)
    Z, g, V = (xp.concat(parts) for parts in zip(*_curved(problem, W, b), strict=True))
    weight = rows.weights(problem.weight)
    share = _share(problem, weight)
    ahead = _seconds_of_output(Shape.of(problem))
    # If the rows are nearly fitted, H is alpha·I, which bounds how far a residual can move a score.
    square = max(float(xp.sum(problem.feature_variance)), 1e-300)
    negligible = min(NEGLIGIBLE, UNMOVED * problem.alpha / (square * float(xp.max(share))))
    for output in range(problem.n_outputs):
        clock.check(ahead)
        v = V[:, output]
        sample = weighted_sample(to_numpy(v * weight), 2 * sampled_rows(rows.n_features), rng)
        metric = Metric(_block_of_hessian(problem, v, sample), float(xp.finfo(xp.float64).eps))
        pulling = to_numpy(xp.abs(g[:, output]) > negligible)
        found, moved = [], RowSample(np.flatnonzero(pulling), None)
        for _, block, _ in moved.blocks(problem):
            X = xp.astype(with_ones(block, problem, problem.center), xp.float64)
            found.append(xp.sum(X * metric.solve(X.T).T, axis=1))
        if found:
            at = rows.asarray(moved.index, xp.int64)
            c = xp.concat(found) * xp.take(share, at)
            left = xp.clip(1.0 - c * xp.take(v, at), min=LEAST_LEFT)
            Z[at, output] += c * xp.take(g[:, output], at) / left
    return Z


def _curved(problem: Problem, W: Array, b: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Blocks of (z, g, diagonal of ∇²Φ(z))."""
    for part, block, _ in problem.blocks(GRAM_BLOCK_BYTES):
        Z, g, P = _residuals(problem, part, problem.scores(block, W, b))
        v, u = problem.loss.hessian(P, problem.xp)
        yield Z, g, v if u is None else v - u * u


def _block_of_hessian(problem: Problem, v: Array, sample: RowSample) -> Array:
    """H_j, from the curvatures v of all rows."""
    xp, rows = problem.xp, problem.rows
    index = np.arange(rows.n_rows) if sample.index is None else sample.index
    size = rows.n_features + problem.fit_intercept
    H = rows.zeros((size, size), dtype=xp.float64)
    for where, block, weight in sample.blocks(problem):
        X = xp.astype(with_ones(block, problem, problem.center), xp.float64)
        at = rows.asarray(index[where], xp.int64)
        H += (X * (weight * xp.take(v, at))[:, None]).T @ X
    return with_penalty(H / problem.total_weight, problem)


def _residuals(problem: Problem, part: slice, Z: Array) -> tuple[Array, Array, Array]:
    """z, g and p in float64."""
    xp = problem.xp
    Z = problem.loss.normalise(xp.astype(Z, xp.float64), xp)
    P = problem.loss.mean(Z + 0.0, xp)
    return Z, P - problem.targets.dense(part, P, xp), P


def _share(problem: Problem, weight: Array) -> Array:
    """u_i/S."""
    return problem.xp.clip(problem.xp.astype(weight, problem.xp.float64), max=1.0) / problem.total_weight


def mended(full: Descent, model: tuple[Array, Array], Z: Array) -> Array:
    """Left-out scores Z with corrected steps: all are lengthened by a factor that comes from a few refits.

    A single Newton step does not see that the curvature is lower without the row. It is too short if classes have few
    rows, by 5 to 9 % with ten rows each, and labels seem to fit better than they do. The factor is much the same for
    all rows, so a few refits tell it, by least squares. Rows that are the only ones of a class are not used, as
    nothing is known of the class without them. The factor is at least 1.
    """
    problem, (W, b), xp = full.problem, model, full.problem.xp
    loss, targets = problem.loss, problem.targets
    if loss.quadratic:
        return Z
    seen = xp.astype(problem.scores(problem.rows, W, problem.unshifted(W, b, back=True)), xp.float64)
    weight = 1.0 if problem.weight is None else problem.weight
    inside, outside = (float(xp.sum(weight * loss.values(one + 0.0, slice(None), targets, xp))) for one in (seen, Z))
    if outside - inside <= FELT * outside:
        return Z
    among = _not_alone(problem)
    if not len(among):
        return Z
    try:
        judges = refits(full, model, JUDGES, np.random.default_rng(0), among)
    except OutOfTime:
        return Z
    at = problem.rows.asarray(judges.rows, xp.int64)
    start = xp.take(seen, at, axis=0)
    one, true = xp.take(Z, at, axis=0) - start, judges.scores - start
    if loss.domain.exclusive:  # a common shift of all scores has no meaning
        one, true = (moved - xp.mean(moved, axis=1, keepdims=True) for moved in (one, true))
    square = float(xp.sum(one * one))
    return seen + (Z - seen) * max(float(xp.sum(one * true)) / square, 1.0) if square > 0 else Z


def _not_alone(problem: Problem) -> np.ndarray:
    """Rows of positive weight that can be left out: each label stays present in some row, and absent in some other."""
    xp, rows, S = problem.xp, problem.rows, problem.total_weight
    weight = rows.weights(problem.weight)
    out = xp.clip(xp.astype(weight, xp.float64), max=1.0)[:, None]
    Y = xp.astype(problem.targets.dense(slice(None), rows.zeros((0,)), xp), xp.float64)
    present = S * xp.astype(problem.target_mean, xp.float64)[None, :]
    least = FEWEST_LEFT * out
    is_alone = xp.any((Y > 0) & (present - out * Y <= least), axis=1)
    if not problem.loss.domain.exclusive:
        is_alone = is_alone | xp.any((Y <= 0) & (S - present - out <= least), axis=1)
    return np.flatnonzero(to_numpy((weight > 0) & ~is_alone))


@dataclass(frozen=True)
class Check:
    """Scores by refits without a row, to compare `left_out_scores` with."""

    rows: np.ndarray  # numbers of the rows
    scores: Array  # of each row by the model without it


def refits(
    descent: Descent, model: tuple[Array, Array], n_rows: int, rng: np.random.Generator, among: np.ndarray | None = None
) -> Check:
    """Leave out `n_rows` random rows, one after the other, and fit again, starting from the model of all rows."""
    full, alpha, xp = descent.problem, descent.problem.alpha, descent.problem.xp
    weight = full.rows.weights(full.weight)
    S, present = full.total_weight, present_rows(full.rows.n_rows, weight) if among is None else among
    chosen = np.sort(rng.choice(present, min(n_rows, len(present)), replace=False))
    found: list[Any] = []
    for row in chosen:
        less = weight + 0.0
        out = min(float(weight[int(row)]), 1.0)
        less[int(row)] -= out
        problem = full.variant(weight=less)
        one = Descent(problem, descent.curvature, descent.clock, descent.tol * 1e-2, descent.max_iter)
        W, b = one.fit(alpha * S / (S - out), model).model
        found.append(problem.scores(full.rows.take(np.asarray([row])), W, full.unshifted(W, b, back=True)))
    full.alpha = alpha
    return Check(chosen, xp.concat(found))
