"""How far apart the curvatures of a problem lie, as first-order methods see it."""

import numpy as np

from manyclass.data.rows import to_numpy
from manyclass.model import Problem

SAMPLED_ROWS = 192
"""Rows from which the leading part of the spectrum is read: their Gram matrix is decomposed in milliseconds."""
MOST_STEPS = 1000


def quadratic_steps(problem: Problem, tol: float) -> int:
    """Steps of conjugate gradients down to `tol` of the height of the quadratic that touches F at the constant model.

    In units in which the diagonal of its Hessian h Σ + alpha is 1, as in the metric "jacobi"; h = tr ∇²Φ / n_outputs
    there. The eigenvalues μ_j of that Hessian, and how much g_j of the gradient at the constant model lies along each
    of their vectors, are read from a sample of rows; of the steps nothing else matters, so that they are taken with
    these few numbers.
    """
    sample, columns = problem.rows.take(problem.sample(SAMPLED_ROWS)).occurring()
    X = to_numpy(sample.dense()).astype(np.float64)
    if not X.size:  # sparse rows that hold nothing
        return 0
    if problem.fit_intercept:
        X -= X.mean(axis=0)
    gradient = to_numpy(problem.penalised(problem.zero_gradient)).astype(np.float64)
    gradient = gradient if columns is None else gradient[columns]
    xp, loss = problem.xp, problem.loss
    _, b = problem.unpack(problem.constant_model())
    h = float(loss.hessian_trace(loss.mean(b[None, :], xp), xp)[0]) / problem.n_outputs
    variance = np.einsum("ij,ij->j", X, X) / len(X)
    unit = h * variance + problem.alpha
    scale = np.sqrt(np.where(unit > 0, unit, 1.0))
    X /= scale
    gradient = gradient / scale[:, None]
    if len(X) <= X.shape[1]:
        values, vectors = np.linalg.eigh(X @ X.T / len(X))
        along = vectors.T @ (X @ gradient) / np.sqrt(len(X) * np.maximum(values, 1e-300))[:, None]
    else:
        values, vectors = np.linalg.eigh(X.T @ X / len(X))
        along = vectors.T @ gradient
    seen = values > 1e-10 * max(float(values[-1]), 1e-300)
    share = float(np.average(problem.alpha / scale**2, weights=variance + 1e-300))
    return _steps(h * values[seen] + share, np.sqrt(np.sum(along[seen] ** 2, axis=1)), tol)


def _steps(values: np.ndarray, gradient: np.ndarray, tol: float) -> int:
    """Of conjugate gradients on ½ Σ values x² − Σ gradient x, from 0 to `tol` of what there is to gain."""
    left = gradient.copy()
    direction, square = left, float(left @ left)
    height = float(np.sum(left**2 / values))
    for step in range(MOST_STEPS):
        if np.sum(left**2 / values) <= max(tol, 1e-12) * height:
            return step
        length = square / float(direction @ (values * direction))
        left = left - length * (values * direction)
        before, square = square, float(left @ left)
        direction = left + (square / before) * direction
    return MOST_STEPS
