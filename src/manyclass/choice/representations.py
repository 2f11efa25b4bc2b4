"""How repeated least squares is solved: from second moments, in the space of the rows, or by products with X."""

import math
from dataclasses import dataclass

from manyclass.choice.methods import Shape
from manyclass.data.memory import require
from manyclass.model import Problem
from manyclass.model.calibrator import WIDE_FEATURES, is_joint
from manyclass.stagewise.equations import SAMPLED_ROWS
from manyclass.stagewise.judges import ENOUGH_ROWS

SOLVES = 8
"""Least-squares problems that a fit is expected to solve, one after the other."""
TRIALS = 3.0
"""Factor on the number of solutions if larger penalties are tried, too. Their calibrations are not counted."""
INTERPRETED_STAGE, CALIBRATION = 20.0, 10.0
"""Overhead of Python in a solution and its calibration, in passes over a single row; and cost of a calibration besides
its products, in values and gradients of a softmax."""
BASIS = 3
"""Functions of each prediction that calibration combines."""
STEPS = {True: 15, False: 100}
"""Steps of conjugate gradients, by whether the penalty is chosen: a chosen one also conditions the problem."""
COPIES = 4
"""Matrices that a decomposition keeps."""
READS = 12.0
"""Reads per number of the second moments of a fold until they are factored."""


@dataclass(frozen=True)
class Representation:
    """One of "moments" (d×d), "row-space" (n×n) and "products" (no matrix), with estimated seconds and bytes."""

    name: str
    seconds: float
    memory: float
    set_up: float = 0.0  # of the seconds, those before the first solution

    def __str__(self) -> str:
        return f"{self.name}: {self.seconds:.2g} s, {self.memory / 1e9:.2g} GB"


def soon_enough(ways: tuple[Representation, ...], seconds: float) -> Representation:
    """The fastest that has a solution within these seconds, or the one that has it first."""
    return next((way for way in ways if way.set_up < seconds), min(ways, key=lambda way: way.set_up))


def tries_penalties(problem: Problem, n_powers: int = BASIS) -> bool:
    """Whether to try larger penalties than the best one of the first least squares.

    With fewer rows than features, that one is right for later stages, too. With hundreds of outputs the trials would
    take longer than all the rest.
    """
    return problem.rows.n_rows >= problem.rows.n_features and problem.n_outputs * n_powers <= WIDE_FEATURES


def fits_beside(problem: Problem, n_folds: int, n_powers: int = BASIS) -> int:
    """The number of folds whose fits run beside the main one, to say when to stop.

    All of them, unless calibration has more functions of predictions than there are features. Then a fit of a fold
    takes nearly as long as the main one, and folds of `ENOUGH_ROWS` together are enough.
    """
    if n_powers * problem.n_outputs <= problem.rows.n_features:
        return n_folds
    return min(n_folds, math.ceil(ENOUGH_ROWS * n_folds / problem.rows.n_rows))


def represent(
    problem: Problem, *, n_folds: int, chooses_alpha: bool, tries: bool = False
) -> tuple[Representation, ...]:
    """The representations that fit into memory, the fastest first.

    Beside the main fit there are fits to all rows but those of each of `n_folds` folds. With `chooses_alpha` the
    penalty is chosen by leave-one-out, and with `tries` larger ones are tried, too, if there is a matrix.
    """
    shape = Shape.of(problem)
    n, d, k, speed = shape.n, shape.d, shape.k, shape.speed
    fits = 1 + n_folds
    beside = SOLVES * fits * (INTERPRETED_STAGE / speed.interpreted + CALIBRATION * n * k / speed.elementwise)
    if is_joint(problem, BASIS * k):
        beside += SOLVES * fits * n * (BASIS * k) ** 2 / speed.product

    def with_matrix(name: str, of: Shape, before: float) -> Representation:
        cholesky, solve = of.d**3 / (3.0 * speed.product), 2.0 * of.d**2 * k / speed.product
        choosing = speed.seconds_of_decomposition(of.d) + of.hessian(of.d, n if n < 4 * of.d else 0.0)
        repeated = fits * (cholesky + SOLVES * (solve + 2.0 * of.seconds_of_pass()))
        matrices = 2.0 * of.gram(n) + n_folds * READS * of.d**2 / speed.stream
        set_up = before + matrices + (choosing if chooses_alpha else 0.0)
        seconds = set_up + (TRIALS if tries else 1.0) * repeated + beside
        return Representation(name, seconds, 8.0 * of.d**2 * (COPIES + 3 * n_folds) + 8.0 * d * k * SOLVES, set_up)

    ways = [with_matrix("moments", shape, 0.0)]
    if not problem.rows.place.is_here:
        advice = "use GLMClassifier, which alone can do without one where rows lie in partitions"
        require(ways[0].memory, problem.memory_limit, f"A matrix of {d}×{d} numbers", advice)
        return tuple(ways)
    if problem.rows.has_row_space:
        ways.append(with_matrix("row-space", shape.rotated, shape.seconds_of_rotation))
    sampled = min(n, SAMPLED_ROWS)
    choosing = (
        speed.seconds_of_decomposition(sampled) + shape.gram_of_rows() * (sampled / n) ** 2 if chooses_alpha else 0.0
    )
    steps = SOLVES * fits * (2.0 + STEPS[chooses_alpha])
    seconds = choosing + steps * shape.seconds_of_pass() + beside
    ways.append(Representation("products", seconds, 8.0 * d * k * (SOLVES + 6), choosing))
    least, what = min(one.memory for one in ways), f"Coefficients for {d} features and {k} outputs"
    room = require(least, problem.memory_limit, what, "use fewer features, or PegasosClassifier")
    return tuple(sorted((one for one in ways if one.memory <= room), key=lambda one: one.seconds))
