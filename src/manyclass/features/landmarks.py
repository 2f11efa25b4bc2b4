from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from manyclass.data import DenseRows, Rows, as_rows
from manyclass.data.labels import on_host
from manyclass.data.memory import require
from manyclass.data.pieces import copied, elementwise, times_upper_triangular
from manyclass.data.rows import Array, present_rows
from manyclass.data.threads import factor_threads
from manyclass.features.base import BANDWIDTH, FeatureGenerator

JITTER = 1e-4
"""Added to the ones on the diagonal of the landmarks' kernel matrix, above the rounding of float32."""


class RowsTooFarError(ValueError):
    """Of which no kernel can be told."""


@dataclass(eq=False, repr=False)
class Landmarks(FeatureGenerator):
    """Gaussian kernel values at training rows (the Nyström method, Williams and Seeger, 2001).

    For p training rows c_j, drawn without replacement, and k(x, x') = exp(−‖x − x'‖² / s),

        z(x) = L⁻¹ (k(x, c_1), …, k(x, c_p)),   K_cc = L Lᵀ,

    so that z(x)ᵀz(c_j) = k(x, c_j) for every x and every landmark, with 1e-4 added to the diagonal of K_cc. Where x has
    many dimensions this is much nearer to the kernel than as many random features, which know nothing of where the
    rows are. Every draw takes rows that no draw before it has taken; when all are taken, it begins again.

    Parameters
    ----------
    n_components : int, default=1024
        Number of landmarks p, at most the number of rows.
    bandwidth : "median" or float, default="median"
        s, in squared units of X; "median" as in `RandomFourierFeatures`.
    random_state : int, RandomState or None, default=None
        A fitted generator holds the training rows, to draw from; what it draws holds only its landmarks.

    Attributes
    ----------
    bandwidth_ : float
        s.
    landmarks_ : ndarray of shape (n_components, n_features)
    whitening_ : ndarray of shape (n_components, n_components)
        L⁻ᵀ, upper triangular.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Raises
    ------
    MemoryError
        If the landmarks of sparse X, which are held as dense rows, do not fit.

    Examples
    --------
    >>> import numpy
    >>> from manyclass.features import Landmarks
    >>> X = numpy.random.default_rng(0).standard_normal((20, 3))
    >>> generator = Landmarks(20, random_state=0).fit(X)  # with all rows as landmarks the kernel is exact
    >>> Z = generator.transform(X)
    >>> squared = ((X[0] - X[1]) ** 2).sum()
    >>> bool(abs(Z[0] @ Z[1] - numpy.exp(-squared / generator.bandwidth_)) < 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureGenerator._parameter_constraints,
        "bandwidth": BANDWIDTH,
    }

    n_components: int = 1024
    _: KW_ONLY
    bandwidth: str | float = "median"
    random_state: Any = None

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        self.bandwidth_ = self._bandwidth(rows, weight, rng)
        present = present_rows(rows.n_rows, weight)
        self._n_taken = 0
        self._rows, self._order = on_host(rows.unwrapped()), rng.permutation(present)

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        n_landmarks = min(n_components, len(self._order))
        chosen = np.take(self._order, np.arange(self._n_taken, self._n_taken + n_landmarks), mode="wrap")
        self._n_taken += n_landmarks
        n_bytes = 8.0 * n_landmarks * self.n_features_in_
        require(n_bytes, None, f"{n_landmarks} landmarks of {self.n_features_in_} columns", "use fewer n_components")
        self.landmarks_ = as_rows(self._rows).take(chosen).dense().astype(np.float64)
        kernel = self._kernel(DenseRows(self.landmarks_))
        kernel.flat[:: n_landmarks + 1] = 1.0 + JITTER
        try:
            lower = np.linalg.cholesky(kernel)
        except np.linalg.LinAlgError as error:
            raise RowsTooFarError(
                f"Rows lie so far from each other that their distances have no digits left in units of the bandwidth, "
                f"{self.bandwidth_:.2g}; scale the columns of X, or choose a larger bandwidth."
            ) from error
        (trtri,) = get_lapack_funcs(("trtri",), (lower,))
        with factor_threads(n_landmarks**3 / 3.0):
            whitening, _ = trtri(lower.T, overwrite_c=1)  # reads the upper triangle, and leaves the zeros below it
        self._set_drawn(n_landmarks, dtype, landmarks_=self.landmarks_, whitening_=whitening)

    def draw(self, n_components: int, rng: np.random.Generator) -> Self:
        """A transformer with other landmarks; it cannot draw again, so that it need not hold all training rows."""
        drawn = super().draw(n_components, rng)
        self._n_taken = drawn._n_taken
        del drawn._rows, drawn._order
        return drawn

    def _generate(self, rows: Rows) -> Array:
        return times_upper_triangular(self._kernel(rows), copied(self.whitening_, rows), rows)

    def times(self, rows: Rows, coef: Array) -> Array:
        """The product of the features with coefficients, by far fewer products than the features themselves take."""
        return self._kernel(self._near(rows)) @ (copied(self.whitening_, rows) @ coef)

    def _kernel(self, rows: Rows) -> Array:
        xp, landmarks = rows.xp, copied(self.landmarks_, rows)
        X = rows.dense()
        squares = xp.sum(X * X, axis=1) / self.bandwidth_
        Z = rows.affine(landmarks.T * (2.0 / self.bandwidth_), -xp.sum(landmarks**2, axis=1) / self.bandwidth_)
        Z -= squares[:, None]

        def gaussian(Z: Array, out: dict[str, Array]) -> Array:
            Z = xp.minimum(Z, xp.zeros_like(Z[:1, :1]), **out)
            return xp.exp(Z, **out)

        return elementwise(gaussian, Z, rows)
