from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Rows
from manyclass.data.pieces import in_pieces
from manyclass.data.rows import Array, present_rows, slices, to_numpy
from manyclass.features.base import FeatureGenerator

CONTRAST = 1e-2
"""Added to the variance of a patch, relative to the mean variance, so that flat patches stay flat."""
NORM = 0.1
"""Added to the norm of a whitened patch, relative to the root of the mean squared norm, for the same reason."""
RESPONSE_BYTES = 32 << 20
"""Memory of the filter responses held at a time."""


@dataclass(eq=False, repr=False)
class ImagePatches(FeatureGenerator):
    """Convolution with patches of the training images, rectified and pooled (Coates, Ng and Lee, 2011).

    A filter f is a patch of the training images, or a k-means centre of patches, at unit norm. Each patch of an image
    is brought to mean 0 and variance 1 (``contrast``) and whitened (``whitening``); with r = fᵀ(patch) every filter
    gives max(r − threshold, 0) and max(−r − threshold, 0), averaged over each cell of a ``pool`` × ``pool`` grid. All
    features are divided by one number, which gives images the mean squared norm 1.

    Parameters
    ----------
    n_components : int, default=1600
        Number of features; rounded down to a multiple of ``2·pool²·polynomial`` (twice that with ``mirror``), at
        least one filter.
    image_shape : tuple (height, width) or (height, width, channels), default=None
        How a row of X is an image, channels last. None takes a square grey image, or else a single row of pixels.
    kind : {"random", "kmeans"}, default="random"
        Filters are random patches, or centres of patches found by scikit-learn's ``MiniBatchKMeans``.
    patch_size : int, default=6
    whitening : float or None, default=0.1
        What is added to the eigenvalues of the patches' covariance before these are divided out (ZCA), relative to
        their mean, so that noise is not blown up. None leaves patches as they are.
    contrast : bool or "whitened", default=True
        Bring each patch to variance 1. False divides all patches by the same number, as in *Least Squares Revisited*.
        "whitened" does so, too, and brings patches to norm 1 once they are whitened: r is then a cosine.
    mirror : bool or "even", default=False
        True: the second half of the filters are the mirror images of the first, left to right. The features of a
        mirrored image are then those of the image in another order: see `mirrored`. "even": each of these features is
        added to that of the mirrored image, which leaves half of them, the same for both images.
    pool : int, default=2
        The image is pooled over a grid of pool × pool cells.
    overlap : int, default=0
        Pixels by which each cell reaches into its neighbours, on every side where there is one.
    polynomial : int, default=1
        Elementwise powers 1..polynomial of the pooled features.
    threshold : float, default=0.5
    n_patches : int, default=50000
        Patches from which the whitening and the centres are learned.
    keep : bool, default=False
        While a block is fitted, keep its features of all training rows (in float16, as long as these are NumPy arrays)
        instead of computing them for each reading.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    filters_ : ndarray of shape (patch_length, n_filters)
        Whitening included.
    filter_offset_ : ndarray of shape (n_filters,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        If a row of X does not have the size of ``image_shape``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.features import ImagePatches
    >>> X, _ = load_digits(return_X_y=True)
    >>> patches = ImagePatches(80, image_shape=(8, 8), patch_size=3, random_state=0)
    >>> patches.fit_transform(X / 16).shape
    (1797, 80)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureGenerator._parameter_constraints,
        "image_shape": [tuple, list, None],
        "kind": [StrOptions({"random", "kmeans"})],
        "patch_size": [Interval(Integral, 1, None, closed="left")],
        "whitening": [Interval(Real, 0, None, closed="neither"), None],
        "contrast": ["boolean", StrOptions({"whitened"})],
        "mirror": ["boolean", StrOptions({"even"})],
        "pool": [Interval(Integral, 1, None, closed="left")],
        "overlap": [Interval(Integral, 0, None, closed="left")],
        "polynomial": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "n_patches": [Interval(Integral, 1, None, closed="left")],
        "keep": ["boolean"],
    }

    takes_sparse = False
    is_scaled = True
    moves_origin = False

    n_components: int = 1600
    _: KW_ONLY
    image_shape: tuple[int, ...] | None = None
    kind: str = "random"
    patch_size: int = 6
    whitening: float | None = 0.1
    contrast: bool | str = True
    mirror: bool | str = False
    pool: int = 2
    overlap: int = 0
    polynomial: int = 1
    threshold: float = 0.5
    n_patches: int = 50_000
    keep: bool = False
    random_state: Any = None

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        self._shape = _image_shape(self.image_shape, rows.n_features)
        height, width, _ = self._shape
        self._patch = (min(self.patch_size, height), min(self.patch_size, width))
        self._grid = (min(self.pool, height - self._patch[0] + 1), min(self.pool, width - self._patch[1] + 1))
        present = present_rows(rows.n_rows, weight)
        chosen = np.sort(rng.choice(present, min(len(present), self.n_patches), replace=False))
        per_image = -(-self.n_patches // len(chosen))
        ends = (size - patch + 1 for size, patch in zip(self._shape, self._patch, strict=False))
        at_row, at_column = (rng.integers(0, end, (len(chosen), per_image)) for end in ends)
        found = []
        for some in slices(len(chosen), rows.rows_per_block(1)):
            patches = self._windows(to_numpy(rows.take(chosen[some]).dense()))
            drawn = patches[np.arange(len(patches))[:, None], at_row[some], at_column[some]]
            found.append(drawn.reshape(len(patches) * per_image, -1))
        sample = np.concatenate(found)[: self.n_patches].astype(np.float64)
        variance = sample.var(axis=1)
        mean_variance = float(variance.mean()) or 1.0
        self._contrast = CONTRAST * mean_variance if self.contrast is True else mean_variance
        sample -= sample.mean(axis=1, keepdims=True)
        sample /= np.sqrt((self.contrast is True) * variance + self._contrast)[:, None]
        if self.mirror and self.contrast == "whitened":  # so that mirror images of patches have the same norms
            flipped = sample.reshape(len(sample), *self._patch, -1)[:, :, ::-1].reshape(sample.shape)
            sample = np.concatenate([sample, flipped])
        if self.whitening is None:
            self._mean, self._whitening = np.zeros(sample.shape[1]), np.eye(sample.shape[1])
        else:
            self._mean = sample.mean(axis=0)
            self._whitening = _zca(sample - self._mean, self.whitening)
        self._sample = ((sample - self._mean) @ self._whitening).astype(np.float32)
        self._norm = NORM * float(np.sqrt(np.mean(np.sum(self._sample**2, axis=1)))) or 1.0

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        per_filter = 2 * self._grid[0] * self._grid[1] * self.polynomial * (2 if self.mirror is True else 1)
        n_filters = max(n_components // per_filter, 1)
        if self.kind == "kmeans" and n_filters < len(self._sample):
            from sklearn.cluster import MiniBatchKMeans

            seed = int(rng.integers(2**31))
            means = MiniBatchKMeans(n_filters, batch_size=4096, n_init=1, max_iter=20, random_state=seed)
            filters = means.fit(self._sample).cluster_centers_
        else:
            filters = self._sample[rng.integers(0, len(self._sample), n_filters)]
        filters = filters.astype(np.float64)
        filters /= np.maximum(np.linalg.norm(filters, axis=1, keepdims=True), 1e-12)
        folded = self._whitening @ filters.T
        offset = -self._mean @ folded
        if self.mirror:
            flipped = folded.reshape(*self._patch, -1, n_filters)[:, ::-1].reshape(folded.shape)
            folded, offset = np.hstack([folded, flipped]), np.tile(offset, 2)
        self._set_drawn(n_filters * per_filter, dtype, filters_=folded, filter_offset_=offset)

    def mirrored(self, features: np.ndarray) -> np.ndarray:
        """What `transform` gives for the images mirrored left to right, from what it gives for the images.

        Exact where the columns of cells mirror into each other: their widths may differ by one pixel.

        Parameters
        ----------
        features : array of shape (n_samples, n_features_out)

        Returns
        -------
        features : array of shape (n_samples, n_features_out)

        Raises
        ------
        ValueError
            Without ``mirror``.
        """
        self._check_mirror()
        return self._by_filter(features)[:, :, :, ::-1, :, ::-1].reshape(features.shape)

    def even_and_odd(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What mirroring the images leaves as it is, and what changes its sign.

        With Mφ for `mirrored`, the different entries of (φ + Mφ)/√2 and of (φ − Mφ)/√2. For two images,
        φᵀφ' = eᵀe' + oᵀo' and φᵀMφ' = eᵀe' − oᵀo'; what is linear in the even half is the same for an image and its
        mirror image.

        Parameters
        ----------
        features : array of shape (n_samples, n_features_out)

        Returns
        -------
        even, odd : arrays of shape (n_samples, n_features_out / 2)
        """
        self._check_mirror()
        return self._halves(features)

    def _check_mirror(self) -> None:
        check_is_fitted(self)
        if self.mirror is not True:
            raise ValueError("the features do not hold those of mirror images; give mirror=True.")

    def _halves(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_filter = self._by_filter(features)
        first, second = by_filter[:, :, :, :, :, 0], by_filter[:, :, :, ::-1, :, 1]
        shape = (len(features), -1)
        return ((first + second) * 0.5**0.5).reshape(shape), ((first - second) * 0.5**0.5).reshape(shape)

    def _by_filter(self, features: np.ndarray) -> np.ndarray:
        return features.reshape(len(features), self.polynomial, *self._grid, 2, 2, -1)

    def _generate(self, rows: Rows) -> Array:
        # im2col of strided windows is NumPy's: images of other namespaces visit the host, as do their features.
        images = to_numpy(rows.dense())
        out = np.empty((len(images), self._n_features_out), dtype=images.dtype)
        height, width = (size - patch + 1 for size, patch in zip(self._shape, self._patch, strict=False))
        n_filters = self.filters_.shape[1]
        per_image = height * width * max(n_filters, self.filters_.shape[0]) * images.itemsize
        step = max(RESPONSE_BYTES // per_image, 1)
        for start in range(0, len(images), step):
            block = images[start : start + step]
            features = self._features(block, height, width, n_filters)
            out[start : start + step] = self._halves(features)[0] if self.mirror == "even" else features
        out *= out.dtype.type(self._scale)
        return rows.asarray(out)

    def _features(self, images: np.ndarray, height: int, width: int, n_filters: int) -> np.ndarray:
        from manyclass.features.pooling import pool_rectified

        dtype = images.dtype
        patches = self._windows(images).reshape(len(images) * height * width, -1)
        mean = patches.mean(axis=1, dtype=dtype)
        spread = np.full_like(mean, self._contrast)
        if self.contrast is True:
            spread += np.einsum("ij,ij->i", patches, patches) / patches.shape[1] - mean**2
        np.sqrt(spread, out=spread)
        filters = self.filters_.astype(dtype, copy=False)
        # (patch − mean)/spread is never formed: the filters see it through their sums.
        response = (patches @ filters).reshape(len(images), height, width, n_filters)
        filter_sum, offset = filters.sum(axis=0), self.filter_offset_.astype(dtype, copy=False)
        norm = self._norms(patches) if self.contrast == "whitened" else np.ones_like(mean)
        mean, spread, norm = (part.reshape(len(images), height, width) for part in (mean, spread, norm))
        pooled = np.empty((len(images), *self._grid, 2, n_filters), dtype=dtype)
        cells = (*_cells(height, self._grid[0], self.overlap), *_cells(width, self._grid[1], self.overlap))
        threshold = dtype.type(self.threshold)

        def pool(some: slice) -> None:
            images = (response[some], mean[some], spread[some], norm[some])
            pool_rectified(*images, filter_sum, offset, threshold, *cells, pooled[some])

        in_pieces(pool, len(images), height * width * n_filters)
        features = pooled.reshape(len(images), -1)
        return np.hstack([features**power for power in range(1, self.polynomial + 1)])

    def _norms(self, patches: np.ndarray) -> np.ndarray:
        """Norms of the patches once they are whitened, and a little more."""
        centred = (self._whitening - self._whitening.mean(axis=0)) / np.sqrt(self._contrast)
        whitened = patches @ centred.astype(patches.dtype)
        whitened -= (self._mean @ self._whitening).astype(patches.dtype)
        norms: np.ndarray = np.linalg.norm(whitened, axis=1)
        norms += patches.dtype.type(self._norm)
        return norms

    def _windows(self, images: np.ndarray) -> np.ndarray:
        """All patches, of shape (n_images, rows, columns, patch_height, patch_width, channels), a view."""
        # Products of patches away from 0 would lose the digits that their means take.
        images = images - images.mean(axis=1, keepdims=True, dtype=np.float64).astype(images.dtype)
        stack = images.reshape(len(images), *self._shape)
        windows = np.lib.stride_tricks.sliding_window_view(stack, self._patch, axis=(1, 2))
        return np.moveaxis(windows, 3, 5)


def _image_shape(shape: Any, n_features: int) -> tuple[int, int, int]:
    if shape is None:
        side = round(n_features**0.5)
        return (side, side, 1) if side * side == n_features else (1, n_features, 1)
    height, width, channels = (*map(int, shape), 1)[:3] if len(shape) in (2, 3) else (0, 0, 0)
    if height * width * channels != n_features or min(height, width, channels) < 1:
        raise ValueError(
            f"image_shape={tuple(shape)} does not describe rows of {n_features} features; give (height, width) or "
            "(height, width, channels) whose product is the number of columns of X."
        )
    return height, width, channels


def _zca(sample: np.ndarray, whitening: float) -> Array:
    """The symmetric whitening matrix, with the small eigenvalues held back."""
    values, vectors = np.linalg.eigh(sample.T @ sample / len(sample))
    floor = whitening * max(float(values.mean()), 1e-12)
    return (vectors / np.sqrt(np.maximum(values, 0.0) + floor)) @ vectors.T


def _cells(size: int, n_cells: int, overlap: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each cell along a side begins and ends."""
    edges = np.linspace(0, size, n_cells + 1).astype(np.int64)
    return np.maximum(edges[:-1] - overlap, 0), np.minimum(edges[1:] + overlap, size)
