"""The search for a penalty: models along a path are scored on rows they have not seen, and the best is kept."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyclass.choice.frame import Frame
from manyclass.choice.left_out import Check
from manyclass.data.labels import Labels
from manyclass.data.rows import Array, to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.model_scorer import ModelScorer
from manyclass.fit import Iterates
from manyclass.fit.folds import Fold, known_to_fold, mean_scores, of_known

PATH_BYTES = 1 << 28
"""The coefficients of all folds and penalties are kept if they take no more than this."""


@dataclass(frozen=True)
class Plan:
    """The specification of a search."""

    alphas: np.ndarray  # descending
    folds: list[Fold]  # empty if every row is left out in turn, or none
    outside: Labels | None  # labels of validation rows that are not among those of the fit
    mode: str  # "folds", "loo" or "gcv"
    per_output: bool
    leave_one_out: bool
    n_refits: int
    judging_weight: np.ndarray | None = None  # weights of the rows in scores
    of_sums: bool = False  # alphas belong to a sum over rows: a fold whose rows weigh S_f has alpha·S/S_f
    is_whole: bool = False  # try every alpha, even after the score has turned
    by_known: bool = False  # a fold's score leaves out rows of classes that its model was not fitted to
    refits: bool = True  # to all rows, with the best penalty; else the model is the mean of those of the folds

    @property
    def n_splits(self) -> int:
        """The number of sets of rows that judge, and of rows of ``scores_``."""
        return max(len(self.folds), 1)


@dataclass(frozen=True)
class Selected:
    """The model that is kept, and the scores and coefficients along the path."""

    coef: Array
    intercept: Array
    alpha: float | np.ndarray
    alphas: np.ndarray
    scores: np.ndarray
    paths: np.ndarray | None
    n_iter: np.ndarray
    left_out: Array | None = None
    check: Check | None = None


@dataclass
class PenaltySearch(ABC):
    """Fits and scores models along a path of penalties, and yields the best one so far after each step."""

    task: Task
    scorer: ModelScorer
    plan: Plan
    tol: float
    max_iter: int
    frame: Frame = field(init=False)
    scores: np.ndarray = field(init=False)
    likelihoods: np.ndarray = field(init=False)
    scorers: list[ModelScorer] = field(init=False)
    n_iter: np.ndarray = field(init=False)
    paths: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        problem, plan = self.task.problem, self.plan
        shape: tuple[int, ...] = (plan.n_splits, len(plan.alphas))
        self.scores = np.full((*shape, problem.n_outputs) if plan.per_output else shape, np.nan)
        # The log loss, too, decides whether a search ends early.
        self.likelihoods, likelihood = np.full(shape, np.nan), None if plan.is_whole else self.scorer.of_likelihood()
        self.scorers = [self.scorer] if likelihood is None else [self.scorer, likelihood]
        self.n_iter = np.ones(shape, dtype=np.int32)
        shape = (*shape, problem.n_outputs, problem.rows.n_features + problem.fit_intercept)
        if np.prod(shape, dtype=float) * problem.rows.itemsize <= PATH_BYTES:
            self.paths = np.full(shape, np.nan, dtype=to_numpy(problem.rows.zeros((0,))).dtype)

    @abstractmethod
    def iterates(self) -> Iterates:
        """From the first model to the one that is kept."""

    @property
    def best_place(self) -> Any:
        """The place in `alphas` of the largest penalty with the best mean score: one, or one for each output."""
        mean = mean_scores(self.scores)
        return np.argmax(np.where(np.isnan(mean), -np.inf, mean), axis=0)

    @property
    def best_alpha(self) -> Any:
        return self.plan.alphas[self.best_place] if self.plan.per_output else float(self.plan.alphas[self.best_place])

    def selected(self, model: tuple[Array, Array], alpha: Any = None, **more: Any) -> Selected:
        """A model on the rows of the frame, as the result of the search."""
        alpha = self.best_alpha if alpha is None else alpha
        if self.plan.per_output:
            alpha = np.broadcast_to(alpha, (self.task.problem.n_outputs,)).copy()
        scores, n_iter = self.scores.copy(), self.n_iter.copy()
        # Paths are not copied, as they may be large: models are only added to them.
        return Selected(*self.frame.lift(*model), alpha, self.plan.alphas, scores, self.paths, n_iter, **more)

    def alpha_of(self, alpha: float, weight: float) -> float:
        """The penalty of the objective, a mean, for rows of total weight `weight`."""
        return float(alpha) * (self.task.problem.total_weight / weight if self.plan.of_sums else 1.0)

    def keep(self, fold: int, place: int, model: tuple[Array, Array]) -> None:
        """Enter a model into `paths`, if these are kept."""
        if self.paths is None:
            return
        W, b = (to_numpy(part) for part in self.frame.lift(*model))
        self.paths[fold, place] = np.hstack([W.T, b[:, None]]) if self.task.problem.fit_intercept else W.T

    def truth_and_weight(self, fold: Fold) -> tuple[np.ndarray, np.ndarray | None]:
        """Labels and weights of the rows that score the fit of a fold."""
        if fold.rows is not None:
            return self.scorer.truth(fold.index, self.plan.outside), None
        weight, truth = self.plan.judging_weight, self.scorer.truth(slice(None))
        weight = None if weight is None else weight[fold.index]
        if self.plan.by_known and truth.ndim == 1:
            weight = of_known(weight, known_to_fold(truth, fold))
        return truth[fold.index], weight

    def _check_scores(self) -> None:
        if np.isnan(self.scores).all():
            raise ValueError(
                f"scoring={self.scorer.scoring!r} gives no number on any fold, as where no class or only one is among "
                "the rows that judge; take folds that hold every class (cv=5), or another scoring."
            )
