"""What classifiers share whose predictions are replayed instead of being a link of W x + b."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.utils.validation import check_is_fitted

from manyclass.data import Design, Targets
from manyclass.data.design import Array
from manyclass.data.validation import check_rows
from manyclass.estimators.classifier import Classifier
from manyclass.estimators.encoding import Labels
from manyclass.model.domains import Box, Domain, Simplex


class ReplayedClassifier(Classifier):
    """Scores and probabilities from `_replay`. One column per class, for two classes too.

    Scores are the predictions before they are projected onto probabilities.
    """

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

    # -- for subclasses -----------------------------------------------------------------------------------------

    @abstractmethod
    def _replay(self, design: Design) -> tuple[Array, Array]:
        """Scores and probabilities, each of shape (n_rows, n_outputs)."""

    def _rows(self, X: Any) -> Design:
        return fitted_rows(self, X)

    def _scores(self, design: Design) -> Array:
        return self._public_scores(self._replay(design)[0])

    def _public_scores(self, scores: Array) -> Array:
        if self.multilabel_:
            return scores - self._threshold
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @property
    def _threshold(self) -> float:
        """The score above which a label is given in multi-label models."""
        return 0.5

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
