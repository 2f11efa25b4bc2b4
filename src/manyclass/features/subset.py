from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Rows
from manyclass.data.rows import Array, to_numpy
from manyclass.data.validation import check_rows
from manyclass.features.base import FeatureGenerator, response_columns


def _largest_first(values: np.ndarray) -> np.ndarray:
    return np.argsort(-values, kind="stable")


def _frequency(rows: Rows, weight: Array | None) -> np.ndarray:
    """Weight of the rows in which each column is not zero."""
    xp = rows.xp
    mass = rows.weights(weight)[:, None]
    total = rows.zeros((rows.n_features, 1), dtype=xp.float64)
    for part, block in rows.blocks(rows.rows_per_block(1)):
        block.map(lambda values: xp.astype(values != 0, rows.dtype)).rmatmat(mass[part, :], total)
    return to_numpy(total)[:, 0]


def _cross(rows: Rows, Y: np.ndarray, weight: Array | None) -> np.ndarray:
    """Σ s_i x_i (y_i − ȳ)ᵀ."""
    mass = np.ones(len(Y)) if weight is None else to_numpy(weight).astype(np.float64)
    residual = (Y - mass @ Y / mass.sum()) * mass[:, None]
    return to_numpy(rows.rmatmat(rows.asarray(residual)))


@dataclass(frozen=True)
class Order:
    """Which columns come first; a new order is one entry of ``ORDERS``.

    `first` is (rows, y, weight, rng) ↦ the columns in their order; `again` is (n_features, gradient, rng) ↦ their order
    in a new visit of a stagewise fit, where it is not the same.
    """

    first: Callable[[Rows, Any, Array | None, np.random.Generator], np.ndarray]
    again: Callable[[int, Callable[[], Array], np.random.Generator], np.ndarray] | None = None
    needs_y: bool = False


ORDERS: dict[str, Order] = {
    "gradient": Order(
        lambda rows, y, weight, rng: _largest_first(np.linalg.norm(_cross(rows, response_columns(y), weight), axis=1)),
        lambda n_features, gradient, rng: _largest_first(np.linalg.norm(to_numpy(gradient()), axis=1)),
        needs_y=True,
    ),
    "frequency": Order(lambda rows, y, weight, rng: _largest_first(_frequency(rows, weight))),
    "random": Order(
        lambda rows, y, weight, rng: rng.permutation(rows.n_features),
        lambda n_features, gradient, rng: rng.permutation(n_features),
    ),
}


@dataclass(eq=False, repr=False)
class FeatureSubset(FeatureGenerator):
    """The original features, some at a time: block coordinate descent on wide, sparse data.

    Parameters
    ----------
    n_components : int, default=500
        Number of features chosen; all, when there are fewer.
    order : {"gradient", "frequency", "random"}, default="frequency"
        Which come first. "gradient": those whose correlation with the residuals, ‖Σ_i s_i x_ij r_i‖, is largest, the
        greedy order of *Least Squares Revisited*; a stagewise fit orders them anew before each visit. "frequency":
        those that are non-zero in most rows. "random": none in particular, new in each visit.
    random_state : int, RandomState or None, default=None
        Used by ``order="random"``.

    Attributes
    ----------
    feature_indices_ : ndarray of shape (n_features_out,)
        The chosen columns, in increasing order.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    ``fit`` needs y when ``order="gradient"``. The gradient depends on the units of the columns: scale them alike.

    Examples
    --------
    >>> import numpy
    >>> from manyclass.features import FeatureSubset
    >>> X = numpy.array([[0, 1, 2.0], [0, 0, 3], [1, 0, 4]])
    >>> FeatureSubset(1, order="frequency").fit_transform(X)[:, 0]  # the column with the fewest zeros
    array([2., 3., 4.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureGenerator._parameter_constraints,
        "order": [StrOptions(set(ORDERS))],
    }

    moves_origin = False

    n_components: int = 500
    _: KW_ONLY
    order: str = "frequency"
    random_state: Any = None

    @property
    def redraws(self) -> bool:
        return ORDERS[self.order].again is not None

    @property
    def capacity(self) -> int | None:
        check_is_fitted(self)
        return int(self.n_features_in_)

    @property
    def columns(self) -> np.ndarray | None:
        return self.feature_indices_

    def draw(self, n_components: int, rng: np.random.Generator) -> Self:
        """The next `n_components` columns in the order, or the fewer that are left.

        Raises
        ------
        ValueError
            If none is left; `begin_visit` starts again.
        """
        check_is_fitted(self)
        if self._taken >= len(self._ranking):
            raise ValueError(
                f"All {len(self._ranking)} features have been drawn from FeatureSubset; ask for fewer blocks."
            )
        drawn = copy(self)
        drawn._choose(self._ranking[self._taken : self._taken + n_components])
        self._taken += n_components
        return drawn

    def begin_visit(self, gradient: Callable[[], Array], rng: np.random.Generator) -> None:
        again = ORDERS[self.order].again
        if again is not None:
            self._ranking = again(self.n_features_in_, gradient, rng)
        self._taken = 0

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the chosen columns."""
        check_is_fitted(self)
        from sklearn.utils.validation import _check_feature_names_in

        return np.take(np.asarray(_check_feature_names_in(self, input_features), dtype=object), self.feature_indices_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = ORDERS[self.order].needs_y
        return tags

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        order = ORDERS[self.order]
        if order.needs_y and y is None:
            raise self._needs_y("order", [name for name, other in ORDERS.items() if not other.needs_y])
        self._ranking, self._taken = order.first(rows, y, weight, rng), 0

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        self._dtype = str(dtype)
        self._choose(self._ranking[:n_components])

    def _choose(self, columns: np.ndarray) -> None:
        self.feature_indices_ = np.sort(columns)
        self._n_features_out = len(columns)

    def transform(self, X: Any) -> Any:
        """The chosen columns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        X_new : {array, csr_array} of shape (n_samples, n_features_out), sparse where X is
        """
        check_is_fitted(self)
        return check_rows(self, X, reset=False)[0].select(self.feature_indices_).unwrapped()

    def _generate(self, rows: Rows) -> Array:
        return rows.select(self.feature_indices_).dense()
