"""Minimisation of the objective over the plane of one or two directions, where no evaluation reads X."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from manyclass.curvature.class_bounds import class_bound, products_along
from manyclass.data.rows import Array, slices, to_numpy
from manyclass.model import Problem

PLANE_STEPS = 12
"""BFGS steps in the plane: enough for an exact minimum, as they begin in a known metric."""
DEPENDENT = 1e-6
"""Relative curvature below which the second direction adds only rounding to the first."""
FLAT = 1e-12
"""Relative change of F that may be rounding; below it slopes decide."""
BOUND_STEPS, FLATTER = 4, 0.1
"""Steps by a bound in a plane at most, and the share of the first slope at which they end."""
LEAST_GONE = 1e-2
"""The least share of the slope that a step is taken to remove when it decides the length of the next one."""
SETBACK = 4.0
"""Factor by which a step that raised F is shortened."""
ROWS_TOGETHER, OUTPUTS_TOGETHER = 4096, 16
"""Rows whose classes are gone through together, as each takes some twenty operations; and classes that are rearranged
for it at once."""

Scored = tuple[slice, list[Array], Array | None]
"""Rows, their scores at the point and along each direction, and their weights."""


@dataclass(frozen=True)
class Unheld:
    """W and b of the point and of each direction, in place of their scores if there is no room for these."""

    points: list[tuple[Array, Array]]


class PlaneSearch:
    """The lowest F(theta + Σ_j t_j D_j) over t, for one or two directions D.

    Scores are linear in theta. After one pass for the scores of theta and of the directions, an evaluation costs
    O(n_rows · n_outputs) and does not read X. The scores are (1 + number of directions) · n_rows · n_outputs numbers;
    without `holds` they are computed again for each evaluation. `scores` are those of theta, if known.
    """

    def __init__(
        self, problem: Problem, theta: Array, directions: list[Array], scores: Any = None, *, holds: bool = True
    ):
        self.problem, self.n_directions = problem, len(directions)
        self._passes_of_look = 0.0 if holds else 0.5 * (1 + len(directions))
        xp = problem.xp
        given = directions if scores is not None else [theta, *directions]
        points = Unheld([problem.unpack(point) for point in given])
        self.scored: Any = problem.map(_held, points, scores) if holds else points
        parts = [xp.astype(problem.penalised(point), xp.float64) for point in (theta, *directions)]
        self.products = np.array([[float(xp.sum(a * b)) for b in parts] for a in parts])

    def value_and_slope(self, t: np.ndarray) -> tuple[float, np.ndarray]:
        """F at t, and its gradient in t."""
        problem = self.problem
        problem.n_passes += self._passes_of_look
        total, slope = problem.sum(_value_and_slope, self.scored, t)
        along, S = np.concatenate([[1.0], t]), problem.total_weight
        penalty = self.products @ along
        value = total / S + problem.target_conjugate + 0.5 * problem.alpha * float(along @ penalty)
        return value, slope / S + problem.alpha * penalty[1:]

    def bound(self) -> np.ndarray:
        """A matrix above the Hessian in t everywhere, by the Lipschitz constant of the loss."""
        problem = self.problem
        total = problem.sum(_products, self.scored, self.n_directions, _by_identity)
        return self._with_penalty(problem.loss.lipschitz * total)

    def _with_penalty(self, total: np.ndarray) -> np.ndarray:
        return np.asarray(total / self.problem.total_weight + self.problem.alpha * self.products[1:, 1:])

    def lowest(self) -> np.ndarray | None:
        """The best t, or None if only rounding is left to gain."""
        B = in_units_of(self.bound())
        here, slope = self.value_and_slope(np.zeros(self.n_directions))

        def in_plane(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.value_and_slope(B @ u)
            return value, B.T @ slope

        # In units in which the bound is the identity, a unit step downhill never raises F, and BFGS starts well scaled.
        descent = -B.T @ slope
        if not descent.any():
            return None
        tolerance = 1e-3 * float(np.abs(descent).max())
        found = minimize(
            in_plane, descent, jac=True, method="BFGS", options={"maxiter": PLANE_STEPS, "gtol": tolerance}
        )
        if found.fun < here:
            return np.asarray(B @ found.x)
        # F may still fall by less than its rounding. The slope along the same step has more digits.
        share = 1.0 / max(1.0 + float(descent @ in_plane(descent)[1]) / float(descent @ descent), 1e-3)
        value, left = in_plane(share * descent)
        flattened = np.linalg.norm(left) < 0.9 * np.linalg.norm(descent)
        return share * (B @ descent) if flattened and value - here <= FLAT * abs(here) else None


def of_lowest_scale(problem: Problem, coef: Array, intercept: Array) -> tuple[Array, Array]:
    """(1 + t) (W, b) with the t of the least F. As given if only rounding is left to gain, or 1 + t is not positive."""
    theta = problem.pack(coef, intercept)
    t = PlaneSearch(problem, theta, [theta]).lowest()
    scale = 1.0 if t is None else 1.0 + float(t[0])
    return (scale * coef, scale * intercept) if scale > 0 else (coef, intercept)


class PartitionPlane(PlaneSearch):
    """A search by partition bounds (*Stochastic Bound Majorization*, Theorem 1), with steps that are longer than those
    of the bound for as long as F falls (its reference [34], adaptive overrelaxed bound optimization).

    The bound of a row in the plane, (D_a z)ᵀB(z)(D_b z), takes O(n_outputs) and no matrix (`ClassBound.along`), so the
    quadratic that lies above F costs the same for any number of parameters.
    """

    def bound(self) -> np.ndarray:
        """The matrix of a quadratic that touches F at t = 0, and lies above it."""
        self.problem.n_passes += self._passes_of_look
        along = class_bound(self.problem.loss.name).along
        return self._with_penalty(self.problem.sum(_products, self.scored, self.n_directions, along))

    def descended(self, value: float, slope: np.ndarray, relaxation: float) -> tuple[np.ndarray, float] | None:
        """A t with a lower F, and the factor by which the last step of the bound was too short. None if only rounding
        is left.

        `value` and `slope` are F and its gradient at t = 0. `relaxation` lengthens the first step, by 1 to the minimum
        of the bound. For any `relaxation`, F falls at least as far as the bound does to its minimum.
        """
        B = in_units_of(self.bound())
        u, fall = np.zeros(B.shape[1]), -B.T @ slope
        promised = 0.5 * float(fall @ fall)
        enough = FLATTER * float(np.linalg.norm(fall))
        for _ in range(BOUND_STEPS):
            found = self._step(B, u, value - promised, fall, relaxation)
            if found is None:
                break
            (length, value, left), promised = found, 0.0
            # The bound expects a slope of 0 at length 1; by the mean curvature along the step it is 0 at length / gone.
            gone = float(fall @ (fall - left)) / float(fall @ fall)
            relaxation = max(1.0, length / max(gone, LEAST_GONE))
            u, fall = u + length * fall, left
            if float(np.linalg.norm(fall)) <= enough:
                break
        return (B @ u, relaxation) if u.any() else None

    def _step(
        self, B: np.ndarray, u: np.ndarray, value: float, fall: np.ndarray, length: float
    ) -> tuple[float, float, np.ndarray] | None:
        """A step from u downhill to an F below `value`: its length, F there, and minus the slope there."""
        size, rounding = float(np.linalg.norm(fall)), max(FLAT, self.problem.rows.precision) * abs(value)
        while size > 0:
            there, slope = self.value_and_slope(B @ (u + length * fall))
            left = -B.T @ slope
            # If F falls by less than its rounding, slopes have more digits. At the minimum of the bound any smaller
            # slope will do.
            flattened = float(np.linalg.norm(left)) < (0.9 if length > 1.0 else 1.0) * size
            if there < value or (flattened and there - value <= rounding):
                return length, there, left
            if length <= 1.0:
                break
            length = max(1.0, length / SETBACK)
        return None


def in_units_of(bound: np.ndarray) -> np.ndarray:
    """B with t = B u, for which the bound is the identity in u. Directions that nearly coincide count once."""
    size = np.sqrt(np.maximum(np.diag(bound), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(bound / np.outer(size, size))
    kept = values > DEPENDENT * max(values[-1], np.finfo(float).tiny)
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])) / size[:, None])


def _each(part: Problem, scored: list[Scored] | Unheld) -> Iterator[Scored]:
    """The scored blocks, computed if they are not held."""
    if not isinstance(scored, Unheld):
        for piece in scored:
            part.on_block()
            yield piece
        return
    xp, k = part.xp, part.n_outputs
    # One product reads the rows once.
    W, b = (xp.concat(several, axis=-1) for several in zip(*scored.points, strict=True))

    def split(Z: Array) -> list[Array]:
        return [Z[:, start : start + k] for start in range(0, int(Z.shape[1]), k)]

    for rows, block, weight in part.blocks():
        yield rows, split(part.scores(block, W, b)), weight


def _held(part: Problem, points: Unheld, known: list[Array] | None) -> list[Scored]:
    """The scored blocks of `points`, after the `known` scores of theta, if given."""
    made = _each(part, points)
    if known is None:
        return list(made)
    return [(rows, [Z, *moves], weight) for Z, (rows, moves, weight) in zip(known, made, strict=True)]


def _value_and_slope(part: Problem, scored: list[Scored] | Unheld, t: np.ndarray) -> tuple[float, np.ndarray]:
    xp, loss = part.xp, part.loss
    total, slope = 0.0, [0.0] * len(t)
    for rows, (base, *moves), weight in _each(part, scored):
        Z = base
        for length, move in zip(t, moves, strict=True):
            Z = Z + float(length) * move
        Z = loss.normalise(Z, xp)
        losses, residual = loss.losses_and_mean(Z, rows, part.targets, xp)
        part.targets.subtract(rows, residual, xp)
        if weight is not None:
            losses, residual = losses * weight[:, None], residual * weight[:, None]
        total = total + xp.sum(losses, dtype=xp.float64)
        slope = [s + xp.sum(xp.vecdot(residual, m), dtype=xp.float64) for s, m in zip(slope, moves, strict=True)]
    return float(total), np.array([float(s) for s in slope])


def _products(
    part: Problem,
    scored: list[Scored] | Unheld,
    n_directions: int,
    along: Callable[[Iterable[list[Array]], int, Any], list[list[Array]]],
) -> np.ndarray:
    """Σ s uᵀB(z)v for each pair of directions, B given by `along` as in `ClassBound`."""
    xp, total = part.xp, part.rows.zeros((n_directions, n_directions), dtype=part.xp.float64)
    for blocks in _together(part, scored):
        weights = [weight for _, _, weight in blocks if weight is not None]
        for i, of_one in enumerate(along(_columns([Z for _, Z, _ in blocks], xp), n_directions, xp)):
            for j, curved in enumerate(of_one):
                total[i, j] += xp.sum(curved * xp.concat(weights) if weights else curved, dtype=xp.float64)
    found: np.ndarray = to_numpy(total)
    found += np.tril(found, -1).T
    return found


def _together(part: Problem, scored: list[Scored] | Unheld) -> Iterator[list[Scored]]:
    """The blocks that are held, so many at once that they have `ROWS_TOGETHER`; others one by one."""
    blocks, n_rows = list[Scored](), 0
    for block in _each(part, scored):
        blocks.append(block)
        n_rows += int(block[1][0].shape[0])
        if n_rows >= ROWS_TOGETHER or isinstance(scored, Unheld):
            yield blocks
            blocks, n_rows = [], 0
    if blocks:
        yield blocks


def _columns(blocks: list[list[Array]], xp: Any) -> Iterator[list[Array]]:
    """Their scores and moves, a few outputs at a time: outputs in rows, which lie in one piece."""
    for some in slices(int(blocks[0][0].shape[1]), OUTPUTS_TOGETHER):
        yield [xp.concat([one[:, some].T for one in several], axis=1) for several in zip(*blocks, strict=True)]


def _by_identity(pieces: Iterable[list[Array]], n_moves: int, xp: Any) -> list[list[Array]]:
    return products_along(pieces, n_moves, xp, lambda Z: 1.0)
