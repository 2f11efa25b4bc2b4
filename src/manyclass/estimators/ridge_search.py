"""The search for a penalty of the squared loss: exact, from one decomposition for all penalties."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from manyclass.choice.frame import Frame, occurring
from manyclass.choice.methods import Shape
from manyclass.choice.rates import rates
from manyclass.choice.ridge_path import RidgePath, moments_by_fold
from manyclass.data import Moments
from manyclass.data.memory import require
from manyclass.data.penalty import best
from manyclass.data.rows import Array, to_numpy
from manyclass.estimators.penalty_search import PenaltySearch
from manyclass.fit import Iterate, Iterates, Status
from manyclass.fit.folds import Fold, mean_scores
from manyclass.model import Problem

ROUNDING = 10.0
"""Eigenvalues below so many units in the last place of the largest are rounding."""


class RidgeSearch(PenaltySearch):
    """Fits from moments, exactly."""

    def iterates(self) -> Iterates:
        problem, plan, alphas = self.task.problem, self.plan, self.plan.alphas
        problem.centred = True
        path, of_folds = self._paths(problem, wide=False)
        if problem.rows.moments_itemsize < 8 and _is_rounding(path, problem.rows.precision):
            path, of_folds = self._paths(problem, wide=True)
        problem = self.frame.problem
        errors = path.generalised_cross_validation(alphas, problem)
        first = best(alphas, errors)
        passes = problem.n_passes + 1.0
        yield Iterate(lambda: self.selected(self._model(path, first), first), 0.0, 1, passes, rank=1.0)
        if plan.mode == "gcv":
            self.scores[0] = -errors if plan.per_output else -errors.mean(axis=1)
        elif plan.mode == "loo":
            self._leave_one_out(path)
        for number, (fold, moments) in enumerate(zip(plan.folds, of_folds, strict=True)):
            self.task.clock.check(ahead=_seconds_of_spectrum(problem))
            self._judge_fold(number, fold, RidgePath(moments, problem.fit_intercept))
        self._check_scores()
        if not plan.folds:
            for place, model in enumerate(self._models(path, alphas)):
                self.keep(0, place, model)
        alpha = self.best_alpha
        model = self._model(path, alpha)
        details = {"alpha": alpha, "score": float(np.nanmax(mean_scores(self.scores)))}
        passes += 2.0 * bool(plan.folds) + (plan.mode == "loo")
        yield Iterate(lambda: self.selected(model), 0.0, 1, passes, rank=0.0, details=details)
        if plan.leave_one_out:
            last = partial(self.selected, model, left_out=self._left_out(path, alpha))
            yield Iterate(last, 0.0, 1, passes + 1, rank=-1.0, details=details)
        return Status.FINISHED

    def _paths(self, whole: Problem, *, wide: bool) -> tuple[RidgePath, list[Moments]]:
        """The path of all rows, and the moments of the rows that each fold is fitted to; sets the frame."""
        self.frame = Frame(whole, rotate=occurring(whole)[0].rows.has_row_space, wide=wide, drops_empty=True)
        problem = self.frame.problem
        what = f"The second moments of {problem.rows.n_features} columns"
        require(memory_of_ridge(problem), whole.memory_limit, what, "use GLMClassifier, which can do without")
        full, of_folds = moments_by_fold(problem, self.plan.folds)
        return RidgePath(full, problem.fit_intercept), list(of_folds)

    def _models(self, path: RidgePath, alphas: Iterable[Any]) -> Iterator[tuple[Array, Array]]:
        """W and b at each penalty, on the rows of the frame, in their dtype."""
        problem, xp = self.frame.problem, self.frame.problem.xp
        for W, b in path.coefficients([problem.rows.asarray(alpha, dtype=xp.float64) for alpha in alphas]):
            yield xp.astype(W, problem.rows.dtype), xp.astype(problem.unshifted(W, b), problem.rows.dtype)

    def _model(self, path: RidgePath, alpha: Any) -> tuple[Array, Array]:
        return next(self._models(path, [alpha]))

    def _judge_fold(self, number: int, fold: Fold, path: RidgePath) -> None:
        truth, weight = self.truth_and_weight(fold)
        alphas = [self.alpha_of(alpha, path.moments.weight) for alpha in self.plan.alphas]
        for place, model in enumerate(self._models(path, alphas)):
            self.keep(number, place, model)
            self.scores[number, place] = self.scorer.score(self.frame.scores(fold, *model), truth, weight)

    def _leave_one_out(self, path: RidgePath) -> None:
        """Score every penalty. If the score is a mean over rows, it is summed; else the scores of all rows are kept."""
        problem, alphas, scorer, weight = self.frame.problem, self.plan.alphas, self.scorer, self.plan.judging_weight
        n = problem.rows.n_rows
        if scorer.knows_rows:
            self.scores[0] = 0.0
            for place, part, Z in path.left_out_scores(alphas, problem):
                values: Any = scorer.values(Z, scorer.truth(part))
                self.scores[0, place] += values.sum(axis=0) if weight is None else weight[part] @ values
            self.scores[0] /= n if weight is None else weight.sum()
            return
        table = np.empty((len(alphas), n, problem.n_outputs))
        for place, part, Z in path.left_out_scores(alphas, problem):
            table[place, part] = to_numpy(Z)
        self.scores[0] = [scorer.score(Z, scorer.truth(slice(None)), weight) for Z in table]

    def _left_out(self, path: RidgePath, alpha: Any) -> np.ndarray:
        """The leave-one-out scores of all rows, at the penalty of each output."""
        problem = self.frame.problem
        alphas = np.broadcast_to(alpha, (problem.n_outputs,))
        unique = np.unique(alphas)
        scores = np.empty((problem.rows.n_rows, problem.n_outputs))
        for place, part, Z in path.left_out_scores(unique, problem):
            columns = np.flatnonzero(alphas == unique[place])
            scores[part, columns] = to_numpy(Z)[:, columns]
        return scores


def seconds_of_ridge(problem: Problem) -> float:
    """Estimated seconds until the first model: moments and a decomposition."""
    shape = Shape.of(problem)
    return min(shape.gram_of_rows(), shape.gram(shape.n)) + _seconds_of_spectrum(problem)


def memory_of_ridge(problem: Problem) -> float:
    """Bytes of the moments, their eigenvectors, and the workspace."""
    return 3 * 8.0 * min(occurring(problem)[0].rows.shape) ** 2


def _seconds_of_spectrum(problem: Problem) -> float:
    return rates("float64").seconds_of_decomposition(min(problem.rows.shape))


def _is_rounding(path: RidgePath, precision: float) -> bool:
    """Whether most directions vary by less than the rounding of the largest, as where a few rows lie far away."""
    squares = to_numpy(path.spectrum.eigenvalues)
    return bool(np.mean(squares < ROUNDING * precision * squares.max(initial=0.0)) > 0.5)
