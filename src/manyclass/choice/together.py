"""The problems of all folds as one: a pass reads the rows once, and multiplies them with the models of all folds."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from manyclass.choice.methods import INTERPRETED_DIRECTION, INTERPRETED_SOLVE, Shape
from manyclass.curvature.hessian import Hessian, hessian_matrix
from manyclass.data.memory import room_for
from manyclass.data.rows import BLOCK_BYTES, Array, Rows, present_rows
from manyclass.data.targets import Targets
from manyclass.model import Problem
from manyclass.solvers.lbfgs import MEMORY

ARRAYS = 3 * MEMORY + 12
"""Of the size of the parameters that a descent holds."""
WAITS = 1.3
"""Passes that all take, over the mean of those that each takes."""
SAVED_PASSES = 2.0
"""Of L-BFGS, for each step of Newton's method."""
ROOM_SHARE = 0.25
"""Of what memory there is, up to which these may take."""


class Together(Problem):
    """The sum of the problems of several weights on the same rows, which share nothing but these.

    Outputs are those of one problem after those of another. Each is centred about the mean of its own rows, and has the
    penalty alpha·ratio. A row that has no weight in a problem adds nothing to its sums.

    Parameters
    ----------
    problem : Problem
        Of the rows, the targets and the loss.
    weights : list of array of shape (n_rows,)
    ratio : callable
        Of the sum of the weights of a problem.
    """

    def __init__(self, problem: Problem, weights: list[Array], ratio: Callable[[float], float]):
        # All that a problem has, but for what is told of each of its parts below.
        vars(self).update(vars(problem.variant()))
        xp, n = self.xp, len(weights)
        self.parts = [problem.variant(weight=weight) for weight in weights]
        self.n_problems, self.n_outputs = n, n * problem.n_outputs
        self.loss = _LossOfEach(problem.loss, n)
        self.targets = _TargetsOfEach(problem.targets, n, problem.loss.separable)
        each = [part.rows.n_rows / part.total_weight for part in self.parts]
        shares = [weight * size for weight, size in zip(weights, each, strict=True)]
        self.weight = xp.stack(shares, axis=1)
        self.ratios = [ratio(part.total_weight) for part in self.parts]

    @staticmethod
    def pays(problem: Problem, weights: list[Array]) -> bool:
        """Whether problems of these weights are sooner solved so, and there is room.

        What a pass takes beside its products is taken once; but rows without weight are multiplied, too, and problems
        that are through wait for the last.
        """
        n = len(weights)
        size = (problem.rows.n_features + 1.0) * problem.n_outputs * problem.rows.itemsize
        if n < 2 or ARRAYS * n * size > ROOM_SHARE * room_for(problem.memory_limit):
            return False
        shape = Shape.of(problem)
        interpreted = 1.0 / shape.speed.interpreted
        products = shape.seconds_of_pass() - interpreted
        beside = (1.0 + INTERPRETED_DIRECTION + INTERPRETED_SOLVE) * interpreted
        present = sum(len(present_rows(shape.n, weight)) for weight in weights) / shape.n
        return WAITS * (n * products + beside) < present * products + n * beside

    def of_each(self, theta: Array) -> list[Array]:
        """The columns of each problem."""
        k = self.n_outputs // self.n_problems
        return [theta[..., start : start + k] + 0.0 for start in range(0, self.n_outputs, k)]

    def models(self, coef: Array, intercept: Array) -> list[tuple[Array, Array]]:
        """W and b of each problem."""
        return list(zip(self.of_each(coef), self.of_each(intercept), strict=True))

    def beside(self, models: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """The inverse of `models`."""
        return self.xp.concat([W for W, _ in models], axis=1), self.xp.concat([b for _, b in models])

    @property
    def penalised_parts(self) -> list[Problem]:
        """Each of the problems, with its penalty."""
        for part, ratio in zip(self.parts, self.ratios, strict=True):
            part.alpha = self.alpha * ratio
        return self.parts

    # -- what a problem is asked for ------------------------------------------------------------------------------

    @property
    def n_independent(self) -> int:
        return self.n_outputs if self.loss.separable else self.n_problems

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[slice, Rows, Array | None]]:
        # What is done to the scores of one problem after another should find them in the cache, too.
        return super().blocks(block_bytes // self.n_problems)

    @property
    def alpha_of_each(self) -> np.ndarray:
        return self.alpha * np.repeat(self.ratios, self.n_independent // self.n_problems)

    @cached_property
    def total_weight(self) -> float:
        return float(self.rows.n_rows)

    def at(self, point: Array, W: Array) -> Array:
        of_each = self.xp.reshape(W, (int(W.shape[0]), self.n_problems, -1))
        return self.xp.reshape(self.xp.sum(point[:, :, None] * of_each, axis=0), (-1,))

    def times_center(self, of_outputs: Array, part: slice) -> Array:
        of_each = self.xp.reshape(of_outputs, (1, self.n_problems, -1))
        return self.xp.reshape(self.center[part, :, None] * of_each, (-1, self.n_outputs))

    def varying(self, of_columns: Array, part: slice = slice(None)) -> Array:
        if self.varies is None:
            return of_columns
        of_each = self.xp.reshape(of_columns, (int(of_columns.shape[0]), self.n_problems, -1))
        return self.xp.reshape(of_each * self.varies[part, :, None], of_columns.shape)

    def constant_model(self) -> Array:
        return self.xp.concat([part.constant_model() for part in self.parts], axis=1)

    @cached_property
    def center(self) -> Array:
        return self.xp.stack([part.center for part in self.parts], axis=1)

    @cached_property
    def feature_mean(self) -> Array:
        return self.xp.stack([part.feature_mean for part in self.parts], axis=1)

    @cached_property
    def _varies(self) -> Array | None:
        varies = self.xp.stack([part.feature_variance > 0 for part in self.parts], axis=1)
        return None if bool(self.xp.all(varies)) else varies

    @cached_property
    def _target_moments(self) -> tuple[Array, Array, float]:
        crosses, means, conjugates = zip(*(part._target_moments for part in self.parts), strict=True)
        return self.xp.concat(crosses, axis=1), self.xp.concat(means), float(sum(conjugates))

    @cached_property
    def target_products(self) -> tuple[Any, Array, np.ndarray]:
        squares, means, products = zip(*(part.target_products for part in self.parts), strict=True)
        each = self.n_independent // self.n_problems
        return np.repeat(squares, each), self.xp.concat(means), np.concatenate([np.atleast_1d(one) for one in products])

    @cached_property
    def zero_values(self) -> np.ndarray:
        return np.array([part.zero_value for part in self.parts])

    @cached_property
    def zero_value(self) -> float:
        return float(self.zero_values.sum())


class HessianOfEach(Hessian):
    """The Hessian of each of the problems, where these have few parameters; solved with all at once."""

    @staticmethod
    def pays(problem: Together) -> bool:
        """Whether they take less than the passes that Newton's method saves."""
        shape, n = Shape.of(problem.parts[0]), problem.n_problems
        passes = shape.seconds_of_pass() + (INTERPRETED_DIRECTION + INTERPRETED_SOLVE) / shape.speed.interpreted
        return (
            not problem.loss.has_kinks and n * shape.hessian((shape.d + 1) * shape.k, shape.n) < SAVED_PASSES * passes
        )

    def refresh(self, problem: Problem, theta: Array, row_weight: np.ndarray | None = None) -> None:
        assert isinstance(problem, Together)
        xp, k = problem.xp, problem.n_outputs // problem.n_problems
        pairs = zip(problem.penalised_parts, problem.of_each(theta), strict=True)
        H = xp.stack([hessian_matrix(part, one) for part, one in pairs])
        diagonal = xp.linalg.diagonal(H)
        if problem.fit_intercept and problem.loss.domain.exclusive:
            # As in `Hessian`.
            H[:, -k:, -k:] += (xp.mean(diagonal[:, -k:], axis=1) / k)[:, None, None]
        self._unit = 1.0 / xp.sqrt(xp.where(diagonal > 0, diagonal, xp.inf))
        H *= self._unit[:, :, None]
        H *= self._unit[:, None, :]
        # Kept away from singular by rounding, as in `Metric`.
        unit = xp.eye(int(H.shape[1]), dtype=H.dtype, device=problem.rows.device)
        self._matrices = H + 4.0 * problem.rows.precision**0.75 * unit[None, :, :]
        self._of = problem.alpha, theta

    def solve(self, gradient: Array) -> Array:
        xp, n = array_namespace(gradient), int(self._unit.shape[0])
        of_each = xp.permute_dims(xp.reshape(gradient, (int(gradient.shape[0]), n, -1)), (1, 0, 2))
        scaled = xp.astype(xp.reshape(of_each, self._unit.shape), xp.float64) * self._unit
        solved = xp.linalg.solve(self._matrices, scaled[:, :, None])[:, :, 0] * self._unit
        solved = xp.permute_dims(xp.reshape(solved, of_each.shape), (1, 0, 2))
        return xp.astype(xp.reshape(solved, gradient.shape), gradient.dtype)


class _TargetsOfEach:
    """What the scores of several models are matched with, the same for each."""

    def __init__(self, targets: Targets, n: int, by_columns: bool):
        self.targets, self.n, self.by_columns = targets, n, by_columns
        self._last: tuple[slice, Any] | None = None

    def of_each(self, rows: slice) -> Targets:
        """A row for each row and model."""
        if self._last is None or self._last[0] != rows:
            self._last = rows, self.targets.take(np.repeat(np.arange(rows.start, rows.stop), self.n))
        return self._last[1]

    def dense(self, rows: slice, like: Array, xp: Any) -> Array:
        if self._last is None or self._last[0] != rows:
            self._last = rows, xp.tile(self.targets.dense(rows, like, xp), (1, self.n))
        return self._last[1]

    def subtract(self, rows: slice, P: Array, xp: Any) -> None:
        if self.by_columns:
            P -= self.dense(rows, P, xp)
            return
        self.of_each(rows).subtract(slice(None), _one_model_a_row(P, self.n, xp), xp)


class _LossOfEach:
    """A loss of the scores of several models for each row, one after the other; in all else the loss itself."""

    def __init__(self, loss: Any, n: int):
        self.loss, self.n = loss, n

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).get("loss"), name)

    def tamed(self, Z: Array, xp: Any) -> Array:
        return xp.reshape(self.loss.tamed(_one_model_a_row(Z, self.n, xp), xp), Z.shape)

    def losses_and_mean(self, Z: Array, rows: slice, targets: _TargetsOfEach, xp: Any) -> tuple[Array, Array]:
        if self.separable:
            losses, P = self.loss.losses_and_mean(Z, rows, targets, xp)
            return losses, P
        of_each = targets.of_each(rows)
        losses, P = self.loss.losses_and_mean(_one_model_a_row(Z, self.n, xp), slice(None), of_each, xp)
        return xp.reshape(losses, (int(Z.shape[0]), -1)), xp.reshape(P, Z.shape)


def _one_model_a_row(values: Array, n: int, xp: Any) -> Array:
    return xp.reshape(values, (int(values.shape[0]) * n, -1))
