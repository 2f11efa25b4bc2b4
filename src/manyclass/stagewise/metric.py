"""The second moments of a block of features, and the least squares they solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyclass.data.design import Array, Design
from manyclass.data.factor import Factor
from manyclass.data.gram import GramSum


@dataclass(frozen=True)
class Metric:
    """(Σ h_i (x_i − c)(x_i − c)ᵀ / S + alpha·I)⁻¹ of a block, c the mean row under the weights h."""

    factor: Factor
    center: Array
    mean_weight: float

    def solve(self, cross: Array, mean: Array, fit_intercept: bool) -> tuple[Array, Array]:
        """Coefficients and intercept that minimise the quadratic model with these first moments of the residuals."""
        coef = self.factor.solve(cross - self.center[:, None] * mean[None, :])
        if not fit_intercept:
            return coef, mean * 0
        return coef, mean / self.mean_weight - self.center @ coef


class MetricSums:
    """Σ w x xᵀ, Σ w x and Σ w over chunks of rows: products in the dtype of X, sums in float64."""

    def __init__(self, design: Design):
        self.xp, self.design = design.xp, design
        self.xx = GramSum(design)
        self.x = design.zeros((design.n_features,), design.xp.float64)
        self.mass = 0.0

    def add(self, features: Array, weight: Array | None) -> None:
        xp, n_rows = self.xp, int(features.shape[0])
        self.xx.add(features, weight)
        # A product with ones is threaded and many times faster than a sum over rows; a chunk is short enough for it.
        self.x += features.T @ (self.design.asarray(np.ones(n_rows)) if weight is None else weight)
        self.mass += n_rows if weight is None else float(xp.sum(weight, dtype=xp.float64))

    def metric(self, total_weight: float, alpha: float, fit_intercept: bool) -> Metric:
        """The metric of all rows added, for sums that are divided by `total_weight`."""
        second, mean_weight = self.xx.result(), max(self.mass / total_weight, 1e-12)
        second /= total_weight
        center = self.x / max(self.mass, 1e-300)
        if fit_intercept:
            second -= (mean_weight * center)[:, None] * center[None, :]
        else:
            center = center * 0
        return Metric(Factor(second, alpha, float(self.xp.finfo(self.design.dtype).eps)), center, mean_weight)
