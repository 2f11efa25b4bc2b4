"""What solvers of smooth problems share: where they start, and how their iterates measure how good they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from manyclass.curvature import Curvature
from manyclass.data.memory import require
from manyclass.data.rows import Array
from manyclass.fit import Iterate, Iterates, Status, strictness
from manyclass.model import Evaluation, Problem
from manyclass.model.duality import duality_gap
from manyclass.solvers.start import Start, least_squares_start

LOOKS_BACK, SHARE_BACK = 5, 0.25
"""Without a duality gap, the gain of the last so many iterations, or this share of all, says whether to stop."""
REFRESH = frozenset({3, 8, 20})
"""Iterations after which a metric is estimated again: early, while it changes most."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class StepCost:
    """The estimated cost of a step, without the solve in the metric. The defaults are those of L-BFGS."""

    passes: float = 1.0  # over the rows
    looks: int = 0  # evaluations at the scores of all rows that take no pass
    arrays: int = 40  # held by the solver, each of the size of the parameters; a step reads half of them


class Solver(ABC):
    """Minimises a problem in the metric of a curvature.

    A new solver is one file with a subclass and one line in ``SOLVERS``.

    Attributes
    ----------
    needs_majorizer : bool
        Whether only a curvature with ``majorizes`` will do.
    refreshes_majorizer : bool
        Whether a ``local`` majorizer will do, too. With a loss that has a bound for every row, any metric will do then:
        the sum of the bounds is minimised on planes, and the metric only says which.
    default_curvature : str, optional
        The curvature that belongs to the solver; None if the data decide.
    begins_constant : bool
        Whether it starts at the constant model instead of from least squares.
    """

    name: ClassVar[str]
    needs_majorizer: ClassVar[bool]
    refreshes_majorizer: ClassVar[bool] = False
    default_curvature: ClassVar[str | None] = None
    begins_constant: ClassVar[bool] = False

    def begin(self, problem: Problem, curvature: Curvature) -> Start:
        """Where to start if nothing else is given."""
        return Start(problem.constant_model()) if self.begins_constant else least_squares_start(problem, curvature)

    def step_cost(self, problem: Problem) -> StepCost:
        """The cost of a step. Raises ValueError if the solver cannot use any metric for the problem."""
        return StepCost()

    @abstractmethod
    def iterates(
        self, problem: Problem, curvature: Curvature, theta: Array, n_iter: int = 0, saved: Mapping[str, Any] = NOTHING
    ) -> Iterates:
        """One `Iterate` for the start, with the number n_iter + 1, and one after each iteration.

        Parameters
        ----------
        saved : mapping
            The `state` of an iterate of an earlier run, at theta and with the number n_iter + 1: that iterate is
            yielded again, and then those that followed it.
        """


class HasSolve(Protocol):
    """All that an iterate needs of a curvature."""

    def solve(self, gradient: Array) -> Array: ...


def iterates_in(
    kind: type[Curvature],
    solver: Solver,
    problem: Problem,
    rng: np.random.Generator,
    start: tuple[Array, Array] | None = None,
    saved: Mapping[str, Any] | None = None,
) -> Iterates:
    """Iterates of a solver in the metric of a kind of curvature.

    They start from the minimum where the curvature gives it, else from `start`, W and b, or where the solver begins
    (see `iterates_at`). With `saved`, the `state` of one of its iterates, they start with that iterate.
    """
    require(kind.memory(problem), problem.memory_limit, f"curvature={kind.name!r}", "use curvature='auto'")
    problem.centred = kind.center
    curvature = kind(problem, rng)
    if saved is not None:
        iterates = solver.iterates(problem, curvature, saved["theta"], saved["n_iter"] - 1, saved)
        first = next(iterates)
        problem.n_passes, problem.n_looks = saved["n_passes"], saved["n_looks"]
        yield replace(first, n_passes=problem.n_passes, n_looks=problem.n_looks)
        return (yield from iterates)
    theta = None if start is None else problem.pack(*start)
    if problem.loss.quadratic and kind.is_exact:
        # The minimum itself costs less than a search for a good start.
        theta = problem.xp.astype(-curvature.solve(problem.zero_gradient), problem.rows.dtype)
    return (yield from iterates_at(solver, problem, curvature, theta))


def iterates_at(solver: Solver, problem: Problem, curvature: Curvature, theta: Array | None) -> Iterates:
    """Iterates from theta, or, if there is none or the zero model is better, from where the solver begins."""
    if theta is not None:
        iterates = solver.iterates(problem, curvature, theta)
        first = next(iterates)
        if first.objective <= problem.zero_value:
            yield first
            return (yield from iterates)
    begun = solver.begin(problem, curvature)
    iterates = solver.iterates(problem, curvature, begun.theta)
    if begun.doubts:
        yield replace(next(iterates), doubts=begun.doubts)
    return (yield from iterates)


def refresh(problem: Problem, curvature: Curvature, theta: Array, evaluation: Evaluation | None = None) -> None:
    """Adapt a metric to the point theta, with the weights that rows have there if it uses them."""
    if evaluation is None and curvature.weighs_rows:
        evaluation = problem.value_and_gradient(theta, with_row_weight=True)
    problem.n_looks += 1
    curvature.refresh(problem, theta, None if evaluation is None else evaluation.row_weight)


def iterate(
    problem: Problem,
    curvature: HasSolve,
    theta: Array,
    evaluation: Evaluation,
    n_iter: int,
    *,
    looks_back: int | None = None,
    **more: Any,
) -> Iterate:
    """The point theta as an `Iterate`; `more` is what its solver needs besides to go on from there.

    With alpha > 0 it has the relative duality gap (F − D)/F(zero model), which has to be smaller if F itself is small
    (`strictness`). With alpha = 0 it has the gain ½⟨∇F, H⁻¹∇F⟩/F(zero model) that a step would make if the metric H
    were the Hessian. As that may be far from true, the last `looks_back` iterations must not have gained more than
    ``tol`` either. Neither measure depends on the units of X, on n or on k.
    """

    def model() -> tuple[Array, Array]:
        return problem.coefficients(theta)

    def state() -> dict[str, Any]:
        return {"theta": theta, "n_iter": n_iter, "n_passes": problem.n_passes, "n_looks": problem.n_looks, **more}

    unit, gradient = max(problem.zero_value, 1e-300), evaluation.gradient
    told: dict[str, Any] = {"details": problem.traffic, "lasting": True, "state": state, "n_looks": problem.n_looks}
    if problem.alpha > 0:
        gaps = duality_gap(problem, theta, evaluation) / np.maximum(problem.zero_values, 1e-300)
        told["duality_gap"] = float(np.max(gaps))
        told["strictness"] = strictness(evaluation.value / unit)
    else:
        told["measure"] = 0.5 * problem.inner(gradient, curvature.solve(gradient)) / unit
        looks_back = looks_back or max(LOOKS_BACK, int(SHARE_BACK * n_iter))
        told |= {"looks_back": looks_back, "unit": unit, "reached": Status.STATIONARY}
    return Iterate(model, evaluation.value, n_iter, problem.n_passes, **told)
