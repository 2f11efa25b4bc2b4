from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions

from manyclass.data import GeneratedRows, Rows
from manyclass.data.columns import variance
from manyclass.data.generated import InUnits
from manyclass.data.rows import Array, to_numpy
from manyclass.features.base import BANDWIDTH, FeatureGenerator
from manyclass.features.learned_metric import Waves, metric_root


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
    metric : {"euclidean", "learned"} or array of shape (n_features, n_directions), default="euclidean"
        "learned": x stands for Lᵀx, with L, which W then holds, such that rows are far from each other along directions
        in which predictions of y change, and near along others. LLᵀ is the average outer product of the gradients of a
        first model: least squares on 1024 features of the Euclidean metric, of the median bandwidth, and at most 8192
        rows, less where these are wide. Median distances stay as they are. As the features have seen y,
        ``alpha="auto"`` may be too small where there is nothing to learn. An array is L itself.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    bandwidth_ : float
        s.
    metric_root_ : ndarray of shape (n_features, n_directions)
        L, where the metric is learned; the sums of its squares along the rows say how much each column matters. None
        for the Euclidean metric, which stays where no prediction changes, and where there are more than 1024 columns,
        or more than half of the rows.
    random_weights_ : ndarray of shape (n_features, n_components)
    random_offset_ : ndarray of shape (n_components,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        If the metric is to be learned without y.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models", Science 383, of learned metrics.

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
        "metric": [StrOptions({"euclidean", "learned"}), "array-like"],
    }

    first_counts = False

    n_components: int = 1024
    _: KW_ONLY
    bandwidth: str | float = "median"
    standardize: bool = False
    metric: Any = "euclidean"
    random_state: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._is_learned
        return tags

    @property
    def _is_learned(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "learned"

    def _learn(self, rows: Rows, y: Any, weight: Array | None, rng: np.random.Generator) -> None:
        if self._is_learned and y is None:
            raise self._needs_y("metric", ["euclidean"])
        self._unit = np.ones((1, 1))
        if self.standardize:
            xp = rows.xp
            spread = xp.sqrt(variance(rows, weight))
            spread = xp.where(spread > 0, spread, xp.ones_like(spread))
            self._unit, rows = to_numpy(spread)[:, None], GeneratedRows(rows, InUnits(spread))
        self.bandwidth_ = self._bandwidth(rows, weight, rng)
        # Of random numbers of its own, so that a metric learned before gives the same features as an array.
        (own,) = rng.spawn(1)
        self.metric_root_ = metric_root(rows, y, weight, own) if self._is_learned else self._given_root(rows.n_features)

    def _given_root(self, n_features: int) -> np.ndarray | None:
        if isinstance(self.metric, str):
            return None
        root = np.asarray(self.metric)
        fits = root.ndim == 2 and len(root) == n_features and root.size and root.dtype.kind in "iuf"
        if not fits or not np.isfinite(root).all():
            raise ValueError(
                f"metric has the shape {root.shape}; give finite numbers of shape ({n_features}, n_directions), "
                "'learned' or 'euclidean'."
            )
        return root.astype(np.float64)

    def _draw(self, n_components: int, dtype: Any, rng: np.random.Generator) -> None:
        root = self.metric_root_
        n_directions = self.n_features_in_ if root is None else root.shape[1]
        frequencies = rng.standard_normal((n_directions, n_components))
        frequencies *= np.sqrt(2.0 / self.bandwidth_)
        frequencies = frequencies if root is None else root @ frequencies
        if self.standardize:
            frequencies /= self._unit
        phases = rng.uniform(0.0, 2.0 * np.pi, n_components)
        self._set_drawn(n_components, dtype, random_weights_=frequencies, random_offset_=phases)

    def _generate(self, rows: Rows) -> Array:
        return Waves(self.random_weights_, self.random_offset_).generate(rows)
