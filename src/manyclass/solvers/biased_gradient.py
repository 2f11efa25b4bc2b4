"""Gradient descent, plain and in the plane that also holds the cross-covariance of X and Y."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from manyclass.curvature import Curvature
from manyclass.data.rows import Array
from manyclass.fit import Iterates, Status
from manyclass.model import Evaluation, Problem
from manyclass.solvers.base import NOTHING, Solver, iterate
from manyclass.solvers.start import Start

PLANE_STEPS = 12
"""BFGS steps in the plane: enough for an exact search, as its metric there is known."""
DEPENDENT = 1e-6
"""Relative curvature below which the second direction adds to the first little but rounding."""
FLAT = 1e-12
"""Relative change of F that rounding may hide; slopes decide then."""


class Gradient(Solver):
    """theta ← theta − γ H⁻¹∇F with γ by an exact search; plain gradient descent for curvature="identity", its default.

    Starts at the constant model, not at least squares: it is here to be compared with, and to show what the spectrum
    of the data does to a method that knows nothing of it (*Homotopic Initialization*, equation 4).
    """

    name = "gradient"
    needs_majorizer = False
    default_curvature: ClassVar[str | None] = "identity"

    def directions(self, problem: Problem, curvature: Curvature, evaluation: Evaluation) -> list[Array]:
        return [-curvature.solve(evaluation.gradient)]

    def begin(self, problem: Problem, curvature: Curvature) -> Start:
        return Start(problem.constant_model())

    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        for number in count(n_iter + 1):
            evaluation = problem.value_and_gradient(theta)
            yield iterate(problem, curvature, theta, evaluation, number)
            directions = self.directions(problem, curvature, evaluation)
            lengths = PlaneSearch(problem, theta, directions).lowest()
            if lengths is None:
                return Status.STALLED
            for length, direction in zip(lengths, directions, strict=True):
                theta = theta + float(length) * direction
        return None


class BiasedGradient(Gradient):
    """theta ← theta − γ H⁻¹∇F − η H⁻¹E[xyᵀ], γ and η by a search in the plane.

    *Homotopic Initialization*, equation 23: for Gaussian rows there are γ and η for which each step is one of
    gradient descent for least squares (Lemma 14), so that data of bounded response correlation are fitted as quickly
    by any generalized linear model as by that. The paper leaves γ and η to a line search; here both are exact, and as
    (γ, 0) is a point of the plane a step is never worse than that of `Gradient` from the same theta.
    """

    name = "biased-gradient"

    def directions(self, problem: Problem, curvature: Curvature, evaluation: Evaluation) -> list[Array]:
        xp = problem.xp
        bias = xp.astype(problem.cross_covariance, problem.rows.dtype)
        if problem.fit_intercept:
            bias = xp.concat([bias, evaluation.gradient[-1:, :] * 0], axis=0)
        return [*super().directions(problem, curvature, evaluation), curvature.solve(bias)]


class PlaneSearch:
    """The lowest F(theta + Σ_j t_j D_j) over t, for one or two directions D.

    Scores are linear in theta, so after one pass for the scores of theta and of the directions no trial reads X: it
    costs O(n_rows · n_outputs). Those scores are held, (1 + number of directions) · n_rows · n_outputs numbers.
    """

    def __init__(self, problem: Problem, theta: Array, directions: list[Array]):
        self.problem, self.n_directions = problem, len(directions)
        xp = problem.xp
        self.scored = problem.map(_scored, [problem.unpack(point) for point in (theta, *directions)])
        parts = [xp.astype(problem.penalised(point), xp.float64) for point in (theta, *directions)]
        self.products = np.array([[float(xp.sum(a * b)) for b in parts] for a in parts])

    def value_and_slope(self, t: np.ndarray) -> tuple[float, np.ndarray]:
        """F at t, and its gradient in t."""
        problem = self.problem
        total, slope = problem.sum(_value_and_slope, self.scored, t)
        along, S = np.concatenate([[1.0], t]), problem.total_weight
        penalty = self.products @ along
        value = total / S + problem.target_conjugate + 0.5 * problem.alpha * float(along @ penalty)
        return value, slope / S + problem.alpha * penalty[1:]

    def bound(self) -> Any:
        """A matrix above the Hessian in t everywhere, by the Lipschitz constant of the loss."""
        problem = self.problem
        total = problem.sum(_products, self.scored)
        return problem.loss.lipschitz * total / problem.total_weight + problem.alpha * self.products[1:, 1:]

    def lowest(self) -> np.ndarray | None:
        """t, or None where rounding leaves nothing to gain."""
        bound = self.bound()
        size = np.sqrt(np.maximum(np.diag(bound), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(bound / np.outer(size, size))
        kept = values > DEPENDENT * max(values[-1], np.finfo(float).tiny)
        # In u with t = B u the bound is the identity: one step downhill never raises F, and BFGS starts well scaled.
        B = (vectors[:, kept] / np.sqrt(values[kept])) / size[:, None]
        here, slope = self.value_and_slope(np.zeros(self.n_directions))

        def in_plane(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.value_and_slope(B @ u)
            return value, B.T @ slope

        descent = -B.T @ slope
        if not descent.any():
            return None
        tolerance = 1e-3 * float(np.abs(descent).max())
        found = minimize(
            in_plane, descent, jac=True, method="BFGS", options={"maxiter": PLANE_STEPS, "gtol": tolerance}
        )
        if found.fun < here:
            return np.asarray(B @ found.x)
        # Rounding hides what F may still fall; the slope along the step that would not raise F has more digits.
        share = 1.0 / max(1.0 + float(descent @ in_plane(descent)[1]) / float(descent @ descent), 1e-3)
        value, left = in_plane(share * descent)
        flattened = np.linalg.norm(left) < 0.9 * np.linalg.norm(descent)
        return share * (B @ descent) if flattened and value - here <= FLAT * abs(here) else None


Scored = list[tuple[slice, list[Array], Array | None]]
"""Rows, their scores at the point and along each direction, and their weights."""


def _scored(part: Problem, points: list[tuple[Array, Array]]) -> Scored:
    return [(rows, [part.scores(block, W, b) for W, b in points], weight) for rows, block, weight in part.blocks()]


def _value_and_slope(part: Problem, scored: Scored, t: np.ndarray) -> tuple[float, np.ndarray]:
    xp, loss = part.xp, part.loss
    total, slope = 0.0, np.zeros(len(t))
    for rows, (base, *moves), weight in scored:
        Z = base
        for length, move in zip(t, moves, strict=True):
            Z = Z + float(length) * move
        Z = loss.normalise(Z, xp)
        losses, P = loss.losses_and_mean(Z, rows, part.targets, xp)
        residual = P - part.targets.dense(rows, P, xp)
        if weight is not None:
            losses, residual = losses * weight[:, None], residual * weight[:, None]
        total += float(xp.sum(losses, dtype=xp.float64))
        slope += [float(xp.sum(residual * move, dtype=xp.float64)) for move in moves]
    return total, slope


def _products(part: Problem, scored: Scored) -> np.ndarray:
    xp, (_, (_, *first), _) = part.xp, scored[0]
    total = np.zeros((len(first), len(first)))
    for _, (_, *moves), weight in scored:
        weighted = moves if weight is None else [move * weight[:, None] for move in moves]
        total += [[float(xp.sum(a * b, dtype=xp.float64)) for b in moves] for a in weighted]
    return total
