"""H that grows row by row, and its inverse kept up to date (*Stochastic Bound Majorization*, section 3)."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from manyclass.curvature.class_bounds import class_bound
from manyclass.model import Problem

PRIOR = 1e-7
"""Curvature of a direction that no row has touched, relative to what the rows can have, where alpha is smaller."""


class StreamedBound(ABC):
    """H = H₀ + Σ_j w_j B_j ⊗ x_j x_jᵀ over the rows seen so far, w_j = s_j/S, known by its inverse M.

    H₀ is alpha on the coefficients and the curvature of one row on the intercepts, which the penalty leaves alone; it
    only has to be positive, since it shapes steps and not the gradient. Rows come in blocks; within a block M is
    needed on the rows of the block alone, where it is a small matrix (`gram`), so that the recursion over the rows of
    a block never touches all parameters, and `absorb` brings M up to date for the block as a whole.

    Arrays over parameters have shape (n_features [+ 1], n_outputs); parameter (i, a) has index i·n_outputs + a.
    """

    _given: ClassVar[tuple[str, ...]] = ("problem", "bound", "prior")

    span: int  # rows × outputs of a block: enough for level-3 BLAS, yet small enough for its square and cube
    accuracy: ClassVar[float]  # relative error of φ = Mμ that a solver may make within a block
    compact: ClassVar[bool]  # whether blocks are to come on the columns that occur in them

    def __init__(self, problem: Problem):
        self.problem = problem
        self.bound = class_bound(problem.loss.name)
        self.n_outputs = problem.n_outputs
        self.n_rows_of_theta = problem.rows.n_features + problem.fit_intercept
        self.prior = prior_curvature(problem)

    @property
    def most_rows(self) -> int:
        return max(1, self.span // self.n_outputs)

    @abstractmethod
    def gram(self, X: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
        """(x_i ⊗ I)ᵀ M (x_j ⊗ I) for the rows of a block, of shape (n_rows·n_outputs, n_rows·n_outputs).

        X holds the `columns` of the features that occur in these rows, or all of them for None.
        """

    @abstractmethod
    def products(self, V: np.ndarray) -> np.ndarray:
        """M V for V of shape (n_vectors, n_features [+ 1], n_outputs)."""

    @abstractmethod
    def absorb(self, C: np.ndarray, U: np.ndarray) -> None:
        """H += Σ_j (C_j ⊗ x_j)ᵀ(C_j ⊗ x_j) over the rows of the last `gram`.

        C has shape (n_rows, rank, n_outputs); U, in its upper triangle, is the Cholesky factor of I + C (gram) Cᵀ.
        """

    @abstractmethod
    def collect(self, X: np.ndarray, columns: np.ndarray | None, C: np.ndarray) -> None:
        """Keep the bounds of a block that is not absorbed, for `renew`."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove the rounding errors of many updates."""

    @abstractmethod
    def discard(self) -> None:
        """Drop the bounds that were collected."""

    @abstractmethod
    def renew(self) -> None:
        """Replace H by H₀ plus the bounds that were collected in the last pass."""

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """H⁻¹ gradient, typed as the gradient."""
        wide = np.asarray(gradient, dtype=np.float64)
        return np.asarray(self.products(wide[None])[0], dtype=gradient.dtype)


def prior_curvature(problem: Problem) -> np.ndarray:
    """H₀, of shape (n_features [+ 1], n_outputs). Neither the scale of the weights nor rows of weight 0 change it."""
    rows, m = problem.rows, problem.n_outputs
    mean_square = float(np.mean(rows.mean_square(problem.weight))) if rows.n_features else 0.0
    prior = np.full((rows.n_features, m), max(problem.alpha, PRIOR * 0.25 * mean_square or 1.0))
    if not problem.fit_intercept:
        return prior
    share = row_shares(problem)
    return np.vstack([prior, np.full((1, m), 0.25 * float(share @ share))])


def row_shares(problem: Problem) -> np.ndarray:
    """s_j / S, of shape (n_rows,), in float64."""
    weight = np.ones(problem.rows.n_rows) if problem.weight is None else problem.weight
    return np.asarray(weight, dtype=np.float64) / problem.total_weight
