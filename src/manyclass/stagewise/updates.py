"""What a stage is fitted to, and how it changes the predictions: one class per kind of loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from manyclass.data import DenseRows
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, to_numpy
from manyclass.model import Problem
from manyclass.model.calibrator import Calibrator, Map
from manyclass.model.losses.base import loss_sums
from manyclass.model.sets import ConvexSet

LONGEST = 8.0
"""Longest step of the line search; 1 is the step of the quadratic model."""
LENGTHS, ENOUGH = 12, 0.005
"""Lengths that the line search tries at most, and the share of the first slope at which it ends."""


class Update(ABC):
    """How the next block is fitted, given the stages before it.

    These are known by the state only: their predictions, of shape (n_rows, n_outputs). A new update is a subclass and
    one line in ``UPDATES``.
    """

    additive: ClassVar[bool] = True
    """Whether the state is the sum of the gains of all stages. Then the penalty is on the sum of their coefficients."""
    calibrates: ClassVar[bool] = False
    """Whether a calibration follows each visit of all blocks."""
    weighs_rows: ClassVar[bool] = False
    """Whether the curvature of a row depends on the state. If not, a block keeps its normal equations."""

    def __init__(self, problem: Problem, calibrator: Calibrator | None = None):
        self.problem, self.xp = problem, problem.xp
        self.calibrator: Any = calibrator

    @abstractmethod
    def residual(self, state: Array, Y: Array) -> Array:
        """Minus the gradient of the loss in the state, for a block of rows."""

    def row_weight(self, state: Array) -> Array:
        """The curvature of the loss of each row at the state."""
        return self.xp.ones_like(state[:, 0])

    @property
    def weighs_outputs(self) -> bool:
        """Whether the curvature of an output depends on the state, too."""
        return False

    def output_weight(self, state: Array, weight: Array | None) -> Array:
        """Σ_i s_i h_ij of each output j over the rows of the state, with curvatures h_ij and weights s_i."""
        return self.xp.zeros_like(state[0, :])

    @property
    def on(self) -> Callable[[Problem], Update]:
        """A function that makes the same update of a part of the rows, which may lie on another machine."""
        return partial(type(self), calibrator=self.calibrator)

    def move(
        self, stage: Problem, state: Any, coef: Array, intercept: Array, penalty: tuple[Array, Array]
    ) -> tuple[Any, Any]:
        """Move the state by `length` times the gain Wᵀφ(x) + b of a block. Gives the state, and the length: one number,
        or one for each output.

        The rows of `stage` are the features of the block. `penalty` holds the first and second derivatives of the
        penalty by the length of each output, at length 0.
        """
        return stage.changed(add_gains, state, coef, intercept), 1.0

    def calibration(self, state: Any) -> Map | None:
        """The calibration after a visit of all blocks, or None."""
        return None

    @property
    def labels_per_row(self) -> int:
        """How many labels of a row `errors` counts."""
        return 1

    def errors(self, state: Any, weight: Any) -> tuple[float, float]:
        """Weighted shares of labels that are wrong, and of labels with probability 0; nan unless the labels are 0 and 1
        and predicted by least squares."""
        return float("nan"), float("nan")

    def loss(self, state: Any, weight: Any) -> float:
        """Weighted mean loss of the predictions."""
        total, mass = self.problem.sum(losses_of_state, state, weight)
        return total / mass if mass > 0 else float("nan")


def add_gains(stage: Problem, state: Array, coef: Array, intercept: Array) -> None:
    for where, block, _ in stage.blocks(GRAM_BLOCK_BYTES):
        state[where, :] += block.matmat(coef) + intercept


def gains_of_block(stage: Problem, coef: Array, intercept: Array) -> Array:
    gain = stage.rows.zeros((stage.rows.n_rows, stage.n_outputs))
    add_gains(stage, gain, coef, intercept)
    return gain


def add_multiple(part: Problem, state: Array, gain: Array, length: Array) -> None:
    for where, block in _blocks(state):
        state[where, :] = block + length * gain[where, :]


def losses_of_state(part: Problem, state: Array, weight: Array | None) -> tuple[float, float]:
    scores = ((where, block + 0.0) for where, block in _blocks(state))
    return loss_sums(part.loss, part.targets, weight, scores, part.xp)


def derivatives_along(part: Problem, state: Array, gain: Array, length: Array) -> np.ndarray:
    """First and second derivatives of Σ s ℓ(z + length·gain), by the length of each of the independent problems."""
    xp, loss = part.xp, part.loss
    totals = [part.rows.zeros((part.n_outputs,), dtype=xp.float64) for _ in range(2)]
    for where, block in _blocks(state):
        towards = gain[where, :]
        P = loss.mean(block + length * towards, xp)
        curved, missed = loss.hessian_product(P, towards, xp), P - part.targets.dense(where, block, xp)
        weight = xp.ones_like(block[:, 0]) if part.weight is None else part.weight[where]
        for total, slope in zip(totals, (missed, curved), strict=True):
            total += xp.astype(weight @ (towards * slope), xp.float64)
    of_outputs = to_numpy(xp.stack(totals)).reshape(2, part.n_independent, -1)
    return np.asarray(of_outputs.sum(axis=2))


class LeastSquares(Update):
    """Least squares on the residuals y − z.

    A step solves for its block exactly, so several visits are block coordinate descent on ridge regression with all
    features.
    """

    def residual(self, state: Array, Y: Array) -> Array:
        return Y - state


class CalibratedLeastSquares(LeastSquares):
    """Least squares on y − ŷ, block by block, and after each visit ŷ = Π(M G(ŷ) + c), fitted by least squares too.

    The squared error never rises, as W = 0 and M G = identity are feasible, and Π moves no prediction away from a
    target. With steps longer than 1 (see `Stagewise`) that holds from visit to visit only.

    Calibrating after every block instead fits the training rows and not the test rows: each block gets its own cubic,
    fitted to predictions that have already adapted to the labels. On MNIST with 16 384 features that ends at 1.9 %
    errors on held-out rows, and one calibration per visit at 1.3 %. The further features ŷ, ŷ², ŷ³ of each block, as in
    the paper, overfit in the same way.
    """

    additive = False
    calibrates = True

    @property
    def labels_per_row(self) -> int:
        return 1 if self.calibrator.domain.exclusive else self.problem.n_outputs

    def errors(self, state: Any, weight: Any) -> tuple[float, float]:
        wrong, unforeseen, total = self.problem.sum(wrong_labels, state, weight, self.calibrator.domain)
        return float(wrong / total), float(unforeseen / total)

    def calibration(self, state: Any) -> Map:
        found: Map = self.calibrator.fit(self.problem, state)
        return found


NONE = 1e-6
"""A probability up to this counts as 0, so that rounding does not decide."""


def wrong_labels(part: Problem, state: Array, weight: Array | None, domain: ConvexSet) -> tuple[float, float, float]:
    """Sums of weights: of wrong labels, of labels with probability 0, and of all. Labels share the weight of a row."""
    xp, wrong = part.xp, part.rows.zeros((), dtype=part.xp.float64)
    unforeseen, weight = wrong + 0.0, part.rows.weights(weight)
    # Before the first calibration, predictions are not projected yet.
    is_anywhere = domain.exclusive and part.rows.n_rows > 0 and bool(xp.min(state) < 0.0)
    for where, block in _blocks(state):
        Y = part.targets.dense(where, block, xp)
        if domain.exclusive:
            block = domain.project(block + 0.0, xp) if is_anywhere else block
            missed = xp.astype(xp.argmax(block, axis=1) != xp.argmax(Y, axis=1), xp.float64)
            lost = xp.astype(xp.any(Y - block >= 1.0 - NONE, axis=1), xp.float64)
        else:
            missed = xp.mean(xp.astype((block > 0.5) != (Y > 0.5), xp.float64), axis=1)
            lost = xp.mean(xp.astype(abs(Y - block) >= 1.0 - NONE, xp.float64), axis=1)
        of_rows = xp.astype(weight[where], xp.float64)
        wrong, unforeseen = wrong + xp.sum(missed * of_rows), unforeseen + xp.sum(lost * of_rows)
    return float(wrong), float(unforeseen), float(xp.sum(weight, dtype=xp.float64))


class NewtonStep(Update):
    """A Newton step on the log loss, with the running scores as offset and a line search.

    The Hessian of a row, diag(p) − ppᵀ, lies below its trace 1 − ‖p‖² times the identity, so with weights
    h_i = 1 − ‖p_i‖² one p×p matrix serves all classes as in Algorithm 1. Unlike there, it follows the state: rows that
    are already decided have little weight, so few rows have to be read to form it.

    With several labels per row, the Hessian is h_ij = p_ij(1 − p_ij), and its trace would be a poor bound. It is
    replaced by the product h_i c_j that has the same sums over rows and over labels, h_i being the mean over the
    labels. Again there is one matrix H, and the step of label j is (c_j H + alpha)⁻¹ times its gradient. So the steps
    of rare labels, whose curvature is small, are longer.
    """

    weighs_rows = True

    def residual(self, state: Array, Y: Array) -> Array:
        return Y - self.problem.loss.mean(state + 0.0, self.xp)

    def row_weight(self, state: Array) -> Array:
        loss, xp = self.problem.loss, self.xp
        trace = xp.concat([loss.hessian_trace(loss.mean(block + 0.0, xp), xp) for _, block in _blocks(state)])
        return trace / self.problem.n_outputs if loss.separable else trace

    @property
    def weighs_outputs(self) -> bool:
        return self.problem.loss.separable and self.problem.n_outputs > 1

    def output_weight(self, state: Array, weight: Array | None) -> Array:
        loss, xp = self.problem.loss, self.xp
        diagonal, _ = loss.hessian(loss.mean(state + 0.0, xp), xp)
        return xp.sum(diagonal if weight is None else diagonal * weight[:, None], axis=0, dtype=xp.float64)

    def move(
        self, stage: Problem, state: Any, coef: Array, intercept: Array, penalty: tuple[Array, Array]
    ) -> tuple[Any, Any]:
        """Move by the length with the lowest objective. Independent labels have a length each."""
        problem, gain = self.problem, stage.map(gains_of_block, coef, intercept)
        first, second = (to_numpy(part).reshape(problem.n_independent, -1).sum(axis=1) for part in penalty)

        def derivatives(length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            of_loss = problem.sum(derivatives_along, state, gain, problem.spread(length)) / problem.total_weight
            return of_loss[0] + first + length * second, of_loss[1] + second

        of_outputs = problem.spread(lowest(derivatives, problem.n_independent))
        return problem.changed(add_multiple, state, gain, of_outputs), of_outputs


def lowest(derivatives: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], n: int) -> np.ndarray:
    """Minimisers of n convex functions on [0, LONGEST], by Newton's method with a bracket.

    It ends where the slope is at most a share `ENOUGH` of that at 0. If `LENGTHS` evaluations find no such place, as at
    a kink, the result is the longest length seen at which the function still falls.
    """
    lower, upper, length = np.zeros(n), np.full(n, LONGEST), np.zeros(n)
    slope, curvature = derivatives(length)
    enough = ENOUGH * abs(slope)
    done = ~(slope < 0)
    for _ in range(LENGTHS):
        if done.all():
            break
        with np.errstate(all="ignore"):
            after = length - slope / curvature
        inside = (after > lower) & (after < upper)
        length = np.where(done, length, np.where(inside, after, 0.5 * (lower + upper)))
        slope, curvature = derivatives(length)
        lower, upper = np.where(slope <= 0, length, lower), np.where(slope > 0, length, upper)
        done |= (abs(slope) <= enough) | (upper - lower <= ENOUGH * lower)
    return np.where(done & (abs(slope) <= enough), length, lower)


UPDATES: dict[str, type[Update]] = {
    "squared": LeastSquares,
    "calibrated": CalibratedLeastSquares,
    "softmax": NewtonStep,
    "logistic": NewtonStep,
}
"""Updates by the name of the loss."""


def _blocks(state: Array) -> Iterator[tuple[slice, Array]]:
    rows = DenseRows(state)
    return ((part, block.dense()) for part, block in rows.blocks(rows.rows_per_block(4)))
