"""A problem of `manyclass.model`, laid out for compiled loops over its dual variables."""

from collections.abc import Generator
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from manyclass.data import ClassTargets
from manyclass.data.penalty import OF_MEDIAN, OUTLYING
from manyclass.data.rows import RowArrays
from manyclass.data.units import MOST, in_other_units
from manyclass.dual.losses import DUAL_LOSSES
from manyclass.model import Problem


class DualTargets(NamedTuple):
    """y of each row and output: one of the two is empty.

    Output j is one class against the rest (its y is 1 or −1), or, for a joint loss, one class; Y holds labels −1 and 1,
    or responses less ``origin``.
    """

    codes: np.ndarray
    Y: np.ndarray

    def part(self, rows: slice | np.ndarray) -> Self:
        return self._replace(**{name: held[rows] for name, held in self._asdict().items() if held.size})


class DualProblem:
    """Rows, targets and shares as the dual of F(W, b) = (1/S) Σ_i s_i φ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖² needs them.

    With an intercept everything is written in the centred rows x_i − c, c being the mean of most, so that an offset of
    the columns changes neither the steps nor their number. It is done inside the scores (see `kernels.beside_product`);
    dense rows are copied once if they are not held row by row, or lie so far from the origin that `Problem` has shifted
    them.

    The problem has alpha > 0, without which no dual point bounds F, and a loss of ``DUAL_LOSSES``. `row_length` is how
    many numbers are stored of a row, `share` is r_i = s_i/S, `n_worth` as many rows of equal weight as these are worth,
    and `origin` is ȳ of responses where there is an intercept, else 0.
    """

    def __init__(self, problem: Problem):
        self.problem, self.alpha, self.fit_intercept = problem, problem.alpha, problem.fit_intercept
        self.n_rows, self.n_features = problem.rows.n_rows, problem.rows.n_features
        self.n_outputs = k = problem.n_outputs
        self.loss = DUAL_LOSSES[problem.loss.name](float(getattr(problem.loss, "epsilon", 0.0)))
        self.rows = problem.rows.arrays() if problem.rows.has_arrays else None
        sample = problem.rows.take(np.arange(min(self.n_rows, 64))).arrays() if self.rows is None else self.rows
        self.row_length = sample.data.size / max(len(sample.indptr) - 1, 1)
        weight = np.ones(self.n_rows) if problem.weight is None else np.asarray(problem.weight, dtype=np.float64)
        self.share = weight / weight.sum()
        self.n_worth = 1.0 / float(self.share @ self.share)
        self.origin = np.zeros(k)
        codes, Y = np.empty(0, np.int64), np.empty((0, k))
        if isinstance(problem.targets, ClassTargets) and k > 1:
            codes = np.asarray(problem.targets.codes, dtype=np.int64)
        else:
            Y = np.ascontiguousarray(problem.targets.dense(slice(0, self.n_rows), Y, problem.xp), dtype=np.float64)
            if self.loss.labels:
                Y = np.where(Y > 0, 1.0, -1.0)
            elif self.fit_intercept:
                self.origin = self.share @ Y
                Y = Y - self.origin
        self.targets = DualTargets(codes, Y)

    def visits(
        self, rng: np.random.Generator | None = None
    ) -> Generator[tuple[slice | np.ndarray, RowArrays], None, None]:
        """Pairs (which rows, those rows): all at once where they are in memory, else as `Rows.visits`."""
        if self.rows is not None:
            yield slice(0, self.n_rows), self.rows
            return
        for part, block in self.problem.rows.visits(rng):
            self.problem.on_block()
            yield part, block.arrays()

    def gather(self, weight: np.ndarray, total: np.ndarray) -> None:
        """total += Σ_i x_i weight_iᵀ."""
        from manyclass.dual.row_kernels import gather, gather_one

        width, as_given = total.shape[1], np.empty(0)
        for part, rows in self.visits():
            if width == 1:
                gather_one(*rows, weight[part, 0], as_given, total[:, 0])
            else:
                gather(*rows, weight[part], as_given, total, np.zeros(width), np.empty(width, dtype=np.uint64))

    @property
    def eliminates_intercept(self) -> bool:
        """Whether b is ȳ for any W of the centred rows, as for the squared loss."""
        return self.fit_intercept and not (self.loss.labels or self.loss.kink) and self.loss.top == np.inf

    @cached_property
    def curvature(self) -> float:
        """Of the loss, about: 1, or for absolute errors, so that the units of the responses do not matter, that of a
        parabola which is as high as they are where the root mean square of y is halved."""
        if self.loss.labels or self.loss.curvature:
            return 1.0
        error = float(np.sum(self.share @ np.maximum(np.abs(self.targets.Y) - self.loss.kink, 0.0)))
        return 4.0 * error / float(self.spread @ self.spread) or 1.0

    @cached_property
    def spread(self) -> np.ndarray:
        """Root mean square of the responses of each output less ``origin``; 1 for labels, and where it is 0."""
        if self.loss.labels:
            return np.ones(self.n_outputs)
        found = np.sqrt(self.share @ self.targets.Y**2)
        return np.where(found > 0.0, found, 1.0)

    @property
    def reach(self) -> np.ndarray:
        """How far predictions of each output can be from a constant at the minimum, in units of its `spread` and root
        mean squares: ‖Σ r_i x_i a_iᵀ‖ · ‖x‖/alpha with |a| ≤ top, and no more of it than at the zero model."""
        most = np.minimum(self.loss.top, self.spread / max(self.loss.curvature, 1e-300))
        return np.asarray(self.mean_square_norm / self.alpha * most / self.spread)

    @property
    def class_share(self) -> np.ndarray:
        """Σ r_i of the rows of each class, of shape (n_outputs,)."""
        return np.bincount(self.targets.codes, self.share, self.n_outputs)

    @cached_property
    def feature_mean(self) -> np.ndarray:
        """x̄ with an intercept, else 0; summed in float64 for rows of float32 too, as the gap is a bound only for x̄."""
        return self._mean(self.share)

    def _mean(self, share: np.ndarray) -> np.ndarray:
        from manyclass.dual.row_kernels import width

        total = np.zeros((self.n_features, width(self.n_outputs)))  # so that no other code is compiled than for W
        if self.fit_intercept:
            self.gather(share[:, None], total)
        return total[:, 0].copy()

    @cached_property
    def usual_share(self) -> np.ndarray:
        """`share` without rows in other units, a few of which would decide where all others are and how large."""
        rows = self.problem.rows
        share: np.ndarray = self.share
        if self.rows is None or not rows.can_be_centred or self.eliminates_intercept:
            return share
        norms = self._about_mean[1]
        candidates = np.flatnonzero(norms > OUTLYING * np.quantile(norms[share > 0], MOST))
        if not len(candidates):
            return share
        wild = candidates[in_other_units(rows.take(candidates), rows.take(self.problem.sample(OF_MEDIAN)))]
        if not len(wild):
            return share
        usual = share.copy()
        usual[wild] = 0.0
        return np.asarray(usual / usual.sum()) if usual.any() else share

    @cached_property
    def center(self) -> np.ndarray:
        """Where the rows are written from: x̄ of those that are in the usual units."""
        return self.feature_mean if self.usual_share is self.share else self._mean(self.usual_share)

    @cached_property
    def row_products(self) -> tuple[np.ndarray, np.ndarray]:
        """x_iᵀc and ‖x_i − c‖² with the `center` c, of shape (n_rows,)."""
        return self._about_mean if self.usual_share is self.share else self.products_in(np.empty(0))

    @cached_property
    def _about_mean(self) -> tuple[np.ndarray, np.ndarray]:
        return self._products(self.feature_mean, np.empty(0))

    def products_in(self, metric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x_iᵀPc and (x_i − c)ᵀP(x_i − c) for P = diag(metric), the identity where `metric` is empty."""
        return self._products(self.center, metric)

    def _products(self, center: np.ndarray, metric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from manyclass.dual.row_kernels import products_and_norms

        mean = center * metric if metric.size else center
        products, norms = np.empty((2, self.n_rows))
        for part, rows in self.visits():
            found = np.empty((2, len(rows.indptr) - 1))
            products_and_norms(*rows, mean, metric, *found)
            products[part], norms[part] = found
        norms += mean @ center - 2.0 * products
        np.maximum(norms, 0.0, out=norms)
        with np.errstate(over="ignore"):
            largest = float(np.max(norms * self.share, initial=0.0)) / self.alpha
        if not np.isfinite(largest):
            raise ValueError(
                f"alpha={self.alpha:g} is too small for rows so long: ‖x‖²/(alpha·n) overflows; scale X or raise alpha."
            )
        return products, norms

    @property
    def mean_square_norm(self) -> float:
        """Σ r_i ‖x_i − c‖² of the rows in the usual units."""
        return float(self.usual_share @ self.row_products[1])
