"""The one problem of the package: its objective, the gradient in one blocked pass, and its duality gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyclass.data import Rows, Targets
from manyclass.data.cells import LARGEST, OVERFLOW
from manyclass.data.columns import about_mean
from manyclass.data.few_columns import add_row
from manyclass.data.pieces import pieces
from manyclass.data.rows import BLOCK_BYTES, Array, present_rows, square
from manyclass.model import sums
from manyclass.model.losses import Loss
from manyclass.model.parameters import Parameters


def nothing(ahead: float = 0.0) -> None:
    """The default of `Problem.on_block`."""


@dataclass(frozen=True)
class Evaluation:
    """The result of one pass over the rows at a point theta."""

    value: float  # F
    of_each: Any  # its summands, less Φ* of the targets: a float, or an ndarray of shape (n_independent,)
    gradient: Array
    mean_residual: Array  # Σ s_i (p_i − y_i) / S in float64: the gradient in the intercept
    row_weight: Any = None  # s_i tr ∇²Φ(z_i), where asked for; of rows in parts what `Problem.map` gives
    scores: Any = None  # z_i of each block of `Problem.blocks`, likewise


class Problem(Parameters):
    """F(W, b) = (1/S) Σ_i s_i ℓ(z_i, y_i) + (alpha/2) ‖W‖²_F with z_i = Wᵀx_i + b and S = Σ_i s_i.

    This is all that any solver of the package knows about the data. The intercept is never penalised. A `SmoothLoss`
    has values, gradients and duality gaps here; other losses are left to the solvers that know them.

    The parameters of a linear model are one array theta: W of shape (n_features, n_outputs) and, below it, a last row
    with the intercept of the centred model z = Wᵀ(x − c) + b'. With c = x̄ the curvatures of W and of b' decouple,
    without a copy of X and without filling sparse rows. `pack` makes theta from W and b of the rows as given,
    `coefficients` the reverse.

    Parameters
    ----------
    rows, targets, loss
        X, Y and ℓ.
    alpha : float
        Penalty, non-negative.
    weight : array of shape (n_rows,), optional
        Non-negative weights s, in the namespace of X; rows of weight 0 are not fitted to.
    fit_intercept : bool

    Attributes
    ----------
    rows : Rows
        The rows given, less `shift` where they lie so far from the origin that products would lose digits.
    shift : array of shape (n_features,), or None
    n_passes : int
        Passes over the rows by `value_and_gradient`, and those that solvers count themselves.
    n_looks : int
        How often solvers have adapted their metric.
    on_block : callable
        Called before each block of rows is read, or with the seconds that a long step is expected to take; may raise
        to end the run.
    share : float
        The share of all rows that this problem has, if it is that of a part of them (see `map`).
    memory_limit : float, optional
        Bytes that a fit may use beside its model.
    """

    loss: Any
    targets: Any
    share: float = 1.0
    n_problems = 1
    """How many problems of these outputs this one is made of, side by side (see `Together`)."""

    def __init__(
        self,
        rows: Rows,
        targets: Targets,
        loss: Loss,
        alpha: float,
        *,
        weight: Array | None = None,
        fit_intercept: bool = True,
    ):
        self.shift = rows.pilot(weight) if fit_intercept else None
        self.rows = rows if self.shift is None else rows.shifted(self.shift)
        self.targets, self.loss, self.alpha, self.weight = targets, loss, float(alpha), weight
        self.xp: Any = rows.xp
        self.fit_intercept = self._centred = fit_intercept
        self.n_outputs = targets.n_outputs
        self.n_passes: float = 0
        self.n_looks = 0
        self.on_block: Callable[..., None] = nothing
        self.memory_limit: float | None = None

    @property
    def centred(self) -> bool:
        """Whether c = x̄ (right for a curvature that couples the features) or 0 (right for a diagonal one)."""
        return self._centred

    @centred.setter
    def centred(self, value: bool) -> None:
        self._centred = value and self.fit_intercept
        vars(self).pop("center", None)

    def variant(self, **changes: Any) -> Problem:
        """The same problem with other rows, targets, weight or shift; cached properties are computed anew."""
        twin = copy(self)
        if changes.get("targets") is not None:
            twin.n_outputs = changes["targets"].n_outputs
        for name in [name for name in vars(twin) if isinstance(getattr(Problem, name, None), cached_property)]:
            delattr(twin, name)
        vars(twin).update(changes)
        return twin

    # -- the rows, wherever they lie ----------------------------------------------------------------------------------

    def map(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(problem, *arguments)``; where the rows lie in parts, called with the problem of each part.

        In that case the results stay with their parts. Passed as an argument to a later call they are handed out part
        by part again, and a random generator becomes one per part; any other argument is the same for all parts.
        Functions must not change what they are given.
        """
        return self.rows.place.map(self, function, *arguments)

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The sum over the parts of what `function` gives: a number, an array, `Moments`, or a tuple of such."""
        return self.rows.place.sum(self, function, *arguments)

    def sum_of_first(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """For a `function` that gives two things: the sum of the first over the parts, and the second left in place."""
        return self.rows.place.sum_of_first(self, function, *arguments)

    def changed(self, function: Callable[..., None], state: Any, *arguments: Any) -> Any:
        """`state`, with one or more numbers for each row, after ``function(problem, state, *arguments)`` changed it.

        Where the rows lie in parts, a copy is changed, as the original may have to be made again.
        """
        return self.rows.place.changed(self, function, state, *arguments)

    @cached_property
    def recipe(self) -> Any:
        """All but the rows, their targets and weights, sent to the parts once."""
        plain = self.variant(rows=self.rows.recipe(), targets=None, weight=None, on_block=nothing)
        return self.rows.place.parts.broadcast(plain)

    def sample(self, n_rows: int, seed: int = 0) -> np.ndarray:
        """Indices of up to so many rows of positive weight; the same seed gives the same ones."""
        present = present_rows(self.rows.n_rows, self.rows.place.gather(self.weight))
        return np.sort(np.random.default_rng(seed).choice(present, min(n_rows, len(present)), replace=False))

    def taken(self, index: np.ndarray) -> Problem:
        """The problem of some of the rows, which are brought here."""
        held = self.rows.place.gather(self.weight)
        weight = None if held is None else self.xp.take(held, self.rows.asarray(index, self.xp.int64), axis=0)
        return self.variant(rows=self.rows.take(index), targets=self.targets.take(index), weight=weight)

    def weights_of(self, inside: Array) -> tuple[Array, Array]:
        """The weights split in two: 0 outside of the mask, and 0 inside."""
        weight = self.rows.weights(self.weight)
        mask = self.rows.asarray(inside)
        return weight * mask, weight * (1.0 - mask)

    @property
    def traffic(self) -> dict[str, Any]:
        """For the record: ``bytes`` that the fit has moved between parts so far, where there are several."""
        return dict(self.rows.place.traffic)

    @cached_property
    def total_weight(self) -> float:
        """S."""
        return float(self.rows.n_rows) if self.weight is None else self.sum(sums.weight_sum)

    @property
    def n_present(self) -> float:
        """Rows of positive weight."""
        return float(self.rows.n_rows) if self.weight is None else self.sum(sums.present_sum)

    @property
    def n_counted(self) -> float:
        """S, or the number of rows of positive weight if that is more: weights above 1 count as copies."""
        return max(self.total_weight, self.n_present)

    def effective_rows(self, weight: Any, whole_rows: bool = False) -> float:
        """How many rows of equal weight are worth as much as rows of these weights: S²/Σ s_i min(s_i, 1).

        A weight above 1 counts as so many copies. With weights up to 1, or `whole_rows`, this is Kish's effective
        sample size.
        """
        if weight is None:
            return float(self.rows.n_rows)
        total, copies = self.sum(sums.weight_and_copies, weight, whole_rows)
        return float(total**2 / max(copies, 1e-300))

    @cached_property
    def center(self) -> Array:
        """c, float64."""
        xp = self.xp
        if self.centred:
            return self.feature_mean
        return self.rows.zeros((self.rows.n_features,), dtype=xp.float64)

    def constant_model(self) -> Array:
        """theta with W = 0 and the intercept that fits the mean target (0 without intercept)."""
        xp, shape = self.xp, (self.rows.n_features, self.n_outputs)
        if not self.fit_intercept:
            return self.rows.zeros(shape)
        # Pulled towards the zero model by the weight of one row, so that labels that all or no rows have are finite.
        share = 1.0 / (1.0 + self.total_weight)
        mean = (1.0 - share) * self.target_mean + share * self._zero_mean
        if self.loss.domain.exclusive:
            # The infimum has nothing of a class without weight; with a little there is no dual point but the targets.
            mean = xp.where(self.target_mean > 0, mean, xp.zeros_like(mean))
        scores = xp.astype(self.loss.scores(mean, xp), self.rows.dtype)
        return xp.concat([self.rows.zeros(shape), scores[None, :]], axis=0)

    # -- value and gradient -----------------------------------------------------------------------------------------

    def value_and_gradient(
        self, theta: Array, *, with_row_weight: bool = False, with_scores: bool = False
    ) -> Evaluation:
        """F and ∇F in one pass over blocks of rows; block sums are added in float64."""
        xp = self.xp
        self.n_passes += 1
        (W, b), row_weight, scores = self.unpack(theta), None, None
        if with_row_weight:
            (total, gradient, residual), row_weight = self.sum_of_first(sums.gradient_sums_and_row_weight, W, b)
        elif with_scores:
            (total, gradient, residual), scores = self.sum_of_first(sums.gradient_sums_and_scores, W, b)
        else:
            total, gradient, residual = self.sum(sums.gradient_sums, W, b)
        S, alpha = self.total_weight, self.alpha_of_each
        of_columns = alpha if np.ndim(alpha) == 0 else self.spread(alpha, xp.float64)
        residual = self._unshifting(residual[None, :] / S)[0, :]
        found, square = xp.empty_like(theta), 0.0
        for part in pieces(self.rows, W):
            piece, wide = gradient[part, :], xp.astype(W[part, :], xp.float64)
            piece /= S
            if self.centred:
                piece -= self.times_center(residual, part)
            piece = self.varying(self._unshifting(piece), part)
            piece += of_columns * wide
            found[part, :] = xp.astype(piece, theta.dtype)
            square += self.inner_of_each(wide, wide)
        if self.fit_intercept:
            found[-1, :] = xp.astype(residual, theta.dtype)
        of_each = total / S + 0.5 * alpha * square
        value = float(of_each if self.n_independent == 1 else np.sum(of_each)) + self.target_conjugate
        return Evaluation(value, of_each, found, residual, row_weight, scores)

    def _unshifting(self, gradient: Array) -> Array:
        """Without the part along a common shift of all classes, which is rounding where rows have one class each.

        The penalty alone curves F there, and a metric that knows it takes steps of 1/alpha times that rounding.
        """
        if self.loss.domain.exclusive:
            k = self.n_outputs // self.n_problems
            average = self.rows.zeros((k,), dtype=gradient.dtype) + 1.0 / k
            of_each = self.xp.reshape(gradient, (-1, self.n_problems, k))
            of_each = of_each - (of_each @ average)[:, :, None]
            gradient = self.xp.reshape(of_each, gradient.shape)
        return gradient

    def times_center(self, of_outputs: Array, part: slice) -> Array:
        """c vᵀ for some of the features."""
        return self.center[part, None] * of_outputs[None, :]

    def varying(self, of_columns: Array, part: slice = slice(None)) -> Array:
        """0 for constant columns: centred they are, and what rounding leaves of them is as large as their mean."""
        varies = self.varies
        return of_columns if varies is None else of_columns * self.xp.astype(varies[:-1][part, None], of_columns.dtype)

    @property
    def varies(self) -> Array | None:
        """Which columns vary, and that the intercept does; None for all, and where they are not centred."""
        return self._varies if self.centred else None

    @cached_property
    def _varies(self) -> Array | None:
        varies = self.feature_variance > 0
        return None if bool(self.xp.all(varies)) else self.xp.concat([varies, self.xp.ones_like(varies[:1])])

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[slice, Rows, Array | None]]:
        """(which rows, those rows, their weights) in order."""
        for part, block in self.rows.blocks(self.rows.rows_per_block(self.n_outputs, block_bytes)):
            self.on_block()
            yield part, block, None if self.weight is None else self.weight[part, ...]

    def scores(self, block: Rows, W: Array, b: Array) -> Array:
        """Z = block W + b, a new array."""
        Z = block.matmat(W)
        add_row(Z, b)
        return Z

    # -- what is known without a pass at theta ------------------------------------------------------------------------

    @cached_property
    def feature_mean(self) -> Array:
        """x̄ of `rows`, float64."""
        total, mass = self.sum(sums.column_sums, None)
        return total / mass

    @cached_property
    def feature_mean_square(self) -> Array:
        """The mean of the squares in each column of `rows`, float64."""
        total, mass = self.sum(sums.column_sums, square)
        found, most = total / mass, LARGEST[self.rows.itemsize]
        if not bool(self.xp.all(found <= most * most)):
            raise ValueError(OVERFLOW)
        return found

    @cached_property
    def feature_variance(self) -> Array:
        """Of each column of `rows`, float64: about x̄, or about 0 without an intercept; 0 where that is rounding."""
        square = self.feature_mean_square
        return about_mean(self.feature_mean, square, self.rows) if self.fit_intercept else square

    @cached_property
    def _target_moments(self) -> tuple[Array, Array, float]:
        """Σ s x yᵀ / S, Σ s y / S and Σ s Φ*(y) / S, in float64."""
        cross, mean, conjugate = self.sum(sums.target_sums)
        S = self.total_weight
        return cross / S, mean / S, conjugate / S

    @cached_property
    def target_products(self) -> tuple[float, Array, np.ndarray]:
        """‖x̄‖², x̄ᵀ Σ s x yᵀ / S, and ‖Σ s x yᵀ / S‖² of each of the independent problems."""
        mean, cross = self.varying(self.feature_mean[:, None])[:, 0], self.varying(self.target_product)
        return self.inner(mean, mean), mean @ cross, self.inner_of_each(cross, cross)

    @property
    def target_mean(self) -> Array:
        """ȳ, float64."""
        return self._target_moments[1]

    @property
    def target_product(self) -> Array:
        """Σ s x yᵀ / S, float64."""
        return self._target_moments[0]

    @property
    def target_conjugate(self) -> float:
        """Mean of Φ*(y): 0 for one-hot targets of softmax, ½ mean ‖y‖² for the squared loss."""
        return self._target_moments[2]

    @property
    def cross_covariance(self) -> Array:
        """Σ s (x − c) yᵀ / S: minus the gradient in W at the constant model when c = x̄."""
        return self.varying(self.target_product - self.center[:, None] * self.target_mean[None, :])

    @cached_property
    def _zero_mean(self) -> Array:
        """g(0), of shape (n_outputs,), float64."""
        return self.loss.mean(self.rows.zeros((1, self.n_outputs), dtype=self.xp.float64), self.xp)[0, :]

    @cached_property
    def zero_value(self) -> float:
        """F at W = 0, b = 0: the yardstick of every tolerance."""
        xp = self.xp
        potential, _ = self.loss.potential_and_mean(self.rows.zeros((1, self.n_outputs), dtype=xp.float64), xp)
        return float(potential[0]) + self.target_conjugate

    @property
    def zero_values(self) -> Any:
        """The same of each of the problems side by side."""
        return self.zero_value

    @cached_property
    def zero_gradient(self) -> Array:
        """∇F at W = 0, b = 0, float64."""
        xp = self.xp
        residual = self._zero_mean - self.target_mean
        gradient = (self.feature_mean - self.center)[:, None] * self._zero_mean[None, :] - self.cross_covariance
        if self.fit_intercept:
            gradient = xp.concat([gradient, residual[None, :]], axis=0)
        return gradient
