"""Second-order statistics of (X, Y) that can be added, merged and subtracted, and the least squares they solve."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from array_api_compat import array_namespace, device

from manyclass.data.design import GRAM_BLOCK_BYTES, Array, Design, gram, scale_rows
from manyclass.data.factor import Factor
from manyclass.data.gram import GramSum
from manyclass.data.targets import Targets


@dataclass(eq=False)
class Moments:
    """Weighted sums over rows that least squares needs, in float64.

    For rows x_i with targets y_i and weights s_i::

        n      number of rows
        weight Σ s_i
        xx     Σ s_i x_i x_iᵀ      (n_features, n_features)
        xy     Σ s_i x_i y_iᵀ      (n_features, n_outputs)
        x      Σ s_i x_i           (n_features,)
        y      Σ s_i y_i           (n_outputs,)
        yy     Σ s_i ‖y_i‖²

    Moments form a group: ``update`` adds rows, ``downdate`` takes rows out again, and the moments of two disjoint
    sets of rows ``merge`` to the moments of their union. float32 rows are multiplied in float32 and summed over
    blocks in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass import Moments
    >>> X, Y = np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [6.0]])
    >>> moments = Moments.zeros(1, 1).update(X, Y)
    >>> coef, intercept = moments.solve(alpha=0.0)
    >>> round(float(coef[0, 0]), 6), round(float(abs(intercept[0])), 6)
    (2.0, 0.0)
    """

    n: int
    weight: float
    xx: Array
    xy: Array
    x: Array
    y: Array
    yy: float

    @classmethod
    def zeros(cls, n_features: int, n_outputs: int, *, like: Array | None = None) -> Moments:
        """The moments of no rows, in the namespace and on the device of `like` (default NumPy)."""
        design = Design(np.empty((0, n_features)) if like is None else like)

        def zeros(*shape: int) -> Array:
            return design.zeros(shape, dtype=design.xp.float64)

        return cls(
            0,
            0.0,
            zeros(n_features, n_features),
            zeros(n_features, n_outputs),
            zeros(n_features),
            zeros(n_outputs),
            0.0,
        )

    @classmethod
    def of(cls, design: Design, targets: Targets, sample_weight: Array | None = None) -> Moments:
        """The moments of all rows of a design, in one pass over blocks."""
        moments = cls.zeros(design.n_features, targets.n_outputs, like=None if design.is_sparse else design.X)
        rows_per_block = design.rows_per_block(targets.n_outputs, GRAM_BLOCK_BYTES)
        like, second = design.zeros((0,)), GramSum(design)
        for rows, block in design.blocks(rows_per_block):
            weight = None if sample_weight is None else sample_weight[rows]
            second.add(block, moments._add_first(block, targets.dense(rows, like, design.xp), weight, +1))
        moments.xx = second.result()
        return moments

    def update(self, X: Array, Y: Array, sample_weight: Array | None = None) -> Moments:
        """Add rows, in place.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
        Y : array of shape (n_rows, n_outputs) or (n_rows,)
        sample_weight : array of shape (n_rows,), default all 1

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the shapes do not fit each other or the rows added before.
        """
        return self._add(X, Y, sample_weight, +1)

    def downdate(self, X: Array, Y: Array, sample_weight: Array | None = None) -> Moments:
        """Take out rows that were added before, in place; parameters and errors as in `update`.

        The result equals the moments of the remaining rows up to rounding, so leave-out fits, unlearning and
        cross-validation need no second pass over what stays.
        """
        return self._add(X, Y, sample_weight, -1)

    def merge(self, other: Moments) -> Moments:
        """The moments of the union of two disjoint sets of rows, as a new object."""
        if self.xy.shape != other.xy.shape:
            raise ValueError(
                f"Moments of {self.xy.shape[0]} features and {self.xy.shape[1]} outputs cannot be merged with those of "
                f"{other.xy.shape[0]} features and {other.xy.shape[1]} outputs; use the same columns in both."
            )
        return Moments(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def _add(self, X: Array, Y: Array, sample_weight: Array | None, sign: int) -> Moments:
        weight = self._add_first(X, Y, sample_weight, sign)
        self.xx += sign * gram(X if weight is None else scale_rows(X, weight**0.5))
        return self

    def _add_first(self, X: Array, Y: Array, sample_weight: Array | None, sign: int) -> Array | None:
        """Add all but Σ s x xᵀ; returns the weights, checked, in the dtype of X."""
        xp = array_namespace(self.xx)
        if Y.ndim == 1:
            Y = Y[:, None]
        if X.shape[1] != self.xy.shape[0] or Y.shape[1] != self.xy.shape[1] or X.shape[0] != Y.shape[0]:
            raise ValueError(
                f"X of shape {tuple(X.shape)} and Y of shape {tuple(Y.shape)} do not fit moments of "
                f"{self.xy.shape[0]} features and {self.xy.shape[1]} outputs."
            )
        Y = xp.astype(Y, X.dtype, copy=False)
        if sample_weight is None:
            weight = xp.ones(Y.shape[0], dtype=X.dtype, device=device(Y))
        else:
            weight = xp.astype(sample_weight, X.dtype, copy=False)
            if not bool(xp.all(weight >= 0)):
                raise ValueError("Sample weights must not be negative; to take rows out use downdate.")
        self.n += sign * int(Y.shape[0])
        self.weight += sign * float(xp.sum(weight, dtype=xp.float64))
        self.xy += sign * (X.T @ (Y if sample_weight is None else weight[:, None] * Y))
        self.x += sign * (X.T @ weight)
        self.y += sign * xp.sum(weight[:, None] * Y, axis=0, dtype=xp.float64)
        self.yy += sign * float(xp.sum(weight[:, None] * Y**2, dtype=xp.float64))
        return None if sample_weight is None else weight

    @property
    def mean(self) -> Array:
        """Weighted mean row x̄, of shape (n_features,)."""
        return self.x / self.weight

    @property
    def second_moment(self) -> Array:
        """Σ̂ = Σ s_i x_i x_iᵀ / Σ s_i."""
        return self.xx / self.weight

    @property
    def covariance(self) -> Array:
        """Σ̂ − x̄ x̄ᵀ, the second moment of the centred rows."""
        mean = self.mean
        covariance = self.xx / self.weight
        covariance -= mean[:, None] * mean[None, :]
        return covariance

    def solve(self, alpha: float, *, fit_intercept: bool = True) -> tuple[Array, Array]:
        """Ridge regression of Y on X: argmin (1/2S) Σ s_i ‖y_i − Wᵀx_i − b‖² + (alpha/2) ‖W‖², S = Σ s_i.

        Parameters
        ----------
        alpha : float
            Penalty per unit of weight (scikit-learn's ``Ridge(alpha=alpha * S)``); 0 gives least squares, of
            minimum norm when the columns are dependent.
        fit_intercept : bool
            Whether b is fitted (never penalised) or 0.

        Returns
        -------
        coef : array of shape (n_features, n_outputs)
        intercept : array of shape (n_outputs,)

        Raises
        ------
        ValueError
            If the moments hold no weight.
        """
        if not self.weight > 0:
            raise ValueError("Moments hold no rows; add rows with update before solving.")
        xy = self.xy / self.weight
        if not fit_intercept:
            return Factor(self.second_moment, alpha).solve(xy), self.y * 0
        mean_x, mean_y = self.mean, self.y / self.weight
        coef = Factor(self.covariance, alpha).solve(xy - mean_x[:, None] * mean_y[None, :])
        return coef, mean_y - mean_x @ coef
