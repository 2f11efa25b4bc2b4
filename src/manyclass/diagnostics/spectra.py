"""The eigenvalues of the covariance of the rows, and what follows from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.utils import check_array, check_random_state

from manyclass.data import Moments, Rows, as_rows
from manyclass.data.factor import eigh_in_place
from manyclass.data.rows import Array

EXACT_SIZE = 4096
"""Smaller side of X up to which all eigenvalues are computed; a matrix of that size is 0.13 GB."""
LEADING = 200
"""Eigenvalues computed for larger X."""
ROUNDING = 1e-13
"""Share of the largest eigenvalue up to which an eigenvalue is rounding, and its eigenfeature counts as constant."""


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of Σ̂ = (1/n) Σ_i (x_i − x̄)(x_i − x̄)ᵀ, or of the second moment without centring.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_components,)
        λ_1 ≥ λ_2 ≥ … > 0, the variances of the eigenfeatures; those of no variance are left out.
    components : ndarray of shape (n_components, n_features)
        Eigenvectors: eigenfeature j of a row is ``components[j] @ (x − x̄)``.
    total_variance : float
        The trace of Σ̂, whatever the number of components.
    n_rows, n_features : int
    is_complete : bool
        Whether all eigenvalues that are not zero are there, rather than the leading ones.

    Examples
    --------
    >>> import numpy
    >>> from manyclass.diagnostics import spectrum
    >>> cross = spectrum(numpy.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]]))
    >>> cross.eigenvalues.round(6).tolist(), round(float(cross.condition_number()), 6)
    ([2.0, 0.5], 4.0)
    """

    eigenvalues: np.ndarray
    components: np.ndarray
    total_variance: float
    n_rows: int
    n_features: int
    is_complete: bool

    @property
    def n_components(self) -> int:
        return len(self.eigenvalues)

    def condition_number(self, alpha: float = 0.0) -> float:
        """κ = (λ_1 + alpha)/(λ_d + alpha) of ridge regression (*Homotopic Initialization*, Corollary 3).

        For alpha = 0 λ_d is the smallest eigenvalue that is not zero: directions without variance never move. Where
        only the leading eigenvalues are known this is a lower bound.

        Parameters
        ----------
        alpha : float
            Penalty, ≥ 0, as in the estimators.

        Returns
        -------
        float
            1 for rows that do not vary.

        Raises
        ------
        ValueError
            If alpha is negative.

        Examples
        --------
        >>> from manyclass.diagnostics import condition_number
        >>> round(float(condition_number([[2.0, 0], [-2, 0], [0, 1], [0, -1]])), 6)
        4.0
        """
        _check_penalty(alpha, "≥ 0", alpha >= 0)
        if not self.n_components:
            return 1.0
        smallest = self.eigenvalues[-1]
        if alpha > 0 and self.is_complete and self.n_components < self.n_features:
            smallest = 0.0
        return float((self.eigenvalues[0] + alpha) / (smallest + alpha))

    def effective_dimension(self, alpha: float) -> float:
        """Σ_j λ_j/(λ_j + alpha): how many directions a ridge penalty leaves free.

        Where only the leading eigenvalues are known, the rest of the variance counts as spread evenly over the other
        directions, which makes this an upper bound.

        Parameters
        ----------
        alpha : float
            Penalty, > 0.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If alpha is not positive.

        Examples
        --------
        >>> from manyclass.diagnostics import effective_dimension
        >>> round(float(effective_dimension([[2.0, 0], [-2, 0], [0, 1], [0, -1]], alpha=0.5)), 6)  # 2/2.5 + 0.5/1
        1.3
        """
        _check_penalty(alpha, "> 0", alpha > 0)
        leading = float(np.sum(self.eigenvalues / (self.eigenvalues + alpha)))
        n_others = min(self.n_rows, self.n_features) - self.n_components
        if self.is_complete or n_others <= 0:
            return leading
        rest = max(self.total_variance - float(self.eigenvalues.sum()), 0.0) / n_others
        return leading + n_others * rest / (rest + alpha)


def _check_penalty(alpha: float, domain: str, is_inside: bool) -> None:
    if not is_inside:
        raise ValueError(f"alpha={alpha!r} must be {domain}, as a penalty is.")


def check_matrix(X: Any) -> Rows:
    """X as `Rows`, or the error scikit-learn raises."""
    return as_rows(check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]))


def spectrum(X: Any, *, n_components: int | None = None, center: bool = True, random_state: Any = None) -> Spectrum:
    """Eigenvalues and eigenvectors of the covariance of the rows of X.

    All of them, from the d×d covariance or the n×n Gram matrix, where the smaller side of X is at most 4096; the
    leading ones otherwise, by ARPACK's Lanczos method from a random start, which reads X in products only. Sparse X is
    never filled: the mean is subtracted inside the products.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    n_components : int, optional
        Leading eigenvalues to compute. By default all, or 200 for X with both sides above 4096.
    center : bool
        Whether the mean row is subtracted.
    random_state : int, RandomState or None
        Of the random start; None means a fixed one.

    Returns
    -------
    Spectrum

    Raises
    ------
    ValueError
        If X is not a finite matrix, or n_components is below 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.diagnostics import spectrum
    >>> digits = spectrum(load_digits().data)
    >>> digits.n_components, digits.n_features  # three pixels are always 0
    (61, 64)
    """
    rows = check_matrix(X)
    if n_components is not None and n_components < 1:
        raise ValueError(f"n_components={n_components} must be at least 1; leave it out for the default.")
    mean = rows.mean() if center else np.zeros(rows.n_features)
    smaller = min(rows.n_rows, rows.n_features)
    n_kept = smaller if smaller <= EXACT_SIZE and n_components is None else min(n_components or LEADING, smaller)
    if smaller <= EXACT_SIZE:
        eigenvalues, components = _decompose(rows, mean, center)
        total = float(np.maximum(eigenvalues, 0.0).sum())
    else:
        centred = rows.shifted(mean)
        eigenvalues, components = _leading(centred, min(n_kept, smaller - 1), random_state)
        squares = centred.mean_square() if rows.can_be_centred else rows.mean_square() - mean**2
        total = max(float(np.sum(squares)), 0.0)
    varying = eigenvalues > ROUNDING * max(float(np.max(eigenvalues, initial=0.0)), np.finfo(float).tiny)
    is_complete = smaller <= EXACT_SIZE and int(varying.sum()) <= n_kept
    eigenvalues, components = eigenvalues[varying][:n_kept], components[varying][:n_kept]
    return Spectrum(eigenvalues, components, total, rows.n_rows, rows.n_features, is_complete)


def condition_number(X: Any, alpha: float = 0.0, *, center: bool = True) -> float:
    """`Spectrum.condition_number` of X: (λ_1 + alpha)/(λ_d + alpha), over varying directions where alpha is 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    alpha : float
    center : bool

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If X is not a finite matrix, or alpha is negative.
    """
    return spectrum(X, center=center).condition_number(alpha)


def effective_dimension(X: Any, alpha: float, *, center: bool = True) -> float:
    """`Spectrum.effective_dimension` of X: Σ_j λ_j/(λ_j + alpha).

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
    alpha : float
    center : bool

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If X is not a finite matrix, or alpha is not positive.
    """
    return spectrum(X, center=center).effective_dimension(alpha)


def _decompose(rows: Rows, mean: np.ndarray, center: bool) -> tuple[np.ndarray, np.ndarray]:
    """All eigenvalues, descending, and their eigenvectors, from the smaller of the two Gram matrices."""
    rows = rows.typed(np.float64)  # small eigenvalues are differences of large ones
    if rows.n_features <= rows.n_rows:
        moments = Moments.of(rows)
        values, vectors = eigh_in_place(moments.covariance if center else moments.second_moment)
        return values[::-1], vectors.T[::-1]
    centred = rows.shifted(mean)
    gram = centred.outer() / rows.n_rows
    if center:  # without what rounding has left of the mean
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1)[:, None]
    values, vectors = eigh_in_place(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    scale = np.sqrt(np.maximum(values, np.finfo(float).tiny) * rows.n_rows)
    return values, (centred.rmatmat(np.ascontiguousarray(vectors)) / scale).T


def _leading(centred: Rows, n_components: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """The leading eigenvalues, descending, and their eigenvectors, from products with X alone."""
    shape = (centred.n_rows, centred.n_features)

    def forward(V: np.ndarray) -> Array:
        return centred.matmat(V.reshape(shape[1], -1)).reshape(shape[0], *V.shape[1:])

    def backward(U: np.ndarray) -> Array:
        return centred.rmatmat(U.reshape(shape[0], -1)).reshape(shape[1], *U.shape[1:])

    products = LinearOperator(
        shape, matvec=forward, rmatvec=backward, matmat=forward, rmatmat=backward, dtype=np.dtype(np.float64)
    )
    start = check_random_state(0 if random_state is None else random_state).standard_normal(min(shape))
    _, singular, components = svds(products, k=n_components, v0=start)
    order = np.argsort(-singular)
    return singular[order] ** 2 / centred.n_rows, components[order]
