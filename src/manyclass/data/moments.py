"""Second-order statistics of (X, Y) that can be added, merged and subtracted, and the least squares they solve."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from manyclass.data.factor import Factor, is_positive
from manyclass.data.readers.dataset import DataFileError
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, Rows
from manyclass.data.targets import MatrixTargets, Targets
from manyclass.data.tensors import is_number, load_tensors, save_tensors
from manyclass.execution import engine_of


@dataclass(eq=False)
class Moments:
    """Weighted sums over rows that least squares needs, in float64, around a point c near the rows.

    For rows x_i with targets y_i and weights s_i, and pilots c and p (zero where the rows lie near the origin)::

        n      number of rows, of weight above 0
        weight Σ s_i
        xx     Σ s_i (x_i − c)(x_i − c)ᵀ   (n_features, n_features)
        xy     Σ s_i (x_i − c)(y_i − p)ᵀ   (n_features, n_outputs)
        x      Σ s_i (x_i − c)             (n_features,)
        y      Σ s_i (y_i − p)             (n_outputs,)
        yy     Σ s_i ‖y_i − p‖²
        peak   the largest trace of xx, and weight, before rows were taken out: their rounding stays

    Moments form a group: `partial_fit` adds rows, `forget` takes rows out again, and the moments of two disjoint sets
    of rows `merge` to the moments of their union, whatever the pilots of each. float32 rows are multiplied in float32
    and summed over blocks in float64; because they are centred first, a mean far from the origin costs no digits.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass import Moments
    >>> X, Y = np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [6.0]])
    >>> moments = Moments.zeros(1, 1).partial_fit(X, Y)
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
    pilot: Array
    target_pilot: Array
    peak: tuple[float, float] = field(default=(0.0, 0.0), compare=False)

    @classmethod
    def zeros(cls, n_features: int, n_outputs: int, *, like: Array | None = None) -> Moments:
        """The moments of no rows, in the namespace and on the device of `like` (default NumPy)."""
        from manyclass.data import as_rows

        rows = as_rows(np.empty((0, n_features)) if like is None else like)

        def zeros(*shape: int) -> Array:
            return rows.zeros(shape, dtype=rows.xp.float64)

        d, k = n_features, n_outputs
        return cls(0, 0.0, zeros(d, d), zeros(d, k), zeros(d), zeros(k), 0.0, zeros(d), zeros(k))

    @classmethod
    def of(
        cls, rows: Rows, targets: Targets | None = None, weight: Array | None = None, *, constant: bool = False
    ) -> Moments:
        """The moments of all rows, in one pass over blocks; without `targets` those of the features alone.

        Columns that are `constant` in these rows may vary in those to come.
        """
        xp, wide = rows.xp, rows.zeros((0,), dtype=rows.xp.float64)
        targets = MatrixTargets(rows.zeros((rows.n_rows, 0))) if targets is None else targets
        like = rows.zeros((0,)) if targets.exclusive else wide  # responses may lie far from the origin
        some = slice(0, min(rows.n_rows, 4096))
        head = targets.dense(some, wide, xp) * (1.0 if weight is None else (weight[some] > 0)[:, None])
        target_pilot = xp.mean(head, axis=0) if rows.n_rows else None
        sums = MomentSums(rows, targets.n_outputs, rows.pilot(weight, constant=constant), target_pilot)
        for part, block in rows.blocks(rows.rows_per_block(targets.n_outputs, GRAM_BLOCK_BYTES)):
            sums.add(block, None if weight is None else weight[part], targets.dense(part, like, xp))
        return sums.result()

    def partial_fit(self, X: Any, Y: Array, sample_weight: Array | None = None) -> Moments:
        """Add rows, in place.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features), Rows, or a Dask collection
        Y : array of shape (n_rows, n_outputs) or (n_rows,)
        sample_weight : array of shape (n_rows,), default all 1

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the shapes do not fit each other or the rows added before, a weight is negative, or there is NaN.
        """
        return self._become(self.merge(self._of_new(X, Y, sample_weight)[0]))

    def forget(self, X: Any, Y: Array, sample_weight: Array | None = None) -> Moments:
        """Take out rows that were added before, in place; parameters as in `partial_fit`.

        The result equals the moments of the remaining rows up to rounding, so leave-out fits, unlearning and
        cross-validation need no second pass over what stays.

        Raises
        ------
        ValueError
            As in `partial_fit`, and if rows cannot have been there: less than no row, a negative weight or an
            indefinite covariance would be left. The moments stay as they were.
        """
        taken, precision = self._of_new(X, Y, sample_weight)
        left = self.without(taken)
        left.check_left_of(self, precision)
        return self._become(left)

    def _become(self, other: Moments) -> Moments:
        vars(self).update(vars(other))
        return self

    def _of_new(self, X: Any, Y: Any, sample_weight: Any) -> tuple[Moments, float]:
        """The moments of rows that go with these, and the relative precision of their products."""
        engine = engine_of(X)
        if engine is None:
            rows, targets, weight = self._checked(X, Y, sample_weight)
            return Moments.of(rows, targets, weight, constant=True)._finite(), rows.precision
        from manyclass.data.parted import moments_of_parts

        new, precision = moments_of_parts(engine, X, Y, sample_weight)
        if new.xy.shape != self.xy.shape:
            raise ValueError(
                f"Partitions of {new.xy.shape[0]} features and {new.xy.shape[1]} outputs do not fit moments of "
                f"{self.xy.shape[0]} features and {self.xy.shape[1]} outputs."
            )
        return new, precision

    def merge(self, other: Moments) -> Moments:
        """The moments of the union of two disjoint sets of rows, as a new object."""
        if self.xy.shape != other.xy.shape:
            raise ValueError(
                f"Moments of {self.xy.shape[0]} features and {self.xy.shape[1]} outputs cannot be merged with those of "
                f"{other.xy.shape[0]} features and {other.xy.shape[1]} outputs; use the same columns in both."
            )
        if not self.n:
            return other.around(other.pilot, other.target_pilot)
        return self._combined(other, +1)

    __add__ = merge

    def without(self, other: Moments) -> Moments:
        """The moments of the rows that are left when those of `other`, which are among them, are taken out."""
        return self._combined(other, -1)

    def _combined(self, other: Moments, sign: int) -> Moments:
        moved = other.around(self.pilot, self.target_pilot)
        sums = {name: getattr(self, name) + sign * getattr(moved, name) for name in _SUMS}
        (trace, weight), (theirs, heavy) = self._reached, moved._reached
        return replace(self, **sums, peak=(max(trace, theirs), max(weight, heavy)))

    @property
    def _reached(self) -> tuple[float, float]:
        trace = float(array_namespace(self.xx).linalg.trace(self.xx))
        return max(self.peak[0], trace), max(self.peak[1], self.weight)

    def _finite(self) -> Moments:
        """These, or an error where there is NaN in them, which nothing could ever take out again."""
        xp = array_namespace(self.xx)
        if not bool(xp.isfinite(xp.sum(self.xx) + xp.sum(self.xy) + self.yy)):
            raise ValueError("Rows, targets or weights hold NaN or infinity; fill them in, or drop those rows.")
        return self

    def check_left_of(self, before: Moments, precision: float) -> None:
        """Refuse what cannot be left of `before` without rows whose products have this relative precision."""
        xp, (trace, weight) = array_namespace(self.xx), before._reached
        slack = ROUNDING * precision * trace
        possible = self.n >= 0 and self.weight >= -EMPTY * before.weight
        if possible and self.weight > EMPTY * before.weight and self.n:
            possible = is_positive(self.xx - self.x[:, None] * (self.x / self.weight)[None, :], slack)
        elif possible:
            first = ROUNDING * precision * (trace * weight) ** 0.5
            possible = self.weight <= EMPTY * before.weight and float(xp.max(abs(self.xx))) <= slack
            possible = possible and float(xp.max(abs(self.x))) <= first
        if not possible:
            raise ValueError(f"These rows, with these weights, were never all there. {AS_ADDED}")

    def around(self, pilot: Array, target_pilot: Array) -> Moments:
        """The same moments with other pilots, as a new object: M' = M + δmᵀ + mδᵀ + wδδᵀ with δ = c − c'."""
        xp = array_namespace(self.xx)
        step, lift = self.pilot - pilot, self.target_pilot - target_pilot
        x, y = self.x + self.weight * step, self.y + self.weight * lift
        xx = self.xx + step[:, None] * self.x[None, :] + x[:, None] * step[None, :]
        xy = self.xy + step[:, None] * self.y[None, :] + x[:, None] * lift[None, :]
        yy = self.yy + float(xp.sum(lift * (self.y + y)))
        return replace(self, xx=xx, xy=xy, x=x, y=y, yy=yy, pilot=pilot + 0.0, target_pilot=target_pilot + 0.0)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, whole or not at all; one of that name is replaced."""
        arrays, about = self.parts()
        save_tensors(path, "moments", arrays, about)

    @classmethod
    def load(cls, path: str | Path) -> Moments:
        """Read what `save` wrote, into NumPy arrays; nothing in the file is executed.

        Raises
        ------
        DataFileError
            If the file is no such file, was written by a newer version, or is damaged.
        """
        arrays, about = load_tensors(path, "moments")
        return cls.from_parts(path, arrays, about)

    def parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays, and numbers."""
        numbers = {"n": self.n, "weight": self.weight, "yy": self.yy, "peak": list(self.peak)}
        return {name: getattr(self, name) for name in _ARRAYS}, numbers

    @classmethod
    def from_parts(cls, path: str | Path, arrays: dict[str, Any], about: dict[str, Any]) -> Moments:
        """From what `parts` gave, where that fits; else a DataFileError names `path`, where it was read."""
        try:
            found = cls(**{name: arrays[name] for name in _ARRAYS}, **{name: about[name] for name in _NUMBERS})
            trace, weight = about.get("peak", found.peak)  # files of 0.1 have none
            found.peak, (d, k) = (trace, weight), found.xy.shape
            shapes = ((d, d), (d, k), (d,), (k,), (d,), (k,))
            fits = [arrays[name].shape for name in _ARRAYS] == list(shapes)
            fits = fits and all(np.isfinite(arrays[name]).all() and arrays[name].dtype == float for name in _ARRAYS)
            fits = fits and all(map(is_number, (*(about[name] for name in _NUMBERS), trace, weight)))
            fits = fits and isinstance(found.n, int) and found.n >= 0
        except (KeyError, TypeError, ValueError):
            fits = False
        if not fits:
            raise DataFileError(f"{path} holds arrays that do not make moments: write it again")
        return found

    def _checked(self, X: Any, Y: Array, sample_weight: Array | None) -> tuple[Rows, Targets, Array | None]:
        from manyclass.data import as_rows

        rows, xp = as_rows(X), array_namespace(self.xx)
        Y, sample_weight = (
            given if given is None or is_array_api_obj(given) else np.asarray(given)
            for given in (Y.toarray() if hasattr(Y, "toarray") else Y, sample_weight)
        )
        Y = Y[:, None] if Y.ndim == 1 else Y
        d, k = map(int, self.xy.shape)
        if rows.n_features != d or Y.shape[1] != k or rows.n_rows != Y.shape[0]:
            raise ValueError(
                f"X of shape {(rows.n_rows, rows.n_features)} and Y of shape {tuple(Y.shape)} do not fit moments of "
                f"{d} features and {k} outputs."
            )
        if sample_weight is not None:
            sample_weight = xp.astype(sample_weight, rows.dtype, copy=False)
            if sample_weight.shape != (rows.n_rows,) or not bool(xp.all(sample_weight >= 0)):
                raise ValueError("Sample weights must be one non-negative number per row; to take rows out use forget.")
        return rows, MatrixTargets(Y), sample_weight

    @property
    def mean(self) -> Array:
        """Weighted mean row x̄, of shape (n_features,)."""
        return self.pilot + self.x / self.weight

    @property
    def target_mean(self) -> Array:
        """Weighted mean target ȳ, of shape (n_outputs,)."""
        return self.target_pilot + self.y / self.weight

    @property
    def covariance(self) -> Array:
        """Σ s_i (x_i − x̄)(x_i − x̄)ᵀ / Σ s_i."""
        first = self.x / self.weight
        covariance = self.xx / self.weight
        covariance -= first[:, None] * first[None, :]
        return covariance

    @property
    def second_moment(self) -> Array:
        """Σ̂ = Σ s_i x_i x_iᵀ / Σ s_i."""
        mean = self.mean
        return self.covariance + mean[:, None] * mean[None, :]

    @property
    def cross_covariance(self) -> Array:
        """Σ s_i (x_i − x̄)(y_i − ȳ)ᵀ / Σ s_i."""
        return self.xy / self.weight - (self.x / self.weight)[:, None] * (self.y / self.weight)[None, :]

    def factor(self, *, fit_intercept: bool = True, precision: float | None = None) -> Factor:
        """The decomposition that serves every penalty: of the covariance, or of Σ̂ without an intercept."""
        return Factor(self.covariance if fit_intercept else self.second_moment, precision)

    def solve(self, alpha: float, *, fit_intercept: bool = True, factor: Factor | None = None) -> tuple[Array, Array]:
        """Ridge regression of Y on X: argmin (1/2S) Σ s_i ‖y_i − Wᵀx_i − b‖² + (alpha/2) ‖W‖², S = Σ s_i.

        Parameters
        ----------
        alpha : float
            Penalty per unit of weight (scikit-learn's ``Ridge(alpha=alpha * S)``); 0 gives least squares, of
            minimum norm when the columns are dependent.
        fit_intercept : bool
            Whether b is fitted (never penalised) or 0.
        factor : Factor, optional
            What `factor` gave, where several penalties are solved for.

        Returns
        -------
        coef : array of shape (n_features, n_outputs)
        intercept : array of shape (n_outputs,)

        Raises
        ------
        ValueError
            If the moments hold no weight, or alpha is negative.
        """
        if not self.weight > 0:
            raise ValueError("Moments hold no rows; add rows with partial_fit before solving.")
        if not alpha >= 0:
            raise ValueError(f"alpha={alpha!r} must not be negative; give 0 for least squares.")
        factor = self.factor(fit_intercept=fit_intercept) if factor is None else factor
        coef = factor.solve(self.cross(fit_intercept=fit_intercept), alpha)
        return coef, self.target_mean - self.mean @ coef if fit_intercept else self.y * 0

    def cross(self, *, fit_intercept: bool = True) -> Array:
        """The right-hand side of the normal equations: the cross-covariance, or Σ s_i x_i y_iᵀ / S."""
        if fit_intercept:
            return self.cross_covariance
        return self.cross_covariance + self.mean[:, None] * self.target_mean[None, :]

    def ridge_objective(self, coef: Array, *, fit_intercept: bool = True) -> float:
        """The minimum of the objective of `solve`, from where it is: ½(mean ‖y‖² − tr WᵀC), with C the `cross`."""
        xp = array_namespace(self.xx)
        first = self.y / self.weight
        square = self.yy / self.weight - float(xp.sum(first * first))
        if not fit_intercept:
            square += float(xp.sum(self.target_mean**2))
        return 0.5 * (square - float(xp.sum(coef * self.cross(fit_intercept=fit_intercept))))


AS_ADDED = "Less than nothing would be left: forget rows as they were added."
EMPTY = 1e-9
"""Share of the weight that is none: what rounding leaves of rows that are all taken out."""
ROUNDING = 32.0
"""Units in the last place of the trace that products of other blocks may be apart."""
_SUMS = ("n", "weight", "xx", "xy", "x", "y", "yy")
_ARRAYS, _NUMBERS = ("xx", "xy", "x", "y", "pilot", "target_pilot"), ("n", "weight", "yy")


class MomentSums:
    """`Moments` of rows that come block by block: one buffer for the Gram matrices of all blocks.

    Blocks have the kind, namespace, dtype and width of `like`; n_outputs is 0 for the moments of the features alone;
    the pilots are points near the rows and the targets, float64, zero by default.
    """

    def __init__(self, like: Rows, n_outputs: int = 0, pilot: Array | None = None, target_pilot: Array | None = None):
        xp, d = like.xp, like.n_features
        wide = {"dtype": xp.float64}
        self.xp, self.weight, self.yy = xp, 0.0, 0.0
        self.n: Any = 0
        self.gram = like.gram_sum()
        self.first = like.zeros((d, 1 + n_outputs), **wide)
        self.y = like.zeros((n_outputs,), **wide)
        self.pilot = like.zeros((d,), **wide) if pilot is None else pilot
        self.target_pilot = like.zeros((n_outputs,), **wide) if target_pilot is None else target_pilot
        self.is_shifted = bool(xp.any(self.pilot != 0))

    def add(self, block: Rows, weight: Array | None = None, Y: Array | None = None) -> None:
        """Add a block of rows with weights and targets, of shape (n_rows, n_outputs)."""
        xp = self.xp
        if self.is_shifted:
            block = block.shifted(self.pilot).part(slice(0, block.n_rows))  # once for both products
        block = block.for_moments()
        self.gram.add(block, weight)
        first = block.weights(weight)[:, None]
        self.n = self.n + (block.n_rows if weight is None else xp.sum(xp.astype(weight > 0, xp.int64)))
        self.weight = self.weight + xp.sum(first, dtype=xp.float64)
        if Y is not None and int(Y.shape[1]):
            Y = xp.astype(Y - xp.astype(self.target_pilot, Y.dtype, copy=False), first.dtype, copy=False)
            weighted = Y if weight is None else first * Y
            self.y += xp.sum(weighted, axis=0, dtype=xp.float64)
            self.yy = self.yy + xp.sum(weighted * Y, dtype=xp.float64)
            first = xp.concat([first, weighted], axis=1)  # one product for both: X is read once
        block.rmatmat(first, self.first)

    def result(self) -> Moments:
        """The moments of all rows added; nothing can be added after it."""
        pilots = (self.pilot, self.target_pilot)
        xx, x, xy = self.gram.result(), self.first[:, 0], self.first[:, 1:]
        return Moments(int(self.n), float(self.weight), xx, xy, x, self.y, float(self.yy), *pilots)
