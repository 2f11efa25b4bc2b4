"""What classifiers share: labels and probabilities from scores, and scores from coefficients."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags

from manyclass.data import Rows
from manyclass.data.labels import Labels, decode, encode, on_host
from manyclass.data.rows import Array
from manyclass.estimators.base import Estimator, Task
from manyclass.estimators.linear import LinearModel
from manyclass.estimators.parameters import available
from manyclass.estimators.parted import by_part
from manyclass.model import LOSSES, SMOOTH_LOSSES, Loss

FEW_BEST = 2.0
"""Up to so many times log₂(n_classes) labels, repeated maxima take less time than to sort the scores."""


def gives_probabilities(estimator: Classifier) -> bool:
    if estimator._has_probabilities:
        return True
    also = ", calibrate='sigmoid'" if hasattr(estimator, "_calibrate") else ""  # what CrossCalibrated can do
    raise AttributeError(
        f"loss={estimator._loss_in_use!r} gives scores but no probabilities; use loss='softmax' (or 'logistic'){also}, "
        "or put CalibratedClassifierCV around this classifier."
    )


class Classifier(ClassifierMixin, Estimator):
    """The label with the largest score; of two classes, or of several labels at once, those with a positive one.

    Subclasses set what `_scores` needs, and the base sets ``classes_``, ``loss_`` and ``multilabel_``.
    """

    classes_: Any
    multilabel_: bool
    loss_: str
    _threshold = 0.5  # on the probabilities of several labels; `AutoClassifier` may choose another

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        loss = getattr(self, "loss", "auto")
        tags.classifier_tags.multi_label = loss not in LOSSES or LOSSES[loss].label_loss is not None
        return tags

    @by_part
    def decision_function(self, X: Any) -> Array:
        """Scores of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        Z = self._by_blocks(X, lambda scores: scores)
        return Z[:, 0] if self._is_single(Z) else Z

    @by_part
    def predict(self, X: Any, top_k: int | None = None) -> Array:
        """Labels of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        top_k : int, default=None
            So many labels with the largest scores, the best first; every model but those of several labels can.

        Returns
        -------
        labels : array of shape (n_samples,), or an indicator matrix (n_samples, n_labels) for multi-label models
            In the namespace of X, except for strings and other labels that only NumPy has.
            With `top_k` of shape (n_samples, top_k).

        Raises
        ------
        ValueError
            If `top_k` is not between 1 and the number of classes, or there are several labels.
        """
        rows = self._fitted_rows(X)
        n_classes = int(self.classes_.shape[0])
        is_count = isinstance(top_k, int | np.integer) and 0 < top_k <= n_classes
        if top_k is not None and (self.multilabel_ or not is_count):
            raise ValueError(
                f"top_k={top_k!r} asks for the best of {n_classes} classes, of which each row has one; use a number "
                "from 1 to that, and decision_function where rows have several labels."
            )
        blocks = rows.blocks(rows.rows_per_block(n_classes))
        return self._labels(rows.xp.concat([self._best(self._scores(block), top_k) for _, block in blocks]))

    @available(gives_probabilities)
    @by_part
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : array of shape (n_samples, n_classes)
            In the order of ``classes_``. Rows sum to 1, except for multi-label models, where each column is the
            probability of one label.
        """
        return self._by_blocks(X, self._probabilities)

    @available(gives_probabilities)
    @by_part
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`."""

        def log_probabilities(scores: Array) -> Array:
            return array_namespace(scores).log(self._probabilities(scores))

        with np.errstate(divide="ignore"):
            return self._by_blocks(X, log_probabilities)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows whose labels are predicted right.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or path
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Where X is a path, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float
        """
        X, y = self._opened(X, y)
        # On the host, as X and y may be in different namespaces.
        return float(accuracy_score(on_host(y), on_host(self.predict(X)), sample_weight=on_host(sample_weight)))

    # -- for subclasses -------------------------------------------------------------------------------------------

    @abstractmethod
    def _scores(self, rows: Rows) -> Array:
        """Of shape (n_rows, n_outputs); one column for two classes."""

    def _probabilities(self, scores: Array) -> Array:
        """Of the classes, of shape (n_rows, n_classes), from scores, which may be overwritten."""
        return self._link_probabilities(self._before_link(scores))

    def _before_link(self, scores: Array) -> Array:
        """The input of the link `_link`: the scores, unless a temperature or calibration was learned."""
        return scores

    def _by_blocks(self, X: Any, function: Callable[[Array], Array]) -> Array:
        """A function of the scores of all rows, computed block by block into one array."""
        rows = self._fitted_rows(X)
        result: Array = None
        for part, block in rows.blocks(rows.rows_per_block(int(self.classes_.shape[0]))):
            values = function(self._scores(block))
            if int(values.shape[0]) == rows.n_rows:
                return values
            if result is None:
                result = rows.zeros((rows.n_rows, int(values.shape[1])), values.dtype)
            result[part, :] = values
        return result

    def _labels_and_probabilities(self, X: Any) -> tuple[Array, Array]:
        """`predict` and `predict_proba` in one pass over the rows."""
        Z = self._scores(self._fitted_rows(X))
        return self._labels(self._best(Z)), self._probabilities(Z)

    def _encode(self, rows: Rows, y: Any) -> Labels:
        labels = encode(y, type(self).__name__)
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        self.__dict__.pop("_threshold", None)  # of another model
        return labels

    def _choose_loss(self, encoded: Labels) -> tuple[str, Loss]:
        name = getattr(self, "loss", "auto")
        if name == "auto":
            name = self._loss_to_begin_with(encoded)
        loss = LOSSES[name]
        if encoded.is_multilabel:
            if loss.label_loss is None:
                raise ValueError(
                    f"loss={name!r} gives each row exactly one class, but y is an indicator matrix of several labels; "
                    "use loss='logistic' (or another loss that is taken per column)."
                )
            return name, LOSSES[loss.label_loss]
        if encoded.is_binary and loss.column_loss is not None:
            return name, LOSSES[loss.column_loss]
        return name, loss

    def _loss_to_begin_with(self, encoded: Labels) -> str:
        """What loss="auto" stands for."""
        return "logistic" if encoded.is_multilabel else "softmax"

    def _is_single(self, scores: Array) -> bool:
        return int(scores.shape[1]) == 1 and not self.multilabel_

    def _of_each_class(self, scores: Array) -> Array:
        return array_namespace(scores).concat([-scores, scores], axis=1) if self._is_single(scores) else scores

    def _best(self, scores: Array, top_k: int | None = None) -> Array:
        """Predicted class numbers, or an indicator matrix for multi-label models."""
        xp = array_namespace(scores)
        if top_k is not None:
            return largest(self._of_each_class(scores), top_k)
        if self.multilabel_:
            is_default = self._threshold == Classifier._threshold
            present = scores > 0 if is_default else self._probabilities(scores + 0.0) > self._threshold
            return xp.astype(present, xp.int64)
        return xp.astype(scores[:, 0] > 0, xp.int64) if self._is_single(scores) else xp.argmax(scores, axis=1)

    @property
    def _loss_in_use(self) -> str:
        return str(getattr(self, "loss_", None) or getattr(self, "loss", "auto"))

    @property
    def _has_probabilities(self) -> bool:
        return self._loss_in_use not in LOSSES or LOSSES[self._loss_in_use].probabilistic

    @property
    def _link(self) -> str:
        """The loss whose link makes probabilities of scores."""
        return self.loss_

    def _link_probabilities(self, Z: Array) -> Array:
        """Probabilities by the link of the loss, of shape (n_rows, n_classes)."""
        xp, loss = array_namespace(Z), SMOOTH_LOSSES[self._link]
        if self._is_single(Z):
            if loss.column_loss is None:  # the loss sees both classes together
                return loss.mean(xp.concat([-0.5 * Z, 0.5 * Z], axis=1), xp)
            P = LOSSES[loss.column_loss].mean(Z, xp)
            return xp.concat([1.0 - P, P], axis=1)
        P = loss.mean(Z, xp)
        if loss.label_values is None or self.multilabel_:
            return P
        total = xp.sum(P, axis=1, keepdims=True)  # one column per class was fitted against the rest
        return xp.where(total > 0, P / xp.where(total > 0, total, xp.ones_like(total)), 1.0 / int(P.shape[1]))

    def _labels(self, codes: Array) -> Array:
        """Labels as they were given to ``fit``, in the namespace of the codes where that has such labels."""
        return codes if self.multilabel_ else decode(self.classes_, codes)


class LinearClassifier(LinearModel, Classifier):
    """Probabilities from scores z = W x + b.

    With two classes there is one output, positive for ``classes_[1]``.
    """

    def _store(self, task: Task, model: tuple[Array, Array]) -> None:
        coef, intercept = model
        if task.encoded.is_binary and int(coef.shape[1]) == 2:
            coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
        super()._store(task, (coef, intercept))


def largest(scores: Array, n: int) -> Array:
    """The numbers of the n classes with the largest scores of each row, best first; ties in the order of the classes.

    A few maxima among thousands of scores are many times faster than sorting.
    """
    xp = array_namespace(scores)
    n_classes = int(scores.shape[1])
    if n > FEW_BEST * math.log2(n_classes):
        return xp.argsort(scores, axis=1, descending=True)[:, :n]
    number, best = xp.arange(n_classes, device=scores.device)[None, :], []
    for _ in range(n):
        best.append(xp.argmax(scores, axis=1))
        scores = xp.where(number == best[-1][:, None], -xp.inf, scores)
    return xp.stack(best, axis=1)
