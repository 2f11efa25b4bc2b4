"""The problems of all folds as one: a pass reads the rows once, and multiplies them by the models of all folds."""

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
"""Arrays of the size of the parameters that a descent holds."""
WAITS = 1.3
"""Passes of all problems together, divided by the mean number of passes of a single problem."""
SAVED_PASSES = 2.0
"""Passes of L-BFGS that a step of Newton's method saves."""
ROOM_SHARE = 0.25
"""Share of the available memory that the problems may take."""


class Together(Problem):
    """The sum of several problems on the same rows, which differ in the weights of the rows only.

    The outputs of all problems are side by side. Each problem is centred about the mean of its own rows, and has the
    penalty alpha·ratio.

    Parameters
    ----------
    problem : Problem
        With the rows, the targets and the loss.
    weights : list of array of shape (n_rows,)
        The weights of each problem.
    ratio : callable
        Gives the ratio of a problem from the sum of its weights.
    """

    def __init__(self, problem: Problem, weights: list[Array], ratio: Callable[[float], float]):
        # As the given problem, except for what follows.
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
        """Whether it is faster to solve the problems together, and there is room.

        The overhead of a pass occurs once. But rows without weight are multiplied, too, and problems that have
        converged wait for the last one.
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

    # -- as in Problem ----------------------------------------------------------------------------------------------

    @property
    def n_independent(self) -> int:
        return self.n_outputs if self.loss.separable else self.n_problems

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[slice, Rows, Array | None]]:
        # The scores of all problems have to fit into the cache.
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
    """A Hessian for each of the problems, for few parameters."""

    @staticmethod
    def pays(problem: Together) -> bool:
        """Whether the Hessians take less time than the passes that Newton's method saves."""
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
    """The same targets for the scores of several models side by side."""

    def __init__(self, targets: Targets, n: int, by_columns: bool):
        self.targets, self.n, self.by_columns = targets, n, by_columns
        self._last: tuple[slice, Any] | None = None

    def of_each(self, rows: slice) -> Targets:
        """Targets with a row for each row and model."""
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
    """A loss on the scores of several models side by side; all else is as in the loss of one."""

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
