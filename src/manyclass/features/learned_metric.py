"""A metric of the columns that follows what is to be predicted, for a kernel of distances."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.curvature.sampling import weighted_sample
from manyclass.data import DenseRows, GeneratedRows, MatrixTargets, Moments, Rows
from manyclass.data.columns import variance
from manyclass.data.factor import eigh_in_place, varying
from manyclass.data.penalty import RidgeSpectrum, random_sums
from manyclass.data.pieces import copied, cosine, elementwise
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, present_rows, to_numpy
from manyclass.features.base import affordable_rows, median_squared_distance, response_columns
from manyclass.model import LOSSES, Problem
from manyclass.model.sums import rotated, squares_of

ROWS, WAVES, SHARE = 8192, 1024, 0.5
"""By which a metric is learned, at most, and waves for each row: half a second, of a thousand columns two."""
NEGLIGIBLE = 1e-10
"""Share of the largest eigenvalue of the metric, below which a direction is left out."""
FLAT = 1e-3
"""Share of the variance of the responses: predictions that change by less over the median distance do not change."""


@dataclass(frozen=True)
class Waves:
    """√(2/p) cos(Vᵀx + b), with V of shape (n_features, p)."""

    frequencies: np.ndarray
    phases: np.ndarray

    @property
    def n_features_out(self) -> int:
        return len(self.phases)

    def generate(self, rows: Rows) -> Array:
        Z = rows.affine(copied(self.frequencies, rows), copied(self.phases, rows))
        return elementwise(lambda Z, out: cosine(Z, out, rows.xp), Z, rows, (2.0 / len(self.phases)) ** 0.5)


def waves_for(n_rows: int) -> int:
    """How many, which have to be as many as columns."""
    return min(WAVES, int(SHARE * n_rows))


def metric_root(rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> np.ndarray | None:
    """L of shape (n_features, n_directions), so that ‖Lᵀ(x − x')‖ is large where predictions change.

    The average outer product of gradients (Radhakrishnan, Beaglehole, Pandit and Belkin, 2024, eq. 2), up to a factor
    that leaves the median squared distance of rows as it is,

        LLᵀ ∝ Σ_i s_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ,

    of f(x) = Wᵀ√(2/q) cos(Vᵀx + b), least squares on q random Fourier features of the median bandwidth and some of the
    rows, with the least error on rows left out. It is V [(Σ_i s_i z_i z_iᵀ) ∘ (WWᵀ)] Vᵀ, z_i = √(2/q) sin(Vᵀx_i + b).

    None where no prediction changes, and where there are more columns than waves: in directions that these do not span
    rows would all be alike.
    """
    index, mass = _drawn(rows, weight, rng)
    n_waves = waves_for(len(index))
    if rows.n_features > n_waves:
        return None
    part = rows.take(index)
    weights = None if mass is None else part.asarray(mass)
    median = median_squared_distance(part, weights)
    moving = to_numpy(variance(part, weights)) > 0.0
    V = rng.standard_normal((rows.n_features, n_waves)) * (moving[:, None] * np.sqrt(2.0 / median))
    phases = rng.uniform(0.0, 2.0 * np.pi, n_waves)
    Y = response_columns(y, index)
    signs = random_sums(Y.shape[1])  # of many, whose gradients have the same outer product in the mean
    Y = Y if signs is None else Y @ signs
    W = _least_squares(GeneratedRows(part, Waves(V, phases)), Y, weights)
    slopes = Moments.of(GeneratedRows(part, Waves(V, phases - np.pi / 2.0)), None, weights).second_moment
    curvature = W @ W.T
    curvature *= to_numpy(slopes)
    values, vectors = eigh_in_place(V @ curvature @ V.T)
    if not median * values.sum() > FLAT * np.var(Y, axis=0).sum():
        return None
    kept = values > NEGLIGIBLE * values[-1]
    root = vectors[:, kept] * np.sqrt(values[kept] / values[-1])
    mapped = median_squared_distance(DenseRows(to_numpy(part.matmat(copied(root, part)))), mass)
    return np.asarray(root * np.sqrt(median / mapped))


def _drawn(rows: Rows, weight: Array | None, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows, and weights of mean 1 with which they stand for all."""
    index, n_rows = present_rows(rows.n_rows, weight), affordable_rows(rows, ROWS)
    if weight is None:
        return np.sort(rng.choice(index, n_rows, replace=False)) if len(index) > n_rows else index, None
    mass = to_numpy(weight)[index].astype(np.float64)
    sample = weighted_sample(mass, n_rows, rng)
    if sample.index is not None:
        index, mass = index[sample.index], mass[sample.index] * (1.0 if sample.scale is None else sample.scale)
    return index, mass / mass.mean()


def _least_squares(features: GeneratedRows, Y: np.ndarray, weight: Array | None) -> np.ndarray:
    """Coefficients with the penalty that has the least error on rows left out."""
    precision, targets = features.precision, MatrixTargets(features.asarray(Y, features.xp.float64))
    problem = Problem(features, targets, LOSSES["squared"], 0.0, weight=weight)
    moments = Moments.of(problem.rows, targets, weight)  # near the origin, as the blocks of the problem are
    if not float(features.xp.max(varying(moments.covariance, moments, precision))) > 0:
        return np.zeros((features.n_features, Y.shape[1]))
    factor, mean = moments.factor(precision=precision), moments.target_mean
    spectrum = RidgeSpectrum.of(factor, moments.cross_covariance, moments.weight, True)
    blocks = rotated(problem, spectrum.vectors, moments.mean, GRAM_BLOCK_BYTES // 4)
    judged = ((Z, targets.Y[where, :] - mean, mass) for where, Z, mass in blocks)
    alpha = spectrum.best_penalty(
        precision,
        problem.effective_rows(weight),
        lambda: squares_of(problem, lambda where: targets.Y[where, :] - mean, 0.0 * mean) / moments.weight,
        lambda alphas: spectrum.leave_one_out(alphas, judged, precision),
    )
    return to_numpy(spectrum.vectors @ spectrum.coefficients(alpha))
