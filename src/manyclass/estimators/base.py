"""What every linear classifier of the package shares: scores, labels and probabilities from fitted coefficients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Design
from manyclass.data.design import Array
from manyclass.data.validation import check_rows
from manyclass.estimators.classifier import Classifier
from manyclass.estimators.encoding import Labels
from manyclass.model import LINKS, Link, Objective


def _gives_probabilities(estimator: LinearClassifier) -> bool:
    name = estimator._probability_link()
    if not LINKS[name].probabilistic:
        raise AttributeError(
            f"link {name!r} gives scores but no probabilities; use link='softmax' (or 'logistic' for multi-label data)."
        )
    return True


class LinearClassifier(Classifier):
    """Scores z = W x + b, and what follows from them.

    Subclasses set ``classes_``, ``coef_`` of shape (n_outputs, n_features), ``intercept_`` of shape (n_outputs,) and
    ``multilabel_``; with two classes there is one output, positive for ``classes_[1]``.
    """

    coef_: Array
    intercept_: Array

    @available_if(_gives_probabilities)
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
        design = self._rows(X)
        xp = design.xp
        Z = self._scores(design)
        link = LINKS[self._probability_link()]
        if Z.ndim == 1:
            if link.column_link is None:  # the link sees both classes together
                return link.mean(xp.stack([-0.5 * Z, 0.5 * Z], axis=1), xp)
            P = LINKS[link.column_link].mean(Z[:, None], xp)
            return xp.concat([1.0 - P, P], axis=1)
        P = link.mean(Z, xp)
        if link.label_values is None or self.multilabel_:
            return P
        total = xp.sum(P, axis=1, keepdims=True)  # one column per class was fitted against the rest
        return xp.where(total > 0, P / xp.where(total > 0, total, xp.ones_like(total)), 1.0 / int(P.shape[1]))

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`."""
        P = self.predict_proba(X)
        xp = array_namespace(P)
        with np.errstate(divide="ignore"):
            return xp.log(P)

    # -- for subclasses -------------------------------------------------------------------------------------------

    @abstractmethod
    def _probability_link(self) -> str:
        """Name of the link that turns scores into probabilities."""

    def _rows(self, X: Any) -> Design:
        check_is_fitted(self, "coef_")
        return check_rows(self, X, reset=False)[0]

    def _scores(self, design: Design) -> Array:
        Z = linear_scores(design, self.coef_, self.intercept_)
        return Z[:, 0] if not self.multilabel_ and int(self.coef_.shape[0]) == 1 else Z

    def _codes(self, design: Design) -> Array:
        blocks = design.blocks(design.rows_per_block(int(self.coef_.shape[0])))
        return design.xp.concat([self._best(self._scores(Design(design.rows(rows)))) for rows, _ in blocks])

    def _warm_start(self, objective: Objective, labels: Labels) -> Array | None:
        """theta of the present coefficients, or None where there are none that fit the data."""
        if not hasattr(self, "coef_"):
            return None
        xp, design = objective.xp, objective.design
        coef, intercept = design.asarray(self.coef_).T, design.asarray(self.intercept_)
        if labels.is_binary and objective.n_outputs == 2 and int(coef.shape[1]) == 1:
            coef, intercept = (
                xp.concat([-0.5 * coef, 0.5 * coef], axis=1),
                xp.concat([-0.5 * intercept, 0.5 * intercept]),
            )
        if tuple(coef.shape) != (design.n_features, objective.n_outputs):
            return None
        return objective.pack(coef, intercept)

    def _store(self, labels: Labels, coef: Array, intercept: Array) -> None:
        """Public attributes from W (n_features, n_outputs) and b, as scikit-learn names and shapes them."""
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        if labels.is_binary and int(coef.shape[1]) == 2:
            coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef.T, intercept


def linear_scores(design: Design, coef: Array, intercept: Array) -> Array:
    """X coefᵀ + intercept, of shape (n_rows, n_outputs)."""
    if str(coef.dtype) != str(design.dtype):
        # The common type keeps the precision of both.
        xp = design.xp
        common = xp.result_type(coef.dtype, design.dtype)
        if not design.is_sparse and design.dtype != common:
            design = Design(xp.astype(design.X, common))
        coef, intercept = xp.astype(coef, common), xp.astype(intercept, common)
    return design.matmat(coef.T) + intercept


def resolve_link(name: str, labels: Labels) -> tuple[str, Link, tuple[float, float] | None]:
    """(public name, link that is fitted, label values of its columns or None for one-hot targets).

    Raises
    ------
    ValueError
        If the link cannot serve multi-label targets.
    """
    if name == "auto":
        name = "logistic" if labels.is_multilabel else "softmax"
    link = LINKS[name]
    if labels.is_multilabel:
        if link.label_values is None:
            raise ValueError(
                f"link={name!r} gives each row exactly one class, but y is an indicator matrix of several labels; "
                "use link='logistic' (or 'auto')."
            )
        return name, link, link.label_values
    if labels.is_binary and link.column_link is not None:
        column = LINKS[link.column_link]
        return name, column, column.label_values
    return name, link, None
