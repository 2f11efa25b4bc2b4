"""What a generator of features is: a transformer that can draw new features again and again."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Rows, as_rows
from manyclass.data.columns import FAR_FROM_ORIGIN
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.data.validation import check_rows, check_weights
from manyclass.fit import Parametrised

BANDWIDTH: list[Any] = [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")]
"""What the bandwidth of a kernel may be."""

DISTANCE_ROWS = 1024
"""Rows whose pairwise distances decide the bandwidth: half a million pairs."""
FAR_OFF = 1e5
"""Rows so many times as far away as half of them do not count: beside them, distances of the others are rounding."""
SAMPLED_ENTRIES, LEAST_SAMPLED_ENTRIES = 1 << 23, 1 << 18
"""Numbers in a sample of rows, at most and at least."""
SCALE_ROWS = 256
"""Rows on which the norm of features is measured."""
FIRST_ROWS = 8
"""Rows whose features are checked to be finite."""


class FeatureGenerator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Parametrised, ABC):
    """A scikit-learn transformer to new features, of which more can be drawn.

    ``fit`` learns what all features share (a bandwidth, a whitening, ...) and draws the first ``n_components``.
    ``draw(n_components, rng)`` then returns further fitted transformers that share what was learned. They are ordinary
    transformers with parameters of their own, so what they compute does not depend on a random state again.

    A new generator is one file with a subclass that defines `_draw`, `_generate` and, if there is something, `_learn`.

    Attributes
    ----------
    takes_sparse : bool
        Whether rows may be sparse.
    is_scaled : bool
        Whether `_generate` multiplies by ``_scale``, which gives training rows the mean squared norm 1, whatever the
        size of the block.
    moves_origin : bool
        Whether rows far from the origin are shifted towards it before anything is computed from them, so that products
        keep their digits. Learned parameters are then those of the shifted rows.
    first_counts : bool
        Whether the features that ``fit`` draws influence those drawn later.

    Examples
    --------
    >>> import numpy
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.features import RandomFourierFeatures
    >>> X, _ = load_digits(return_X_y=True)
    >>> first = RandomFourierFeatures(100, random_state=0).fit(X)
    >>> more = first.draw(50, numpy.random.default_rng(0))
    >>> first.transform(X).shape, more.transform(X).shape
    ((1797, 100), (1797, 50))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    takes_sparse: ClassVar[bool] = True
    is_scaled: ClassVar[bool] = False
    moves_origin: ClassVar[bool] = True
    first_counts: ClassVar[bool] = True

    n_components: int
    _level: float = 1.0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what all features share, and draw ``n_components`` of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Only used where the class says so.
        sample_weight : array-like of shape (n_samples,), default=None
            Rows of weight 0 count for nothing. In what is measured (a bandwidth, a mean, which columns come first) a
            weight of 2 is the same as the row given twice; landmarks, patches and the rows that set the scale are
            drawn from all rows of positive weight with equal probability.

        Returns
        -------
        self
        """
        self._validate_params()
        rows, y = check_rows(self, X, y, reset=True)
        if not (self.takes_sparse or rows.can_be_centred):
            raise TypeError(f"{type(self).__name__} needs dense rows, but X is sparse; use X.toarray().")
        weight = check_weights(rows, None, sample_weight, None)
        rng = np.random.default_rng(check_random_state(getattr(self, "random_state", None)).randint(2**31))
        # With the same limit for every precision, as another origin would make other features of the same draws.
        pilot = rows.pilot(weight, FAR_FROM_ORIGIN[4], lasting=True) if self.moves_origin else None
        self._origin = None if pilot is None else to_numpy(pilot)
        self._learn(self._near(rows), y, weight, rng)
        self._draw(self.n_components, rows.dtype, rng)
        if self.is_scaled:
            self._measure(rows, weight, rng)
        first = present_rows(rows.n_rows, weight)[:FIRST_ROWS]
        if not np.isfinite(to_numpy(self.generate(rows.take(first)))).all():
            raise ValueError(
                f"Features of X are beyond {self._dtype}, as its numbers are very large or small; scale its columns."
            )
        return self

    def draw(self, n_components: int, rng: np.random.Generator) -> Self:
        """A fitted transformer with `n_components` new features that shares what `fit` learned."""
        check_is_fitted(self)
        drawn = copy(self)
        drawn.n_components = n_components
        drawn._draw(n_components, self._dtype, rng)
        return drawn

    @property
    def redraws(self) -> bool:
        """Whether a stagewise fit should draw all blocks anew whenever it visits them (see `begin_visit`)."""
        return False

    @property
    def capacity(self) -> int | None:
        """How many features there are in all; None if there is no limit."""
        return None

    @property
    def columns(self) -> np.ndarray | None:
        """Which of the `capacity` features a drawn transformer gives; None if these are never drawn again."""
        return None

    @property
    def n_features_out(self) -> int:
        """How many features `transform` gives."""
        return self._n_features_out

    def begin_visit(self, gradient: Callable[[], Array], rng: np.random.Generator) -> None:
        """Called before each visit of all blocks of a stagewise fit.

        Parameters
        ----------
        gradient : callable
            Computes Σ s_i x_i r_iᵀ with the present residuals.
        """

    def generate(self, rows: Rows) -> Array:
        """`transform` for valid rows: dense, in their namespace and dtype."""
        return self._generate(self._near(rows))

    def transform(self, X: Any) -> Array:
        """The generated features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        X_new : array of shape (n_samples, n_features_out), in the dtype of X
        """
        check_is_fitted(self)
        return self.generate(check_rows(self, X, reset=False)[0])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -- for subclasses -----------------------------------------------------------------------------------------

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        """Set what all features share."""

    @abstractmethod
    def _generate(self, rows: Rows) -> Array:
        """The features of rows that lie near the origin (where ``moves_origin``)."""

    @abstractmethod
    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        """Set the parameters of `n_components` new features; ``_n_features_out`` and ``_dtype`` too."""

    @property
    def _scale(self) -> float:
        return float((self._level * self._n_features_out) ** -0.5)

    def _measure(self, rows: Rows, weight: Array | None, rng: np.random.Generator) -> None:
        """Set the scale by the mean square of the first features, which stands for that of all others."""
        present = present_rows(rows.n_rows, weight)
        if len(present) > SCALE_ROWS:
            present = np.sort(rng.choice(present, SCALE_ROWS, replace=False))
        self._level = 1.0
        Z = to_numpy(self.generate(rows.take(present))).astype(np.float64)
        squares = np.einsum("ij,ij->i", Z, Z)
        self._level = float(np.average(squares, weights=None if weight is None else to_numpy(weight)[present])) or 1.0

    def _needs_y(self, name: str, others: Iterable[str]) -> ValueError:
        """The error that a value of a parameter needs y; `others` are values that do not."""
        return ValueError(
            f"{type(self).__name__}({name}={getattr(self, name)!r}) requires y to be passed, but the target y is None; "
            f"use {name}={' or '.join(map(repr, others))} to do without."
        )

    def _near(self, rows: Rows) -> Rows:
        return rows if self._origin is None else rows.shifted(rows.asarray(self._origin, dtype=rows.xp.float64))

    def _bandwidth(self, rows: Rows, weight: Array | None, rng: np.random.Generator) -> float:
        """The parameter ``bandwidth`` as a number."""
        given = getattr(self, "bandwidth", "median")
        return median_squared_distance(rows, weight, rng) if isinstance(given, str) else float(given)

    def _set_drawn(self, n_features_out: int, dtype: Any, **parameters: np.ndarray) -> None:
        self._n_features_out = int(n_features_out)
        self._dtype = "float32" if "float32" in str(dtype) else "float64"
        for name, value in parameters.items():
            setattr(self, name, np.ascontiguousarray(value, dtype=self._dtype))


def response_columns(y: Any, index: Any = slice(None)) -> np.ndarray:
    """Responses of some rows, of shape (n_rows, n_outputs), float64. For two classes they are −1 and 1, for more an
    indicator of each."""
    y = y.tocsr()[index].toarray() if hasattr(y, "toarray") else to_numpy(y)[index]
    if y.ndim == 1 and type_of_target(y) != "continuous":
        classes, codes = np.unique(y, return_inverse=True)
        y = 2.0 * codes - 1.0 if len(classes) <= 2 else codes[:, None] == np.arange(len(classes))
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)


def affordable_rows(rows: Rows, most: int) -> int:
    """How many rows to sample: `most`, or fewer if they are wide or blocks of rows have to be small."""
    entries = min(SAMPLED_ENTRIES, max(rows.block_limit / 4, LEAST_SAMPLED_ENTRIES))
    return min(most, max(int(entries / rows.n_features), 2))


def median_squared_distance(
    X: Any, sample_weight: Any = None, random_state: int | np.random.Generator | None = 0
) -> float:
    """Median of ‖x − x'‖² over pairs of different rows, from at most 1024 rows, and fewer of more than 8192 features.

    Pairs of equal rows are left out, so that repeating rows changes nothing but their weight.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or Rows
    sample_weight : array-like of shape (n_samples,), default=None
    random_state : int, Generator or None, default=0
        Chooses the rows.

    Returns
    -------
    median : float
        1.0 when all rows are equal.

    Examples
    --------
    >>> import numpy
    >>> from manyclass.features import median_squared_distance
    >>> median_squared_distance(numpy.array([[0.0], [1.0], [3.0]]))
    4.0
    """
    held = as_rows(X if hasattr(X, "dtype") else np.asarray(X, dtype=np.float64))
    weight = np.ones(held.n_rows)
    if sample_weight is not None:
        weight = to_numpy(check_weights(held, None, sample_weight, None)).astype(np.float64)
    present = present_rows(held.n_rows, weight)
    n_rows = affordable_rows(held, DISTANCE_ROWS)
    if len(present) > n_rows:
        share = weight[present] / weight[present].sum()
        present = np.random.default_rng(random_state).choice(present, n_rows, replace=False, p=share)
        weight = np.ones_like(weight)
    rows = to_numpy(held.take(present).dense()).astype(np.float64)
    size = abs(rows - np.median(rows, axis=0)).max(axis=1)
    near = size <= FAR_OFF * (np.median(size) or np.inf)
    if 2 * np.count_nonzero(near) > len(near):
        rows, present = rows[near], present[near]
    scale = float(abs(rows).max()) or 1.0
    upper = np.triu_indices(len(present), 1)
    squared = (euclidean_distances(rows / scale, squared=True))[upper]
    different = squared > 1e-12 * max(squared.max(initial=0.0), 1e-300)
    squared, mass = squared[different], weight[present]
    if not len(squared):
        return 1.0
    # A weighted quantile sorts all pairs, ten times as long as it takes to find one of equal weights.
    importance = None if mass.min() == mass.max() else np.outer(mass, mass)[upper][different]
    if not np.finfo(float).tiny < np.square(scale, dtype=np.float64) < np.inf:
        raise ValueError(f"The squares of numbers such as {scale:.2g} are beyond float64; scale the columns of X.")
    return float(np.quantile(squared, 0.5, weights=importance, method="inverted_cdf")) * scale**2
