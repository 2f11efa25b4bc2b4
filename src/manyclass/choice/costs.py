"""Estimated seconds and bytes of each estimator on this machine, from the shape of the data and one small sample."""

from collections.abc import Iterator
from dataclasses import dataclass

from manyclass.choice.frame import occurring
from manyclass.choice.methods import Shape, choose
from manyclass.choice.representations import fits_beside, represent, tries_penalties
from manyclass.data import Rows
from manyclass.data.labels import Labels
from manyclass.data.memory import room_for
from manyclass.data.rows import BLOCK_BYTES
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.stagewise.judges import KEPT_SCORES, LEAST_ROWS

FOLDS, MANY_ROWS = 5, 10_000
"""Parts in which calibrated least squares is cross-validated, and rows from which it holds some out instead."""
ALPHA, TOL = 1e-4, 1e-3
"""Penalty and tolerance by default."""
FEATURES, BLOCK = 8192, 1024
"""Of a stagewise fit by default."""
DUAL_PASSES = 20
"""Passes that dual ascent is expected to take to a gap of 1e-3."""
SCORES = 3
"""Blocks of scores that a loss holds at a time: the scores, what it makes of them, and labels beside these."""
PREDICTIONS, TRIED, NOTED = 4, 4, 3
"""Matrices of the predictions of all rows in calibrated least squares: the predictions, how they move, what a longer
step makes of them, and labels; those of each fit that tries penalties, for the penalty that is tried and those before,
which may not be gone yet; and those of the rows of each fold that a link is learned from."""
DUALS, COEFFICIENTS = 3, 5
"""Matrices in float64 while the gap of dual ascent is measured, with a number for each row and output: the dual
variables, their positive and their negative parts; and as large as the coefficients: those of each part, of both, and
the best."""


@dataclass(frozen=True)
class Cost:
    """What a fit with the defaults of an estimator is expected to take."""

    estimator: str
    loss: str
    how: str
    seconds: float
    memory: float  # bytes beside the rows
    fits: bool  # whether that is no more than half of what was free


def costs(rows: Rows, labels: Labels) -> tuple[Cost, ...]:
    """Of the estimators that read all rows, the fastest first; what no method of an estimator can hold is left out."""
    link = "softmax" if labels.codes is not None and not labels.is_binary else "logistic"
    every_cost: list[Cost] = []
    for loss in (link, "squared"):
        smooth = SMOOTH_LOSSES[loss]
        problem = Problem(rows, labels.targets(rows, smooth.label_values), smooth, ALPHA)
        near, _ = occurring(problem)
        every_cost += _linear(near, loss)
    every_cost += [*_calibrated(near), *_generated(problem), *_dual(problem, link)]
    return tuple(sorted(every_cost, key=lambda one: one.seconds))


def _linear(problem: Problem, loss: str) -> Iterator[Cost]:
    try:
        best = choose(problem, TOL).method
    except MemoryError:
        return
    how = f"{best.solver} with {best.curvature}" + (", rows rotated" if best.row_space else "")
    rows, k = problem.rows, problem.n_outputs
    memory = best.memory + float(SCORES * rows.itemsize * rows.rows_per_block(k) * k)
    yield Cost("GLMClassifier", loss, how, best.seconds, memory, best.fits)


def _calibrated(problem: Problem) -> Iterator[Cost]:
    n_folds = fits_beside(problem, FOLDS) if problem.rows.n_rows < MANY_ROWS else 0
    tries = tries_penalties(problem)
    try:
        best = represent(problem, n_folds=n_folds, chooses_alpha=True, tries=tries)[0]
    except MemoryError:
        return
    # Each fold has a fit of its own, which penalties are tried with; or one to all rows that are not held out has.
    predictions = PREDICTIONS + (max(n_folds, 1) * TRIED if tries else n_folds)
    noted = NOTED * n_folds * max(KEPT_SCORES, LEAST_ROWS * problem.n_outputs)
    numbers = predictions * problem.rows.n_rows * problem.n_outputs + noted
    memory = best.memory + float(problem.rows.itemsize * numbers)
    fits = memory <= room_for(problem.memory_limit)
    yield Cost("CalibratedLeastSquaresClassifier", "calibrated", best.name, best.seconds, memory, fits)


def _generated(problem: Problem) -> Iterator[Cost]:
    """Each block is drawn, generated for its Gram matrix and again to move the predictions; the first chooses alpha."""
    shape, speed = Shape.of(problem), Shape.of(problem).speed
    n, k, blocks = shape.n, shape.k, FEATURES // BLOCK
    product = speed.product if shape.dense else speed.sparse
    generate = shape.stored * BLOCK / product + n * BLOCK / speed.elementwise
    solve = 0.6 * n * BLOCK**2 / speed.product + BLOCK**3 / (3.0 * speed.product) + 2.0 * n * BLOCK * k / speed.product
    draw = shape.d * BLOCK / speed.elementwise
    seconds = blocks * (draw + 2.0 * generate + solve) + speed.seconds_of_decomposition(BLOCK)
    memory = 2.0 * shape.itemsize * n * k + 4 * 8.0 * BLOCK**2 + 8.0 * FEATURES * (shape.d + k)
    fits = memory <= room_for(problem.memory_limit)
    how = f"{FEATURES} Fourier features in blocks of {BLOCK}"
    yield Cost("StagewiseClassifier", "squared", how, seconds, memory, fits)


def _dual(problem: Problem, link: str) -> Iterator[Cost]:
    """A visit of a row reads it twice for each output."""
    shape = Shape.of(problem)
    seconds = DUAL_PASSES * (2.0 * shape.stored * shape.k + 10.0 * shape.n * shape.k) / shape.speed.stream
    memory = 8.0 * (DUALS * shape.n + COEFFICIENTS * shape.d) * shape.k + 2.0 * BLOCK_BYTES  # of choosing alpha
    how = f"dual ascent, {DUAL_PASSES} passes"
    fits = memory <= room_for(problem.memory_limit)
    yield Cost("SDCAClassifier", link, how, seconds, memory, fits)
