"""Least squares on −1 and 1."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.utils import check_scalar
from sklearn.utils.metadata_routing import _routing_enabled

from manyclass.data import Rows
from manyclass.data.labels import indicator_of_signs
from manyclass.data.rows import Array, to_numpy
from manyclass.data.validation import check_weights
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import LinearClassifier
from manyclass.estimators.glm import GLMClassifier
from manyclass.estimators.glm_cv import GLMClassifierCV
from manyclass.estimators.model_scorer import ModelScorer
from manyclass.estimators.penalty_search import Plan
from manyclass.estimators.ridge_search import RidgeSearch
from manyclass.fit import Iterates, Outcome
from manyclass.linear_model.shared import Folds, Single


class _Ridge(LinearClassifier):
    """Coefficients of two classes are one row without an axis for it, as scikit-learn's ridge classifiers have it."""

    def _encode(self, rows: Rows, y: Any) -> Any:
        """Several columns may be of −1 and 1 here."""
        return super()._encode(rows, indicator_of_signs(y))

    def _row_weights(self, rows: Rows, y: Any, sample_weight: Any) -> Array | None:
        """Here scikit-learn balances classes by how many rows they have, whatever these weigh."""
        return check_weights(rows, y, sample_weight, self.class_weight, balances_rows=True)

    def _store(self, task: Task, model: Any) -> None:
        super()._store(task, model)
        if task.encoded.is_binary:
            self.coef_ = self.coef_[0, :]
        if not self.fit_intercept:
            self.intercept_ = 0.0


class RidgeClassifier(_Ridge, Single):
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
        self.alpha, self.fit_intercept, self.copy_X, self.tol = alpha, fit_intercept, copy_X, tol
        self.max_iter: Any = max_iter
        self.class_weight, self.solver, self.positive, self.random_state = class_weight, solver, positive, random_state

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.positive:
            raise ValueError("positive=True is another model; leave it out, or take scikit-learn's RidgeClassifier.")
        if np.ndim(self.alpha):
            raise ValueError("alpha must be one number here; GLMClassifierCV(loss='squared', alpha_per_output=True) "
                             "has a penalty for each output.")  # fmt: skip

    @property
    def solver_(self) -> str:
        """What took the place of `solver`: that of ``choice_``."""
        return str(self.choice_["solver"])

    def _limits(self, task: Task) -> tuple[float, float | None]:
        tol, max_iter = super()._limits(task)
        return tol, GLMClassifier.max_iter if max_iter is None else max_iter


class _RidgeJudge(ModelScorer):
    """Judges by the squared error where nothing else is asked for.

    `kept` gets the left-out scores, or their squared errors, for one penalty after another.
    """

    def __init__(self, owner: GLMClassifierCV, scoring: Any, encoded: Any, kept: list[np.ndarray] | None):
        super().__init__(owner, scoring or "accuracy", encoded)
        self.kept, self.by_error = kept, scoring is None
        if self.by_error:
            self.of_rows = lambda Z, truth: self.gains(Z, truth).mean(axis=1)

    @property
    def knows_rows(self) -> bool:
        return self.kept is None and super().knows_rows

    def score(self, Z: Array, truth: np.ndarray, weight: np.ndarray | None) -> Any:
        if self.kept is not None:
            scale = -1.0 if weight is None else -weight[:, None]
            self.kept.append(scale * self.gains(Z, truth) if self.by_error else np.array(Z))
        return super().score(Z, truth, weight)


class RidgeClassifierCV(_Ridge, Folds):
    """`sklearn.linear_model.RidgeClassifierCV`, fitted as ``GLMClassifierCV(loss="squared")`` is, with ``alpha/S``.

    See the module for the parameters. Without `cv` every row is left out in turn, exactly. Class weights count in the
    folds and in their scores, too. With two classes and a `scoring`, but no `cv`, scikit-learn 1.9 compares all rows
    with the first class, and takes the first penalty whatever it is; here they are compared with their own.

    Attributes
    ----------
    alpha_ : float
    best_score_ : float
        Without `cv` and `scoring` the mean of minus the squared errors of the rows left out, times their weights.
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
        if np.ndim(self.alphas) > 1 or not np.size(self.alphas):
            raise ValueError(f"alphas={self.alphas!r} must be one penalty or a list of penalties.")
        alphas = np.ravel(np.asarray(self.alphas, dtype=object))
        for place, alpha in enumerate(alphas):
            name = f"alphas[{place}]" if len(alphas) > 1 else "alphas"
            check_scalar(alpha, name, Real, min_val=0.0, include_boundaries="neither")

    @property
    def _given(self) -> np.ndarray:
        """The penalties in their order: of equally good ones the first is taken."""
        return np.asarray(self.alphas, dtype=np.float64).ravel()

    def _plan(self, task: Task, is_exact: bool = True) -> Plan:
        found = [] if self.cv is None else self._splits(task)
        weight = self._judging_weight()
        # Classes weigh in scores as the rows do: scikit-learn hands both on as the weights of the rows.
        of_all = weight is not None or (self.class_weight is not None and not _routing_enabled())
        if of_all or (not found and self.scoring is None):
            weight = None if task.weight is None else to_numpy(task.weight)
        mode = "folds" if found else "loo"
        return Plan(self._given / task.problem.total_weight, found, None, mode, False, False, 0, weight, of_sums=True)

    def _scorer_of(self, task: Task) -> ModelScorer:
        scoring = "accuracy" if self.scoring is None and self.cv is not None else self.scoring
        self._kept: list[np.ndarray] | None = [] if self.store_cv_results else None
        return _RidgeJudge(self, scoring, task.encoded, self._kept)

    def _iterates(self, task: Task) -> Iterates:
        scorer, plan, problem = self._scorer_of(task), self._plan(task), task.problem
        if self.cv is None and problem.weight is not None:
            # Weights above 1 are copies to the search, which leaves one of them out; here the whole row is left out.
            task = replace(task, problem=problem.variant(weight=problem.weight / problem.xp.max(problem.weight)))
        return (yield from RidgeSearch(task, scorer, plan, 0.0, 1).iterates())

    def _store(self, task: Task, model: Any) -> None:
        super()._store(task, model)
        self.alphas_ = self._given
        self.alpha_ = float(self.alphas_[np.argmin(np.abs(model.alphas - model.alpha))])
        if task.weight is not None and self.cv is None and self.scoring is None:
            self.best_score_ *= float(np.mean(to_numpy(task.weight)))

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        super()._store_outcome(task, outcome)
        kept = self.__dict__.pop("_kept", None)
        if kept:
            self.cv_results_ = np.stack(kept, axis=-1)
