"""The rows, targets and weights of a dual problem, laid out for compiled loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from manyclass.data.design import Design
from manyclass.solvers.dual.losses import DualLoss


@dataclass(eq=False)
class DualProblem:
    """F(W, b) = (1/S) Σ_i s_i φ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F for a loss φ of `losses`.

    Parameters
    ----------
    design : Design
        NumPy or CSR rows. Dense rows in Fortran order are copied once, as coordinate steps read row by row.
    loss : DualLoss
    alpha : float
        Positive: without a penalty there is no dual point that bounds F.
    codes : integer array of shape (n_rows,), optional
        Class of each row: output j is one class against the rest (its y is 1 or −1), or, for a joint loss, one of
        the classes.
    Y : array of shape (n_rows, n_outputs), optional
        Responses, or labels −1 and 1, in place of `codes`.
    n_outputs : int
    sample_weight : array of shape (n_rows,), optional
    fit_intercept : bool
    epsilon : float
        Parameter of the losses that have one.

    Raises
    ------
    ValueError
        If X is not held in NumPy arrays, or alpha is not positive.
    """

    design: Design
    loss: DualLoss
    alpha: float
    n_outputs: int
    codes: np.ndarray | None = None
    Y: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    fit_intercept: bool = True
    epsilon: float = 0.0
    rows: tuple[Any, Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        if not self.design.is_numpy:
            raise ValueError(
                "Dual coordinate ascent runs on NumPy arrays and SciPy CSR matrices; convert X with numpy.asarray, or "
                "use GLMClassifier, which computes where X is."
            )
        if not self.alpha > 0:
            raise ValueError("Dual coordinate ascent needs alpha > 0; use GLMClassifier for alpha=0.")
        self.rows = _compiled_rows(self.design)
        n = self.design.n_rows
        self.codes = np.empty(0, np.int64) if self.codes is None else np.asarray(self.codes, np.int64)
        if self.Y is None:
            self.Y = np.empty((0, self.n_outputs))
        if self.codes.size and (self.loss.quadratic or self.n_outputs == 1):
            # Centred targets are no longer −1 and 1.
            self.Y = np.where(self.codes[:, None] == np.arange(self.n_outputs), 1.0, -1.0)
            self.codes = self.codes[:0]
        self.Y = np.ascontiguousarray(self.Y, dtype=np.float64)
        weight = np.ones(n) if self.sample_weight is None else np.asarray(self.sample_weight, dtype=np.float64)
        self.share = weight / weight.sum()

    @property
    def centred(self) -> bool:
        return self.fit_intercept and self.loss.quadratic

    @cached_property
    def feature_mean(self) -> np.ndarray:
        """Σ s_i x_i / S, of shape (n_features,)."""
        from manyclass.solvers.dual.columns import gather

        total = np.zeros((self.design.n_features, 1))
        gather(*self.rows, self.share[:, None], total)
        return total[:, 0]

    @cached_property
    def mean_products(self) -> np.ndarray:
        """x_iᵀx̄, of shape (n_rows,)."""
        from manyclass.solvers.dual.columns import dot_rows

        return dot_rows(*self.rows, self.feature_mean)

    @cached_property
    def square_norms(self) -> np.ndarray:
        """‖x_i‖², of the centred rows where X is centred."""
        from manyclass.solvers.dual.columns import square_norms

        data, _, indptr = self.rows
        norms = square_norms(data, indptr)
        if self.centred:
            norms += self.feature_mean @ self.feature_mean - 2.0 * self.mean_products
            np.maximum(norms, 0.0, out=norms)
        with np.errstate(over="ignore"):
            largest = float(np.max(norms * self.share, initial=0.0)) / self.alpha
        if not np.isfinite(largest):
            raise ValueError(
                f"alpha={self.alpha:g} is too small for rows so long: ‖x‖²/(alpha·n) overflows; scale X or raise alpha."
            )
        return norms


def _compiled_rows(design: Design) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(data, indices, indptr) as `rows` reads them; integers are viewed as unsigned, nothing else is copied."""
    if not design.is_sparse:
        X = np.ascontiguousarray(design.X)
        indptr = np.arange(design.n_rows + 1, dtype=np.uint64) * np.uint64(design.n_features)
        return np.asarray(X).reshape(-1), np.empty(0, np.uint32), indptr
    X = design.X
    if not X.has_canonical_format:  # a feature given twice in a row would count wrong in ‖x‖²
        X = X.copy()
        X.sum_duplicates()
    return X.data, *(a.view(np.uint32 if a.itemsize == 4 else np.uint64) for a in (X.indices, X.indptr))
