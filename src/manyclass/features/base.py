"""What a generator of features is: a transformer that can draw new features again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Design
from manyclass.data.design import Array
from manyclass.data.validation import check_rows, check_weights

CACHE_ELEMENTS = 1 << 17
"""Entries of a piece that one thread works on: its temporaries stay in the second-level cache."""

DISTANCE_ROWS = 1024
"""Rows whose pairwise distances decide the bandwidth: half a million pairs."""


class FeatureGenerator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A scikit-learn transformer to new features, of which more can be drawn.

    ``fit`` learns what all features share (a bandwidth, a whitening, ...) and draws the first ``n_components``.
    ``draw(n_components, rng)`` then returns further fitted transformers that share what was learned. Those are
    ordinary transformers that hold their own parameters, so what they compute never depends on a random state again.

    A new generator is one file with a subclass: `_learn`, `_draw` and `generate`.
    """

    n_components: int

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FeatureGenerator:
        """Learn what all features share, and draw ``n_components`` of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Only used where the class says so.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the same as the row given twice.

        Returns
        -------
        self
        """
        self._validate_params()
        design, y = check_rows(self, X, y, reset=True)
        weight = check_weights(design, None, sample_weight, None)
        rng = np.random.default_rng(check_random_state(getattr(self, "random_state", None)).randint(2**31))
        self._learn(design, y, weight, rng)
        self._draw(self.n_components, design.dtype, rng)
        return self

    def draw(self, n_components: int, rng: np.random.Generator) -> FeatureGenerator:
        """A fitted transformer with `n_components` new features that shares what `fit` learned."""
        check_is_fitted(self)
        drawn = copy(self)
        drawn.n_components = n_components
        drawn._draw(n_components, self._dtype, rng)
        return drawn

    @property
    def redraws(self) -> bool:
        """Whether every pass of a stagewise fit should draw its blocks anew (see `begin_pass`)."""
        return False

    @property
    def capacity(self) -> int | None:
        """How many features there are in all; None when their number is not limited."""
        return None

    @property
    def columns(self) -> np.ndarray | None:
        """Which of the `capacity` features a drawn transformer gives; None when these are never drawn again."""
        return None

    @property
    def n_features_out(self) -> int:
        """How many features `transform` gives."""
        return self._n_features_out

    @abstractmethod
    def generate(self, X: Array, xp: Any) -> Array:
        """`transform` for a block of valid rows of the namespace `xp`."""

    def begin_pass(self, design: Design, gradient: Callable[[], Array], rng: np.random.Generator) -> None:
        """Called before each pass of a stagewise fit; ``gradient()`` is Σ s_i x_i r_iᵀ with the present residuals."""

    def transform(self, X: Any) -> Array:
        """The generated features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        X_new : array of shape (n_samples, n_features_out), in the dtype of X
        """
        check_is_fitted(self)
        design, _ = check_rows(self, X, reset=False)
        return self.generate(design.X, design.xp)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -- for subclasses -----------------------------------------------------------------------------------------

    def _learn(self, design: Design, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        """Set what all features share."""

    @abstractmethod
    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        """Set the parameters of `n_components` new features; ``_n_features_out`` and ``_dtype`` too."""

    def _set_drawn(self, n_features_out: int, dtype: Any, **parameters: np.ndarray) -> None:
        self._n_features_out = int(n_features_out)
        self._dtype = "float32" if "float32" in str(dtype) else "float64"
        for name, value in parameters.items():
            setattr(self, name, np.ascontiguousarray(value, dtype=self._dtype))


def median_squared_distance(
    X: Any, sample_weight: Any = None, random_state: int | np.random.Generator | None = 0
) -> float:
    """Median of ‖x − x'‖² over pairs of different rows, from at most 1024 rows.

    Pairs of equal rows are left out, so that repeating rows changes nothing but their weight.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,), default=None
    random_state : int, Generator or None, default=0
        Chooses the rows.

    Returns
    -------
    median : float
        1.0 when all rows are equal.
    """
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X.cpu() if hasattr(X, "cpu") else X)
    weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    present = np.flatnonzero(weight > 0)
    if len(present) > DISTANCE_ROWS:
        share = weight[present] / weight[present].sum()
        present = np.random.default_rng(random_state).choice(present, DISTANCE_ROWS, replace=False, p=share)
        weight = np.ones_like(weight)
    rows = X[present].astype(np.float64)
    scale = float(abs(rows).max()) or 1.0
    upper = np.triu_indices(len(present), 1)
    squared = (euclidean_distances(rows / scale, squared=True))[upper]
    importance = np.outer(weight[present], weight[present])[upper]
    different = squared > 1e-12 * max(squared.max(initial=0.0), 1e-300)
    squared, importance = squared[different], importance[different]
    if not len(squared):
        return 1.0
    order = np.argsort(squared, kind="stable")
    share = np.cumsum(importance[order])
    return float(squared[order[np.searchsorted(share, share[-1] / 2)]]) * scale**2


def in_pieces(work: Callable[[slice], Any], n_rows: int, row_size: int) -> None:
    """Call `work` on slices of rows so short that `row_size` entries of each stay in cache, on all cores."""
    step = max(CACHE_ELEMENTS // max(row_size, 1), 1)
    pieces = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    if len(pieces) > 1:
        list(_threads().map(work, pieces))
    else:
        work(slice(0, n_rows))


def in_rows(work: Callable[[np.ndarray], Any], Z: np.ndarray) -> np.ndarray:
    """Apply an in-place elementwise function to Z, in pieces of rows that stay in cache, on all cores."""
    in_pieces(lambda rows: work(Z[rows]), len(Z), Z.shape[1])
    return Z


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_openmp_effective_n_threads(), thread_name_prefix="manyclass-features")


def affine(X: Array, weights: np.ndarray, offset: np.ndarray, xp: Any) -> tuple[Array, bool]:
    """X @ weights + offset in the dtype of X, and whether it is a NumPy array that may be overwritten.

    Where X is dense and narrow, a column of ones is appended to it: one matrix product then does both.
    """
    if sp.issparse(X) or isinstance(X, np.ndarray):
        weights, offset = weights.astype(X.dtype, copy=False), offset.astype(X.dtype, copy=False)
        if sp.issparse(X) or X.shape[1] > weights.shape[1]:
            Z = np.asarray(X @ weights)
            Z += offset
            return Z, True
        ones = np.ones((len(X), 1), dtype=X.dtype)
        return np.hstack([X, ones]) @ np.vstack([weights, offset]), True
    like = {"dtype": X.dtype, "device": X.device}
    return X @ xp.asarray(weights, **like) + xp.asarray(offset, **like), False
