"""Curvatures that grow row by row, and their inverses kept up to date (*Stochastic Bound Majorization*, section 3)."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from manyclass.curvature.base import Curvature
from manyclass.curvature.log_linear import class_bound
from manyclass.data.design import Array
from manyclass.model.links import Link
from manyclass.model.objective import Objective

PRIOR = 1e-7
"""Curvature of a direction that no row has touched, relative to what the rows can have, where alpha is smaller."""


class StreamedBound(Curvature):
    """H = H₀ + Σ_j w_j B_j ⊗ x_j x_jᵀ over the rows seen so far, w_j = s_j/S, known by its inverse M.

    H₀ is alpha on the coefficients and the curvature of one row on the intercepts, which the penalty leaves alone; it
    only has to be positive, since it shapes steps and not the gradient. Rows come in blocks; within a block M is
    needed on the rows of the block alone, where it is a small matrix (`gram`), so that the recursion over the rows of
    a block never touches all parameters, and `absorb` brings M up to date for the block as a whole.

    Arrays over parameters have shape (n_features [+ 1], n_outputs); parameter (i, a) has index i·n_outputs + a.
    """

    majorizes = False  # the rows were bounded at different theta
    center = False
    span: int
    """Rows times outputs of a block: enough for level-3 BLAS, little enough for what grows with its square or cube."""

    accuracy: ClassVar[float]
    """Relative error of φ = Mμ that a solver may make within a block."""

    def __init__(self, objective: Objective):
        self.objective = objective
        self.bound = class_bound(objective.link.name)
        self.n_outputs = objective.n_outputs
        self.n_rows_of_theta = objective.design.n_features + objective.fit_intercept
        self.prior = prior_curvature(objective)

    @classmethod
    def serves(cls, link: Link) -> bool:
        return link.name in ("softmax", "logistic")

    @property
    def most_rows(self) -> int:
        return max(1, self.span // self.n_outputs)

    @abstractmethod
    def gram(self, X: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
        """(x_i ⊗ I)ᵀ M (x_j ⊗ I) for the rows of a block, of shape (n_rows·n_outputs, n_rows·n_outputs).

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            The rows on those features that are not zero in all of them.
        columns : ndarray of shape (n_columns,) or None
            Which features these are; None for all.
        """

    @abstractmethod
    def products(self, V: np.ndarray) -> np.ndarray:
        """M V for V of shape (n_vectors, n_features [+ 1], n_outputs)."""

    @abstractmethod
    def absorb(self, C: np.ndarray, U: np.ndarray) -> None:
        """H += Σ_j (C_j ⊗ x_j)ᵀ(C_j ⊗ x_j) over the rows of the last `gram`.

        Parameters
        ----------
        C : ndarray of shape (n_rows, rank, n_outputs)
        U : ndarray of shape (n_rows·rank, n_rows·rank)
            The upper Cholesky factor of I + C (gram) Cᵀ.
        """

    @abstractmethod
    def collect(self, X: np.ndarray, columns: np.ndarray | None, C: np.ndarray) -> None:
        """Remember the bounds of a block that was not absorbed, for `renew`."""

    def tidy(self) -> None:
        """Undo the rounding of many updates."""

    @abstractmethod
    def discard(self) -> None:
        """Forget what was collected."""

    @abstractmethod
    def renew(self) -> None:
        """Make H the sum over the rows of the last pass alone."""

    def solve(self, gradient: Array) -> Array:
        wide = np.asarray(gradient, dtype=np.float64)
        return self.products(wide[None])[0].astype(gradient.dtype, copy=False)


def prior_curvature(objective: Objective) -> np.ndarray:
    """H₀, of shape (n_features [+ 1], n_outputs). Neither the scale of the weights nor rows of weight 0 change it."""
    design, m = objective.design, objective.n_outputs
    weight = np.ones(design.n_rows) if objective.sample_weight is None else np.asarray(objective.sample_weight, float)
    weight = weight / weight.sum()
    squares = (
        design.X.power(2).sum(axis=1) if design.is_sparse else np.einsum("ij,ij->i", design.X, design.X, dtype=float)
    )
    mean_square = float(weight @ np.ravel(squares)) / max(design.n_features, 1)
    least = PRIOR * 0.25 * mean_square or 1.0
    prior = np.full((design.n_features, m), max(objective.alpha, least))
    if objective.fit_intercept:
        prior = np.vstack([prior, np.full((1, m), 0.25 * float(weight @ weight))])
    return prior
