"""Stochastic subgradient descent with steps 1/(alpha t): what surrounds the compiled loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyclass.data.design import Design
from manyclass.solvers.base import LiveRecord, Record, Solution, Status
from manyclass.solvers.subgradient.draws import Draws, draw
from manyclass.solvers.subgradient.kernel import (
    AVERAGE_WEIGHT,
    BOUND,
    BOUND_ROWS,
    FACTOR,
    LOSS,
    LOSS_ROWS,
    MEAN_WEIGHT,
    N_TOTALS,
    SQUARED_NORM,
    Memory,
    Rows,
    Rule,
    Targets,
    Weights,
    advance,
)
from manyclass.solvers.subgradient.losses import Loss

SLICE_WORK = 1 << 22
"""Multiplications between two looks at the clock: a few milliseconds."""

SAMPLED_ROWS = 1000
"""Rows from which the mean ‖x‖² is estimated: a number that does not grow with n."""

OFFSET_FACTOR = 0.25
"""Chosen by ``python -m benchmarks.stochastic.first_steps``, on held-out rows of 20 Newsgroups and letter."""


@dataclass(frozen=True)
class Plan:
    """The constants of a fit.

    Attributes
    ----------
    loss : Loss
    alpha : float
    batch_size : int
    average : bool
        Whether the result is the average of W_t with weights (t + offset)^`power`.
    power : float
    offset : float or None
        Steps are 1/(alpha (t + offset)); None derives it from the data.
    project : bool
        Whether W is kept in the ball that holds the optimum.
    fit_intercept : bool
    replace : bool
        Whether rows are drawn with replacement.
    seed : int
    """

    loss: Loss
    alpha: float
    batch_size: int = 1
    average: bool = True
    power: float = 2.0
    offset: float | None = None
    project: bool = False
    fit_intercept: bool = True
    replace: bool = False
    seed: int = 0


@dataclass
class State:
    """What has been learnt after `t` steps: enough to go on as if there had been no pause.

    `table`, the four `bias` arrays and `totals` are those of `kernel.Memory`; `position` counts draws from the present
    rows, `weight_sum` and `rows_seen` all that came in chunks; `bounded` says whether V is the sum of the gradients
    counted in `totals`, as the lower bound needs.
    """

    n_features: int
    n_outputs: int
    average: bool
    offset: float
    alpha: float
    table: np.ndarray
    bias: np.ndarray
    bias_squares: np.ndarray
    bias_average: np.ndarray
    bias_gradient: np.ndarray
    totals: np.ndarray
    t: int = 0
    position: int = 0
    bounded: bool = True
    weight_sum: float = 0.0
    rows_seen: int = 0

    @classmethod
    def zero(cls, n_features: int, n_outputs: int, dtype: Any, plan: Plan, offset: float) -> State:
        stride = _width(n_outputs) * (2 if plan.average else 1)
        first, second, third, fourth = (np.zeros(n_outputs) for _ in range(4))
        totals = np.zeros(N_TOTALS)
        totals[FACTOR] = 1.0
        table = np.zeros(n_features * stride, dtype=dtype)
        return cls(n_features, n_outputs, plan.average, offset, plan.alpha, table, first, second, third, fourth, totals)

    def resume(self, coef: np.ndarray, intercept: np.ndarray, t: int, intercept_as_feature: bool) -> State:
        """Go on from W_t = coef; an average starts anew."""
        self.t, self.bounded = t, False
        units = self.alpha * (t + self.offset)
        self.wide()[:, : self.n_outputs] = coef * units
        self.bias[:] = intercept * units if intercept_as_feature else intercept
        return self

    def set_alpha(self, alpha: float) -> None:
        """Change the penalty; W stays as it is."""
        ratio = alpha / self.alpha
        if ratio != 1.0:
            self.table *= self.table.dtype.type(ratio)
            self.totals[AVERAGE_WEIGHT] *= ratio
            self.totals[SQUARED_NORM] *= ratio**2
            self.alpha, self.bounded = alpha, False

    def lower_bound(self) -> float:
        """D, in expectation at most the least objective with the present intercept; −inf where none is known.

        A convex loss lies above its tangents, ℓ_t(z) ≥ ℓ_t(z_t) + g_tᵀ(z − z_t), and above 0. With θ in [0, 1] and the
        sums over all steps taken, F(W, b) ≥ θ (mean(ℓ_t − g_tᵀz_t) + mean(g_t)ᵀb + ⟨mean(x g_tᵀ), W⟩) +
        (alpha/2)‖W‖², whose least value over W is D. After whole epochs without replacement this holds for the training
        rows themselves, else for rows like them. It costs no pass: V is minus the sum of x g_tᵀ.
        """
        totals = self.totals
        if not self.bounded or totals[BOUND_ROWS] <= 0 or totals[FACTOR] != 1.0:
            return -math.inf
        constant = totals[BOUND] / totals[BOUND_ROWS] + float(self.bias_gradient @ self.bias) / self.t
        if constant <= 0:
            return 0.0
        V = self.wide()[:, : self.n_outputs]
        squares = float(np.sum(V * V, dtype=np.float64)) / (2.0 * self.alpha * self.t**2)
        share = min(1.0, constant / (2.0 * squares)) if squares > 0 else 1.0
        return share * constant - share**2 * squares

    def wide(self) -> np.ndarray:
        return self.table.reshape(self.n_features, -1)

    @property
    def memory(self) -> Memory:
        return Memory(self.table, self.bias, self.bias_squares, self.bias_average, self.bias_gradient, self.totals)

    def parameters(self, intercept_as_feature: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """W (n_features, n_outputs) and b: the average, or the last iterate where there is none."""
        k, totals = self.n_outputs, self.totals
        V = self.wide()[:, :k]
        if self.average and totals[AVERAGE_WEIGHT] > 0:
            U = self.wide()[:, _width(k) : _width(k) + k]
            a, b = totals[MEAN_WEIGHT] / totals[AVERAGE_WEIGHT], 1.0 / totals[AVERAGE_WEIGHT]
            with np.errstate(invalid="ignore", over="ignore"):  # the caller looks whether the result is finite
                W = V * V.dtype.type(a) - U * V.dtype.type(b)
            emphasis = totals[AVERAGE_WEIGHT]
            return W, (self.bias_average / emphasis).astype(V.dtype)
        scale = self._last_scale()
        bias = self.bias * scale if intercept_as_feature else self.bias
        return V * V.dtype.type(scale), bias.astype(V.dtype)

    def _last_scale(self) -> float:
        steps = self.alpha * (self.t + self.offset)
        return float(self.totals[FACTOR]) / steps if steps > 0 else 0.0


def _width(n_outputs: int) -> int:
    """Columns of V, filled up to whole vectors of 8 where there are more than a few."""
    return n_outputs if n_outputs <= 4 else -(-n_outputs // 8) * 8


def as_rows(design: Design) -> Rows:
    """The arrays of a NumPy or CSR design, uncopied unless a dense one is not in C order."""
    X = design.X
    if design.is_sparse:
        return Rows(X.data, X.indices, X.indptr, 0)
    flat = np.ascontiguousarray(X).reshape(-1)
    return Rows(flat, np.arange(design.n_features, dtype=np.int32), np.zeros(1, dtype=np.int32), design.n_features)


def mean_square(rows: Rows, draws: Draws, weights: Weights) -> float:
    """Weighted mean ‖x‖² of a sample of rows."""
    total = weight_sum = 0.0
    count = min(SAMPLED_ROWS, draws.n)
    for position in range(count):
        i = draw(draws, position)
        start, stop = (i * rows.stride, (i + 1) * rows.stride) if rows.stride else (rows.indptr[i], rows.indptr[i + 1])
        x = rows.data[start:stop].astype(np.float64)
        weight = weights.values[i] if len(weights.values) else 1.0
        total += weight * float(x @ x)
        weight_sum += weight
    return total / weight_sum if weight_sum > 0 else 0.0


def warm_offset(plan: Plan, mean_square: float) -> float:
    """The offset at which the first step is 1/(L ‖x‖²), the longest that does not overshoot.

    Where subgradients are bounded it may be longer, over `OFFSET_FACTOR`.

    From 1/alpha, as in the paper, the first steps throw W far beyond the optimum, and a thousand later ones bring it
    back.
    """
    factor = OFFSET_FACTOR if plan.loss.bounded else 1.0
    return factor * plan.loss.curvature * mean_square / plan.alpha


@dataclass
class Stream:
    """One source of rows on which a state advances."""

    rows: Rows
    targets: Targets
    weights: Weights
    draws: Draws
    plan: Plan
    state: State
    compile_seconds: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        plan, state = self.plan, self.state
        radius = math.inf
        if plan.project and not plan.loss.scale_free:
            # At the optimum alpha ‖W‖² = −mean gᵀz ≤ mean (ℓ − gᵀz) ≤ ℓ(0), for each of the losses here.
            radius = math.sqrt(plan.loss.at_zero(state.n_outputs) / plan.alpha)
        intercept = 0 if not plan.fit_intercept else 2 if plan.loss.scale_free else 1
        self.rule = Rule(
            plan.loss.code,
            plan.loss.columns,
            state.n_outputs,
            _width(state.n_outputs),
            plan.batch_size,
            plan.alpha,
            state.offset,
            plan.average,
            plan.power,
            radius,
            intercept,
        )
        started = time.perf_counter()
        self._run(state.position)
        self.compile_seconds = time.perf_counter() - started

    def _run(self, stop: int) -> None:
        state = self.state
        state.t = advance(
            self.rows,
            self.targets,
            self.weights,
            self.draws,
            state.memory,
            self.rule,
            state.t,
            state.position,
            stop,
        )
        state.position = stop

    def advance(self, n_draws: int, deadline: float = math.inf) -> bool:
        """Draw so many rows; whether there was time for all."""
        state = self.state
        end = state.position + n_draws
        batch = self.plan.batch_size
        non_zeros = self.rows.stride or len(self.rows.data) / max(self.draws.n, 1)
        work = max(int(SLICE_WORK / max(non_zeros * state.n_outputs, 1.0) / batch), 1) * batch
        while state.position < end:
            self._run(min(state.position + work, end))
            if time.perf_counter() >= deadline:
                return state.position >= end
        return True


@dataclass(frozen=True)
class Stopping:
    """When to stop, besides the number of rows.

    Attributes
    ----------
    tol : float
        Certificate at which to stop; 0 for never. It speaks of the rows that are fitted: where others are held out,
        their score decides.
    max_time : float, optional
        Seconds, compilation not counted.
    held_out : callable, optional
        Score of (W, b) on rows kept out of the fit.
    patience : int
        Epochs without a better score after which to stop.
    callback : callable, optional
        Called with a `Record` after each epoch.
    """

    tol: float = 0.0
    max_time: float | None = None
    held_out: Callable[[np.ndarray, np.ndarray], float] | None = None
    patience: int = 5
    callback: Callable[[Record], Any] | None = None


def solve(stream: Stream, n_draws: int, stopping: Stopping) -> tuple[Solution, list[float]]:
    """Draw `n_draws` rows, an epoch at a time; the solution, and the held-out score after each epoch."""
    started = time.perf_counter()
    state, plan, n_rows = stream.state, stream.plan, stream.draws.n
    deadline = math.inf if stopping.max_time is None else started + stopping.max_time
    as_feature = plan.loss.scale_free
    end, first = state.position + n_draws, state.position
    history: list[Record] = []
    scores: list[float] = []
    best: tuple[np.ndarray, np.ndarray] | None = None
    status: Status | None = None
    while status is None:
        state.totals[LOSS] = state.totals[LOSS_ROWS] = 0.0
        in_time = stream.advance(min(n_rows - (state.position - first) % n_rows, end - state.position), deadline)
        W, b = state.parameters(as_feature)
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise ValueError(
                f"The scores overflowed {W.dtype}: scale the features (for instance by StandardScaler or Normalizer), "
                "pass float64, or raise alpha."
            )
        objective = _online_objective(state, W)
        certificate = _certificate(state, plan, objective)
        passes = (state.position - first) / n_rows
        record = Record(passes, objective, certificate, time.perf_counter() - started)
        history.append(record)
        if stopping.callback is not None:
            stopping.callback(_live(record, W, b))
        if stopping.held_out is not None:
            scores.append(stopping.held_out(W, b))
            if scores[-1] >= max(scores):
                best = W, b
        if certificate <= stopping.tol and stopping.held_out is None:
            status = Status.CONVERGED
        elif scores and len(scores) - 1 - int(np.argmax(scores)) >= stopping.patience:
            status = Status.EARLY_STOPPED
        elif state.position >= end:
            status = Status.COMPLETED
        elif not in_time or time.perf_counter() >= deadline:
            status = Status.MAX_TIME
    if best is not None:
        W, b = best
    return Solution(W, b, status, history, history[-1].certificate, math.ceil(history[-1].n_passes)), scores


def _online_objective(state: State, W: np.ndarray) -> float:
    """Mean loss of the rows of this epoch, each before its step, and the penalty of W."""
    totals = state.totals
    loss = totals[LOSS] / totals[LOSS_ROWS] if totals[LOSS_ROWS] > 0 else math.inf
    return loss + 0.5 * state.alpha * float(np.sum(W * W, dtype=np.float64))


def _certificate(state: State, plan: Plan, objective: float) -> float:
    at_zero = plan.loss.at_zero(state.n_outputs)
    return max(objective - state.lower_bound(), 0.0) / at_zero if at_zero > 0 else math.inf


def _live(record: Record, W: np.ndarray, b: np.ndarray) -> LiveRecord:
    return LiveRecord(**vars(record), parameters=lambda: (W, b))
