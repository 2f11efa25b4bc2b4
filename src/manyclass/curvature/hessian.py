"""The Hessian itself, where all parameters together are few."""

import numpy as np
from array_api_compat import array_namespace

from manyclass.curvature.base import Curvature, unseen_variance, with_penalty
from manyclass.curvature.sampling import ALL_ROWS, RowSample, carrying_sample, n_sampled, uniform_sample
from manyclass.data.factor import Metric
from manyclass.data.rows import BLOCK_BYTES, GRAM_BLOCK_BYTES, Array, Rows, add_to_diagonal
from manyclass.model import Problem

LARGEST = 4096
"""Most parameters for which the matrix and its factor are made (0.13 GB each in float64)."""

ROWS_PER_PARAMETER, FEWEST_ROWS, MOST_ROWS = 8, 1000, 8000
"""Rows from which the Hessian is estimated where it is a metric only. Of few parameters from the fewest to the most,
twice as many each time: what curves may lie in few of the rows, and where it does a fit takes long."""


class Hessian(Curvature):
    """H = ∇²F = (1/S) Σ_i s_i ∇²Φ(z_i) ⊗ x_i x_iᵀ + alpha·I at theta, of shape (d·k, d·k).

    One matrix product per pair of outputs. H is solved with in units in which its diagonal is 1, so that columns of
    very different size cost no digits, and directions in which F is flat (the common shift of a softmax) get the step
    of minimum norm.
    """

    name = "hessian"
    default_solver = "newton"
    majorizes = False
    local = True

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        self._shape = tuple(map(int, theta.shape))
        self._require_room(self._shape[0] * self._shape[1])
        xp = problem.xp
        H = self._matrix(problem, theta)
        diagonal, k = xp.linalg.diagonal(H), problem.n_outputs
        if problem.fit_intercept and problem.loss.domain.exclusive:
            # F does not see a common shift of the intercepts, and rounding alone would choose one.
            H[-k:, -k:] += xp.mean(diagonal[-k:]) / k
        # It is kept away from singular; the gradient has no part where F is flat.
        self._metric = Metric(H, problem.rows.precision)
        self._of = problem.alpha, theta

    @staticmethod
    def _require_room(n_parameters: int) -> None:
        if n_parameters > LARGEST:
            raise ValueError(
                f"The Hessian of all {n_parameters} parameters would take {8e-9 * n_parameters**2:.1f} GB; use "
                "curvature='kronecker', which does not grow with the number of classes."
            )

    def _matrix(self, problem: Problem, theta: Array) -> Array:
        return hessian_matrix(problem, theta)

    def is_of(self, problem: Problem, theta: Array) -> bool:
        alpha, point = self._of
        return alpha == problem.alpha and bool(problem.xp.all(theta == point))

    def solve(self, gradient: Array) -> Array:
        xp, (size, k) = array_namespace(gradient), self._shape
        of_each = xp.reshape(gradient, (size, -1, k))
        n = int(of_each.shape[1])
        solved = self._metric.solve(xp.reshape(xp.permute_dims(of_each, (0, 2, 1)), (-1, n)))
        return xp.reshape(xp.permute_dims(xp.reshape(solved, (size, k, n)), (0, 2, 1)), gradient.shape)


class SampledHessian(Hessian):
    """The Hessian of as many rows as tell it well enough for a metric: those that carry it at the point they are of.

    Rows of rare classes curve hardly any direction but those of their own class, which no product of one factor for
    the classes and one for the features can say.
    """

    name = "sampled-hessian"
    default_solver = Curvature.default_solver
    local = False
    weighs_rows = True

    def __init__(self, problem: Problem, rng: np.random.Generator):
        size = (problem.rows.n_features + problem.fit_intercept) * problem.n_outputs
        self.sample = problem.map(uniform_sample, enough_rows(size), rng)
        super().__init__(problem, rng)

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        if row_weight is not None:
            self.n_refreshed += 1
            fewest = min(FEWEST_ROWS << self.n_refreshed, MOST_ROWS)
            n_rows = enough_rows(int(theta.shape[0]) * int(theta.shape[1]), fewest)
            self.sample = problem.map(carrying_sample, row_weight, n_rows, np.random.default_rng(0))
        super().refresh(problem, theta)

    def _matrix(self, problem: Problem, theta: Array) -> Array:
        """With the curvature of columns that the sample missed (see `unseen_variance`)."""
        xp, k = problem.xp, problem.n_outputs
        H = hessian_matrix(problem, theta, self.sample)
        seen, total = problem.sum(_square_sums, self.sample, problem.center)
        seen /= max(total, 1e-300)
        share = xp.sum(xp.reshape(xp.linalg.diagonal(H), (-1, k)), axis=0) / max(float(xp.sum(seen)), 1e-300)
        variance = problem.feature_variance
        variance = xp.concat([variance, xp.ones_like(variance[:1])]) if problem.fit_intercept else variance
        add_to_diagonal(H, xp.reshape(unseen_variance(variance, seen, xp)[:, None] * share[None, :], (-1,)))
        return H


def enough_rows(n_parameters: int, fewest: int = FEWEST_ROWS) -> int:
    """Rows that tell the Hessian of so many parameters well enough for a metric."""
    return max(fewest, ROWS_PER_PARAMETER * n_parameters)


def hessian_matrix(problem: Problem, theta: Array, sample: RowSample = ALL_ROWS) -> Array:
    """∇²F at theta in float64; parameter i·n_outputs + a is that of feature i (last: intercept) and output a."""
    xp, rows, k = problem.xp, problem.rows, problem.n_outputs
    size = int(theta.shape[0])
    problem.n_passes += problem.sum(n_sampled, sample) / max(rows.n_rows, 1)
    H = problem.sum(_pair_sums, sample, *problem.unpack(theta), problem.center)
    H = xp.reshape(xp.permute_dims(H, (1, 0, 3, 2)), (size * k, size * k)) / problem.total_weight
    return with_penalty(H, problem, k)


def _square_sums(part: Problem, sample: RowSample, center: Array) -> tuple[Array, float]:
    """Σ s (x − c)² of each column, and Σ s."""
    xp = part.xp
    seen, total = part.rows.zeros((part.rows.n_features + part.fit_intercept,), dtype=xp.float64), 0.0
    for _, block, weight in sample.blocks(part, BLOCK_BYTES):
        X = with_ones(block, part, center)
        seen += xp.astype(weight @ (X * X), xp.float64)
        total = total + xp.sum(weight, dtype=xp.float64)
    return seen, float(total)


def _pair_sums(part: Problem, sample: RowSample, W: Array, b: Array, center: Array) -> Array:
    """Σ s (diag(v) − u uᵀ) ⊗ x xᵀ, of shape (n_outputs, n_features, n_outputs, n_features).

    Features come last, as it takes a third of the time to spread few outputs over many features. A product of a matrix
    with itself takes half the time of another.
    """
    xp, rows, loss, k = part.xp, part.rows, part.loss, part.n_outputs
    size = rows.n_features + part.fit_intercept
    H = rows.zeros((k, size, k, size), dtype=xp.float64)
    # Of as many rows as H has itself, where it is large: each block adds a matrix of its size to it.
    n_rows = max(GRAM_BLOCK_BYTES / (8 * rows.itemsize * size * k), size * k)
    for _, block, weight in sample.blocks(part, int(n_rows * rows.row_bytes)):
        v, u = loss.hessian(loss.mean(part.scores(block, W, b), xp), xp)
        X, root = with_ones(block, part, center), weight[:, None] ** 0.5
        _add_own(H, root * v**0.5, X)
        if u is not None:
            spread = xp.reshape((root * u)[:, :, None] * X[:, None, :], (block.n_rows, -1))
            H -= xp.reshape(spread.T @ spread, H.shape)
    return H


def _add_own(H: Array, root: Array, X: Array) -> None:
    """Σ root² x xᵀ of each output."""
    xp, (n, size), k = array_namespace(H), X.shape, int(H.shape[0])
    if k <= size:
        for output in range(k):
            spread = root[:, output : output + 1] * X
            H[output, :, output, :] += spread.T @ spread
        return
    own = X.T @ xp.reshape((root**2)[:, :, None] * X[:, None, :], (n, -1))  # one product for many small ones
    for output in range(k):
        H[output, :, output, :] += own[:, output * size : (output + 1) * size]


def with_ones(block: Rows, problem: Problem, center: Array) -> Array:
    """Rows x − c as a dense block, with the column of ones of the intercept."""
    xp, dense = problem.xp, block.dense()
    if not problem.fit_intercept:
        return dense
    dense = dense - xp.astype(center, dense.dtype)[None, :]
    return xp.concat([dense, block.weights()[:, None]], axis=1)
