"""Choice of a ridge penalty: cross-validation errors of a whole path of penalties, from one eigendecomposition."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace, device

from manyclass.data.factor import Factor, eigh_in_place
from manyclass.data.rows import BLOCK_BYTES, Array, Rows, square, to_numpy

LEAST, LARGEST, PER_DECADE = 1e-8, 1e3, 2
"""The grid of penalties, relative to the mean squared norm of the centred rows."""
ALIKE = 0.01
"""Relative differences of errors up to this do not count: they are below the noise of a mean over 10 000 rows."""
ROUNDING = 1e-9
"""Relative differences of errors up to this are the rounding of sums over many rows."""

SPAN = 1e-8
"""The smallest penalty of a grid that is not given, relative to the largest."""
SEEN = 1024
"""Rows that are sampled to find the usual size of numbers."""
OUTLYING, SMALL = 100.0, 0.25
"""A mean variance above so many times this quantile of the variances of the columns is due to a few of them; and a mean
squared norm above so many times the median of the rows to a few rows."""
OF_MEDIAN = 128
"""Rows that a median is taken from, at most: enough to find numbers a hundred times as large."""
EXACT, INTERPOLATED = 1000.0, 1e-10
"""The larger of so many times the precision of the rows, and this number. A row counts as interpolated if no more than
that is left of its leverage; penalties below this share of the largest eigenvalue leave residuals that are rounding."""
DOUBLE = float(np.finfo(np.float64).eps)
ROWS_PER_DIRECTION = 4
"""From so many rows per direction on, generalised cross-validation is as good as leave-one-out, and takes no pass."""
SUMS = 256
"""Responses that choose a penalty, at most: of more, random sums are taken."""


def penalties(alphas: Any, variances: Callable[[], Array], usual: Callable[[], float] = lambda: math.inf) -> np.ndarray:
    """The penalties to compare, descending: those given, or a grid if `alphas` is a number.

    The grid begins at the sum of the variances of the columns, which is the mean squared norm of the centred rows:
    there, coefficients are next to 0 in any units of X. It is longer by penalties of the same density if that sum is
    due to a few columns (`OUTLYING`), or far above the `usual` one. Otherwise the units of one column of dates, or of
    one row, would leave no penalty that is right for all others.
    """
    if not isinstance(alphas, int | np.integer):
        try:
            given = np.unique(np.asarray(alphas, dtype=np.float64).ravel())[::-1]
        except (TypeError, ValueError):
            given = np.empty(0)
        if not given.size or not (np.isfinite(given).all() and given[-1] > 0):
            raise ValueError(f"alphas={alphas!r} must be a number of penalties, or positive numbers; use GLMClassifier "
                             "for alpha=0.")  # fmt: skip
        return given
    seen = _not_zero(variances())
    step = SPAN ** (1.0 / max(int(alphas) - 1, 1))
    n_more = math.ceil(math.log(outweighing(seen, usual())) / -math.log(step)) if alphas > 1 else 0
    return np.asarray(seen.sum() * step ** np.arange(int(alphas) + n_more))


def outweighing(variances: Array, usual: float = math.inf) -> float:
    """The factor by which the sum of the variances is too large for most columns, or for `usual`; at least 1."""
    seen = _not_zero(variances)
    return max(float(np.mean(seen) / (OUTLYING * np.quantile(seen, SMALL))), float(seen.sum()) / usual, 1.0)


def usual_scale(seen: Rows) -> float:
    """The largest penalty at which most of the rows in `seen` still have predictions."""
    lengths = to_numpy(seen.map(square).matmat(seen.zeros((seen.n_features, 1)) + 1.0))
    return OUTLYING * float(np.median(lengths)) or math.inf


def _not_zero(variances: Array) -> np.ndarray:
    seen = to_numpy(variances)
    return seen[seen > 0] if (seen > 0).any() else np.ones(1)


@dataclass(frozen=True)
class RidgeSpectrum:
    """Ridge regression in its eigenbasis, where it is diagonal for any penalty.

    With Σ s_i (x_i − c)(x_i − c)ᵀ / S = QΛQᵀ, z_i = Qᵀ(x_i − c) and C = Σ s_i z_i (r_i − r̄)ᵀ / S, the minimum of
    (1/2S) Σ s_i ‖r_i − b − Wᵀx_i‖² + (alpha/2) ‖W‖² predicts r̄ + Cᵀ(Λ + alpha·I)⁻¹z_i, so that one decomposition serves
    every penalty and every output. Without an intercept c and r̄ are 0.

    `eigenvalues` are Λ, `cross` is C, `total_weight` is S, and `vectors` are Q or None; all are float64.
    """

    eigenvalues: Array
    cross: Array
    total_weight: float
    fit_intercept: bool = True
    vectors: Array = None

    @classmethod
    def of(cls, factor: Factor, cross: Array, total_weight: float, fit_intercept: bool, share: float = 1.0) -> Self:
        """From a factor of `share` times the second moments, and `cross` = Σ s_i (x_i − c)(r_i − r̄)ᵀ / S."""
        eigenvalues, vectors = factor.spectrum
        return cls(eigenvalues / share, vectors.T @ cross, total_weight, fit_intercept, vectors)

    def grid(self, precision: float = 0.0, least: float = LEAST) -> np.ndarray:
        """Penalties, descending, down to `least` times the sum of the eigenvalues, or to their relative precision.

        A higher precision only adds smaller penalties.
        """
        scale = float(np.maximum(to_numpy(self.eigenvalues), 0.0).sum())
        most, least = math.log10(LARGEST), math.log10(max(least, precision))
        grid = 10.0 ** (most - np.arange(1 + math.floor(PER_DECADE * (most - least) + 1e-9)) / PER_DECADE)
        return grid * (scale if scale > 0 else 1.0)

    def best_penalty(
        self, precision: float, n: float, squares: Callable[[], Array], errors: Callable[[np.ndarray], np.ndarray]
    ) -> float:
        """The best of the grid, by generalised cross-validation if rows are many, else by leave-one-out `errors`.

        `squares` and n are as in `generalised_cross_validation`.
        """
        alphas = self.grid(precision)
        if n >= ROWS_PER_DIRECTION * int(self.eigenvalues.shape[0]):
            return best(alphas, self.generalised_cross_validation(alphas, squares(), n))
        return best(alphas, errors(alphas))

    def generalised_cross_validation(self, alphas: np.ndarray, squares: Array, n: float) -> np.ndarray:
        """Mean squared residual, divided by the squared share of the degrees of freedom that are left (Golub, Heath and
        Wahba, 1979, eq. 2.3).

        It needs no pass over the rows, and is close to leave-one-out if rows are many times the directions; with fewer
        rows than directions it tends to 0/0 and is of no use.

        `squares` are Σ s_i (r_i − r̄)² / S of each output, and n the number of rows (see `effective_rows`).
        """
        values, cross = np.maximum(to_numpy(self.eigenvalues), 0.0), to_numpy(self.cross)
        seen = values > values.max(initial=0.0) * 1e-15
        values, power = values[seen], cross[seen] ** 2
        outside = np.maximum(to_numpy(squares) - (power / values[:, None]).sum(axis=0), 0.0)
        errors = np.empty((len(alphas), cross.shape[1]))
        for place, alpha in enumerate(alphas):
            shrunk = alpha / (values + alpha)
            left = 1.0 - (np.sum(1.0 - shrunk) + self.fit_intercept) / n
            errors[place] = (outside + (shrunk**2 / values) @ power) / max(left, 1e-12) ** 2
        return errors

    def leave_one_out(
        self,
        alphas: np.ndarray,
        blocks: Iterable[tuple[Array, Array, Array | None]],
        precision: float = DOUBLE,
        whole_rows: bool = False,
    ) -> np.ndarray:
        """Mean squared error of each row under the model fitted to the others, exactly: (r − f)/(1 − u·h).

        h is the leverage of a unit of weight, and u = min(s, 1) is the weight that is left out: a weight above 1 stands
        for copies of the row, one of which is left out. With `whole_rows` u = s. That is right if weights say how much
        a row matters, and for features that are generated from the rows, which would know a row by its copies. The
        penalty of the sum, S·alpha, stays.

        Blocks are (Z, R, s): rows z_i of shape (n_block_rows, n_directions), responses r_i − r̄ and weights (None for
        1). If all rows are interpolated, penalties near the `precision` of the rows are judged as a larger one.
        """
        xp = array_namespace(self.eigenvalues)
        total = np.zeros((len(alphas), int(self.cross.shape[1])))
        for place, error, weight in self.left_out_errors(alphas, blocks, precision, whole_rows):
            square = error * error if weight is None else weight[:, None] * (error * error)
            total[place] += to_numpy(xp.sum(square, axis=0))
        return total / self.total_weight

    def left_out_errors(
        self,
        alphas: np.ndarray,
        blocks: Iterable[tuple[Array, Array, Array | None]],
        precision: float = DOUBLE,
        whole_rows: bool = False,
    ) -> Iterator[tuple[int, Array, Array | None]]:
        """For every block and every penalty: (place in `alphas`, errors, weights); see `leave_one_out`.

        An error is the response of a row less the prediction by the model of all others. Several penalties are one
        product, as far as their models fit into `BLOCK_BYTES`.
        """
        xp, (d, k) = array_namespace(self.eigenvalues), (int(size) for size in self.cross.shape)
        values, S = xp.clip(self.eigenvalues, min=0.0), self.total_weight
        most, rounding = float(xp.max(values)) if d else 0.0, max(EXACT * precision, INTERPOLATED)
        whole = 1.0 / xp.clip(values, min=rounding * most or 1.0)
        for Z, R, weight in blocks:
            u = 1.0 if weight is None else (weight if whole_rows else xp.clip(weight, max=1.0))[:, None]
            squares = Z * Z
            # If all rows are interpolated, errors tend to a limit for small penalties, but computed ones to rounding.
            interpolated = 1.0 - u * (squares @ whole[:, None] + float(self.fit_intercept)) / S <= rounding
            least = rounding * most if bool(xp.all(interpolated)) else 0.0
            step = max(int(BLOCK_BYTES / (8.0 * max(int(Z.shape[0]), d) * max(k, 1))), 1)
            for first in range(0, len(alphas), step):
                some = np.maximum(alphas[first : first + step], least)
                inverse = 1.0 / (values[:, None] + xp.asarray(some, dtype=values.dtype, device=device(values))[None, :])
                leverage = u * (squares @ inverse + float(self.fit_intercept)) / S
                # Too small a number is safer: it makes the error of a nearly interpolated row large.
                left = xp.clip(1.0 - leverage, min=precision)
                fitted = Z @ xp.reshape(inverse[:, :, None] * self.cross[:, None, :], (d, k * len(some)))
                for place in range(len(some)):
                    residual = R - fitted[:, place * k : (place + 1) * k]
                    yield first + place, residual / left[:, place : place + 1], weight

    def coefficients(self, alpha: Array | float) -> Array:
        """(Λ + alpha·I)⁻¹C, for one penalty, or one for each output."""
        xp = array_namespace(self.eigenvalues)
        return self.cross / (xp.clip(self.eigenvalues, min=0.0)[:, None] + alpha)

    def coefficients_without(self, alpha: float, Z: Array, R: Array) -> tuple[Array, Array]:
        """The exact model of all rows but a few: its coefficients, and its intercept less r̄.

        Z and R are the few rows and their responses. With H = Z(Λ + alpha·I)⁻¹Zᵀ/S + 1/S, their errors under the model
        are e = (I − H)⁻¹(r − f), and it differs from the model of all rows by (Λ + alpha·I)⁻¹Zᵀe/S. The penalty of the
        sum, S·alpha, stays as it is.
        """
        xp = array_namespace(self.eigenvalues)
        inverse = 1.0 / (xp.clip(self.eigenvalues, min=0.0) + alpha)
        H = ((Z * inverse) @ Z.T + float(self.fit_intercept)) / self.total_weight
        eye = xp.eye(int(Z.shape[0]), dtype=H.dtype, device=device(H))
        # Keeps I − H away from singular, for as many rows as directions.
        coef = inverse[:, None] * self.cross
        error = xp.linalg.solve((1.0 + 1e-9) * eye - H, R - Z @ coef)
        coef = coef - inverse[:, None] * (Z.T @ error) / self.total_weight
        return coef, -float(self.fit_intercept) * xp.sum(error, axis=0) / self.total_weight


def random_sums(n_outputs: int) -> Array | None:
    """Scaled random signs, of shape (n_outputs, SUMS), that turn many responses R into few, R·signs; None for few.

    Errors are linear in the responses, so the sum of squared errors of R·signs is an unbiased estimate of that of R.
    Every penalty is judged by the same signs.
    """
    if n_outputs <= SUMS:
        return None
    return np.random.default_rng(0).choice([-1.0, 1.0], (n_outputs, SUMS)) / SUMS**0.5


def path_of_rows(
    rows: Rows, R: Array, weight: Array | None = None, *, fit_intercept: bool = True, least: float = LEAST
) -> tuple[np.ndarray, np.ndarray, Callable[[float], Array]]:
    """(alphas, errors, left_out) from the smaller Gram matrix of rows, which may be a few thousand, of any width.

    `alphas` is a grid of penalties. `errors` are their leave-one-out errors, of shape (n_alphas, n_outputs), or of
    `random_sums` of many outputs. `left_out(alpha)` gives the error of each row under the model of all others, of shape
    (n_rows, n_outputs). Responses R and weights are float64.
    """
    xp = rows.xp
    S = float(rows.n_rows) if weight is None else float(xp.sum(weight))
    if fit_intercept:
        rows = rows.shifted(rows.mean(weight))
        R = R - (xp.mean(R, axis=0) if weight is None else weight @ R / S)
    squares, Z = _directions(rows, weight)
    of_weights = R if weight is None else weight[:, None] * R
    spectrum = RidgeSpectrum(squares / S, Z.T @ of_weights / S, S, fit_intercept)
    alphas = spectrum.grid(rows.precision, least)
    judged, judges, signs = spectrum, R, random_sums(int(R.shape[1]))
    if signs is not None:
        wide = rows.asarray(signs, xp.float64)
        judged, judges = replace(spectrum, cross=spectrum.cross @ wide), R @ wide
    errors = judged.leave_one_out(alphas, [(Z, judges, weight)], rows.precision)

    def left_out(alpha: float) -> Array:
        ((_, error, _),) = spectrum.left_out_errors(np.array([alpha]), [(Z, R, weight)], rows.precision)
        return error

    return alphas, errors, left_out


def _directions(rows: Rows, weight: Array | None) -> tuple[Array, Array]:
    """Nonzero eigenvalues of the weighted Gram matrix, ascending, and the rows in the basis of its eigenvectors."""
    xp = rows.xp
    narrow = xp.astype(rows.dense(), xp.float64) if rows.n_features < rows.n_rows else None
    root = xp.astype(rows.weights(None if weight is None else xp.sqrt(weight))[:, None], xp.float64)
    if narrow is None:
        gram = rows.outer() * (root * root[:, 0])
    else:
        weighted = root * narrow
        gram = weighted.T @ weighted
    squares, vectors = eigh_in_place(gram)
    kept = squares > max(float(squares[-1]), 0.0) * rows.n_rows * max(rows.precision**2, 2.2e-16)
    first = int(squares.shape[0]) - int(xp.sum(xp.astype(kept, xp.int64)))  # eigenvalues ascend
    squares, vectors = squares[first:], vectors[:, first:]
    if narrow is not None:
        return squares, narrow @ vectors
    return squares, vectors * xp.sqrt(squares) / xp.where(root > 0, root, xp.ones_like(root))


def best(alphas: np.ndarray, errors: np.ndarray) -> float:
    """The largest penalty whose error, summed over the outputs, is as good as the least, up to `ALIKE`.

    With few rows in many dimensions, errors hardly change below some penalty. The largest of these is the best
    conditioned, and the most likely to be right for more rows. `ALIKE` is a share of the least error, or of its
    distance from the error of the largest penalty, if this is less: with hundreds of classes all errors are close to
    those of predicting the class shares. If all errors are equal, as with constant features, the penalty is the
    largest.
    """
    order = np.argsort(-alphas, kind="stable")
    ranked = errors[order].sum(axis=1)
    least = ranked.min()
    alike = max(ALIKE * min(least, ranked[0] - least), ROUNDING * least)
    return float(alphas[order][np.argmax(ranked <= least + alike)])
