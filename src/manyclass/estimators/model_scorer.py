"""Scores models by the log loss, the accuracy, or a scorer of scikit-learn, from the decision scores of rows."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer, make_scorer

from manyclass.data import Rows, as_rows
from manyclass.data.labels import Labels
from manyclass.data.rows import Array, to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import LinearClassifier, gives_probabilities
from manyclass.fit import Iterates
from manyclass.model import SMOOTH_LOSSES


class FromScores(LinearClassifier):
    """A classifier whose rows are decision scores, for scorers that call its methods.

    It has the classes, the loss and the link of its owner.
    """

    def __init__(self, owner: LinearClassifier):
        self.owner, self.multilabel_, self.loss_ = owner, owner.multilabel_, owner.loss_
        # With two classes, scorers would only use the probabilities of the second of two labels.
        self.classes_ = np.eye(int(owner.classes_.shape[0])) if owner.multilabel_ else owner.classes_

    def _fitted_rows(self, X: Any) -> Rows:
        return as_rows(X)

    def _scores(self, rows: Rows) -> Array:
        return rows.dense()

    def _iterates(self, task: Task) -> Iterates:
        raise TypeError("Scores are not fitted.")


def with_labels(scorer: Any, classes: Any) -> Any:
    """The scorer with all classes as ``labels``, if it takes these: the rows of a fold may lack a class."""
    function = getattr(scorer, "_score_func", None)
    parameters = () if function is None else signature(function).parameters
    if "labels" not in parameters:
        return scorer
    classes = to_numpy(classes)
    labels = {"labels": classes} | (
        {"pos_label": classes[-1]} if "pos_label" in parameters and len(classes) == 2 else {}
    )
    kind = {"greater_is_better": scorer._sign > 0, "response_method": scorer._response_method}
    return make_scorer(function, **kind, **labels | scorer._kwargs)


def takes_weights(scorer: Any) -> bool:
    """Whether a scorer accepts sample weights."""
    parameters = signature(scorer._score_func).parameters
    named = "sample_weight" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    # scikit-learn's area of one class against one refuses them.
    return named and scorer._kwargs.get("multi_class") != "ovo"


class ModelScorer:
    """Scores models, larger for better, from their decision scores Z of rows.

    Without `scoring` it takes the log loss for softmax and logistic, and the accuracy otherwise. Scorers that accept no
    weights are given none.
    """

    def __init__(self, owner: LinearClassifier, scoring: Any, encoded: Labels):
        self.classifier, self.encoded, self.scoring = FromScores(owner), encoded, scoring
        self._scorer: Any = None
        if scoring is None:
            loss = SMOOTH_LOSSES[owner.loss_]
            scoring = "neg_log_loss" if loss.probabilistic and not loss.has_kinks else "accuracy"
        self.of_rows = {"neg_log_loss": self.log_likelihood, "accuracy": self._is_right}.get(scoring)
        if self.of_rows is None:
            if callable(scoring) and not hasattr(scoring, "_score_func"):
                raise ValueError(
                    f"scoring={scoring!r} is not made by sklearn.metrics.make_scorer, and would be given scores in "
                    "place of X; use make_scorer, or sklearn.model_selection.GridSearchCV."
                )
            scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
            self._scorer = scorer if owner.multilabel_ else with_labels(scorer, owner.classes_)
        if scoring == "neg_log_loss" or getattr(self._scorer, "_response_method", None) == "predict_proba":
            gives_probabilities(owner)

    @property
    def knows_rows(self) -> bool:
        """Whether the score is a mean over rows."""
        return self.of_rows is not None

    def of_likelihood(self) -> ModelScorer | None:
        """The same by the log loss, if the model has one and the score is another; else None."""
        loss = SMOOTH_LOSSES[self.classifier.loss_]
        if not loss.probabilistic or loss.has_kinks or self.of_rows == self.log_likelihood:
            return None
        return ModelScorer(self.classifier.owner, "neg_log_loss", self.encoded)

    def one_column(self, Z: Array) -> Array:
        """The scores of two classes as one column, as models are stored."""
        return Z[:, 1:] - Z[:, :1] if self.encoded.is_binary and int(Z.shape[1]) == 2 else Z

    def truth(self, index: np.ndarray | slice, encoded: Labels | None = None) -> np.ndarray:
        """Class numbers or indicators of some rows."""
        encoded = self.encoded if encoded is None else encoded
        return to_numpy(encoded.guide)[index]

    def values(self, Z: Array, truth: np.ndarray) -> np.ndarray | None:
        """The score of each row, if the score is a mean over rows; else None."""
        return None if self.of_rows is None else self.of_rows(self.one_column(Z), truth)

    def score(self, Z: Array, truth: np.ndarray, weight: np.ndarray | None) -> Any:
        """The score of some rows: a number, or one for each output."""
        return self.judged(Z, truth, weight)[0]

    def judged(self, Z: Array, truth: np.ndarray, weight: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
        """The score, and the scores of the rows of positive weight, if it is a mean of these."""
        values, keep = self.values(Z, truth), slice(None) if weight is None else weight > 0
        if values is not None:
            return np.average(values, axis=0, weights=weight), values[keep]
        y = truth[keep] if truth.ndim == 2 else to_numpy(self.classifier.classes_)[truth[keep]]
        options = {} if weight is None or not takes_weights(self._scorer) else {"sample_weight": weight[keep]}
        return float(self._scorer(self.classifier, self.one_column(Z)[keep], y, **options)), None

    def log_likelihood(self, Z: Array, truth: np.ndarray) -> Any:
        """The log likelihood of each row; several labels are summed."""
        P = to_numpy(self.classifier._link_probabilities(Z))
        least = np.finfo(P.dtype).eps  # as scikit-learn's log loss: one row must not outweigh all others
        if truth.ndim == 2:
            return np.log(np.where(truth > 0, P, 1.0 - P).clip(least)).sum(axis=1)
        return np.log(P[np.arange(len(P)), truth].clip(least))

    def gains(self, Z: Array, truth: np.ndarray) -> Any:
        """Minus the squared error of each row and output, −1 and 1 standing for an absent and a present class."""
        n_outputs = int(Z.shape[1])
        present = truth if truth.ndim == 2 else truth[:, None] == (1 if n_outputs == 1 else np.arange(n_outputs))
        return -((to_numpy(Z) - (2.0 * present - 1.0)) ** 2)

    def _is_right(self, Z: Array, truth: np.ndarray) -> Any:
        right = to_numpy(self.classifier._best(Z)) == truth
        return (right.all(axis=1) if truth.ndim == 2 else right).astype(np.float64)
