"""scikit-learn's linear classifiers by another engine: change the import, and keep the rest of the program.

Parameters, their order and their defaults are those of the installed scikit-learn, and so are the objectives and thus
the models. How the minimum is found is up to `GLMClassifier`, so what concerns only that is accepted and ignored:
``solver``, ``n_jobs``, ``verbose`` (``set_callbacks`` shows progress), ``copy_X``, and ``intercept_scaling``, as the
intercept is never penalised. What would be another model is refused: L1 penalties, ``dual=True``, ``positive=True``.

``tol`` is the relative duality gap, which bounds how far the objective is from its minimum as a share of its value at
the zero model: where scikit-learn compares the largest entry of a gradient, whose size depends on the data, it means
the same everywhere. At the default of 1e-4 coefficients are closer to the optimum than those of scikit-learn's lbfgs on
each of the data sets compared; 1e-10 is tight. Fits beyond what the precision of X allows end without a warning.
Beside scikit-learn's attributes there are those of every estimator here: ``status_``, ``history_``, ``duality_gap_``.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import linear_model
from sklearn.base import _fit_context
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import _raise_for_params, _routing_enabled, process_routing

from manyclass.choice import Choice, choose
from manyclass.data import Rows
from manyclass.data.labels import Labels
from manyclass.data.rows import Array, to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import linear_scores
from manyclass.estimators.glm import GLMClassifier
from manyclass.estimators.glm_cv import GLMClassifierCV
from manyclass.estimators.judge import Judge
from manyclass.estimators.search import DescentSearch, Plan, RidgeSearch, Selected
from manyclass.fit import Iterates, Outcome, Run, Status
from manyclass.fit.folds import Fold, folds
from manyclass.model import Problem

__all__ = ["LogisticRegression", "LogisticRegressionCV", "RidgeClassifier", "RidgeClassifierCV"]


class _Logistic(SparseCoefMixin):
    """What both logistic regressions refuse, and how their models are stored."""

    def __sklearn_tags__(self):
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
        labels = super()._encode(rows, y)
        if labels.is_multilabel:
            raise ValueError(
                f"y should be a 1d array of labels, got an array of shape {labels.indicator.shape} instead; use "
                "GLMClassifier for several labels per row."
            )
        return labels

    def _scores(self, rows: Rows) -> Array:
        dense = self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_  # after sparsify()
        return linear_scores(rows, dense, self.intercept_)


def _centred(part: Any) -> Any:
    """Of the models that have the same probabilities, the one whose coefficients of all classes add up to zero."""
    return part - part.mean(-1)[..., None] if int(part.shape[-1]) > 1 else part


class LogisticRegression(_Logistic, GLMClassifier):
    """`sklearn.linear_model.LogisticRegression`, fitted as `GLMClassifier` is, with ``alpha = 1/(C·S)``.

    S is the sum of the weights of the rows, class weights included. See the module for what the parameters mean that
    are not listed here, and what is refused.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the penalty of a sum over rows; ``np.inf`` for no penalty, as for ``penalty=None``.
    tol : float, default=1e-4
        Relative duality gap at which to stop. Without a penalty, the squared gradient relative to the zero model.
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

    __init__ = linear_model.LogisticRegression.__init__
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = linear_model.LogisticRegression._parameter_constraints
    alpha: Any = None

    @property
    def _alpha(self) -> float:
        return 0.0 if getattr(self, "penalty", "l2") is None else 1.0 / float(self.C)

    def _task(self, *given: Any) -> Task:
        return _of_sums(super()._task(*given))

    def _choice(self, problem: Problem) -> Choice:
        return choose(problem, self.tol)

    def _iterates(self, task: Task) -> Iterates:
        return Status.MAX_ITER if self.max_iter == 0 else (yield from super()._iterates(task))

    def _store(self, task: Task, model: tuple[Array, Array]) -> None:
        super()._store(task, (_centred(model[0]), _centred(model[1])))

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        super()._store_outcome(task, outcome)
        self.n_iter_: Any = np.array([outcome.n_iter], dtype=np.int32)


def _of_sums(task: Task) -> Task:
    """The task, where what it has for penalty was meant for a sum over the rows."""
    task.problem.alpha /= task.problem.total_weight
    return task


class _Folds:
    """Splits and weights as scikit-learn has them."""

    _routed: Bunch

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Choose the penalty, and fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            For `RidgeClassifierCV` an indicator matrix, too.
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            For the splitter and the scorer, by scikit-learn's metadata routing.

        Returns
        -------
        self
        """
        _raise_for_params(params, self, "fit")
        score = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._routed = Bunch(splitter=Bunch(split={}), scorer=Bunch(score=score))
        if _routing_enabled():
            self._routed = process_routing(self, "fit", **score, **params)
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._routed

    def _splits(self, task: Task) -> list[Fold]:
        y = to_numpy(task.encoded.guide)
        splitter = check_cv(self.cv, y, classifier=True)
        splits = splitter.split(np.zeros((len(y), 1)), y, **self._routed.splitter.split)
        return folds(splits, task.rows, y, task.encoded.strata, task.weight)

    def _judging_weight(self) -> np.ndarray | None:
        weight = self._routed.scorer.score.get("sample_weight")
        return None if weight is None else np.asarray(to_numpy(weight), dtype=np.float64)


class LogisticRegressionCV(_Folds, _Logistic, GLMClassifierCV):
    """`sklearn.linear_model.LogisticRegressionCV`, fitted as `GLMClassifierCV` is, with ``alpha = 1/(C·S)``.

    Every C is tried in every fold, all folds together from the smallest C on, each fit from where the ones before it
    point to. For a search that ends when the score has turned, leave-one-out and prediction sets: `GLMClassifierCV`.
    See the module for what the parameters mean that are not listed here, and what is refused.

    Parameters
    ----------
    Cs : int or array-like of shape (n_cs,), default=10
        As in scikit-learn: so many from 1e-4 to 1e4, or the values; all finite.
    cv : int, splitter or iterable of (train, test), default=None
    scoring : str or callable, default=None
        None is the accuracy.
    tol : float, default=1e-4
        Of each fit, the relative duality gap.
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

    __init__ = linear_model.LogisticRegressionCV.__init__
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = linear_model.LogisticRegressionCV._parameter_constraints
    __metadata_request__score: ClassVar[dict[str, Any]] = {"sample_weight": "$UNUSED$"}
    score = linear_model.LogisticRegressionCV.score
    get_metadata_routing = linear_model.LogisticRegressionCV.get_metadata_routing
    _get_scorer = linear_model.LogisticRegressionCV._get_scorer

    def _judge(self, task: Task) -> Judge:
        judge = Judge(self, "accuracy" if self.scoring in (None, "warn") else self.scoring, task.encoded)
        judge.floor = "eps"
        return judge

    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The Cs as given, the distinct ones ascending, and where each of those given is among these."""
        if isinstance(self.Cs, Integral):
            Cs = np.logspace(-4, 4, int(self.Cs))
        else:
            Cs = np.asarray(self.Cs, dtype=np.float64).ravel()
        if not (Cs.size and np.isfinite(Cs).all() and Cs.min() > 0):
            raise ValueError(f"Cs={self.Cs!r} must be positive and finite; use LogisticRegression(C=np.inf) for that.")
        return (Cs, *np.unique(Cs, return_inverse=True))

    def _plan(self, task: Task) -> Plan:
        alphas = 1.0 / (self._grid()[1] * task.problem.total_weight)
        options: dict[str, Any] = {"judging_weight": self._judging_weight(), "of_sums": True, "is_whole": True}
        return Plan(alphas, self._splits(task), None, "folds", False, False, 0, **options)

    def _iterates(self, task: Task) -> Iterates:
        search = DescentSearch(task, self._judge(task), self._plan(task), self.tol, self.max_iter)
        return (yield from search.iterates())

    def _store(self, task: Task, model: Selected) -> None:
        super()._store(task, replace(model, coef=_centred(model.coef), intercept=_centred(model.intercept)))
        if np.isnan(model.alpha):  # interrupted before there was any model
            return
        self.Cs_, _, places = self._grid()
        scores = np.where(np.isnan(model.scores), -np.inf, model.scores)[:, places]
        self._n_iter_of_paths, paths = model.n_iter[:, places], None
        if model.paths is not None:
            paths = _centred(model.paths[:, places].swapaxes(-1, -2)).swapaxes(-1, -2)
        best = np.full(len(scores), np.argmax(scores.sum(axis=0)))
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
        self.C_, self.l1_ratio_ = np.full(len(classes), C), np.full(len(classes), self.l1_ratios_[0])
        self.scores_ = {label: self._with_ratios(scores)[0] for label in classes}
        if paths is not None:
            plain = self.l1_ratios_[0] is None
            by_class = np.moveaxis(paths if plain else np.repeat(paths[:, :, None], n_ratios, axis=2), -2, 0)
            self.coefs_paths_ = dict(zip(classes, by_class, strict=True))


class RidgeClassifier(GLMClassifier):
    """`sklearn.linear_model.RidgeClassifier`, fitted as ``GLMClassifier(loss="squared")`` is, with ``alpha/S``.

    See the module for the parameters: ``alpha``, ``fit_intercept``, ``class_weight``, ``tol`` and ``max_iter`` count.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.linear_model import RidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(RidgeClassifier().fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = linear_model.RidgeClassifier._parameter_constraints
    loss: str = "squared"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
    ):
        self.alpha, self.fit_intercept, self.copy_X, self.max_iter, self.tol = alpha, fit_intercept, copy_X, max_iter, tol
        self.class_weight, self.solver, self.positive, self.random_state = class_weight, solver, positive, random_state

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.positive:
            raise ValueError("positive=True is another model; leave it out, or take scikit-learn's RidgeClassifier.")
        if np.ndim(self.alpha):
            raise ValueError("alpha must be one number here; GLMClassifierCV(loss='squared', alpha_per_output=True) "
                             "has a penalty for each output.")  # fmt: skip

    def _task(self, *given: Any) -> Task:
        return _of_sums(super()._task(*given))

    def _choice(self, problem: Problem) -> Choice:
        return choose(problem, self.tol)

    def _run(self, *given: Any) -> Run:
        run = super()._run(*given)
        run.max_iter = GLMClassifier.max_iter if self.max_iter is None else self.max_iter
        return run


class _RidgeJudge(Judge):
    """Judges by the squared error where nothing else is asked for, and may keep what it has judged.

    Parameters
    ----------
    kept : list, optional
        Gets the left-out scores, or their squared errors, for one penalty after another.
    """

    def __init__(self, owner: GLMClassifierCV, scoring: Any, encoded: Any, kept: list[np.ndarray] | None):
        super().__init__(owner, scoring or "accuracy", encoded)
        self.kept, self.by_error = kept, scoring is None
        if self.by_error:
            self._of_rows = self._gain

    @property
    def knows_rows(self) -> bool:
        return self.kept is None and super().knows_rows

    def score(self, Z: Array, truth: np.ndarray, weight: np.ndarray | None) -> float:
        if self.kept is not None:
            error = (Z - self.responses(truth, Z.shape[1])) ** 2
            scale = 1.0 if weight is None else weight[:, None]
            self.kept.append(scale * error if self.by_error else np.array(Z))
        return super().score(Z, truth, weight)

    def _gain(self, Z: Array, truth: np.ndarray) -> np.ndarray:
        Z = to_numpy(Z)
        return -((Z - self.responses(truth, Z.shape[1])) ** 2).mean(axis=1)


class RidgeClassifierCV(_Folds, GLMClassifierCV):
    """`sklearn.linear_model.RidgeClassifierCV`, fitted as ``GLMClassifierCV(loss="squared")`` is, with ``alpha/S``.

    See the module for the parameters. Without `cv` every row is left out in turn, exactly. Class weights count in the
    folds, too.

    Attributes
    ----------
    alpha_ : float
    best_score_ : float
        Without `cv` and `scoring` the mean of minus the squared errors of the rows left out, weighted.
    cv_results_ : ndarray of shape (n_samples, n_outputs, n_alphas)
        With ``store_cv_results=True``: those errors, or the scores of the rows left out where there is a `scoring`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.linear_model import RidgeClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> float(RidgeClassifierCV(alphas=(1.0, 100.0, 1e5)).fit(X, y).alpha_)
    100.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = linear_model.RidgeClassifierCV._parameter_constraints
    get_metadata_routing = linear_model.RidgeClassifierCV.get_metadata_routing
    _get_scorer = linear_model.RidgeClassifierCV._get_scorer
    _get_scorer_instance = linear_model.RidgeClassifierCV._get_scorer_instance
    loss: str = "squared"

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        store_cv_results: bool = False,
    ):
        self.alphas, self.fit_intercept, self.scoring, self.cv = alphas, fit_intercept, scoring, cv
        self.class_weight, self.store_cv_results = class_weight, store_cv_results

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.store_cv_results and self.cv is not None:
            raise ValueError("cv!=None and store_cv_results=True are incompatible; leave one of them out.")

    @property
    def _given(self) -> np.ndarray:
        """The penalties in their order: of equally good ones the first is taken."""
        return np.asarray(self.alphas, dtype=np.float64).ravel()

    def _plan(self, task: Task) -> Plan:
        alphas = self._given
        if not (alphas.size and np.isfinite(alphas).all() and alphas.min() > 0):
            raise ValueError(f"alphas={self.alphas!r} must be positive numbers; use RidgeClassifier for alpha=0.")
        found = [] if self.cv is None else self._splits(task)
        weight = self._judging_weight()
        if not found and self.scoring is None:
            weight = None if task.weight is None else to_numpy(task.weight)
        mode = "folds" if found else "loo"
        return Plan(alphas / task.problem.total_weight, found, None, mode, False, False, 0, weight, of_sums=True)

    def _judge(self, task: Task) -> Judge:
        scoring = "accuracy" if self.scoring is None and self.cv is not None else self.scoring
        self._kept: list[np.ndarray] | None = [] if self.store_cv_results else None
        return _RidgeJudge(self, scoring, task.encoded, self._kept)

    def _iterates(self, task: Task) -> Iterates:
        return (yield from RidgeSearch(task, self._judge(task), self._plan(task), 0.0, 1).iterates())

    def _store(self, task: Task, model: Selected) -> None:
        super()._store(task, model)
        self.alphas_ = self._given
        self.alpha_ = float(self.alphas_[np.argmin(np.abs(model.alphas - model.alpha))])

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        super()._store_outcome(task, outcome)
        kept = self.__dict__.pop("_kept", None)
        if kept:
            self.cv_results_ = np.stack(kept, axis=-1)
