"""Columns as steps: what a linear model needs to follow a column that does not act in proportion to its numbers."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from manyclass.data import Rows
from manyclass.data.readers.dataset import as_csr
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.data.validation import check_rows, check_weights
from manyclass.fit import Parametrised

SAMPLED_ROWS = 1 << 14
"""By which the thresholds are chosen, at most."""
SAMPLED_NUMBERS = 1 << 26
"""That these rows may hold."""


@dataclass(eq=False, repr=False)
class ThermometerEncoder(TransformerMixin, Parametrised):
    """Columns cut at thresholds: z_jt(x) = [x_j > θ_jt], the thermometer code of every column (Buckman, Roy, Raffel and
    Goodfellow, 2018).

    A linear model of these is a step function of each column, f(x) = Σ_j f_j(x_j), and a ridge penalty is on the
    heights of its steps, so that many thresholds do not make it rough: it stays flat where the rows do not speak for a
    step. The squared distance of two codes is the number of thresholds between the rows, so that kernels of distances
    compare ranks, and outliers are as near as any number at the end of their column.

    Parameters
    ----------
    n_bins : int, default=32
        Into which each column is cut. One of fewer values is cut between all of them; else a value that as many rows
        have as a bin should have gets one of its own, and the other rows share the rest evenly (one more where such a
        value parts a bin).
    sparse_output : bool, default=False
        Whether `transform` gives a CSR array: half of the codes are 0, so this is for columns beside sparse ones.
    random_state : int, RandomState or None, default=0
        Chooses 16 384 rows to find thresholds by, where there are more.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_features_out,)
        Of each code, in the units of its column.
    feature_indices_ : ndarray of shape (n_features_out,)
        The column of each code. Columns of one value have none.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        If X holds NaN or infinity, or every column has one value.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from manyclass import GLMClassifier
    >>> from manyclass.features import ThermometerEncoder
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> model = make_pipeline(ThermometerEncoder(), GLMClassifier()).fit(X, y)
    >>> GLMClassifier().fit(X, y).score(X, y) < 0.9 < model.score(X, y)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "sparse_output": ["boolean"],
        "random_state": ["random_state"],
    }

    n_bins: int = 32
    _: KW_ONLY
    sparse_output: bool = False
    random_state: Any = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the thresholds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the same as the row given twice, and rows of weight 0 count for nothing.

        Returns
        -------
        self
        """
        self._validate_params()
        rows, _ = check_rows(self, X, y, reset=True)
        weight = check_weights(rows, None, sample_weight, None)
        index = present_rows(rows.n_rows, weight)
        n_rows = min(SAMPLED_ROWS, max(SAMPLED_NUMBERS // rows.n_features, 1))
        if len(index) > n_rows:
            drawn = check_random_state(self.random_state).choice(index, n_rows, replace=False)
            index = np.sort(drawn)
        values = to_numpy(rows.take(index).dense())
        mass = np.ones(len(index)) if weight is None else to_numpy(weight)[index].astype(np.float64)
        cuts = [_cuts(column, mass, self.n_bins) for column in values.T]
        self.thresholds_ = np.concatenate(cuts)
        self.feature_indices_ = np.repeat(np.arange(len(cuts)), [len(one) for one in cuts])
        if not len(self.thresholds_):
            raise ValueError(f"Columns of X have one value each (n_samples={rows.n_rows}): there is nothing to cut.")
        return self

    @property
    def n_features_out(self) -> int:
        """How many codes `transform` gives."""
        return len(self.thresholds_)

    def generate(self, rows: Rows) -> Array:
        """`transform` for valid rows, in their namespace."""
        xp = rows.xp
        codes = xp.empty((rows.n_rows, self.n_features_out), dtype=xp.uint8, device=rows.device)
        thresholds = rows.asarray(self._thresholds_of(rows))
        for part, block in rows.blocks(rows.rows_per_block(self.n_features_out)):
            codes[part, :] = xp.astype(block.select(self.feature_indices_).dense() > thresholds, xp.uint8)
        return codes

    def _thresholds_of(self, rows: Rows) -> np.ndarray:
        """In the dtype of the rows."""
        return rounded_down(self.thresholds_, to_numpy(rows.asarray(self.thresholds_[:0])).dtype)

    def _sparse(self, rows: Rows) -> Any:
        """`generate` as a CSR array: the codes of a column that are 1 are its first ones."""
        starts = np.flatnonzero(np.diff(self.feature_indices_, prepend=-1))
        cuts = np.split(self._thresholds_of(rows), starts[1:])
        n_ones = np.empty((rows.n_rows, len(starts)), np.int64)
        for part, block in rows.blocks(rows.rows_per_block(len(starts))):
            values = to_numpy(block.select(self.feature_indices_[starts]).dense())
            for column, cut in enumerate(cuts):
                n_ones[part, column] = np.searchsorted(cut, values[:, column])
        ends = np.cumsum(n_ones)
        offsets = np.tile(starts, rows.n_rows) - (ends - n_ones.reshape(-1))
        indices = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(offsets, n_ones.reshape(-1))
        indptr = np.concatenate([[0], np.cumsum(n_ones.sum(axis=1))])
        return as_csr(np.ones(len(indices), np.uint8), indices, indptr, (rows.n_rows, self.n_features_out))

    def transform(self, X: Any) -> Array:
        """The codes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        X_new : array, or CSR array, of shape (n_samples, n_features_out), uint8
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)[0]
        return self._sparse(rows) if self.sparse_output else self.generate(rows)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Such as "age > 30.5", with more digits where nine do not tell thresholds apart."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)[self.feature_indices_]
        for n_digits in (9, 17):
            told = [f"{name} > {cut:.{n_digits}g}" for name, cut in zip(names, self.thresholds_, strict=True)]
            if len({*told}) == len(told):
                break
        return np.asarray(told, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.transformer_tags.preserves_dtype = True, []
        return tags


def rounded_down(thresholds: np.ndarray, dtype: Any) -> np.ndarray:
    """Thresholds in the dtype of the rows, of which the same numbers are beyond them: rounded up, one might be a number
    that was beyond it."""
    with np.errstate(over="ignore"):
        near = thresholds.astype(dtype)
    return np.where(near > thresholds, np.nextafter(near, near.dtype.type(-np.inf)), near)


def _cuts(column: np.ndarray, mass: np.ndarray, n_bins: int) -> np.ndarray:
    """Thresholds between neighbouring values, in the dtype of the column."""
    values, place = np.unique(column, return_inverse=True)
    bins = np.arange(len(values))
    if len(values) > n_bins:
        share = np.bincount(place, mass) * n_bins / mass.sum()
        alone = share >= 1.0
        rest = np.where(alone, 0.0, share)
        n_rest, total = max(n_bins - int(alone.sum()), 1), rest.sum()
        among = np.floor((np.cumsum(rest) - rest / 2.0) * (n_rest / total)).astype(np.int64) if total else 0 * bins
        # A value of its own has a number that no others have.
        bins = np.where(alone, n_rest + bins, np.minimum(among, n_rest - 1))
    below = np.flatnonzero(np.diff(bins))
    low, high = values[below], values[below + 1]
    middle = (0.5 * low.astype(np.float64) + 0.5 * high).astype(column.dtype)
    return np.where(middle < high, middle, low)
