"""The state of the descent: all that a later chunk or fit needs in order to continue without a break."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from manyclass.data import Rows
from manyclass.data.units import in_other_units, own_units_pay
from manyclass.model import Problem
from manyclass.subgradient import kernel
from manyclass.subgradient.draws import Draws, draw
from manyclass.subgradient.losses import LOSSES
from manyclass.subgradient.schedule import Schedule

SAMPLED_ROWS = 1000
"""Rows from which the mean ‖x‖² is estimated, whatever n is."""

OFFSET_FACTOR = 0.25
"""Chosen by ``python -m benchmarks.stochastic.first_steps``, on held-out rows of 20 Newsgroups and letter."""

FAR_FROM_ORIGIN = 4.0
"""Ratio of mean to standard deviation of a column above which dense rows are shifted, at any precision: otherwise the
mean would be most of ‖x‖², and of the steps."""

FAR_FROM_SEEN = 100.0
"""Rows are near if the larger mean ‖x‖² and the squared distance are at most so many times the smaller mean ‖x‖²."""


@dataclass
class State:
    """W, b, and their averages after `t` steps.

    `offset` is that of the intercept if features have offsets of their own (``memory.offsets``). `unit` is the mean
    ‖x‖², which is also the square of the constant feature whose weight is the intercept. `shift` is subtracted from
    every row, the same for all chunks of a stream. `rows_seen` and `weight_sum` count this fit, or all chunks.

    If steps are `capped`, none is longer than the curvature of the loss allows. Without the cap, a long row would make
    W diverge if subgradients grow with the scores, and otherwise a row in other units would undo the progress of all
    others. `bounded` says that V is the sum of the gradients counted in ``memory.totals``, as the lower bound needs.
    """

    loss: str
    alpha: float
    offset: float
    average: bool
    intercept: int
    shift: np.ndarray | None
    memory: kernel.Memory
    rows_seen: float = 0.0
    weight_sum: float = 0.0
    bounded: bool = True
    unit: float = 1.0
    capped: bool = False

    @classmethod
    def begin(
        cls, problem: Problem, rows: Rows, schedule: Schedule, draws: Draws, *, others_follow: bool = False
    ) -> Self:
        """W = 0, for a problem whose rows, before any shift, are `rows`; or for a stream that begins with it."""
        index = np.array([draw(draws, position) for position in range(min(SAMPLED_ROWS, draws.n))])
        sample, weight = rows.take(index), None if problem.weight is None else problem.weight[index]
        shift = rows.pilot(problem.weight, FAR_FROM_ORIGIN, lasting=others_follow) if problem.fit_intercept else None
        sample = sample if shift is None else sample.shifted(shift)
        offset, offsets, capped = schedule.offset, np.empty(0), schedule.offset is None
        with np.errstate(over="ignore"):  # numbers too large are refused later, with advice to scale
            if capped:
                sample, weight = drop_other_units(sample, weight)
            unit = float(sample.mean_square(weight).sum())
            if offset is None:
                offset, offsets = warm_offset(problem, unit), own_offsets(problem, sample, weight, draws.n)
        k = problem.n_outputs
        table = np.zeros(rows.n_features * width(k) * (2 if schedule.average else 1), dtype=rows.dtype)
        totals = np.zeros(kernel.N_TOTALS)
        memory = kernel.Memory(table, offsets, np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k), totals)
        rule, loss = intercept_rule(problem), problem.loss.name
        return cls(loss, problem.alpha, offset, schedule.average, rule, shift, memory, unit=unit, capped=capped)

    def fits(self, problem: Problem, schedule: Schedule) -> bool:
        """Whether the descent can go on with this problem."""
        return (
            (self.loss, self.average, self.intercept) == (problem.loss.name, schedule.average, intercept_rule(problem))
            and self.memory.table.dtype == problem.rows.dtype
            and self.n_outputs == problem.n_outputs
            and len(self.wide) == problem.rows.n_features
        )

    def is_near(self, other: Self) -> bool:
        """Whether the first rows of both states are of about the same size and location.

        If not, W is wrong by orders of magnitude, and steps are too short by now to correct it.
        """
        here, there = (0.0 if state.shift is None else state.shift.astype(np.float64) for state in (self, other))
        limit = FAR_FROM_SEEN * min(self.unit, other.unit)
        return max(self.unit, other.unit, float(np.sum(np.square(here - there)))) <= limit

    @property
    def n_outputs(self) -> int:
        return len(self.memory.bias)

    @property
    def t(self) -> int:
        """Steps taken since the beginning."""
        return int(self.memory.totals[kernel.STEPS])

    @property
    def drawn(self) -> int:
        """Rows drawn from the present ones."""
        return int(self.memory.totals[kernel.DRAWN])

    @property
    def offsets(self) -> np.ndarray:
        """The offset of each feature, or one for all, as a column."""
        return self.memory.offsets[:, None] if self.memory.offsets.size else np.array([[self.offset]])

    @property
    def wide(self) -> np.ndarray:
        """V and, beside it, U: the rows of the table, one per feature."""
        return self.memory.table.reshape(-1, width(self.n_outputs) * (2 if self.average else 1))

    def start_rows(self, *, same_stream: bool) -> None:
        """Draw from other rows from now on: the next of the same stream, or those of another fit."""
        self.memory.totals[kernel.DRAWN] = 0
        if not same_stream:
            self.rows_seen = self.weight_sum = 0.0
            self.bounded = self.bounded and self.t == 0  # tangents at other rows are no bound for these

    def restart_loss(self) -> None:
        """Forget the losses of the rows drawn so far."""
        self.memory.totals[kernel.LOSS] = self.memory.totals[kernel.LOSS_ROWS] = 0.0

    def resume(self, coef: np.ndarray, intercept: np.ndarray, t: int) -> Self:
        """Go on from W_t = coef; an average begins again."""
        self.memory.totals[kernel.STEPS], self.bounded = t, False
        self.wide[:, : self.n_outputs] = coef * (self.alpha * (t + self.offsets))
        b = intercept if self.shift is None else intercept + self.shift @ coef
        self.memory.bias[:] = b * self.alpha * (t + self.offset) if self.intercept == kernel.AS_FEATURE else b
        return self

    def set_alpha(self, alpha: float) -> None:
        """Change the penalty; W and b stay as they are."""
        ratio, memory = alpha / self.alpha, self.memory
        if ratio == 1.0:
            return
        memory.table[:] *= memory.table.dtype.type(ratio)
        memory.totals[kernel.AVERAGE_WEIGHT] *= ratio
        memory.bias_average[:] *= ratio
        if self.intercept == kernel.AS_FEATURE:
            memory.bias[:] *= ratio
        self.alpha, self.bounded = alpha, False

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """W (n_features, n_outputs) and b for rows without the shift: the average, or else the last iterate."""
        k, totals, wide, memory = self.n_outputs, self.memory.totals, self.wide, self.memory
        V, as_feature = wide[:, :k], self.intercept == kernel.AS_FEATURE
        with np.errstate(invalid="ignore", over="ignore"):  # the caller checks that the result is finite
            if self.average and (mass := totals[kernel.AVERAGE_WEIGHT]) > 0:
                U, before = wide[:, width(k) : width(k) + k], totals[kernel.MEAN_WEIGHT]
                emphasis = (1.0 / (mass + self.alpha * before * self.offsets)).astype(wide.dtype)
                W = V * (emphasis * before).astype(wide.dtype) - U * emphasis
                b = memory.bias_average / (mass + self.alpha * before * self.offset)
            else:
                steps, of_bias = (self.alpha * (self.t + offset) for offset in (self.offsets, self.offset))
                W = V * np.divide(1.0, steps, out=np.zeros_like(steps), where=steps > 0).astype(wide.dtype)
                b = memory.bias / of_bias if as_feature and of_bias > 0 else memory.bias * (not as_feature)
            if self.shift is not None:
                b = b - self.shift @ W.astype(np.float64)
        return W, b.astype(W.dtype)

    def online_loss(self) -> float:
        """Mean loss of the rows drawn since `restart_loss`, each before its step."""
        totals = self.memory.totals
        return float(totals[kernel.LOSS] / totals[kernel.LOSS_ROWS]) if totals[kernel.LOSS_ROWS] > 0 else math.inf

    def lower_bound(self) -> float:
        """D, in expectation at most the least objective with the present intercept; −inf where none is known.

        A convex loss lies above its tangents, ℓ_t(z) ≥ ℓ_t(z_t) + g_tᵀ(z − z_t), and above 0. With θ in [0, 1] and the
        sums over all steps taken, F(W, b) ≥ θ (mean(ℓ_t − g_tᵀz_t) + mean(g_t)ᵀb + ⟨mean(x g_tᵀ), W⟩) +
        (alpha/2)‖W‖², whose least value over W is D. After whole epochs without replacement this holds for the training
        rows themselves, else for rows like them. It costs no pass: V is minus the sum of x g_tᵀ.
        """
        memory, totals = self.memory, self.memory.totals
        if not self.bounded or totals[kernel.BOUND_ROWS] <= 0:
            return -math.inf
        bound = float(totals[kernel.BOUND] / totals[kernel.BOUND_ROWS])
        constant = bound + float(memory.bias_gradient @ memory.bias) / self.t
        if constant <= 0:
            return 0.0
        V = self.wide[:, : self.n_outputs]
        squares = float(np.sum(V * V, dtype=np.float64)) / (2.0 * self.alpha * self.t**2)
        share = min(1.0, constant / (2.0 * squares)) if squares > 0 else 1.0
        return share * constant - share**2 * squares


def width(n_outputs: int) -> int:
    """Columns of V: with more than 4 outputs, a multiple of 8."""
    return n_outputs if n_outputs <= 4 else -(-n_outputs // 8) * 8


def intercept_rule(problem: Problem) -> int:
    if not problem.fit_intercept:
        return kernel.NO_INTERCEPT
    return kernel.AS_FEATURE if problem.loss.scale_free else kernel.ADAGRAD


def warm_offset(problem: Problem, mean_square: float) -> float:
    """The offset at which the first step is 1/(L mean‖x‖²), the longest that does not overshoot.

    If subgradients are bounded, the first step is longer, by 1/`OFFSET_FACTOR`. A first step of 1/alpha, as in the
    paper, moves W far beyond the optimum, and a thousand more steps are needed to return.
    """
    loss = LOSSES[problem.loss.name]
    return (1.0 if loss.squared else OFFSET_FACTOR) * loss.curvature() * mean_square / problem.alpha


def own_offsets(problem: Problem, sample: Rows, weight: np.ndarray | None, n_rows: int) -> np.ndarray:
    """An offset for each feature, if units of their own promise fewer passes (`own_units_pay`); else an empty array.

    First steps of 1/(alpha offset_j) = 1/(L mean‖x/u‖² u_j²) are as on features divided by their root mean squares u_j.
    They still lead to the minimum of F, as once t exceeds its offset each feature takes steps of about 1/(alpha t).
    A feature that has not been seen has no offset yet (`kernel.gather_in_units`).
    """
    sample = sample.typed(np.float64)
    square = sample.mean_square(weight)
    inverse = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0)
    lengths = sample.map(np.square).matmat(np.stack([np.ones_like(square), inverse], axis=1))
    common, own = (float(longest) / n_rows for longest in np.max(lengths, axis=0))
    if not own_units_pay(square, common, own, problem.alpha):
        return np.empty(0)
    return np.asarray(square * warm_offset(problem, float(np.count_nonzero(square))))


def drop_other_units(sample: Rows, weight: np.ndarray | None) -> tuple[Rows, np.ndarray | None]:
    """The sample without rows in other units: a single one would make the steps on all others too short."""
    kept = np.flatnonzero(~in_other_units(sample, sample))
    if len(kept) in (0, sample.n_rows):
        return sample, weight
    return sample.take(kept), None if weight is None else weight[kept]
