from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Design
from manyclass.data.design import Array, scale_rows
from manyclass.features.base import FeatureGenerator
from manyclass.model.objective import to_numpy


def _largest_first(values: np.ndarray) -> np.ndarray:
    return np.argsort(-values, kind="stable")


def _longest_first(rows: np.ndarray) -> np.ndarray:
    return _largest_first(np.linalg.norm(rows, axis=1))


def _frequency(design: Design, weight: Array | None) -> np.ndarray:
    """Weight of the rows in which each column is not zero."""
    total = np.zeros(design.n_features)
    for rows, block in design.blocks(design.rows_per_block(1)):
        present = (block != 0) if design.is_sparse else to_numpy(block) != 0
        mass = np.ones(present.shape[0]) if weight is None else to_numpy(weight[rows]).astype(np.float64)
        total += present.T @ mass
    return total


def _columns(y: Any) -> np.ndarray:
    y = np.asarray(y)
    if y.ndim == 1 and type_of_target(y) in ("binary", "multiclass"):
        y = LabelBinarizer().fit_transform(y)
    y = y.astype(np.float64)
    return y.reshape(len(y), -1)


def _cross(design: Design, Y: np.ndarray, weight: Array | None) -> np.ndarray:
    """Σ s_i x_i (y_i − ȳ)ᵀ."""
    mass = np.ones(len(Y)) if weight is None else to_numpy(weight).astype(np.float64)
    residual = scale_rows(Y - mass @ Y / mass.sum(), mass)
    return to_numpy(design.rmatmat(design.asarray(residual)))


@dataclass(frozen=True)
class Order:
    """Which columns come first; a new order is one entry of ``ORDERS``.

    Attributes
    ----------
    first : callable
        (design, y, weight, rng) ↦ the columns in their order.
    again : callable, optional
        (n_features, gradient, rng) ↦ their order in a new pass of a stagewise fit, where it is not the same.
    needs_y : bool
    """

    first: Callable[[Design, Any, Array | None, np.random.Generator], np.ndarray]
    again: Callable[[int, Callable[[], Array], np.random.Generator], np.ndarray] | None = None
    needs_y: bool = False


ORDERS: dict[str, Order] = {
    "gradient": Order(
        lambda design, y, weight, rng: _longest_first(_cross(design, _columns(y), weight)),
        lambda n_features, gradient, rng: _longest_first(to_numpy(gradient())),
        needs_y=True,
    ),
    "frequency": Order(lambda design, y, weight, rng: _largest_first(_frequency(design, weight))),
    "random": Order(
        lambda design, y, weight, rng: rng.permutation(design.n_features),
        lambda n_features, gradient, rng: rng.permutation(n_features),
    ),
}


class FeatureSubset(FeatureGenerator):
    """The original features, some at a time: block coordinate descent on wide, sparse data.

    Parameters
    ----------
    n_components : int, default=500
        Number of features chosen; all, when there are fewer.
    order : {"gradient", "frequency", "random"}, default="frequency"
        Which come first. "gradient": those whose correlation with the residuals, ‖Σ_i s_i x_ij r_i‖, is largest, the
        greedy order of *Least Squares Revisited*; a stagewise fit orders them anew before each pass. "frequency":
        those that are non-zero in most rows. "random": none in particular, new in each pass.
    random_state : int, RandomState or None, default=None
        Used by ``order="random"``.

    Attributes
    ----------
    feature_indices_ : ndarray of shape (n_features_out,)
        The chosen columns, in increasing order.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Notes
    -----
    ``fit`` needs y when ``order="gradient"``. The gradient depends on the units of the columns: scale them alike.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "order": [StrOptions(set(ORDERS))],
        "random_state": ["random_state"],
    }

    def __init__(self, n_components: int = 500, *, order: str = "frequency", random_state: Any = None):
        self.n_components = n_components
        self.order = order
        self.random_state = random_state

    @property
    def redraws(self) -> bool:
        return ORDERS[self.order].again is not None

    @property
    def capacity(self) -> int | None:
        check_is_fitted(self)
        return self.n_features_in_

    @property
    def columns(self) -> np.ndarray | None:
        return self.feature_indices_

    def draw(self, n_components: int, rng: np.random.Generator) -> FeatureSubset:
        """The next `n_components` columns in the order, or the fewer that are left.

        Raises
        ------
        ValueError
            If none is left; `begin_pass` starts again.
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

    def begin_pass(self, design: Design, gradient: Callable[[], Array], rng: np.random.Generator) -> None:
        again = ORDERS[self.order].again
        if again is not None:
            self._ranking = again(self.n_features_in_, gradient, rng)
        self._taken = 0

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the chosen columns."""
        check_is_fitted(self)
        from sklearn.utils.validation import _check_feature_names_in

        return np.asarray(_check_feature_names_in(self, input_features), dtype=object)[self.feature_indices_]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = ORDERS[self.order].needs_y
        return tags

    def _learn(self, design: Design, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        order = ORDERS[self.order]
        if order.needs_y and y is None:
            others = " or ".join(repr(name) for name, other in ORDERS.items() if not other.needs_y)
            raise ValueError(
                f"FeatureSubset(order={self.order!r}) requires y to be passed, but the target y is None; use "
                f"order={others} to do without."
            )
        self._ranking, self._taken = order.first(design, y, weight, rng), 0

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        self._dtype = str(dtype)
        self._choose(self._ranking[:n_components])

    def _choose(self, columns: np.ndarray) -> None:
        self.feature_indices_ = np.sort(columns)
        self._n_features_out = len(columns)

    def generate(self, X: Array, xp: Any) -> Array:
        if isinstance(X, np.ndarray) or sp.issparse(X):
            return X[:, self.feature_indices_]
        return xp.take(X, xp.asarray(self.feature_indices_, device=X.device), axis=1)
