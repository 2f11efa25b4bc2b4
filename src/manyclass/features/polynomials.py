from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data import Rows
from manyclass.data.columns import variance
from manyclass.data.pieces import copied
from manyclass.data.rows import Array, to_numpy
from manyclass.features.base import FeatureGenerator


@dataclass(eq=False, repr=False)
class RandomPolynomials(FeatureGenerator):
    """Random polynomials whose inner products approximate a polynomial kernel (Kar and Karnick, 2012).

    z_j(x) = (cp)^{-1/2} Π_{r=1..degree} (√gamma·w_{jr}ᵀ(x − x̄) + √coef0·u_{jr}) with independent signs w and u, so that

        E z(x)ᵀz(x') = k(x, x') = (gamma·(x − x̄)ᵀ(x' − x̄) + coef0)^degree / c,

    where x̄ is the mean row of the training data: what counts as a high degree does not depend on the origin. With c,
    measured, rows have the mean squared norm 1.

    Parameters
    ----------
    n_components : int, default=1024
        Number of features p.
    degree : int, default=2
    gamma : "mean" or float, default="mean"
        "mean" is 1 / mean ‖x − x̄‖².
    coef0 : float, default=1.0
        Non-negative; above 0 the kernel holds all lower degrees too.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    gamma_ : float
    random_weights_ : ndarray of shape (degree, n_features, n_components)
    random_offset_ : ndarray of shape (degree, n_components)
        −√gamma·wᵀx̄ + √coef0·u.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy
    >>> from manyclass.features import RandomPolynomials
    >>> X = numpy.random.default_rng(0).standard_normal((20, 3))
    >>> generator = RandomPolynomials(20_000, degree=2, random_state=0).fit(X)
    >>> Z, centred = generator.transform(X), X - X.mean(axis=0)
    >>> kernel = (generator.gamma_ * centred @ centred.T + 1) ** 2
    >>> kernel /= numpy.trace(kernel) / len(X)  # features have mean squared norm 1
    >>> bool(numpy.abs(Z @ Z.T - kernel).mean() < 0.05)
    True
    """

    is_scaled = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureGenerator._parameter_constraints,
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"mean"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
    }

    n_components: int = 1024
    _: KW_ONLY
    degree: int = 2
    gamma: str | float = "mean"
    coef0: float = 1.0
    random_state: Any = None

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        self._mean = to_numpy(rows.mean(weight))
        spread = float(rows.xp.sum(variance(rows, weight)))
        self.gamma_ = 1.0 / (spread or 1.0) if isinstance(self.gamma, str) else float(self.gamma)

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        signs = rng.choice([-1.0, 1.0], (self.degree, self.n_features_in_ + 1, n_components))
        weights = signs[:, :-1] * self.gamma_**0.5
        offset = signs[:, -1] * self.coef0**0.5 - np.einsum("d,rdj->rj", self._mean, weights)
        self._set_drawn(n_components, dtype, random_weights_=weights, random_offset_=offset)

    def _generate(self, rows: Rows) -> Array:
        scale = self._scale
        W, b = copied(self.random_weights_, rows), copied(self.random_offset_, rows)
        product = rows.affine(scale * W[0, :, :], scale * b[0, :])
        for r in range(1, self.degree):
            product *= rows.affine(W[r, :, :], b[r, :])
        return product
