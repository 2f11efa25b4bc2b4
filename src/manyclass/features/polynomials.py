from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data import Design
from manyclass.data.design import Array, scale_rows
from manyclass.features.base import FeatureGenerator, affine, in_rows


class RandomPolynomials(FeatureGenerator):
    """Random polynomials whose inner products approximate a polynomial kernel (Kar and Karnick, 2012).

    z_j(x) = p^{-1/2} Π_{r=1..degree} (√gamma·w_{jr}ᵀx + √coef0·u_{jr}) with independent signs w and u, so that

        E z(x)ᵀz(x') = k(x, x') = (gamma·xᵀx' + coef0)^degree.

    Parameters
    ----------
    n_components : int, default=1024
        Number of features p.
    degree : int, default=2
    gamma : "mean" or float, default="mean"
        "mean" is 1 / mean ‖x‖².
    coef0 : float, default=1.0
        Non-negative; above 0 the kernel holds all lower degrees too.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    gamma_ : float
    random_weights_ : ndarray of shape (degree, n_features_in_, n_components)
    random_offset_ : ndarray of shape (degree, n_components)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [StrOptions({"mean"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 1024,
        *,
        degree: int = 2,
        gamma: str | float = "mean",
        coef0: float = 1.0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.random_state = random_state

    def _learn(self, design: Design, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        self.gamma_ = 1.0 / (_mean_square(design, weight) or 1.0) if isinstance(self.gamma, str) else float(self.gamma)

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        signs = rng.choice([-1.0, 1.0], (self.degree, self.n_features_in_ + 1, n_components))
        weights, offset = signs[:, :-1] * self.gamma_**0.5, signs[:, -1] * self.coef0**0.5
        self._set_drawn(n_components, dtype, random_weights_=weights, random_offset_=offset)

    def generate(self, X: Array, xp: Any) -> Array:
        product, own = affine(X, self.random_weights_[0], self.random_offset_[0], xp)
        for weights, offset in zip(self.random_weights_[1:], self.random_offset_[1:], strict=True):
            factor, _ = affine(X, weights, offset, xp)
            product = np.multiply(product, factor, out=product) if own else product * factor
        scale = self._n_features_out**-0.5
        return in_rows(lambda piece: np.multiply(piece, scale, out=piece), product) if own else product * scale


def _mean_square(design: Design, weight: Array | None) -> float:
    """Weighted mean of ‖x‖²."""
    xp, total, mass = design.xp, 0.0, 0.0
    for rows, block in design.blocks(design.rows_per_block(1)):
        squares = block.multiply(block) if sp.issparse(block) else block * block
        if weight is None:
            mass += int(block.shape[0])
        else:
            squares = scale_rows(sp.csr_array(squares) if sp.issparse(squares) else squares, weight[rows])
            mass += float(xp.sum(weight[rows], dtype=xp.float64))
        total += float(squares.sum() if sp.issparse(squares) else xp.sum(squares, dtype=xp.float64))
    return total / mass
