"""Estimated seconds of each method for a smooth problem, and the choice that follows from them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from manyclass.choice.rates import Rates, rates_of
from manyclass.choice.spectrum import quadratic_steps
from manyclass.curvature import CURVATURES
from manyclass.curvature.base import MATRICES
from manyclass.curvature.hessian import LARGEST, enough_rows
from manyclass.curvature.kronecker import sampled_rows
from manyclass.data.memory import require
from manyclass.data.row_space import RowSpace
from manyclass.model import Problem
from manyclass.solvers import Solver
from manyclass.solvers.base import REFRESH, StepCost
from manyclass.solvers.quasi_newton import QuasiNewton

NEWTON_STEPS, NEWTON_PASSES = 7, 3.0
"""Steps of Newton's method, and passes over the rows per step. Both hardly depend on the data."""
HESSIAN_PASSES = 16
"""Passes of L-BFGS whose metric is the Hessian summed over a sample of the rows."""
PASSES_PER_STEP, INDEPENDENT_PASSES_PER_STEP = 6.0, 3.0
"""Passes of L-BFGS in the diagonal metric, per step of conjugate gradients on the quadratic model at the constant
solution. L-BFGS takes more of them because the curvature changes on the way. The second number is for independent
outputs: each keeps curvature pairs of its own, which takes fewer passes."""
FEWEST_PASSES = 5.0
"""Passes of the easiest problem: the start and its line search."""
METRIC_PASSES, METRIC_SHARE = (24.0, 54.0), 2.0 / 3.0
"""Passes of L-BFGS in a metric that couples features: the share of the passes in the diagonal metric, within the
bounds."""
SPARSE_METRIC_SHARE = 0.8
"""The share for sparse rows, which has no bounds. Columns that rarely occur together have little coupling to learn."""
INTERPRETED_DIRECTION, INTERPRETED_SOLVE, INTERPRETED_STEP = 5.0, 2.0, 7.0
"""Overhead of Python, independent of the size of the arrays, in passes over a single row: of an iteration of L-BFGS, of
a solve in a metric that couples features, and of a step of Newton's method."""
HALF_A_PRODUCT, SPREAD, OF_MATRIX = 0.55, 6.0, 10.0
"""Multiplications of AᵀA, as a share of those of a general product; reads and writes per number to weight the features
for every output; and reads and writes per entry of a Hessian until it is factored."""
FILLED = 8.0
"""Reads and writes per number to make sparse rows dense, which Hessians need."""
UNKNOWN_UNITS = 10.0
"""Factor on the steps in the diagonal metric when alpha is 0, as then no penalty fixes the units of the columns."""


@dataclass(frozen=True)
class Method:
    """A solver, its curvature, and the estimated cost of solving a problem with them."""

    solver: str
    curvature: str
    row_space: bool  # whether the rows are first rotated into as many dimensions as there are rows
    passes: float
    set_up: float  # seconds
    per_pass: float  # seconds
    memory: float  # bytes beside the rows
    fits: bool = True  # whether there is room for `memory`
    wide: bool = False  # whether products are in float64, whatever the dtype of the rows
    looks: int = 1  # how often the metric is expected to be made; `set_up` includes all of them
    look: float = 0.0  # seconds of making the metric once more

    @property
    def seconds(self) -> float:
        return self.set_up + self.passes * self.per_pass

    def taken(self, n_passes: float, n_looks: int) -> float:
        """Estimated seconds of a run of so many passes that has made its metric `n_looks` times."""
        return self.set_up + n_passes * self.per_pass + max(n_looks - self.looks + 1, 0) * self.look

    def __str__(self) -> str:
        space = (", rows rotated" if self.row_space else "") + (", in float64" if self.wide else "")
        return (
            f"{self.solver} with {self.curvature}{space}: {self.seconds:.2g} s "
            f"({self.set_up:.2g} s to set up, {self.passes:.0f} passes of {self.per_pass:.2g} s)"
        )


def looks_in(n_steps: float) -> int:
    """How often L-BFGS makes its metric in so many steps: at the start, and where `QuasiNewton` refreshes it."""
    return 1 + sum(at < n_steps for at in REFRESH)


@dataclass(frozen=True)
class Choice:
    """The method taken, and all methods considered, the fastest first."""

    method: Method
    candidates: tuple[Method, ...]

    @classmethod
    def of(cls, solver: str, curvature: str, row_space: bool = False) -> Self:
        """The method that a user named. It has no estimates."""
        method = Method(solver, curvature, row_space, math.nan, math.nan, math.nan, math.nan)
        return cls(method, (method,))


def asked_for(
    problem: Problem, solver: str, curvature: str, advice: str = "use solver='auto' and curvature='auto'"
) -> Choice:
    """The solver and curvature that a user named.

    Rows are rotated into the space that they span if they are fewer than the columns, and the curvature does not depend
    on the axes.
    """
    rotates = problem.rows.has_row_space and not CURVATURES[curvature].is_diagonal
    if rotates:
        what = f"rotating the rows for curvature={curvature!r}"
        require(RowSpace.memory(problem.rows), problem.memory_limit, what, advice)
    return Choice.of(solver, curvature, rotates)


def choose(problem: Problem, tol: float, solver: Solver | None = None) -> Choice:
    """The method with the fewest estimated seconds among those that fit into memory.

    `tol` is a relative duality gap. With a `solver` only its metric is chosen; that solver has to take any curvature as
    its metric, as `Majorize` does on the planes of partition bounds.
    """
    methods = sorted(_candidates(problem, tol, solver), key=lambda one: one.seconds)
    least = min(methods, key=lambda one: one.memory)
    what, advice = f"{least.solver} with curvature={least.curvature!r}", "use curvature='auto', or PegasosClassifier"
    room = require(least.memory, problem.memory_limit, what, advice)
    candidates = tuple(replace(one, fits=one.memory <= room) for one in methods)
    return Choice(next(one for one in candidates if one.fits), candidates)


def _candidates(problem: Problem, tol: float, solver: Solver | None) -> Iterator[Method]:
    shape, per_step = Shape.of(problem), INDEPENDENT_PASSES_PER_STEP if problem.loss.separable else PASSES_PER_STEP
    plain = max(per_step * quadratic_steps(problem, tol), FEWEST_PASSES)
    n, rows = shape.n, problem.rows
    in_metric = QuasiNewton() if solver is None else solver
    cost = in_metric.step_cost(problem)
    by_diagonal = plain if problem.alpha > 0 else UNKNOWN_UNITS * plain
    for row_space in (False, True):
        if row_space and not rows.has_row_space:
            break
        inner = shape
        before = memory = 0.0
        if row_space:
            inner = shape.rotated
            before = shape.seconds_of_rotation + shape.seconds_of_pass()
            memory = 3 * 8.0 * n * n
        fewest, most = METRIC_PASSES
        metric = max(fewest, min(METRIC_SHARE * plain, most) if inner.dense else SPARSE_METRIC_SHARE * plain)
        features = ("second-moment", 1.0) if problem.loss.quadratic else ("kronecker", min(plain, metric))
        methods = list(inner.in_metrics(in_metric.name, cost, by_diagonal, *features))
        if solver is None:
            methods += inner.by_newton()
        for method in methods:
            yield replace(method, row_space=row_space, set_up=method.set_up + before, memory=method.memory + memory)


@dataclass(frozen=True)
class Shape:
    """The sizes and speeds that the cost of products with the rows depends on."""

    n: int
    d: int
    k: int
    stored: float
    dense: bool
    speed: Rates
    itemsize: int

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The sizes of the rows of a problem, and the speeds of this machine on such rows."""
        rows, speed = problem.rows, rates_of(problem.rows)
        n, d, k = rows.n_rows, rows.n_features, problem.n_outputs
        dense = rows.row_bytes >= d * rows.itemsize
        return cls(n, d, k, n * d if dense else n * rows.row_bytes / (rows.itemsize + 4), dense, speed, rows.itemsize)

    def seconds_of_pass(self) -> float:
        elementwise = self.n * self.k / self.speed.elementwise + 1.0 / self.speed.interpreted
        if not self.dense:
            return 2.0 * self.stored * max(self.k, 2) / self.speed.sparse + elementwise
        # The second product of a block that fits into the caches finds it there.
        reads = self.stored / self.speed.stream
        return reads + 2.0 * self.stored * self.k / self.speed.product + elementwise

    def gram(self, n_rows: float) -> float:
        """Seconds of the Gram matrix of the features, over so many rows."""
        per_row = self.stored / max(self.n, 1)
        if self.dense:
            return 0.6 * n_rows * self.d**2 / self.speed.product
        return 4.0 * n_rows * per_row**2 / self.speed.sparse + 3.0 * self.d**2 / self.speed.stream

    def gram_of_rows(self) -> float:
        """Seconds of the Gram matrix of the rows."""
        if self.dense:
            return self.n**2 * self.d / self.speed.product
        return (
            4.0 * self.stored * self.stored / max(self.d, 1) / self.speed.sparse + 3.0 * self.n**2 / self.speed.stream
        )

    @property
    def rotated(self) -> Self:
        """The shape of the rows after their rotation into the space that they span."""
        return replace(self, d=self.n, stored=float(self.n) ** 2, dense=True)

    @property
    def seconds_of_rotation(self) -> float:
        return self.gram_of_rows() + self.speed.seconds_of_decomposition(self.n)

    def hessian(self, size: int, n_rows: float) -> float:
        """Seconds of the Hessian of `size` parameters over so many rows, and of its factor."""
        # One product for each output, and one of all outputs together where they are coupled.
        products = HALF_A_PRODUCT * size**2 * (1.0 / self.k + (self.k > 1)) / self.speed.product
        read = SPREAD * size + (0.0 if self.dense else FILLED * self.d)
        row = products + read / self.speed.stream + self.k / self.speed.elementwise
        matrix = OF_MATRIX * size**2 / self.speed.stream
        return n_rows * row + matrix + self.speed.seconds_of_cholesky(size)

    def in_metrics(
        self, solver: str, cost: StepCost, by_diagonal: float, of_features: str, by_features: float
    ) -> Iterator[Method]:
        """A solver in each metric that could serve.

        It is expected to take `by_diagonal` steps in the diagonal metric, and `by_features` steps in the metric of the
        curvature `of_features`, which couples features.
        """
        d, k, speed = self.d, self.k, self.speed
        one, parameters = self.seconds_of_pass(), d * k
        arrays = cost.arrays * parameters
        looks = cost.looks * (self.n * k / speed.elementwise + 1.0 / speed.interpreted)
        step = cost.passes * one + looks + INTERPRETED_DIRECTION / speed.interpreted + 0.5 * arrays / speed.stream

        def method(curvature: str, steps: float, set_up: float, look: float, solve: float, needed: float) -> Method:
            passes, per_pass = steps * cost.passes, (step + solve) / cost.passes
            memory = arrays * self.itemsize + needed
            return Method(solver, curvature, False, passes, set_up, per_pass, memory, looks=looks_in(steps), look=look)

        yield method("jacobi", by_diagonal, one, replace(self, k=1).seconds_of_pass(), 0.0, 0.0)
        sample = min(self.n, sampled_rows(d))
        # L-BFGS factors the matrix again at each look. A solve is two products with a triangle: one solve per pass, and
        # half of one for the curvature pairs that are solved for again.
        factors, needed = looks_in(by_features) * speed.seconds_of_cholesky(d), MATRICES * 8.0 * d * d
        look = self.gram(sample / 2) + speed.seconds_of_cholesky(d)
        solve = 3.0 * d * parameters / speed.product + INTERPRETED_SOLVE / speed.interpreted
        yield method(of_features, by_features, 2 * one + self.gram(sample) + factors, look, solve, needed)
        size = (d + 1) * k
        if 1 < k and size <= LARGEST:  # for a single output, `of_features` samples the same Hessian at less cost
            sample = min(self.n, enough_rows(size))
            look = self.hessian(size, sample) + one * sample / self.n
            solve, needed = 3.0 * size**2 / speed.stream, MATRICES * 8.0 * size * size
            set_up = one + looks_in(HESSIAN_PASSES) * look
            yield method("sampled-hessian", HESSIAN_PASSES, set_up, look, solve, needed)

    def by_newton(self) -> Iterator[Method]:
        """Newton's method, if the parameters are few enough for a full Hessian."""
        size, speed = (self.d + 1) * self.k, self.speed
        if size <= LARGEST:
            interpreted = (INTERPRETED_STEP - NEWTON_PASSES) / speed.interpreted
            step = self.hessian(size, self.n) + NEWTON_PASSES * self.seconds_of_pass() + interpreted
            passes, needed = NEWTON_STEPS * NEWTON_PASSES, MATRICES * 8.0 * size * size
            yield Method("newton", "hessian", False, passes, 0.0, step / NEWTON_PASSES, needed)
