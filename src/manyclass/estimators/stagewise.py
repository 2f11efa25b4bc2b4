"""Stagewise regression over features that are generated block by block and never stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from manyclass.data import Design, MatrixTargets, TrainingSet
from manyclass.data.design import Array
from manyclass.data.validation import check_rows, check_weights
from manyclass.estimators.encoding import encode
from manyclass.estimators.held_out import split_weights
from manyclass.estimators.parameters import CLASS_WEIGHT, generator
from manyclass.estimators.replayed import (
    ReplayedClassifier,
    fitted_rows,
    targets_and_domain,
)
from manyclass.estimators.staged import StagedEstimator
from manyclass.features import FeatureGenerator
from manyclass.model.domains import Box, Domain, Simplex, WholeSpace
from manyclass.solvers.base import Record
from manyclass.solvers.inner import INNER_UPDATES, InnerUpdate, Linear


class StagewiseClassifier(StagedEstimator, ReplayedClassifier):
    """Stagewise regression over generated features: *Least Squares Revisited*, Algorithm 3.

    From ŷ = 0, stage t generates a block of p new features φ_t(x), fits what is left over,

        W_t = argmin_W (1/2S) Σ_i s_i ‖y_i − ŷ_i − Wᵀφ_t(x_i) − b‖² + (alpha/2) ‖W‖²       (inner="linear")

    and moves the predictions. Features are never stored: a block is generated chunk by chunk while its Gram matrix is
    summed, once more to move the predictions, and again to predict. A model with tens of thousands of features needs
    the memory of X, of two (n, k) arrays, of one chunk and of a few p×p matrices. Later passes visit the blocks again
    and tend to the joint solution of all features (block coordinate descent).

    Dimension reduction in front, such as PCA, belongs into a ``Pipeline``: it is then applied once to each row, where
    as a part of each block it would be applied once per block.

    Parameters
    ----------
    features : FeatureGenerator, default=None
        Where blocks come from: `RandomFourierFeatures` (the default), `RandomUnits`, `RandomPolynomials`,
        `Landmarks`, `FeatureSubset`, `ImagePatches`, or your own. Its ``n_components`` and ``random_state`` are not
        used.
    alpha : float, default=1e-6
        Penalty, ≥ 0. Generators scale a block to a mean squared norm of about 1, so alpha does not change its meaning
        with the block size.
    inner : {"linear", "calibrated", "softmax"}, default="linear"
        "linear": least squares on the residuals, the fastest. "calibrated": then also Algorithm 2's calibration and
        projection after each pass, so that ``n_passes`` is its number of iterations. "softmax": a Newton step on the
        log loss with the running scores as offset (one logistic loss per label for multi-label y).
    n_components : int or None, default=8192
        Features in all; None for all that a `FeatureSubset` has.
    block_size : int, default=1024
        Features per stage, p. Larger blocks are nearer to the joint solution; a stage costs n·p².
    n_passes : int, default=1
        How often each block is visited. A further pass costs a small part of the first while the factors are kept.
    n_models : int, default=1
        Models on disjoint features, trained one after the other and averaged.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in scikit-learn.
    early_stopping : bool, default=False
        Hold rows out, stop when their loss no longer falls, and keep the stages up to the best.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=10
        Stages without gain on the held-out rows after which to stop.
    max_time : float, default=None
        Seconds. No stage (and no model) is begun that would probably end later; what is finished is the model.
    cache_size : float, default=1000
        Megabytes for the factors of blocks that will be visited again.
    callback : callable, default=None
        Called after each stage with a `StageRecord`.
    random_state : int, RandomState or None, default=None
        Seeds features and held-out rows. None means a fixed seed, so results repeat.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    models_ : list of StagewiseModel
        Of each model: blocks (fitted transformers) and stages.
    n_iter_ : int
        Stages of all models.
    history_ : list of StageRecord
        One per stage: objective, held_out, seconds, n_features, and seconds per phase.
    status_ : Status
    certificate_ : float
        Decrease of the objective in the last stage, relative to the loss before the first.
    multilabel_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or the generator cannot give the features.

    Notes
    -----
    Ctrl-C ends the fit after the last finished stage: the model holds all stages before, ``status_`` says so, and a
    ConvergenceWarning is issued. ``predict_proba`` projects the predictions of "linear" and "calibrated" onto the
    simplex, or [0, 1]^k for multi-label y; "softmax" gives softmax (logistic) probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import StagewiseClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StagewiseClassifier(n_components=1024, block_size=256, alpha=1e-4).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StagedEstimator._parameter_constraints,
        "inner": [StrOptions(set(INNER_UPDATES))],
        **CLASS_WEIGHT,
    }

    def __init__(
        self,
        features: FeatureGenerator | None = None,
        *,
        alpha: float = 1e-6,
        inner: str = "linear",
        n_components: int | None = 8192,
        block_size: int = 1024,
        n_passes: int = 1,
        n_models: int = 1,
        fit_intercept: bool = True,
        class_weight: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        max_time: float | None = None,
        cache_size: float = 1000,
        callback: Callable[[Record], Any] | None = None,
        random_state: Any = None,
    ):
        self.features = features
        self.alpha = alpha
        self.inner = inner
        self.n_components = n_components
        self.block_size = block_size
        self.n_passes = n_passes
        self.n_models = n_models
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_time = max_time
        self.cache_size = cache_size
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StagewiseClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            float32 stays float32, and is twice as fast.
        y : array-like of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the same as the row given twice.

        Returns
        -------
        self
        """
        self._validate_params()
        started = time.perf_counter()
        design, y = check_rows(self, X, y, reset=True)
        labels = encode(y, type(self).__name__)
        weight = check_weights(design, y, sample_weight, self.class_weight)
        targets, domain = targets_and_domain(labels, design)
        fitted, scored = weight, None
        if self.early_stopping:
            rng = generator(self.random_state)
            fitted, scored, _ = split_weights(labels, design, weight, self.validation_fraction, rng)
        self._store_labels(labels, design)
        guide = labels.indicator if labels.codes is None else labels.codes
        training = TrainingSet(design, targets, fitted, scored)
        inner = INNER_UPDATES[self.inner](domain)
        self._store_run(*self._fit_models(training, guide, inner, weight, started))
        return self

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each stage (of every model, where there are several).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        labels : array of shape (n_samples,), or an indicator matrix (n_samples, n_labels) for multi-label models
        """
        for state in self._staged_states(self._rows(X)):
            yield self._labels(self._best(self._public_scores(state)))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` after each stage; see `staged_predict`."""
        design = self._rows(X)
        for state in self._staged_states(design):
            yield self._inner_update().probabilities(state, design.xp)

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after each stage; see `staged_predict`."""
        for state in self._staged_states(self._rows(X)):
            yield self._public_scores(state)

    def _replay(self, design: Design) -> tuple[Array, Array]:
        state = self._states(design)
        return state, self._inner_update().probabilities(state, design.xp)

    def _inner_update(self) -> InnerUpdate:
        domain: Domain = Box() if self.multilabel_ else Simplex()
        return INNER_UPDATES[self.inner](domain)

    @property
    def _threshold(self) -> float:
        return INNER_UPDATES[self.inner].threshold


class StagewiseRegressor(RegressorMixin, StagedEstimator):
    """Least squares on generated features, block by block; see `StagewiseClassifier`.

    Minimises (1/2S) Σ_i s_i ‖y_i − Wᵀφ(x_i) − b‖² + (alpha/2) ‖W‖² by block coordinate descent over blocks of φ that
    are generated when they are needed. y may have several columns.

    Parameters
    ----------
    features, alpha, n_components, block_size, n_passes, n_models, fit_intercept, early_stopping, validation_fraction, \
n_iter_no_change, max_time, cache_size, callback, random_state
        As in `StagewiseClassifier`.

    Attributes
    ----------
    models_, n_iter_, history_, status_, certificate_, n_features_in_, feature_names_in_
        As in `StagewiseClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from manyclass import StagewiseRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = StagewiseRegressor(n_components=512, block_size=128, alpha=1e-3).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.4)
    True
    """

    def __init__(
        self,
        features: FeatureGenerator | None = None,
        *,
        alpha: float = 1e-6,
        n_components: int | None = 8192,
        block_size: int = 1024,
        n_passes: int = 1,
        n_models: int = 1,
        fit_intercept: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        max_time: float | None = None,
        cache_size: float = 1000,
        callback: Callable[[Record], Any] | None = None,
        random_state: Any = None,
    ):
        self.features = features
        self.alpha = alpha
        self.n_components = n_components
        self.block_size = block_size
        self.n_passes = n_passes
        self.n_models = n_models
        self.fit_intercept = fit_intercept
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_time = max_time
        self.cache_size = cache_size
        self.callback = callback
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StagewiseRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        self._validate_params()
        started = time.perf_counter()
        design, y = check_rows(self, X, y, reset=True)
        weight = check_weights(design, y, sample_weight, None)
        Y = design.asarray(y.toarray() if hasattr(y, "toarray") else y)
        self._one_target = Y.ndim == 1
        targets = MatrixTargets(Y[:, None] if self._one_target else Y)
        fitted, scored = weight, None
        if self.early_stopping:
            rng = generator(self.random_state)
            fitted, scored, _ = split_weights(None, design, weight, self.validation_fraction, rng)
        self._dtype = str(design.dtype).rsplit(".", 1)[-1]
        training = TrainingSet(design, targets, fitted, scored)
        self._store_run(*self._fit_models(training, np.asarray(y), self._inner_update(), weight, started))
        return self

    def predict(self, X: Any) -> Array:
        """Predictions of shape (n_samples,) or (n_samples, n_targets)."""
        return self._shaped(self._states(fitted_rows(self, X)))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` after each stage (of every model, where there are several)."""
        for state in self._staged_states(fitted_rows(self, X)):
            yield self._shaped(state)

    def _shaped(self, state: Array) -> Array:
        return state[:, 0] if self._one_target else state

    def _inner_update(self) -> InnerUpdate:
        return Linear(WholeSpace())
