"""What every classifier of the package shares: labels from scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from sklearn.base import ClassifierMixin

from manyclass.data import Design
from manyclass.data.design import Array
from manyclass.estimators.portable import PortableEstimator


class Classifier(ClassifierMixin, PortableEstimator, ABC):
    """The label with the largest score; of two classes, or of several labels at once, those with a positive one.

    Subclasses set ``classes_`` and ``multilabel_``, and say what `_rows` and `_scores` are.
    """

    classes_: Any
    multilabel_: bool

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def decision_function(self, X: Any) -> Array:
        """Scores of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        return self._scores(self._rows(X))

    def predict(self, X: Any) -> Array:
        """Labels of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,), or an indicator matrix (n_samples, n_labels) for multi-label models
        """
        return self._labels(self._codes(self._rows(X)))

    # -- for subclasses -------------------------------------------------------------------------------------------

    @abstractmethod
    def _rows(self, X: Any) -> Design:
        """The rows to predict, checked."""

    @abstractmethod
    def _scores(self, design: Design) -> Array:
        """What `decision_function` gives."""

    def _codes(self, design: Design) -> Array:
        """Class numbers, or an indicator matrix for multi-label models."""
        return self._best(self._scores(design))

    def _best(self, scores: Array) -> Array:
        """`_codes` of rows with these scores."""
        xp = array_namespace(scores)
        if self.multilabel_ or scores.ndim == 1:
            return xp.astype(scores > 0, xp.int64)
        return xp.argmax(scores, axis=1)

    def _labels(self, codes: Array) -> Array:
        """Labels as they were given to ``fit``."""
        classes = self.classes_
        if self.multilabel_:
            return codes
        if is_array_api_obj(classes) and not is_numpy_array(classes):
            return array_namespace(classes).take(classes, codes, axis=0)
        return np.take(classes, np.asarray(codes.cpu() if hasattr(codes, "cpu") else codes), axis=0)
