"""Tolerances, penalties and splits as scikit-learn means them."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import _raise_for_params, _routing_enabled, process_routing
from sklearn.utils.validation import _num_samples

from manyclass.choice import Choice, choose
from manyclass.data.rows import to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.glm import GLMClassifier
from manyclass.estimators.glm_cv import GLMClassifierCV
from manyclass.estimators.parameters import checks_parameters
from manyclass.fit.folds import Fold, folds
from manyclass.model import Problem


def gap(tol: float) -> float:
    """The relative duality gap that stands for a tolerance of scikit-learn's, or what rounding leaves of it."""
    return max(min(tol, 1e8 * tol**3), 1e-15)


class Single(GLMClassifier):
    """One penalty, in the units of a sum over the rows, and scikit-learn's tolerance."""

    _divides_by_weight: ClassVar[bool] = False

    def _task(self, *given: Any) -> Task:
        task = super()._task(*given)
        task.problem.alpha /= task.problem.total_weight
        return task

    def _choice(self, problem: Problem) -> Choice:
        return choose(problem, gap(self.tol))

    def _limits(self, task: Task) -> tuple[float, float | None]:
        return gap(self.tol), self.max_iter


class Folds(GLMClassifierCV):
    """Splits and weights as scikit-learn has them."""

    _routed: Bunch
    _divides_by_weight: ClassVar[bool] = False
    _fits_parts: ClassVar[bool] = False

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:  # type: ignore[override]  # scikit-learn's parameters
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
        if isinstance(sample_weight, Real):
            sample_weight = np.full(_num_samples(X), float(sample_weight))
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
