"""The rows that models are fitted to: as given, without empty columns, in units of their columns, or in as many
dimensions as rows."""

from collections.abc import Callable

import numpy as np

from manyclass.choice.methods import Shape
from manyclass.data.generated import in_units
from manyclass.data.memory import require
from manyclass.data.row_space import RowSpace
from manyclass.data.rows import Array
from manyclass.fit.folds import Fold
from manyclass.model import Problem

EMPTY = 0.125
"""Share of empty columns from which the rows are worth a copy without them."""


def occurring(problem: Problem) -> tuple[Problem, np.ndarray | None]:
    """The problem on the columns that its rows have, and which these are; itself and None where hardly any is empty.

    The coefficients of a column that no row has are zero at the optimum. Texts in a vocabulary that was not made of
    them, or in hashed words, have a million such.
    """
    rows, columns = problem.rows.occurring(EMPTY)
    if columns is None or not len(columns):
        return problem, None
    shift = None if problem.shift is None else problem.shift[columns]
    return problem.variant(rows=rows, shift=shift), columns


class Frame:
    """A problem, or the same in the space that its rows span; of whatever weight, so that folds share it.

    With `rotate` in the space of the rows; with `unit` each column is divided by that before, which is another problem,
    whose penalty is on coefficients in these units; with `wide` products are in float64, whatever the dtype of the
    rows; with `drops_empty` without the columns that no row has (see `occurring`).
    """

    def __init__(
        self,
        given: Problem,
        *,
        rotate: bool = False,
        unit: Array | None = None,
        wide: bool = False,
        drops_empty: bool = False,
    ):
        near, self._columns = occurring(given) if drops_empty else (given, None)
        self.given, self.unit = given, unit if unit is None or self._columns is None else unit[self._columns]
        self.space: RowSpace | None = None
        if wide:
            near = near.variant(rows=near.rows.typed(given.xp.float64))
        if self.unit is not None:
            shift = None if near.shift is None else near.shift / self.unit
            near = near.variant(rows=in_units(near.rows, self.unit), shift=shift)
        self.problem = self._unrotated = near
        if rotate:
            what, advice = f"The space of {near.rows.n_rows} rows", "use GLMClassifier, which can do without"
            require(RowSpace.memory(near.rows), given.memory_limit, what, advice)
            near.on_block(Shape.of(near).seconds_of_rotation)
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
        if self._columns is not None:
            coef = coef[self._columns, :]
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
        if self.unit is not None:
            coef = coef / self.given.rows.asarray(self.unit)[:, None]
        if self._columns is not None:
            occurring, coef = coef, self.given.rows.zeros((self.given.rows.n_features, coef.shape[1]), coef.dtype)
            coef[self._columns, :] = occurring
        return coef, intercept

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
