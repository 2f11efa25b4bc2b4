"""Logistic regression with a penalty that is given."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils import Tags

from manyclass.data import Rows
from manyclass.data.labels import Labels
from manyclass.data.rows import Array
from manyclass.estimators.base import Task
from manyclass.fit import Iterates, Outcome, Status
from manyclass.linear_model.shared import Single


class Logistic(SparseCoefMixin):
    """What both logistic regressions refuse, and how their models are stored."""

    if TYPE_CHECKING:

        def __init__(self, *parameters: Any, **named: Any):
            """As scikit-learn's."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

    def _validate_params(self) -> None:
        super()._validate_params()
        given = vars(self)
        ratios = given.get("l1_ratio", given.get("l1_ratios"))
        has_ratio = not (ratios is None or isinstance(ratios, str)) and bool(np.any(np.asarray(ratios) != 0))
        if given.get("penalty") in ("l1", "elasticnet") or has_ratio:
            raise ValueError(
                f"{type(self).__name__} has no L1 penalty: leave l1_ratio at 0 and penalty at 'l2' or None, or take "
                "scikit-learn's with solver='saga'."
            )
        if given.get("dual"):
            raise ValueError(
                "dual=True is a way to the same minimum, taken by LIBLINEAR alone; leave it out, or use "
                "SDCAClassifier(loss='logistic')."
            )

    def _encode(self, rows: Rows, y: Any) -> Labels:
        labels: Labels = super()._encode(rows, y)
        if labels.indicator is not None:
            raise ValueError(
                f"y should be a 1d array of labels, got an array of shape {labels.indicator.shape} instead; use "
                "GLMClassifier for several labels per row."
            )
        return labels


def centred(part: Any) -> Any:
    """Of the models that have the same probabilities, the one whose coefficients of all classes add up to zero."""
    return part - part.mean(-1)[..., None] if int(part.shape[-1]) > 1 else part


class LogisticRegression(Logistic, Single):
    """`sklearn.linear_model.LogisticRegression`, fitted as `GLMClassifier` is, with ``alpha = 1/(C·S)``.

    S is the sum of the weights of the rows, class weights included. See the module for what the parameters mean that
    are not listed here, and what is refused.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the penalty of a sum over rows; ``np.inf`` for no penalty, as for ``penalty=None``.
    tol : float, default=1e-4
        See the module. Without a penalty, there is no duality gap: what steps gain, relative to the zero model.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
    max_iter : int, default=100
    warm_start : bool, default=False

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    n_iter_ : ndarray of shape (1,)
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.linear_model import LogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LogisticRegression(C=0.1).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    """

    if not TYPE_CHECKING:
        __init__ = linear_model.LogisticRegression.__init__
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = linear_model.LogisticRegression._parameter_constraints
    alpha: Any = None

    @property
    def _alpha(self) -> float:
        return 0.0 if getattr(self, "penalty", "l2") is None else 1.0 / float(self.C)

    def _fallback(self, task: Task) -> tuple[Array, Array]:
        coef, intercept = super()._fallback(task)
        return coef, intercept * (self.max_iter > 0)

    def _iterates(self, task: Task) -> Iterates:
        return Status.MAX_ITER if self.max_iter == 0 else (yield from super()._iterates(task))

    def _store(self, task: Task, model: tuple[Array, Array]) -> None:
        super()._store(task, (centred(model[0]), centred(model[1])))

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        super()._store_outcome(task, outcome)
        self.n_iter_: Any = np.array([outcome.n_iter], dtype=np.int32)
