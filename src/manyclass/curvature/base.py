"""Approximations of the Hessian of the objective: built once, solved with many times."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from manyclass.data.columns import about_mean
from manyclass.data.rows import Array, Rows, add_to_diagonal, square
from manyclass.model import Problem

MATRICES = 4
"""Matrices in float64 while a curvature is made and factored: itself, its factor, and what each is made from."""


def without_constant(H: Array, problem: Problem, n_outputs: int = 1) -> Array:
    """H with 0 for constant columns, where it is rounding. H has `n_outputs` rows per column (and intercept)."""
    xp, varies = problem.xp, problem.varies
    if varies is None:
        return H
    kept = xp.repeat(varies[: int(H.shape[0]) // n_outputs], n_outputs)
    return H * xp.astype(kept[:, None] & kept[None, :], H.dtype)


def with_penalty(H: Array, problem: Problem, n_outputs: int = 1) -> Array:
    """`without_constant` of H, with alpha added to the diagonal, except for the intercept."""
    H = without_constant(H, problem, n_outputs)
    penalised = problem.xp.arange(int(H.shape[0]), device=problem.rows.device) < problem.rows.n_features * n_outputs
    add_to_diagonal(H, problem.alpha * problem.xp.astype(penalised, H.dtype))
    return H


def solved_about(
    shift: Array, gradient: Array, of_columns: Callable[[Array], Array], of_intercept: Callable[[Array], Array]
) -> Array:
    """H⁻¹ gradient, for an H that decouples columns and intercepts about the problem's centre + `shift`."""
    g = gradient[-1, :]
    W = of_columns(gradient[:-1, :] - shift[:, None] * g[None, :])
    b = of_intercept(g) - shift @ W
    return array_namespace(gradient).concat([W, b[None, :]], axis=0)


def sums_of_columns(rows: Rows, weight: Array) -> Array:
    """Σ w, Σ w x and Σ w x² of each column, of shape (3, n_features), float64."""
    total, mass = rows.column_sums(None, weight)
    return rows.xp.stack([rows.xp.full_like(total, mass), total, rows.column_sums(square, weight)[0]])


def mean_and_variance(sums: Array, problem: Problem) -> tuple[Array, Array]:
    """Of each column, from `sums_of_columns`. The variance is about 0 without an intercept, and 0 if it is rounding."""
    xp = problem.xp
    mass, total, squares = (sums[row, :] for row in range(3))
    mean, mean_square = (one / xp.clip(mass, min=1e-300) for one in (total, squares))
    return mean, about_mean(mean, mean_square, problem.rows) if problem.fit_intercept else mean_square


def unseen_variance(variance: Array, seen: Array, xp: Any) -> Array:
    """The part of the variance of each column that a sample of rows has missed, as in columns that are mostly zero.

    Without that part, F would seem flat along a column that is zero in the sample, and steps would be unbounded.
    """
    return xp.where(variance > 2.0 * seen, variance - seen, xp.zeros_like(seen))


class Curvature(ABC):
    """A positive definite H on the parameters theta of a `Problem`, known by its inverse.

    A new curvature is one file with a subclass and one line in ``CURVATURES``.

    Attributes
    ----------
    majorizes : bool
        Whether F(theta + D) ≤ F(theta) + ⟨∇F, D⟩ + ½⟨D, H D⟩ for every D, so that a full step H⁻¹∇F never raises F.
    local : bool
        Whether that holds only at the theta of the last `refresh` rather than at every theta.
    center : bool
        Whether the problem should be centred (see `Problem`).
    is_diagonal : bool
        Whether it has at most one number for each feature.
    weighs_rows : bool
        Whether `refresh` uses the weights that rows have in the Hessian.
    is_exact : bool
        Whether, for a quadratic loss, it is the Hessian itself.
    default_solver : str
        The solver that belongs to it.
    n_refreshed : int
        How often `refresh` has used weights of rows, if the next one depends on that.
    """

    name: ClassVar[str]
    majorizes: ClassVar[bool]
    local: ClassVar[bool] = False
    center: ClassVar[bool] = True
    is_diagonal: ClassVar[bool] = False
    is_exact: ClassVar[bool] = False
    default_solver: ClassVar[str] = "quasi-newton"
    n_refreshed: int = 0

    _given: ClassVar[tuple[str, ...]] = ("xp",)

    def __init__(self, problem: Problem, rng: np.random.Generator):
        """The curvature at the constant model."""
        self.refresh(problem, problem.constant_model())

    @classmethod
    def memory(cls, problem: Problem) -> float:
        """Bytes that the curvature takes, without rows and arrays of the size of the parameters."""
        return 0.0

    @abstractmethod
    def solve(self, gradient: Array) -> Array:
        """H⁻¹ gradient, in the shape and dtype of the parameters, also for several problems side by side."""

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        """Adapt H to the point theta; a majorizer that holds everywhere may stay as it is."""
        if self.local:
            raise NotImplementedError(f"{type(self).__name__} holds at one point only, and must say how to move there.")

    @property
    def weighs_rows(self) -> bool:
        return False

    def is_of(self, problem: Problem, theta: Array) -> bool:
        """Whether a `refresh` at theta is known to change nothing."""
        return False
