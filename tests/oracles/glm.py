"""The objective written out row by row in float64, minimised by a method that knows nothing of it."""

import numpy as np
from scipy.optimize import minimize


def project_simplex(v):
    """Euclidean projection onto the simplex by bisection on the threshold."""
    low, high = v.min() - 1.0, v.max()
    for _ in range(70):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - 0.5 * (low + high), 0)


def squared(z, y):
    return 0.5 * ((z - y) ** 2).sum(), z - y


def softmax(z, y):
    top = z.max()
    p = np.exp(z - top)
    return np.log(p.sum()) + top - y @ z, p / p.sum() - y


def logistic(z, y):
    p = 1 / (1 + np.exp(-z))
    return np.logaddexp(0, z).sum() - y @ z, p - y


def sparsemax(z, y):
    p = project_simplex(z)
    return 0.5 * z @ z - 0.5 * ((z - p) ** 2).sum() - y @ z + 0.5 * y @ y, p - y


LOSSES = {loss.__name__: loss for loss in (squared, softmax, logistic, sparsemax)} | {"calibrated": squared}
"""Φ(z) − yᵀz + Φ*(y) of one row and its gradient g(z) − y, by the name of the loss."""


def loss(name, z, y):
    return LOSSES[name](z, y)


def objective(name, X, Y, weight, alpha, W, b):
    value, gradient_W, gradient_b = 0.0, np.zeros_like(W), np.zeros_like(b)
    for x, y, s in zip(X, Y, weight, strict=True):
        row_value, residual = loss(name, x @ W + b, y)
        value += s * row_value
        gradient_W += s * np.outer(x, residual)
        gradient_b += s * residual
    total = weight.sum()
    return value / total + 0.5 * alpha * (W**2).sum(), gradient_W / total + alpha * W, gradient_b / total


def minimum(name, X, Y, weight, alpha, fit_intercept=True):
    """(least value, W, b)."""
    d, k = X.shape[1], Y.shape[1]

    def value_and_gradient(flat):
        W, b = flat[: d * k].reshape(d, k), flat[d * k :]
        value, gradient_W, gradient_b = objective(name, X, Y, weight, alpha, W, b)
        return value, np.concatenate([gradient_W.ravel(), gradient_b if fit_intercept else 0 * b])

    found = minimize(
        value_and_gradient, np.zeros((d + 1) * k), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}
    )
    return found.fun, found.x[: d * k].reshape(d, k), found.x[d * k :]
