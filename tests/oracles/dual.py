"""Objectives of the dual losses written out plainly, minimised by methods that know nothing of duals."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp


def losses(name, Z, y, epsilon):
    """Loss of each row, summed over outputs. y holds class codes for the joint losses, else a column per output."""
    if name in ("crammer_singer", "softmax"):
        rows = np.arange(len(Z))
        own = Z[rows, y]
        if name == "softmax":
            return logsumexp(Z, axis=1) - own
        wrong = np.ones_like(Z)
        wrong[rows, y] = 0
        return (Z + wrong).max(axis=1) - own
    r = np.abs(y - Z)
    each = {
        "squared": lambda: 0.5 * r**2,
        "hinge": lambda: np.maximum(1 - y * Z, 0),
        "squared_hinge": lambda: np.maximum(1 - y * Z, 0) ** 2,
        "logistic": lambda: np.logaddexp(0, -y * Z),
        "epsilon_insensitive": lambda: np.maximum(r - epsilon, 0),
        "squared_epsilon_insensitive": lambda: np.maximum(r - epsilon, 0) ** 2,
        "huber": lambda: np.where(r <= epsilon, 0.5 * r**2, epsilon * (r - epsilon / 2)),
    }[name]()
    return each.sum(axis=1)


def objective(name, X, y, weight, alpha, W, b, epsilon=0.0):
    Z = np.asarray(X @ W) + b
    return weight @ losses(name, Z, y, epsilon) / weight.sum() + 0.5 * alpha * (W**2).sum()


def minimum(name, X, y, weight, alpha, fit_intercept, epsilon=0.0):
    """Least value of the objective. Piecewise linear losses become a quadratic program with one slack per piece."""
    d = X.shape[1]
    k = int(y.max()) + 1 if y.ndim == 1 else y.shape[1]
    size = d * k + (k if fit_intercept else 0)

    def unpack(flat):
        return flat[: d * k].reshape(d, k), flat[d * k : size] if fit_intercept else np.zeros(k)

    if name in ("hinge", "epsilon_insensitive", "crammer_singer"):
        return quadratic_program(name, X, y, weight, alpha, epsilon, k, size, unpack)
    found = minimize(
        lambda flat: objective(name, X, y, weight, alpha, *unpack(flat), epsilon),
        np.zeros(size),
        method="BFGS",
        jac="3-point",
        options={"gtol": 1e-9, "maxiter": 2000},
    )
    return found.fun


def quadratic_program(name, X, y, weight, alpha, epsilon, k, size, unpack):
    n = len(X)
    slacks = n if y.ndim == 1 else n * k
    share = np.repeat(weight / weight.sum(), slacks // n)
    basis = np.eye(size)
    scores = np.stack([(X @ unpack(e)[0] + unpack(e)[1]).ravel() for e in basis], axis=1)  # (n·k, size)
    if name == "crammer_singer":
        own = scores.reshape(n, k, size)[np.arange(n), y][:, None, :]
        A = (scores.reshape(n, k, size) - own).reshape(n * k, size)
        wrong = (np.arange(k) != y[:, None]).astype(float).ravel()
        pieces = [(-A, np.repeat(np.arange(n), k), -wrong)]
    elif name == "hinge":
        pieces = [(y.ravel()[:, None] * scores, np.arange(n * k), -np.ones(n * k))]
    else:
        pieces = [(sign * scores, np.arange(n * k), -sign * y.ravel() + epsilon) for sign in (1, -1)]
    rows = []
    offsets = []
    for A, slack, offset in pieces:  # A·flat + ξ + offset ≥ 0
        selector = np.zeros((len(A), slacks))
        selector[np.arange(len(A)), slack] = 1
        rows.append(np.hstack([A, selector]))
        offsets.append(offset)
    A, offset = np.vstack(rows), np.concatenate(offsets)
    penalty = np.zeros(size + slacks)
    penalty[: X.shape[1] * k] = alpha
    linear = np.concatenate([np.zeros(size), share])
    start = np.concatenate([np.zeros(size), np.full(slacks, 10.0 + np.abs(offset).max())])
    found = minimize(
        lambda v: 0.5 * penalty @ v**2 + linear @ v,
        start,
        jac=lambda v: penalty * v + linear,
        method="SLSQP",
        bounds=[(None, None)] * size + [(0, None)] * slacks,
        constraints={"type": "ineq", "fun": lambda v: A @ v + offset, "jac": lambda v: A},
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    assert found.status in (0, 8), found.message  # 8: its line search has come to rounding, which is the optimum
    return found.fun
