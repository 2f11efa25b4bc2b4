"""Logistic regression whose penalty folds choose."""

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.utils import metadata_routing

from manyclass.data.rows import to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.descent_search import DescentSearch
from manyclass.estimators.model_scorer import ModelScorer
from manyclass.estimators.penalty_search import Plan
from manyclass.fit import Iterates, Outcome
from manyclass.linear_model.logistic import Logistic, centred
from manyclass.linear_model.shared import Folds, gap


def first_best(scores: np.ndarray) -> Any:
    """The place of the first penalty with the best sum over the folds; NaN is the worst."""
    return np.argmax(np.where(np.isnan(scores), -np.inf, scores).sum(axis=0))


class _GridSearch(DescentSearch):
    """Of equally good penalties the one that was given first is taken, as scikit-learn does."""

    places: np.ndarray  # of the given ones, of shape (n_cs,), among those tried

    @property
    def best_place(self) -> Any:
        return self.places[first_best(self.scores[:, self.places])]


class LogisticRegressionCV(Logistic, Folds):
    """`sklearn.linear_model.LogisticRegressionCV`, fitted as `GLMClassifierCV` is, with ``alpha = 1/(C·S)``.

    Every C is tried in every fold, all folds together from the smallest C on, each fit from where the ones before it
    point to. For a search that ends when the score has turned, leave-one-out and prediction sets: `GLMClassifierCV`.
    See the module for what the parameters mean that are not listed here, and what is refused.

    Parameters
    ----------
    Cs : int or array-like of shape (n_cs,), default=10
        As in scikit-learn: so many from 1e-4 to 1e4, or the values; all finite.
    cv : int, splitter or iterable of (train, test), default=None
    scoring : str or callable, default="warn"
        None, and "warn", is the accuracy.
    tol : float, default=1e-4
        Of each fit; in the folds relative to the objective that is reached.
    refit : bool, default=True
        Otherwise the mean of the folds' best coefficients is the model.
    use_legacy_attributes : bool
        As in scikit-learn: whether ``scores_`` and ``coefs_paths_`` are dicts by class, and ``C_`` an array.

    Attributes
    ----------
    C_, Cs_, l1_ratio_, l1_ratios_, scores_, n_iter_
        As in scikit-learn.
    coefs_paths_
        As in scikit-learn; only up to 256 MB in all.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass.linear_model import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=5, scoring="neg_log_loss", use_legacy_attributes=False).fit(X, y)
    >>> float(model.C_)
    100.0
    """

    if not TYPE_CHECKING:
        __init__ = linear_model.LogisticRegressionCV.__init__
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = linear_model.LogisticRegressionCV._parameter_constraints
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": metadata_routing.UNUSED}
    score = linear_model.LogisticRegressionCV.score
    get_metadata_routing = linear_model.LogisticRegressionCV.get_metadata_routing
    _get_scorer = linear_model.LogisticRegressionCV._get_scorer

    def _scorer_of(self, task: Task) -> ModelScorer:
        return ModelScorer(self, "accuracy" if self.scoring in (None, "warn") else self.scoring, task.encoded)

    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The Cs as given, the distinct ones ascending, and where each of those given is among these."""
        if isinstance(self.Cs, Integral):
            Cs = np.logspace(-4, 4, int(self.Cs))
        else:
            Cs = np.asarray(self.Cs, dtype=np.float64).ravel()
        if not (Cs.size and np.isfinite(Cs).all() and Cs.min() > 0):
            raise ValueError(f"Cs={self.Cs!r} must be positive and finite; use LogisticRegression(C=np.inf) for that.")
        return (Cs, *np.unique(Cs, return_inverse=True))

    def _plan(self, task: Task, is_exact: bool = True) -> Plan:
        alphas = 1.0 / (self._grid()[1] * task.problem.total_weight)
        options: dict[str, Any] = {"judging_weight": self._judging_weight(), "of_sums": True, "is_whole": True}
        options["refits"] = self.refit
        return Plan(alphas, self._splits(task), None, "folds", False, False, 0, **options)

    def _iterates(self, task: Task) -> Iterates:
        given = (task, self._scorer_of(task), self._plan(task), gap(self.tol), self.max_iter)
        search = _GridSearch(*given)
        search.places = self._grid()[2]
        return (yield from search.iterates())

    def _store(self, task: Task, model: Any) -> None:
        super()._store(task, replace(model, coef=centred(model.coef), intercept=centred(model.intercept)))
        if np.isnan(model.alpha):  # interrupted before there was any model
            return
        self.Cs_, _, places = self._grid()
        scores = np.where(np.isnan(model.scores), -np.inf, model.scores)[:, places]
        self._n_iter_of_paths, paths = model.n_iter[:, places], None
        if model.paths is not None:
            paths = centred(model.paths[:, places].swapaxes(-1, -2)).swapaxes(-1, -2)
        best = np.full(len(scores), first_best(scores))
        if not self.refit:
            best = np.argmax(scores, axis=1)
            if paths is None:
                raise ValueError("refit=False averages all paths, which are too large to keep; use refit=True.")
            mean = paths[np.arange(len(best)), best].mean(axis=0)
            n_features = task.rows.n_features
            self.coef_ = task.rows.asarray(mean[:, :n_features])
            if self.fit_intercept:
                self.intercept_ = task.rows.asarray(mean[:, n_features])
        self._describe(float(self.Cs_[best].mean()), scores, paths)

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        super()._store_outcome(task, outcome)
        n_iter = self.__dict__.pop("_n_iter_of_paths", np.zeros((0, 0), dtype=np.int32))
        self.n_iter_: Any = self._with_ratios(n_iter)

    @property
    def _is_legacy(self) -> bool:
        return getattr(self, "use_legacy_attributes", False) in ("warn", True)

    def _with_ratios(self, table: np.ndarray) -> np.ndarray:
        """(n_folds, n_cs) with the axis of L1 ratios where scikit-learn has it; each ratio is 0."""
        if not self._is_legacy:
            return np.repeat(table[:, None], len(self.l1_ratios_), axis=1)
        plain = self.l1_ratios_[0] is None
        return (table if plain else np.repeat(table[..., None], len(self.l1_ratios_), axis=2))[None]

    def _describe(self, C: float, scores: np.ndarray, paths: np.ndarray | None) -> None:
        """The attributes of scikit-learn that say how C was chosen."""
        given = getattr(self, "l1_ratios", None)
        self.l1_ratios_ = np.array([None]) if given is None or isinstance(given, str) else np.asarray(given)
        n_ratios = len(self.l1_ratios_)
        self.__dict__.pop("coefs_paths_", None)
        if not self._is_legacy:
            self.C_: Any = C
            self.l1_ratio_: Any = 0.0
            self.scores_: Any = self._with_ratios(scores)
            if paths is not None:
                self.coefs_paths_: Any = np.repeat(paths[:, None], n_ratios, axis=1)
            return
        classes = to_numpy(self.classes_)
        classes = classes[1:] if len(classes) == 2 else classes
        ratio = self.l1_ratios_[0] if self.refit else self.l1_ratios_[0] or 0.0
        self.C_, self.l1_ratio_ = np.full(len(classes), C), np.full(len(classes), ratio)
        self.scores_ = {label: self._with_ratios(scores)[0] for label in classes}
        if paths is not None:
            plain = self.l1_ratios_[0] is None
            by_class = np.moveaxis(paths if plain else np.repeat(paths[:, :, None], n_ratios, axis=2), -2, 0)
            self.coefs_paths_ = dict(zip(classes, by_class, strict=True))
