"""A classifier that tries several, the cheap ones first, and says why it took the one it did."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from manyclass.choice.costs import Cost, costs
from manyclass.data import Rows, as_rows
from manyclass.data.labels import encode, on_host
from manyclass.data.memory import times_as_large
from manyclass.data.opening import is_stored
from manyclass.data.rows import present_rows, to_numpy
from manyclass.data.validation import check_rows, check_weights
from manyclass.estimators.automatic.candidates import MOST_FEATURES, Candidate, candidates, evenness
from manyclass.estimators.automatic.entries import Entry
from manyclass.estimators.automatic.halving import Watch
from manyclass.estimators.automatic.refit import Search
from manyclass.estimators.automatic.rounds import Parts, enough_rows, splits
from manyclass.estimators.automatic.sampled_rows import Labelled, rows_of_file, sample
from manyclass.estimators.automatic.scalings import behind, checked_and_encoded, held_bytes, numbers_of, steps_of
from manyclass.estimators.automatic.scores import THRESHOLDS
from manyclass.estimators.base import NO_TIME, outside
from manyclass.estimators.callbacks import Metadata, for_scorers, tell_callbacks
from manyclass.estimators.parameters import CLASS_WEIGHT, all_or_nothing, checks_parameters, generator
from manyclass.features import TableEncoder
from manyclass.features.table import opened_for
from manyclass.fit import Parametrised, Status

ORDINARY = {"warm_start": False, "max_time": None}
"""Parameters that served the search alone."""


@dataclass(eq=False, repr=False)
class AutoClassifier(CallbackSupportMixin, ClassifierMixin, Parametrised):
    """Chooses between linear models, their penalty and scaling, and generated features, by rows that are held out.

    Candidates are `GLMClassifier` along a path of penalties, each fit beginning where the one before ended. For dense
    data also `StagewiseClassifier` with Newton's steps on random Fourier features of two bandwidths; the better one is
    tried with a learned metric, on kernel values at rows (`Landmarks`), with other penalties, and with twice and half
    the bandwidth for as long as that gains. For other data also squared hinges (`SDCAClassifier`) and least squares
    (`StagewiseClassifier`), unless these take longer than the path; for several labels per row also
    `CalibratedLeastSquaresClassifier`. Each is tried on columns as given and, where these differ in size, on columns of
    one size; linear models of dense data also on steps of the columns (`ThermometerEncoder`), and where these lead, so
    are kernels. Where a table makes sparse rows, linear models are tried on steps of its numbers.

    All are tried on few rows first, in the order of their estimated seconds. A third of them, and those that the
    held-out rows do not tell from the best, go on to more rows (successive halving), except for linear models that are
    clearly worse than generated features. If a linear model makes no error on many rows, no features are generated.
    Fewer than 3000 rows are cross-validated. Of the models within a standard error of the best accuracy, and of those
    the ones with hardly more log loss than the least, the best is fitted to all rows. (With several labels per row it
    is the one with the best micro-averaged F1 score, each at its best threshold.) If `max_time` leaves time, and there
    are more rows than features, it gets more features, or is averaged with models on others.

    Parameters
    ----------
    objective : {"accuracy", "log_loss"}, default="accuracy"
        What candidates are compared by; for several labels per row the mean over their cells.
    max_time : float, default=None
        Limit in seconds for all of it. What is expected to take longer is not begun, and the best so far is kept.
    validation_fraction : float, default=0.2
        Share of the rows held out, at most 10 000; fewer than 3000 rows are cross-validated instead. Copies of a row
        stay together.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Of every candidate, as for `GLMClassifier`; it also counts where rows judge.
    random_state : int, RandomState or None, default=None
        Seeds the generated features and the choice of held-out rows (which their content decides if there are copies);
        None means a fixed seed, so that results repeat.

    Attributes
    ----------
    best_estimator_ : estimator
        The model, fitted to all rows if there was time: an estimator of this package, or a pipeline of a scaler and it.
    best_params_ : dict
        Its parameters.
    threshold_ : float
        The probability from which on a label is predicted. For several labels per row it has the best micro-averaged F1
        score on rows left out, of the thresholds that cost no more accuracy than these can tell; else it is 0.5.
        ``best_estimator_``, and what is stored or exported of it, uses it too, until it is fitted anew.
    best_path_ : list of float
        Larger penalties that were fitted first, each fit beginning where the one before ended (``warm_start``). Empty
        if there were none. A fit without them ends within ``tol`` of the same minimum.
    best_score_ : float
        Mean accuracy, or log loss, of the choice on the rows that judged it; NaN if there were too few to judge.
    leaderboard_ : list of dict
        All that was tried, the best first: estimator, parameters, scaling, accuracy, log_loss, n_rows and seconds.
    why_ : list of str
        Sentences that say what was tried, left out and taken.
    classes_ : array of shape (n_classes,)
        The labels, sorted; for multi-label targets the column numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, or shapes disagree.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from manyclass import AutoClassifier
    >>> X, y = make_moons(600, noise=0.1, random_state=0)
    >>> model = AutoClassifier().fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.98)
    True
    >>> model.leaderboard_[0]["scaling"]  # no line divides two moons, but steps of their columns do
    'columns in steps'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "objective": [StrOptions({"accuracy", "log_loss"})],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        **CLASS_WEIGHT,
        "random_state": ["random_state"],
    }

    objective: str = "accuracy"
    max_time: float | None = None
    validation_fraction: float = 0.2
    class_weight: Any = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.classifier_tags.multi_label = True
        return tags

    @all_or_nothing
    @checks_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, memory_limit: float | str | None = None) -> Self:
        """Try, choose, and fit the choice to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or path
        y : array-like of shape (n_samples,), or (n_samples, n_labels)
            Labels of any dtype, or an indicator matrix; where X is a path, as in ``GLMClassifier.fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; rows count as much in the fits and in the scores. Rows of weight 0 are left out.
        memory_limit : float or str, default=None
            If the rows of a path take more than an eighth of it, models are compared on a random sample that takes so
            much; the choice is fitted to all rows, which stay in their file.

        Returns
        -------
        self
        """
        end = time.perf_counter() + (np.inf if self.max_time is None else float(self.max_time))
        encoder, given, y = checked_and_encoded(self, X, y, sample_weight, memory_limit)
        if times_as_large(given.device) > 1:
            raise TypeError(
                "AutoClassifier compares models of rows in the memory of the host: pass X.cpu(), or use "
                "GLMClassifierCV or StagewiseClassifier, which compute where X is."
            )
        weight = None if sample_weight is None else to_numpy(check_weights(given, y, sample_weight, None))
        rng = generator(self.random_state)
        rows, index = sample(given, y, weight, rng, held_bytes(given, numbers_of(encoder)))
        some = slice(None) if rows.n_rows == given.n_rows else index
        labels = encode(y[some], "AutoClassifier")
        self.classes_ = labels.classes
        told = evenness(labels.strata if self.class_weight is None else None)
        are_all = rows.n_rows >= len(present_rows(given.n_rows, weight))
        options = (self.class_weight, labels.is_multilabel, told, are_all, numbers_of(encoder))
        listed, scalings = candidates(rows, int(rng.integers(2**31)), *options)
        scalers = {name: scaler for name, (scaler, _) in scalings.items()}
        fronts = {name: steps_of(encoder, scaler) for name, scaler in scalers.items()}
        scaled, of_some = {name: held for name, (_, held) in scalings.items()}, None if weight is None else weight[some]
        y_some = to_numpy(labels.indicator) if labels.is_multilabel else np.asarray(y[some])
        judging = check_weights(rows, y_some, of_some, self.class_weight)
        judging = None if judging is None else to_numpy(judging)
        seen = Labelled(scaled, y_some, of_some, given.most_bytes, judging)
        all_rows = None if are_all else rows_of_file(given, y, weight, scalers)
        search = Search(self.objective, seen, labels.classes, end, all_rows=all_rows)
        rounds = splits(rows, labels, self.validation_fraction, rng)
        expected = _expected(listed, costs(rows, labels), rows)
        entries = [Entry(one, seconds, rows.n_rows, of_all=(seconds, rows.n_rows)) for one, seconds in expected]
        only_linear = all(one.is_linear for one in listed)
        rounds = search.affordable(rounds, entries, enough_rows(labels.strata, rows.n_rows, only_linear))
        if getattr(self, "_skl_callbacks", None):
            search.watch = self._shown(search, X, y, for_scorers(sample_weight), fronts)
        chosen, model = self._found(search, entries, rounds)
        self._store(model, chosen, fronts[chosen.candidate.scaling])
        if model.status_ is Status.MAX_TIME and not model.history_:
            warnings.warn(f"AutoClassifier: {NO_TIME}", ConvergenceWarning, stacklevel=outside())
        tell_callbacks(self, X, y, sample_weight)
        return self

    def _found(self, search: Search, entries: list[Entry], rounds: list[Parts]) -> tuple[Entry, Any]:
        """What is taken, and its model of all rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ranked = search.run(entries, rounds)
            chosen = search.choose(ranked) if ranked else entries[0]
            if not ranked:
                search.why.append(f"Taken: {chosen.candidate}, as there are too few rows to compare it with others.")
            alone, chosen = chosen, search.averaged(chosen, ranked)
            for one in ranked:
                one.model = one.model if one is alone else None
            model = search.refit(chosen)
        if chosen is not alone and isinstance(model.features, list):
            ranked = [chosen, *ranked]
        elif chosen is not alone:
            search.why.append("There was no time for the mean: it is the choice alone.")
            chosen = alone
        self.leaderboard_, self.why_, self.best_path_ = [one.row() for one in ranked], search.why, search.path
        return chosen, model

    def _shown(self, search: Search, X: Any, y: Any, given: dict[str, Any], fronts: Mapping[str, Any]) -> Watch:
        """What shows each fit of the search to scikit-learn's callbacks as a finished subtask of this one."""
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=given)

        @contextmanager
        def watch(entry: Entry, n_rows: int, best: Entry | None) -> Iterator[None]:
            def attributes() -> dict[str, Any] | None:
                if entry.model is None:
                    return None
                known = {name: value for name, value in vars(self).items() if name[-1] == "_"}
                best = _behind(fronts[entry.candidate.scaling], entry.model)
                return known | {"best_estimator_": best, "threshold_": entry.threshold}

            accuracy = None if best is None else best.accuracy
            metadata = Metadata(given, trying=str(entry.candidate), n_rows=n_rows, best_accuracy=accuracy)
            step, details = context.subcontext(task_name="candidate"), {"estimator": self, "X": X, "y": y}
            step.call_on_fit_task_begin(**details, metadata=metadata)
            try:
                yield
            finally:
                if step.call_on_fit_task_end(**details, metadata=metadata, reconstruction_attributes=attributes):
                    search.stopped = Status.STOPPED_BY_CALLBACK

        return watch

    def predict(self, X: Any, top_k: int | None = None) -> Any:
        """Labels of the rows, by ``best_estimator_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        top_k : int, default=None
            So many labels with the largest scores, the best first; not for several labels per row.

        Returns
        -------
        labels : array of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
            With `top_k` of shape (n_samples, top_k).
        """
        options = {} if top_k is None else {"top_k": top_k}
        model, rows = self._asked(X)
        return model.predict(rows, **options)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, of shape (n_samples, n_classes), by ``best_estimator_``."""
        model, rows = self._asked(X)
        return model.predict_proba(rows)

    def decision_function(self, X: Any) -> Any:
        """Scores of the rows, of shape (n_samples, n_classes), or (n_samples,) for two classes."""
        model, rows = self._asked(X)
        return model.decision_function(rows)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows whose labels are predicted right; X and y as in ``fit``."""
        encoder = self._encoder
        if is_stored(X) and encoder is None:
            X, y = check_rows(self, X, True if y is None else y, reset=False)
        elif encoder is not None:
            X, y = opened_for(encoder, X, True if y is None else y)
        return float(super().score(X, on_host(y), sample_weight))

    @property
    def _encoder(self) -> TableEncoder | None:
        """What is in front where it was fitted to a table of more than numbers."""
        check_is_fitted(self, "best_estimator_")
        first = self.best_estimator_[0] if isinstance(self.best_estimator_, Pipeline) else None
        return first if isinstance(first, TableEncoder) else None

    def _asked(self, X: Any) -> tuple[Any, Any]:
        """The model behind its scaler, and the rows as it takes them."""
        encoder = self._encoder
        if not isinstance(self.best_estimator_, Pipeline):
            return self.best_estimator_, self._numbers(X)
        *front, model = (step for _, step in self.best_estimator_.steps)
        if encoder is None:
            rows = self._numbers(X)
        else:
            rows = as_rows(encoder.transform(X))
            del front[0]
        return model, behind(front[0] if front else None, rows)

    def _numbers(self, X: Any) -> Rows:
        try:
            return check_rows(self, X, reset=False)[0]
        except ValueError as error:
            if not str(error).startswith("Input X contains NaN"):
                raise
            raise ValueError(
                "X holds NaN, and there was none where AutoClassifier was fitted: fit it behind a TableEncoder, which "
                "guesses what is missing."
            ) from error

    def _store(self, model: Any, chosen: Entry, front: list[tuple[str, Any]]) -> None:
        model.set_params(**{name: ORDINARY[name] for name in model.get_params(deep=False) if name in ORDINARY})
        self.best_estimator_ = _behind(front, model)
        first = front[0][1] if front else model
        if hasattr(self, "feature_names_in_") and not isinstance(first, TableEncoder):
            first.feature_names_in_ = self.feature_names_in_
        self.best_params_ = model.get_params(deep=False)
        # A threshold of probabilities by one link says nothing of those by another, which more rows may have chosen.
        self.threshold_ = chosen.threshold if len(chosen.links) == 1 else THRESHOLDS[0]
        if self.threshold_ != THRESHOLDS[0]:
            model._threshold = self.threshold_
        self.best_score_ = float("nan")
        if chosen.scores:
            self.best_score_ = chosen.accuracy if self.objective == "accuracy" else chosen.log_loss


def _behind(front: list[tuple[str, Any]], model: Any) -> Any:
    return Pipeline([*front, ("classify", model)]) if front else model


def _expected(listed: list[Candidate], estimates: tuple[Cost, ...], rows: Rows) -> Iterator[tuple[Candidate, float]]:
    """Each candidate that fits into memory, and the seconds of a fit by the cost model."""
    for one in listed:
        seconds = [cost.seconds for cost in estimates if cost.estimator == one.estimator and cost.fits]
        if not one.is_linear:
            share = one.times_as_long * one.n_features(rows.n_rows) / MOST_FEATURES
            seconds = [second * share for second in seconds]
        seconds = [one.width * second for second in seconds]
        if seconds:
            yield one, max(seconds)
