"""The rows that models are fitted to: as they were given, or in as many dimensions as there are rows."""

from __future__ import annotations

from collections.abc import Callable

from manyclass.data.row_space import RowSpace
from manyclass.data.rows import Array
from manyclass.fit.folds import Fold
from manyclass.model import Problem


class Frame:
    """A problem, or the same problem in the space that its rows span; of whatever weight, so that folds share it.

    Attributes
    ----------
    problem : Problem
        What is to be solved.
    """

    def __init__(self, given: Problem, *, rotate: bool):
        self.given, self.problem = given, given
        self.space: RowSpace | None = None
        if rotate:
            self.space = RowSpace(given.rows, given.feature_mean if given.fit_intercept else None)
            self.problem = Problem(
                self.space.rows,
                given.targets,
                given.loss,
                given.alpha,
                weight=given.weight,
                fit_intercept=given.fit_intercept,
            )
            self.problem.on_block = given.on_block

    def project(self, start: tuple[Array, Array] | None) -> tuple[Array, Array] | None:
        """W and b of `problem`, from those of the rows as they were given."""
        if self.space is None or start is None:
            return start
        return self.space.project(start[0], self.given.unshifted(*start, back=True))

    def lift(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """W and b of the rows as they were given, from those of `problem`."""
        if self.space is None:
            return coef, intercept
        W, b = self.space.lift(coef, intercept)
        return W, self.given.unshifted(W, b)

    def lifted(self, model: Callable[[], tuple[Array, Array]]) -> Callable[[], tuple[Array, Array]]:
        """`lift` of what is made when it is asked for."""
        return model if self.space is None else lambda: self.lift(*model())

    def scores(self, fold: Fold, coef: Array, intercept: Array) -> Array:
        """Scores of the rows that judge, under a model of `problem`."""
        if fold.rows is not None:
            return fold.scores(fold.rows, *self.lift(coef, intercept))
        return fold.scores(self.problem.rows, coef, self.problem.unshifted(coef, intercept, back=True))
