"""Every loss of the vocabulary written out from public coefficients, in float64, with nothing of the package."""

import numpy as np


def column(loss, z, y):
    """The loss of a column of scores whose labels are y = −1 or 1."""
    return {
        "logistic": lambda: np.logaddexp(0, -y * z),
        "squared": lambda: 0.5 * (z - y) ** 2,
        "calibrated": lambda: 0.5 * (z - (y + 1) / 2) ** 2,
        "hinge": lambda: np.maximum(0, 1 - y * z),
        "squared_hinge": lambda: np.maximum(0, 1 - y * z) ** 2,
        "perceptron": lambda: np.maximum(0, -y * z),
    }[loss]()


OF_TWO_CLASSES = {"softmax": "logistic", "crammer_singer": "hinge", "squared_crammer_singer": "squared_hinge"}


def sparsemax(z):
    """max_p pᵀz − ½‖p‖² over the simplex, plus the ½ that a label costs."""
    u = np.sort(z)[::-1]
    excess = np.cumsum(u) - 1
    size = np.flatnonzero(u * np.arange(1, len(u) + 1) > excess)[-1] + 1
    p = np.maximum(z - excess[size - 1] / size, 0)
    return p @ z - 0.5 * p @ p + 0.5


def joint(loss, Z, codes):
    rows = np.arange(len(codes))
    own = Z[rows, codes]
    short = np.max(Z + (np.arange(Z.shape[1]) != codes[:, None]), axis=1) - own
    return {
        "softmax": lambda: np.logaddexp.reduce(Z, axis=1) - own,
        "sparsemax": lambda: np.array([sparsemax(z) for z in Z]) - own,
        "crammer_singer": lambda: short,
        "squared_crammer_singer": lambda: short**2,
        "perceptron": lambda: Z.max(axis=1) - own,
    }[loss]()


def response(loss, r, epsilon):
    r = np.abs(r)
    return {
        "squared": lambda: 0.5 * r**2,
        "epsilon_insensitive": lambda: np.maximum(0, r - epsilon),
        "squared_epsilon_insensitive": lambda: np.maximum(0, r - epsilon) ** 2,
        "huber": lambda: np.where(r <= epsilon, 0.5 * r**2, epsilon * (r - 0.5 * epsilon)),
    }[loss]()


def objective(loss, X, y, alpha, coef, intercept, *, weight=None, epsilon=None):
    """F of public ``coef_`` and ``intercept_``; y: class codes, an indicator matrix, or (with epsilon) responses."""
    X, coef = np.asarray(X, np.float64), np.atleast_2d(np.asarray(coef, np.float64))
    Z = X @ coef.T + np.asarray(intercept, np.float64)
    penalty = 0.5 * alpha * (coef**2).sum()
    if epsilon is not None:
        losses = response(loss, np.asarray(y).reshape(Z.shape) - Z, epsilon).sum(axis=1)
    elif y.ndim == 2:
        losses = column(loss, Z, 2.0 * y - 1).sum(axis=1)
    elif Z.shape[1] == 1 and loss == "sparsemax":
        losses, penalty = joint(loss, np.hstack([-0.5 * Z, 0.5 * Z]), y), 0.5 * penalty
    elif Z.shape[1] == 1:
        losses = column(OF_TWO_CLASSES.get(loss, loss), Z[:, 0], 2.0 * y - 1)
    elif loss in ("logistic", "squared", "calibrated", "hinge", "squared_hinge"):
        losses = column(loss, Z, 2.0 * (y[:, None] == np.arange(Z.shape[1])) - 1).sum(axis=1)
    else:
        losses = joint(loss, Z, y)
    return np.average(losses, weights=weight) + penalty
