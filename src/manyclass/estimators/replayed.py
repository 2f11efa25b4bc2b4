"""What classifiers share whose predictions are replayed instead of being a link of W x + b."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_numpy_array
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Design, Targets
from manyclass.data.design import Array
from manyclass.estimators.encoding import Labels
from manyclass.estimators.portable import PortableEstimator
from manyclass.estimators.validation import check_rows
from manyclass.model.domains import Box, Domain, Simplex


class ReplayedClassifier(ClassifierMixin, PortableEstimator):
    """Labels, scores and probabilities from `_replay`. One column per class, for two classes too."""

    classes_: Any
    multilabel_: bool

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def decision_function(self, X: Any) -> Array:
        """Scores of the rows: the predictions before they are projected onto probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        return self._public_scores(self._replay(self._rows(X))[0])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : array of shape (n_samples, n_classes)
            In the order of ``classes_``. Rows sum to 1, except for multi-label models, where each column is the
            probability of one label. Probabilities can be exactly 0.
        """
        return self._replay(self._rows(X))[1]

    def predict(self, X: Any) -> Array:
        """Labels of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,), or an indicator matrix (n_samples, n_labels) for multi-label models
        """
        return self._labels(self._replay(self._rows(X))[0])

    # -- for subclasses -----------------------------------------------------------------------------------------

    def _replay(self, design: Design) -> tuple[Array, Array]:
        """Scores and probabilities, each of shape (n_rows, n_outputs)."""
        raise NotImplementedError

    def _rows(self, X: Any) -> Design:
        return fitted_rows(self, X)

    def _public_scores(self, scores: Array) -> Array:
        if self.multilabel_:
            return scores - self._threshold
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @property
    def _threshold(self) -> float:
        """The score above which a label is given in multi-label models."""
        return 0.5

    def _labels(self, scores: Array) -> Array:
        xp = array_namespace(scores)
        if self.multilabel_:
            return xp.astype(scores > self._threshold, xp.int64)
        scores = self._public_scores(scores)
        codes = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
        if is_array_api_obj(self.classes_) and not is_numpy_array(self.classes_):
            return array_namespace(self.classes_).take(self.classes_, codes, axis=0)
        return np.take(self.classes_, np.asarray(codes.cpu() if hasattr(codes, "cpu") else codes), axis=0)

    def _store_labels(self, labels: Labels, design: Design) -> None:
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        self._dtype = str(design.dtype).rsplit(".", 1)[-1]


def fitted_rows(estimator: Any, X: Any) -> Design:
    """Rows to predict, in the wider of their own dtype and that of the fit."""
    check_is_fitted(estimator)
    design = check_rows(estimator, X, reset=False)[0]
    xp = design.xp
    common = xp.result_type(design.dtype, getattr(xp, estimator._dtype))
    if design.dtype == common:
        return design
    return Design(design.X.astype(common) if design.is_sparse else xp.astype(design.X, common))


def targets_and_domain(labels: Labels, design: Design) -> tuple[Targets, Domain]:
    """One column per class with predictions on the simplex, or per label with predictions in [0, 1]."""
    if labels.is_multilabel:
        return labels.columns(design, 0.0, 1.0), Box()
    return labels.one_hot(design), Simplex()


def hold_out(
    labels: Labels, design: Design, sample_weight: Array | None, fraction: float, rng: np.random.Generator
) -> tuple[Array, Array, np.ndarray]:
    """`hold_out_rows`, stratified by class where every class has two rows or more."""
    codes = None
    if labels.codes is not None:
        codes = np.asarray(labels.codes.cpu() if hasattr(labels.codes, "cpu") else labels.codes)
        n_held_out = int(np.ceil(fraction * len(codes)))
        if np.bincount(codes).min() < 2 or min(n_held_out, len(codes) - n_held_out) < len(labels.classes):
            codes = None
    return hold_out_rows(codes, design, sample_weight, fraction, rng)


def hold_out_rows(
    strata: np.ndarray | None,
    design: Design,
    sample_weight: Array | None,
    fraction: float,
    rng: np.random.Generator,
) -> tuple[Array, Array, np.ndarray]:
    """Weights for fitting, weights for scoring (each 0 where the other is not), and the held-out rows.

    No row of X is copied.
    """
    from sklearn.model_selection import train_test_split

    seed = int(rng.integers(2**31))
    rows = train_test_split(np.arange(design.n_rows), test_size=fraction, random_state=seed, stratify=strata)
    held_out = np.sort(rows[1])
    mask = np.zeros(design.n_rows)
    mask[held_out] = 1.0
    weight = 1.0 if sample_weight is None else sample_weight
    scored = design.asarray(mask)
    return weight * (1.0 - scored), weight * scored, held_out
