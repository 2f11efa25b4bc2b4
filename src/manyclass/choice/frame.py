"""The rows that models are fitted to: as given, in units of their columns, or in as many dimensions as rows."""

from __future__ import annotations

from collections.abc import Callable

from manyclass.data.generated import GeneratedRows, InUnits
from manyclass.data.row_space import RowSpace
from manyclass.data.rows import Array
from manyclass.fit.folds import Fold
from manyclass.model import Problem


class Frame:
    """A problem, or the same in the space that its rows span; of whatever weight, so that folds share it.

    With `rotate` in the space of the rows; with `unit` each column is divided by that before, which is another problem,
    whose penalty is on coefficients in these units; with `wide` products are in float64, whatever the dtype of the
    rows.
    """

    def __init__(self, given: Problem, *, rotate: bool = False, unit: Array | None = None, wide: bool = False):
        self.given, self.unit, self._unrotated = given, unit, given
        self.space: RowSpace | None = None
        if wide:
            self._unrotated = given.variant(rows=given.rows.typed(given.xp.float64))
        if unit is not None:
            shift = None if given.shift is None else given.shift / unit
            self._unrotated = given.variant(rows=GeneratedRows(self._unrotated.rows, InUnits(unit)), shift=shift)
        self.problem = near = self._unrotated
        if rotate:
            self.space = RowSpace(near.rows, near.feature_mean if near.fit_intercept else None)
            self.problem = near.variant(rows=self.space.rows, shift=None)

    @property
    def is_given(self) -> bool:
        """Whether `problem` is the one that was given."""
        return self.problem is self.given

    def project(self, start: tuple[Array, Array] | None) -> tuple[Array, Array] | None:
        """W and b of `problem`, from those of the rows as they were given."""
        if self.is_given or start is None:
            return start
        coef, intercept = self._typed(*start, self.problem)
        if self.unit is not None:
            coef = coef * self.given.rows.asarray(self.unit)[:, None]
        if self.space is None:
            return coef, intercept
        return self.space.project(coef, self._unrotated.unshifted(coef, intercept, back=True))

    def lift(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """W and b of the rows as they were given, from those of `problem`."""
        W, b = self.lift_near(coef, intercept)
        return self._typed(W, b if self.space is None else self.given.unshifted(W, b), self.given)

    def lift_near(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """W and b of the rows of `given`, which may be shifted, from those of the rows of `problem`."""
        if self.space is not None:
            coef, intercept = self.space.lift(coef, intercept)
        return coef if self.unit is None else coef / self.given.rows.asarray(self.unit)[:, None], intercept

    @staticmethod
    def _typed(coef: Array, intercept: Array, problem: Problem) -> tuple[Array, Array]:
        xp, dtype = problem.xp, problem.rows.dtype
        return xp.astype(coef, dtype, copy=False), xp.astype(intercept, dtype, copy=False)

    def lifted(self, model: Callable[[], tuple[Array, Array]]) -> Callable[[], tuple[Array, Array]]:
        """`lift` of what is made when it is asked for."""
        return model if self.is_given else lambda: self.lift(*model())

    def scores(self, fold: Fold, coef: Array, intercept: Array) -> Array:
        """Scores of the rows that judge, under a model of `problem`."""
        if fold.rows is not None:
            return fold.scores(fold.rows, *self.lift(coef, intercept))
        return fold.scores(self.problem.rows, coef, self.problem.unshifted(coef, intercept, back=True))
