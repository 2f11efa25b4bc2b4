from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data import Rows
from manyclass.data.pieces import copied, elementwise
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.features.base import FeatureGenerator, affordable_rows


def _logistic(Z: Array, out: dict[str, Array], xp: Any) -> Array:
    """1/(1 + exp(−z)), which never overflows as ½(1 + tanh(z/2))."""
    Z *= 0.5
    Z = xp.tanh(Z, **out)
    Z += 1.0
    Z *= 0.5
    return Z


ACTIVATIONS: dict[str, Callable[[Array, dict[str, Array], Any], Array]] = {
    "logistic": _logistic,
    "relu": lambda Z, out, xp: xp.maximum(Z, xp.zeros_like(Z[:1, :1]), **out),
}
"""(Z, out, xp) ↦ the activation, elementwise; see `elementwise` for `out`."""

CENTERS = 4096
"""Rows kept as places where units may switch."""


@dataclass(eq=False, repr=False)
class RandomUnits(FeatureGenerator):
    """A random hidden layer: z(x) = φ(Wᵀx + b) / √(cp) with logistic or ReLU units that are never trained.

    The columns of W are N(0, (2·gain²/s) I) with s the median squared distance between rows, and b = −wᵀx_i for a
    random row x_i of the training data: every unit switches where there are rows, whatever the units of X. With c, the
    mean square of φ, rows have the mean squared norm 1.

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
    random_weights_ : ndarray of shape (n_features, n_components)
    random_offset_ : ndarray of shape (n_components,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.features import RandomUnits
    >>> X, _ = load_digits(return_X_y=True)
    >>> RandomUnits(50, activation="relu", random_state=0).fit_transform(X).shape
    (1797, 50)
    """

    is_scaled = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureGenerator._parameter_constraints,
        "activation": [StrOptions(set(ACTIVATIONS))],
        "gain": [Interval(Real, 0, None, closed="neither")],
    }

    n_components: int = 1024
    _: KW_ONLY
    activation: str = "logistic"
    gain: float = 2.0
    random_state: Any = None

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        self.bandwidth_ = self._bandwidth(rows, weight, rng)
        present = present_rows(rows.n_rows, weight)
        n_centers = affordable_rows(rows, CENTERS)
        if len(present) > n_centers:
            present = rng.choice(present, n_centers, replace=False)
        # Equal rows count once, so that a repeated row and a weight draw the same units.
        self._centers = np.unique(to_numpy(rows.take(present).dense()), axis=0)

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        weights = rng.standard_normal((self.n_features_in_, n_components)) * np.sqrt(2.0 / self.bandwidth_) * self.gain
        centers = self._centers[rng.integers(0, len(self._centers), n_components)]
        offset = -np.einsum("jd,dj->j", centers, weights)
        self._set_drawn(n_components, dtype, random_weights_=weights, random_offset_=offset)

    def _generate(self, rows: Rows) -> Array:
        Z = rows.affine(copied(self.random_weights_, rows), copied(self.random_offset_, rows))
        activation = ACTIVATIONS[self.activation]
        return elementwise(lambda Z, out: activation(Z, out, rows.xp), Z, rows, self._scale)
