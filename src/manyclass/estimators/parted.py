"""``fit`` on rows in the partitions of an engine, and lazy predictions part by part."""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_feature_names

from manyclass.data.parted import parted
from manyclass.estimators.parameters import F
from manyclass.execution import engine_of


def fits_parts(fit: F) -> F:
    """Lets ``fit`` take the collections of an engine, if the estimator has `_fits_parts`."""

    @wraps(fit)
    def on_parts(self: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        engine = engine_of(X)
        if engine is None:
            return fit(self, X, y, sample_weight, **options)
        if not (self._fits_parts and is_classifier(self)):
            raise TypeError(
                f"{type(self).__name__} does not fit rows that lie in partitions; use GLMClassifier, "
                "CalibratedLeastSquaresClassifier or StagewiseClassifier, or pass X.compute() where the rows fit into "
                "memory."
            )
        if options.get("checkpoint") is not None:
            raise ValueError("Fits of rows that lie in partitions store no checkpoints; leave checkpoint out.")
        with parted(engine, X, y, sample_weight, type(self).__name__) as (rows, labels, weight):
            fit(self, rows, labels, weight, **options)
            _check_feature_names(self, getattr(X, "_meta", X), reset=True)
        return self

    return cast(F, on_parts)


def by_part(method: F) -> F:
    """Makes a method of X lazy for the collections of an engine: the result is another collection."""

    @wraps(method)
    def put_off(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        engine = engine_of(X)
        if engine is None:
            return method(self, X, *arguments, **options)
        model = copy(self)  # another fit must not change what is computed later
        call = partial(_quietly, method.__name__, model, *arguments, **options)
        # The prediction of a row of zeros has the shape and dtype of all.
        dtypes = getattr(X, "dtypes", None)
        dtype = getattr(X, "dtype", None) or (np.float64 if dtypes is None else np.result_type(*dtypes))
        like = call(np.zeros((1, self.n_features_in_), dtype))
        return engine.lazily(_EmptyOr(call, like[:0]), X, tuple(like.shape[1:]), like.dtype)

    return cast(F, put_off)


def _quietly(name: str, model: Any, *arguments: Any, **options: Any) -> Any:
    """X comes last. Parts of an array have no names of columns."""
    *others, X = arguments
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return getattr(model, name)(X, *others, **options)


@dataclass(frozen=True)
class _EmptyOr:
    """A function, or an empty result for parts without rows, which models refuse."""

    function: Callable[[Any], Any]
    empty: Any

    def __call__(self, X: Any) -> Any:
        return self.function(X) if X.shape[0] else self.empty
