from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from manyclass.data import GeneratedRows, Rows
from manyclass.data.generated import InUnits
from manyclass.data.pieces import copied, cosine, elementwise
from manyclass.data.rows import Array, to_numpy
from manyclass.features.base import BANDWIDTH, FeatureGenerator


@dataclass(eq=False, repr=False)
class RandomFourierFeatures(FeatureGenerator):
    """Random features whose inner products approximate a Gaussian kernel (Rahimi and Recht, 2007).

    z(x) = √(2/p) cos(Wᵀx + b), W with independent entries N(0, 2/s), b uniform on [0, 2π], so that

        E z(x)ᵀz(x') = k(x, x') = exp(−‖x − x'‖² / s).

    Parameters
    ----------
    n_components : int, default=1024
        Number of features p.
    bandwidth : "median" or float, default="median"
        s, in squared units of X. "median" is the median of the SQUARED distance between rows: the median of the
        distance itself, without the square, depends on the units of X and fails. scikit-learn's
        ``RBFSampler(gamma=g)`` has s = 1/g.
    standardize : bool, default=False
        Whether x stands for the columns divided by their standard deviations, which W then holds. Right where columns
        are in different units, of which the largest alone would decide the distance.
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
    >>> import numpy as np
    >>> from manyclass.features import RandomFourierFeatures
    >>> X = np.array([[0.0], [1.0]])
    >>> Z = RandomFourierFeatures(100_000, bandwidth=2.0, random_state=0).fit_transform(X)
    >>> print(f"{Z[0] @ Z[1]:.2f} {np.exp(-1 / 2.0):.2f}")
    0.61 0.61
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureGenerator._parameter_constraints,
        "bandwidth": BANDWIDTH,
        "standardize": ["boolean"],
    }

    n_components: int = 1024
    _: KW_ONLY
    bandwidth: str | float = "median"
    standardize: bool = False
    random_state: Any = None

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        self._unit = np.ones((1, 1))
        if self.standardize:
            xp = rows.xp
            spread = xp.sqrt(xp.clip(rows.mean_square(weight) - rows.mean(weight) ** 2, min=0.0))
            spread = xp.where(spread > 0, spread, xp.ones_like(spread))
            self._unit, rows = to_numpy(spread)[:, None], GeneratedRows(rows, InUnits(spread))
        self.bandwidth_ = self._bandwidth(rows, weight, rng)

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        frequencies = rng.standard_normal((self.n_features_in_, n_components)) * np.sqrt(2.0 / self.bandwidth_)
        frequencies /= self._unit
        phases = rng.uniform(0.0, 2.0 * np.pi, n_components)
        self._set_drawn(n_components, dtype, random_weights_=frequencies, random_offset_=phases)

    def _generate(self, rows: Rows) -> Array:
        Z = rows.affine(copied(self.random_weights_, rows), copied(self.random_offset_, rows))
        return elementwise(lambda Z, out: cosine(Z, out, rows.xp), Z, rows, (2.0 / self._n_features_out) ** 0.5)
