"""How strongly the response depends on directions of small variance."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyclass.diagnostics.spectra import Spectrum, check_matrix, spectrum
from manyclass.features.base import response_columns


@dataclass(frozen=True)
class ResponseCorrelation:
    """Eigenfeatures Z_j and their covariances with the response (*Homotopic Initialization*, equation 9).

    Data have τ-bounded response correlation if ρ_j² ≤ τ λ_j for every eigenfeature that varies. The smaller τ, the
    less gradient descent from zero has to do in directions of small variance, which are those it is slow in.

    Attributes
    ----------
    spectrum : Spectrum
    covariance : ndarray of shape (n_components, n_responses)
        c_j = E[Y Z_j].

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass.diagnostics import response_correlation
    >>> response_correlation(*load_iris(return_X_y=True)).boundedness.shape
    (4, 3)
    """

    spectrum: Spectrum
    covariance: np.ndarray

    @property
    def eigenvalues(self) -> np.ndarray:
        """λ_j = E[Z_j²], of shape (n_components,)."""
        return self.spectrum.eigenvalues

    @property
    def rho_squared(self) -> np.ndarray:
        """ρ_j² = c_j²/λ_j, of shape (n_components, n_responses): the share of the variance of Y along Z_j."""
        return np.asarray(self.covariance**2 / self.eigenvalues[:, None])

    @property
    def boundedness(self) -> np.ndarray:
        """c_j²/λ_j², of shape (n_components, n_responses); its maximum is τ."""
        return np.asarray((self.covariance / self.eigenvalues[:, None]) ** 2)

    @property
    def tau_per_response(self) -> np.ndarray:
        """max_j c_j²/λ_j² of each response."""
        return np.asarray(self.boundedness.max(axis=0, initial=0.0))

    @property
    def tau(self) -> float:
        """τ = max_j c_j²/λ_j², the largest over the responses.

        A lower bound where `spectrum` holds the leading eigenvalues only.
        """
        return float(self.tau_per_response.max(initial=0.0))


def response_correlation(
    X: Any,
    y: Any,
    *,
    center: bool = True,
    unit_variance: bool = True,
    n_components: int | None = None,
    random_state: Any = None,
) -> ResponseCorrelation:
    """Covariances of the response with the eigenfeatures of X, and the τ that bounds them.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or (n_rows, n_responses)
        Real responses; or labels (anything but floats with fractions, in one dimension): two classes count as −1 and
        1, more as one indicator each. Two-dimensional y is taken as it is.
    center : bool
        Whether the means of X and Y are subtracted.
    unit_variance : bool
        Whether each response is divided by its standard deviation (without `center`, by its root mean square), as in
        the paper; constant ones are left as they are.
    n_components, random_state
        As in `spectrum`.

    Returns
    -------
    ResponseCorrelation

    Raises
    ------
    ValueError
        If X is not a finite matrix or y has another number of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from manyclass.diagnostics import response_correlation
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> correlation = response_correlation(scale(X), y)
    >>> bool(0 < correlation.rho_squared.sum() < 1)  # R² of least squares
    True
    """
    if y is None:
        raise ValueError("response_correlation requires y, the responses of the rows, but it is None.")
    rows = check_matrix(X)
    Y = response_columns(y)
    if len(Y) != rows.n_rows:
        raise ValueError(f"X has {rows.n_rows} rows but y has {len(Y)}; give one response per row of X.")
    if center:
        Y = Y - Y.mean(axis=0)
    if unit_variance:
        scale = np.sqrt(np.mean(Y**2, axis=0))
        Y = Y / np.where(scale > 0, scale, 1.0)
    decomposition = spectrum(X, center=center, n_components=n_components, random_state=random_state)
    centred = rows.shifted(rows.mean()) if center else rows
    return ResponseCorrelation(decomposition, decomposition.components @ centred.rmatmat(Y) / rows.n_rows)
