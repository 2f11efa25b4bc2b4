"""The one objective of the package, its gradient in one blocked pass, and its duality gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyclass.data.design import BLOCK_BYTES, Array, Design, scale_rows
from manyclass.data.targets import Targets
from manyclass.model.links import Link


@dataclass(frozen=True)
class Evaluation:
    """What one pass over the rows tells about a point.

    Attributes
    ----------
    value : float
        F.
    gradient : array, shaped as the parameters
    mean_residual : array of shape (n_outputs,), float64
        Σ s_i (p_i − y_i) / S: the gradient in the intercept.
    row_weight : ndarray of shape (n_rows,), optional
        s_i tr ∇²Φ(z_i), where asked for.
    """

    value: float
    gradient: Array
    mean_residual: Array
    row_weight: np.ndarray | None = None


class Objective:
    """F(W, b) = (1/S) Σ_i s_i ℓ(z_i, y_i) + (alpha/2) ‖W‖²_F with z_i = Wᵀx_i + b and S = Σ_i s_i.

    ℓ is the Fenchel–Young loss Φ(z) − yᵀz + Φ*(y) of the link, so F ≥ 0; the intercept is never penalised.

    Parameters are one array theta: W of shape (n_features, n_outputs) and, below it, a last row with the intercept
    of the centred model z = Wᵀ(x − c) + b'. With c = x̄ the curvature of W and b' decouples, and neither X is copied
    nor sparse rows filled. `pack` and `unpack` translate.

    Parameters
    ----------
    design, targets, link
        X, Y and g = ∇Φ.
    alpha : float
        Penalty, non-negative.
    sample_weight : array of shape (n_rows,), optional
        Non-negative weights s, in the namespace of X.
    fit_intercept : bool
    center : bool
        Whether c = x̄ (right for a curvature that couples the features) or 0 (right for a diagonal one).
    """

    def __init__(
        self,
        design: Design,
        targets: Targets,
        link: Link,
        alpha: float,
        *,
        sample_weight: Array | None = None,
        fit_intercept: bool = True,
        center: bool = True,
    ):
        self.design, self.targets, self.link, self.alpha = design, targets, link, float(alpha)
        self.xp: Any = design.xp
        self.fit_intercept = fit_intercept
        self.n_outputs = targets.n_outputs
        self.sample_weight = sample_weight
        self.total_weight = (
            float(design.n_rows) if sample_weight is None else float(self.xp.sum(sample_weight, dtype=self.xp.float64))
        )
        self.center = self.feature_mean if fit_intercept and center else self.feature_mean * 0

    # -- parameters ---------------------------------------------------------------------------------------------

    def pack(self, coef: Array, intercept: Array) -> Array:
        """theta from W and b."""
        xp = self.xp
        if not self.fit_intercept:
            return coef
        wide = xp.astype(intercept, xp.float64) + self.center @ xp.astype(coef, xp.float64)
        return xp.concat([coef, xp.astype(wide[None, :], coef.dtype)], axis=0)

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """W and b from theta."""
        xp = self.xp
        if not self.fit_intercept:
            return theta, self.design.zeros((self.n_outputs,))
        W = theta[:-1, :]
        wide = xp.astype(theta[-1, :], xp.float64) - self.center @ xp.astype(W, xp.float64)
        return W, xp.astype(wide, theta.dtype)

    def penalised(self, theta: Array) -> Array:
        """The part of theta that the penalty sees."""
        return theta[:-1, :] if self.fit_intercept else theta

    def constant_model(self) -> Array:
        """theta with W = 0 and the intercept that fits the mean target (0 without intercept)."""
        xp, shape = self.xp, (self.design.n_features, self.n_outputs)
        if not self.fit_intercept:
            return self.design.zeros(shape)
        # Pulled towards the zero model by the weight of one row, so that a class of no weight keeps a finite score.
        share = 1.0 / (1.0 + self.total_weight)
        mean = (1.0 - share) * self.target_mean + share * self._zero_mean
        return self.pack(self.design.zeros(shape), xp.astype(self.link.scores(mean, xp), self.design.dtype))

    # -- value and gradient -------------------------------------------------------------------------------------

    def value_and_gradient(self, theta: Array, *, with_row_weight: bool = False) -> Evaluation:
        """F and ∇F in one pass over blocks of rows; block sums are added in float64."""
        xp, design = self.xp, self.design
        W, b = self.unpack(theta)
        loss = 0.0
        gradient = design.zeros((design.n_features, self.n_outputs), dtype=xp.float64)
        residual_sum = design.zeros((self.n_outputs,), dtype=xp.float64)
        row_weight = np.empty(design.n_rows) if with_row_weight else None
        for rows, block, weight in self.blocks():
            Z = self.link.normalise(self.scores(block, W, b), xp)
            matched = self.targets.dot(rows, Z, xp)
            potential, P = self.link.potential_and_mean(Z, xp)
            losses = potential - matched
            if row_weight is not None:
                trace = self.link.hessian_trace(P, xp)
                row_weight[rows] = to_numpy(trace if weight is None else trace * weight)
            P -= self.targets.dense(rows, P, xp)
            if weight is not None:
                losses = losses * weight
                P *= weight[:, None]
            loss += float(xp.sum(losses, dtype=xp.float64))
            residual_sum += xp.sum(P, axis=0, dtype=xp.float64)
            gradient += block.T @ P
        S = self.total_weight
        gradient /= S
        residual = residual_sum / S
        gradient -= self.center[:, None] * residual[None, :]
        wide = xp.astype(W, xp.float64)
        gradient += self.alpha * wide
        value = loss / S + self.target_conjugate + 0.5 * self.alpha * float(xp.sum(wide * wide))
        if self.fit_intercept:
            gradient = xp.concat([gradient, residual[None, :]], axis=0)
        return Evaluation(value, xp.astype(gradient, theta.dtype), residual, row_weight)

    def blocks(self) -> Iterator[tuple[slice, Array, Array | None]]:
        """(rows, those rows of X, their weights) in order."""
        for rows, block in self.design.blocks(self.design.rows_per_block(self.n_outputs, BLOCK_BYTES)):
            yield rows, block, None if self.sample_weight is None else self.sample_weight[rows]

    def scores(self, block: Array, W: Array, b: Array) -> Array:
        """Z = block W + b, a new array."""
        Z = block @ W
        Z += b
        return Z

    # -- what is known without a pass at theta --------------------------------------------------------------------

    @cached_property
    def feature_mean(self) -> Array:
        """x̄, float64."""
        return self.design.mean(self.sample_weight)

    @cached_property
    def _target_moments(self) -> tuple[Array, Array, float]:
        """Σ s x yᵀ / S, Σ s y / S and Σ s Φ*(y) / S, in float64."""
        xp, design = self.xp, self.design
        like = design.zeros((0,))
        cross = design.zeros((design.n_features, self.n_outputs), dtype=xp.float64)
        mean = design.zeros((self.n_outputs,), dtype=xp.float64)
        conjugate = 0.0
        for rows, block, weight in self.blocks():
            Y = self.targets.dense(rows, like, xp)
            values = self.link.conjugate(Y, xp)
            if weight is not None:
                values = values * weight
                Y = scale_rows(Y, weight)
            conjugate += float(xp.sum(values, dtype=xp.float64))
            mean += xp.sum(Y, axis=0, dtype=xp.float64)
            cross += block.T @ Y
        S = self.total_weight
        return cross / S, mean / S, conjugate / S

    @property
    def target_mean(self) -> Array:
        """ȳ, float64."""
        return self._target_moments[1]

    @property
    def target_conjugate(self) -> float:
        """Mean of Φ*(y): 0 for one-hot targets of softmax, ½ mean ‖y‖² for the identity."""
        return self._target_moments[2]

    @property
    def cross_covariance(self) -> Array:
        """Σ s (x − c) yᵀ / S, less c ȳᵀ: minus the gradient in W at the constant model when c = x̄."""
        return self._target_moments[0] - self.center[:, None] * self.target_mean[None, :]

    @cached_property
    def _zero_mean(self) -> Array:
        """g(0), of shape (n_outputs,), float64."""
        return self.link.mean(self.design.zeros((1, self.n_outputs), dtype=self.xp.float64), self.xp)[0, :]

    @cached_property
    def zero_value(self) -> float:
        """F at W = 0, b = 0: the yardstick of every tolerance."""
        xp = self.xp
        potential, _ = self.link.potential_and_mean(self.design.zeros((1, self.n_outputs), dtype=xp.float64), xp)
        return float(potential[0]) + self.target_conjugate

    @cached_property
    def zero_gradient(self) -> Array:
        """∇F at W = 0, b = 0."""
        xp = self.xp
        residual = self._zero_mean - self.target_mean
        gradient = (self.feature_mean - self.center)[:, None] * self._zero_mean[None, :] - self.cross_covariance
        if self.fit_intercept:
            gradient = xp.concat([gradient, residual[None, :]], axis=0)
        return xp.astype(gradient, self.design.dtype)

    # -- certificate ----------------------------------------------------------------------------------------------

    def duality_gap(self, theta: Array, evaluation: Evaluation) -> float:
        """A bound on F(theta) − min F that needs no further pass; infinite for alpha = 0.

        The dual of F is max D(P) = mean Φ*(y) − mean Φ*(p_i) − ‖G(P)‖²/(2 alpha), G(P) = Σ s_i x_i (p_i − y_i)ᵀ/S,
        over p_i in the domain of the link with Σ s_i (p_i − y_i) = 0 when there is an intercept. At p_i = g(z_i) the
        Fenchel equality turns F − D into ‖∇_W F‖²/(2 alpha) + bᵀ(p̄ − ȳ); where p̄ ≠ ȳ, all p_i are first moved by
        theta towards one point q that mends the mean, and Φ* of the result is bounded by convexity.
        """
        if self.alpha <= 0:
            return float("inf")
        xp = self.xp
        W = xp.astype(self.penalised(theta), xp.float64)
        G = xp.astype(self.penalised(evaluation.gradient), xp.float64) - self.alpha * W
        penalty = 0.5 * self.alpha * float(xp.sum(W * W))
        loss = evaluation.value - penalty - self.target_conjugate
        conjugate = float(xp.sum(G * W)) - loss
        if self.fit_intercept:
            residual = evaluation.mean_residual
            conjugate += float(xp.sum(residual * xp.astype(theta[-1, :], xp.float64)))
            share, q = self.link.domain.blend(self.target_mean + residual, self.target_mean, xp)
            if share > 0:
                towards_q = (self.feature_mean - self.center)[:, None] * q[None, :] - self.cross_covariance
                G = (1.0 - share) * G + share * towards_q
                conjugate = (1.0 - share) * conjugate + share * float(self.link.conjugate(q[None, :], xp)[0])
        gap = loss + penalty + conjugate + float(xp.sum(G * G)) / (2.0 * self.alpha)
        # Less than what rounding adds to the losses of single rows is luck, and certifies nothing.
        rounding = float(xp.finfo(self.design.dtype).eps) * abs(evaluation.value) / self.design.n_rows**0.5
        return max(gap, rounding)


def to_numpy(values: Array) -> np.ndarray:
    """A NumPy copy or view of an array of any namespace."""
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)
