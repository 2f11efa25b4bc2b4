from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data import Design
from manyclass.data.design import Array
from manyclass.features.base import FeatureGenerator, affine, in_rows, median_squared_distance
from manyclass.model.objective import to_numpy


def _logistic(piece: np.ndarray) -> None:
    expit(piece, out=piece)


def _relu(piece: np.ndarray) -> None:
    np.maximum(piece, 0.0, out=piece)


ACTIVATIONS: dict[str, tuple[Callable[[np.ndarray], None], Callable[[Array, Any], Array]]] = {
    "logistic": (_logistic, lambda Z, xp: 1.0 / (1.0 + xp.exp(-Z))),
    "relu": (_relu, lambda Z, xp: xp.clip(Z, min=0.0)),
}
"""Each activation in place for NumPy, and as an expression for any namespace."""

CENTERS = 4096
"""Rows kept as places where units may switch."""


class RandomUnits(FeatureGenerator):
    """A random hidden layer: z(x) = φ(Wᵀx + b) / √p with logistic or ReLU units that are never trained.

    The columns of W are N(0, (2·gain²/s) I) with s the median squared distance between rows, and b = −wᵀx_i for a
    random row x_i of the training data: every unit switches where there are rows, whatever the units of X.

    Parameters
    ----------
    n_components : int, default=1024
    activation : {"logistic", "relu"}, default="logistic"
    gain : float, default=2.0
        How steep the units are: wᵀ(x − x') has standard deviation √2·gain at the median distance. ReLU units only
        change their scale.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    bandwidth_ : float
        s.
    random_weights_ : ndarray of shape (n_features_in_, n_components)
    random_offset_ : ndarray of shape (n_components,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "gain": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, n_components: int = 1024, *, activation: str = "logistic", gain: float = 2.0, random_state: Any = None
    ):
        self.n_components = n_components
        self.activation = activation
        self.gain = gain
        self.random_state = random_state

    def _learn(self, design: Design, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        sample_weight = None if weight is None else to_numpy(weight)
        self.bandwidth_ = median_squared_distance(design.X, sample_weight, rng)
        present = np.arange(design.n_rows) if sample_weight is None else np.flatnonzero(sample_weight > 0)
        if len(present) > CENTERS:
            present = rng.choice(present, CENTERS, replace=False)
        rows = design.take(present)
        rows = rows.toarray() if design.is_sparse else to_numpy(rows)
        # Equal rows count once, so that a repeated row and a weight draw the same units.
        self._centers = np.unique(rows, axis=0)

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        weights = rng.standard_normal((self.n_features_in_, n_components)) * np.sqrt(2.0 / self.bandwidth_) * self.gain
        centers = self._centers[rng.integers(0, len(self._centers), n_components)]
        offset = -np.einsum("jd,dj->j", centers, weights)
        self._set_drawn(n_components, dtype, random_weights_=weights, random_offset_=offset)

    def generate(self, X: Array, xp: Any) -> Array:
        Z, own = affine(X, self.random_weights_, self.random_offset_, xp)
        scale = self._n_features_out**-0.5
        in_place, expression = ACTIVATIONS[self.activation]
        if not own:
            return scale * expression(Z, xp)

        def activate(piece: np.ndarray) -> None:
            in_place(piece)
            piece *= scale

        return in_rows(activate, Z)
