"""Stochastic subgradient descent with steps 1/(alpha t): the Python around the compiled loop."""

import time

import numpy as np

from manyclass.data import Rows
from manyclass.data.cells import OVERFLOW
from manyclass.data.rows import RowArrays
from manyclass.fit import Iterate, Iterates, OutOfTime
from manyclass.model import Problem
from manyclass.subgradient import kernel
from manyclass.subgradient.draws import Draws, make_draws
from manyclass.subgradient.losses import LOSSES
from manyclass.subgradient.state import State, warm_offset, width

SLICE_WORK = 1 << 22
"""Multiplications between two looks at the clock: a few milliseconds."""


class Pegasos:
    """Steps on one problem, which update a state.

    `rows` are those of the problem without a shift, copied only where the state shifts them.
    """

    def __init__(self, problem: Problem, rows: Rows, draws: Draws, state: State, batch_size: int = 1):
        self.problem, self.state, self.first_draw = problem, state, state.drawn
        state.set_alpha(problem.alpha)
        state.rows_seen += draws.n
        state.weight_sum += problem.total_weight
        self._unit = state.rows_seen / state.weight_sum if state.weight_sum > 0 else 1.0
        self._draw_from(rows, problem, draws)
        loss, k = LOSSES[problem.loss.name], problem.n_outputs
        # The loss of any row, as all scores are 0.
        self.at_zero = float(problem.loss.values(np.zeros((1, k)), slice(0, 1), problem.targets, problem.xp)[0])
        self.rule = kernel.Rule(
            loss=loss,
            columns=loss.columns,
            n_outputs=k,
            width=width(k),
            batch_size=batch_size,
            alpha=problem.alpha,
            offset=state.offset,
            least_offset=warm_offset(problem, 1.0),
            average=state.average,
            intercept=state.intercept,
            unit=state.unit,
            curvature=loss.curvature() if state.capped else 0.0,
            unbounded=loss.squared,
        )

    def _draw_from(self, rows: Rows, problem: Problem, draws: Draws) -> None:
        """Draw from these rows from now on, with the targets and weights of `problem`."""
        self.draws = draws
        arrays = (rows if self.state.shift is None else rows.shifted(self.state.shift)).arrays()
        dense = not len(arrays.indices)
        if dense:
            arrays = RowArrays.of(arrays.data, np.arange(rows.n_features, dtype=np.uint32), arrays.indptr)
        self.rows = kernel.Rows(*arrays, dense)
        self.targets = _targets(problem)
        weight = problem.weight
        if weight is None:
            weight = np.empty(0, dtype=problem.rows.dtype) if self._unit == 1.0 else rows.weights()
        # Relative to the mean weight of the rows so far.
        self.weights = kernel.Weights(np.ascontiguousarray(weight), self._unit)

    def compile(self) -> float:
        """Compile the loop or load it, once in a process for each type of data; gives the seconds taken."""
        started = time.perf_counter()
        self._run(self.state.drawn)
        return time.perf_counter() - started

    def iterates(self, n_epochs: float) -> Iterates:
        """One `Iterate` after each epoch and after the fraction of one at the end.

        The last is the best, as far as fitted rows can tell. Its `measure` estimates (F − F*) / F(zero model) at the
        present intercept, from above in expectation: the mean loss of the epoch's rows, each before its step, less the
        bound that the tangents of all steps give. It is nan where there is no such bound.
        """
        state, n, first = self.state, self.draws.n, self.first_draw
        end = first + max(round(n_epochs * n), 1)
        while state.drawn < end:
            before = state.drawn
            state.restart_loss()
            try:
                self.advance(min(n - (before - first) % n, end - before))
            except (OutOfTime, KeyboardInterrupt):
                if state.drawn > before:
                    yield self._iterate((state.drawn - first) / n)
                raise
            yield self._iterate(n_epochs if state.drawn == end else (state.drawn - first) / n)
        return None

    def advance(self, n_draws: int) -> None:
        """Take `n_draws` rows, with looks at the clock in between."""
        state = self.state
        end, batch = state.drawn + n_draws, self.rule.batch_size
        non_zeros = len(self.rows.data) / max(len(self.rows.indptr) - 1, 1)
        work = max(int(SLICE_WORK / max(non_zeros * state.n_outputs, 1.0) / batch), 1) * batch
        while state.drawn < end:
            self._run(min(state.drawn + work, end))
            self.problem.on_block()

    def _run(self, stop: int) -> None:
        memory, rule = self.state.memory, self.rule
        scratch = kernel.make_scratch(rule, stop - self.state.drawn, memory.table.dtype)
        kernel.advance(self.rows, self.targets, self.weights, self.draws, memory, rule, scratch, stop)

    def _iterate(self, n_epochs: float) -> Iterate:
        state = self.state
        W, b = state.parameters()
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            raise ValueError(OVERFLOW)
        objective = state.online_loss() + 0.5 * state.alpha * float(np.sum(W * W, dtype=np.float64))
        has_bound = self.at_zero > 0 and np.isfinite(bound := state.lower_bound())
        # The objective is that of one epoch: below the bound, the difference says how inaccurate both are.
        gap = abs(objective - bound) / self.at_zero if has_bound else float("nan")
        epochs: float = int(n_epochs) if n_epochs == int(n_epochs) else float(n_epochs)
        return Iterate(
            lambda: (W, b),
            objective,
            epochs,
            epochs,
            measure=gap,
            rank=-epochs,
            details={"steps": state.t, "estimated_gap": gap},
            state=lambda: {"steps": state},
        )


def _targets(problem: Problem) -> kernel.Targets:
    codes = getattr(problem.targets, "codes", None)
    if codes is not None:
        return kernel.Targets(np.ascontiguousarray(codes, dtype=np.int64), np.empty(0, dtype=problem.rows.dtype))
    Y = problem.targets.dense(slice(None), problem.rows.zeros((0,)), problem.xp)
    return kernel.Targets(np.empty(0, dtype=np.int64), np.ascontiguousarray(Y).reshape(-1))


class ChunkedPegasos(Pegasos):
    """Steps on rows that do not fit into memory: chunk after chunk, each drawing from one chunk of `Rows.visits`.

    An epoch draws every row once, or, with replacement, as many as there are. That is like the order of shuffled rows
    if the chunks have the same distribution.
    """

    def __init__(self, problem: Problem, rows: Rows, draws: Draws, state: State, batch_size: int, seed: int):
        self._all_rows, self._all_draws, self._rng = rows, draws, np.random.default_rng(seed)
        first = rows.take(np.arange(1))
        super().__init__(problem.variant(targets=problem.targets.take(np.arange(1))), first, draws, state, batch_size)
        self.problem = problem

    def advance(self, n_draws: int) -> None:
        state, draws = self.state, self._all_draws
        drawn, left = state.drawn, n_draws
        try:
            while left:
                for part, rows in self._all_rows.visits(self._rng):
                    index = np.arange(self._all_rows.n_rows)[part]
                    weight = None if self.problem.weight is None else self.problem.weight[part]
                    own_draws = make_draws(rows.n_rows, int(self._rng.integers(2**63)), draws.replace, weight)
                    if weight is not None and not (weight > 0).any():
                        continue
                    chunk = self.problem.variant(targets=self.problem.targets.take(index), weight=weight)
                    self._draw_from(rows, chunk, own_draws)
                    state.start_rows(same_stream=True)
                    try:
                        super().advance(min(own_draws.n, left))
                    finally:
                        drawn, left = drawn + state.drawn, left - state.drawn
                    if not left:
                        break
        finally:
            self.draws = draws
            state.memory.totals[kernel.DRAWN] = drawn
