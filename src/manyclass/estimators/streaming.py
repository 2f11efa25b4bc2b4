"""Estimators that learn from rows in pieces, and unlearn them, as if all had been fitted at once."""

from __future__ import annotations

from abc import abstractmethod
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from manyclass.data import Moments, Rows, as_rows
from manyclass.data.class_moments import ClassMoments
from manyclass.data.labels import Labels
from manyclass.data.validation import check_labelled, check_weights
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import Classifier
from manyclass.estimators.parameters import all_or_nothing, available, checks_parameters, generator
from manyclass.fit import Clock, Outcome, Record, Status

_LASTING = ("classes_", "multilabel_", "n_features_in_", "feature_names_in_")
"""Attributes that exist before the model is computed."""
_SOLVING = RLock()
"""Held while a model is computed: other threads that ask for it wait, or they would find one without coefficients."""


def _streams(estimator: ExactStream) -> bool:
    refusal = estimator._stream_refusal()
    if refusal is not None:
        raise AttributeError(refusal)
    return True


class ExactStream(Classifier):
    """Exact `partial_fit`, `forget` and `merge` for estimators whose model follows from `ClassMoments`.

    The model is that of one ``fit`` on all present rows, up to rounding, in whatever pieces and order they came. It is
    computed lazily, when one of its attributes is read: a call costs only what its own rows cost.
    """

    _model_parts: ClassVar[tuple[type, ...]] = (ClassMoments, Moments)

    _stream: ClassMoments
    _is_behind: bool

    @available(_streams)
    @all_or_nothing
    @checks_parameters
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the model becomes that of all rows there are, up to rounding.

        It is computed when it is first used, so that many calls in a row cost no more than the sums over their rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or Rows
        y : array-like of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
            Labels may be new at any call.
        classes : array-like of shape (n_classes,), default=None
            Labels that are to be among ``classes_`` before a row has them; without need.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As for ``fit``, and after a ``fit``, which keeps nothing to add to. The model stays as it was.
        """
        rows, y, weight = self._checked_part(X, y, sample_weight)
        part = ClassMoments.of(rows, y, weight, classes=None if getattr(y, "ndim", 1) == 2 else classes)
        stream = vars(self).get("_stream")
        if stream is not None:
            stream.check_kinds(part)
        self._keep(rows, y, weight)
        return self._changed(part if stream is None else stream.partial_merge(part))

    @available(_streams)
    @all_or_nothing
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take out rows that were added before: the model becomes that of the rows that are left, up to rounding.

        It costs what these rows cost, and the solution when that is first used; the others are not read. A class whose
        last row goes is gone.

        Parameters
        ----------
        X, y, sample_weight
            Rows, labels and weights as they were given to `partial_fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the rows cannot have been there: a class would be left with less than no row or weight, or the covariance
            indefinite. The model stays as it was. (Not every row that was never there can be recognised.)
        """
        if "_stream" not in vars(self):
            raise ValueError("There are no rows to forget; add them by partial_fit first.")
        rows, y, weight = self._checked_part(X, y, sample_weight)
        part = ClassMoments.of(rows, y, weight)
        self._stream.check_kinds(part)
        self._unkeep(rows, y, weight)
        return self._changed(self._stream.forget_moments(part))

    @available(_streams)
    def merge(self, other: Any) -> Self:
        """A model of the rows of two, as a new object with the parameters of this one.

        Parameters
        ----------
        other : estimator that `partial_fit` was called on, or `ClassMoments`
            Of other rows with the same features. An estimator that has seen no rows takes over those of `other`.

        Raises
        ------
        ValueError
            If `other` keeps no sums, or features or kinds of labels differ.
        """
        twin: Self = clone(self)
        if "_stream" in vars(self):
            twin._take_over(self)
        elif "classes_" in vars(self):
            self._refuse_after_fit()
        twin._take_over(other)
        return twin

    # -- for subclasses -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _stream_refusal(self) -> str | None:
        """The error message if the model does not follow from sums over rows; None if it does."""

    @abstractmethod
    def _solve(self, clock: Clock) -> None:
        """Set the attributes of a fit."""

    def _keep(self, rows: Rows, y: Any, weight: Any) -> None:
        """Keep what else the model needs of added rows, in new objects: a later step of the call may fail."""

    def _unkeep(self, rows: Rows, y: Any, weight: Any) -> None:
        """Drop what was kept of these rows, in new objects."""

    def _take_over(self, other: Any) -> None:
        """Add the rows of another estimator, or of `ClassMoments`."""
        sums = other if isinstance(other, ClassMoments) else getattr(other, "__dict__", {}).get("_stream")
        if sums is None:
            raise ValueError(
                f"{type(other).__name__} keeps no sums over its rows to merge; give ClassMoments, or an estimator that "
                "partial_fit was called on."
            )
        own_names, names = (vars(source).get("feature_names_in_") for source in (self, other))
        if own_names is not None and names is not None and list(own_names) != list(names):
            raise ValueError("The features have other names, or another order; use the same columns in both.")
        stream = self._stream.merge(sums) if "_stream" in vars(self) else sums.copy()
        self.n_features_in_ = stream.n_features
        if names is not None:
            self.feature_names_in_ = names
        self._changed(stream)

    # -- the parts --------------------------------------------------------------------------------------------------

    def _encode(self, rows: Rows, y: Any) -> Any:
        for name in ("_stream", "_kept", "_is_behind"):
            self.__dict__.pop(name, None)  # fit begins without the rows of a stream
        return super()._encode(rows, y)

    def _checked_part(self, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, Any, Any]:
        is_first = "_stream" not in vars(self)
        if is_first and "classes_" in vars(self):
            self._refuse_after_fit()
        rows, y = check_labelled(self, X, y, reset=is_first)
        class_weight = getattr(self, "class_weight", None)
        options = {"is_part": True, "may_be_none": True, "relative": self._divides_by_weight}
        return rows, y, check_weights(rows, y, sample_weight, class_weight, **options)

    def _refuse_after_fit(self) -> None:
        raise ValueError(
            f"This {type(self).__name__} was fitted by fit, which keeps no sums over its rows to add to; begin with "
            "partial_fit, which gives the same model."
        )

    def _changed(self, stream: ClassMoments) -> Self:
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_" and name not in _LASTING]:
            delattr(self, name)
        self._stream, self._is_behind = stream, True
        self.classes_ = np.arange(len(stream.classes)) if stream.multilabel else stream.classes
        self.multilabel_ = stream.multilabel
        return self

    def _catch_up(self) -> None:
        stream = self._stream
        if not stream.features.weight > 0:
            raise ValueError(f"{type(self).__name__} has no rows left; add some by partial_fit.")
        if len(stream.classes) < 2 and not stream.multilabel:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes to tell apart, but all rows so far are of "
                f"{stream.classes.tolist()[0]!r}: add others by partial_fit."
            )
        self._is_behind = False
        try:
            self._solve(Clock(getattr(self, "max_time", None)))
            if vars(self).get("status_") is Status.INTERRUPTED:
                raise KeyboardInterrupt
        except BaseException:
            self._changed(self._stream)
            raise

    def _stream_task(self, clock: Clock) -> Task:
        """The task of a fit without rows, of which only the moments are known."""
        stream, k = self._stream, int(self.classes_.shape[0])
        xx = stream.features.xx[:0, :]
        like = as_rows(xx).typed(getattr(as_rows(xx).xp, stream.dtype))
        codes, indicator = np.empty(0, dtype=np.int64), np.empty((0, k), dtype=np.int64)
        labels = Labels(self.classes_, None if self.multilabel_ else codes, indicator if self.multilabel_ else None)
        problem = self._problem(like, labels, None, clock)
        return Task(problem, like, labels, None, None, generator(self.random_state), clock)

    def _stream_moments(self, task: Task) -> Moments:
        """The moments of all rows, with the targets of the loss."""
        values = self._choose_loss(task.encoded)[1].label_values or (0.0, 1.0)
        return self._stream.moments(*values, one_column=task.encoded.is_binary)

    def _finish(self, task: Task, model: Any, objective: float) -> None:
        record = Record(1, 1.0, task.clock.seconds, objective)
        self._store_outcome(task, Outcome(model, Status.FINISHED, [record], 1, 1.0, float("nan")))

    def __getstate__(self) -> dict[str, Any]:
        with _SOLVING:
            if vars(self).get("_is_behind") and len(self._stream.classes) > 1 and self._stream.features.weight > 0:
                self._catch_up()  # so that a stored model is complete
            return super().__getstate__()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_") and name[0] != "_" and name not in _LASTING and "_stream" in vars(self):
                with _SOLVING:
                    if vars(self).get("_is_behind"):
                        self._catch_up()
            return object.__getattribute__(self, name)  # or the error of a descriptor that has more to say
