"""A metric of the columns that follows what is to be predicted, for a kernel of distances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manyclass.data import DenseRows, GeneratedRows, MatrixTargets, Moments, Rows
from manyclass.data.factor import eigh_in_place
from manyclass.data.penalty import Spectrum, best, random_sums
from manyclass.data.pieces import copied, cosine, elementwise
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, present_rows, to_numpy
from manyclass.features.base import affordable_rows, median_squared_distance

ROWS, WAVES = 8192, 1024
"""By which a metric is learned, at most: half a second."""
NEGLIGIBLE = 1e-10
"""Share of the largest eigenvalue of the metric, below which a direction is left out."""


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


def metric_root(
    rows: Rows, Y: np.ndarray, weight: Array | None, bandwidth: float, rng: np.random.Generator
) -> np.ndarray | None:
    """L of shape (n_features, n_directions), so that ‖Lᵀ(x − x')‖ is large where predictions change.

    The average outer product of gradients (Radhakrishnan, Beaglehole, Pandit and Belkin, 2024, eq. 2), up to a factor
    that leaves the median squared distance of rows as it is,

        LLᵀ ∝ Σ_i s_i Σ_c ∇f_c(x_i) ∇f_c(x_i)ᵀ,

    of f(x) = Wᵀ√(2/q) cos(Vᵀx + b), the least squares with the least leave-one-out error on random Fourier features of
    a `bandwidth` and some of the rows. With z_i = √(2/q) sin(Vᵀx_i + b) it is V [(Σ_i s_i z_i z_iᵀ) ∘ (WWᵀ)] Vᵀ. None
    where no prediction changes.

    `Y` are the responses, of shape (n_rows, n_outputs).
    """
    index, n_rows = present_rows(rows.n_rows, weight), affordable_rows(rows, ROWS)
    if len(index) > n_rows:
        index = np.sort(rng.choice(index, n_rows, replace=False))
    part, n_waves = rows.take(index), min(WAVES, len(index))
    mass = None if weight is None else part.asarray(to_numpy(weight)[index])
    V = rng.standard_normal((rows.n_features, n_waves)) * np.sqrt(2.0 / bandwidth)
    phases = rng.uniform(0.0, 2.0 * np.pi, n_waves)
    W = _least_squares(GeneratedRows(part, Waves(V, phases)), Y[index], mass)
    slopes = Moments.of(GeneratedRows(part, Waves(V, phases - np.pi / 2.0)), None, mass)
    curvature = to_numpy(slopes.second_moment) * (W @ W.T)
    is_wide = rows.n_features > n_waves
    values, vectors = eigh_in_place(curvature if is_wide else V @ curvature @ V.T)
    kept = values > NEGLIGIBLE * max(values[-1], 0.0)
    if not kept.any():
        return None
    root = vectors[:, kept] * np.sqrt(values[kept] / values[-1])
    root = V @ root if is_wide else root
    before = median_squared_distance(part, mass)
    after = median_squared_distance(DenseRows(to_numpy(part.matmat(copied(root, part)))), mass)
    return np.asarray(root * np.sqrt(before / after))


def _least_squares(features: GeneratedRows, Y: np.ndarray, weight: Array | None) -> np.ndarray:
    """Coefficients with the penalty that has the least leave-one-out error."""
    xp, R = features.xp, features.asarray(Y, features.xp.float64)
    moments = Moments.of(features, MatrixTargets(R), weight)
    factor = moments.factor(precision=features.precision)
    spectrum = judged = Spectrum.of(factor, moments.cross_covariance, moments.weight, True)
    R, signs = R - moments.target_mean, random_sums(int(R.shape[1]))
    if signs is not None:
        wide = features.asarray(signs, xp.float64)
        judged, R = replace(spectrum, cross=spectrum.cross @ wide), R @ wide
    vectors, center = xp.astype(spectrum.vectors, features.dtype), moments.mean @ spectrum.vectors
    blocks = (
        (
            xp.astype(block.matmat(vectors), xp.float64) - center,
            R[where, :],
            None if weight is None else xp.astype(weight[where], xp.float64),
        )
        for where, block in features.blocks(features.rows_per_block(0, GRAM_BLOCK_BYTES))
    )
    alphas = spectrum.grid(features.precision)
    alpha = best(alphas, judged.leave_one_out(alphas, blocks, features.precision))
    return to_numpy(spectrum.vectors @ spectrum.coefficients(alpha))
