import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from manyclass.bound.streamed import StreamedBound, row_shares
from manyclass.data import Rows
from manyclass.data.rows import Array
from manyclass.fit import Iterate, Iterates, OutOfTime, Status
from manyclass.model import Evaluation, Problem
from manyclass.model.problem import nothing
from manyclass.solvers.base import iterate

LARGEST_SHARE = 0.05
"""Largest share of a pass in a block."""
FIRST_ETA = 3.0
"""η of the first pass where later ones replace statistics: |J₀(2√(ηh))| is small for curvatures of a share h of the
bound from ⅓ to 1, and what it leaves is mended by the passes that follow."""
REFRESHED_ETA = 2.0
"""Least η of the passes that replace statistics: θ' = −ηh ∫ (θ − θ*) over the last pass is stable for ηh below
π²/2 ≈ 4.9, whatever h ≤ 1 is."""
GROWTH = 1.5
"""By how much η grows after a pass that lowered F: most bounds are loose (h far below 1), and then longer steps are
stable. How loose they are only the run can tell."""
SETBACK = 4
"""How many growths are taken back, with the pass itself, after a pass that raised F."""
CHUNK_BYTES = 32 << 20
"""Memory of the rows that are brought into random order at once, and of their bounds."""


@dataclass(frozen=True)
class _Accepted:
    """The state after a refreshed pass that was kept."""

    theta: np.ndarray
    mu: np.ndarray
    residuals: np.ndarray
    evaluation: Evaluation


@dataclass(frozen=True)
class _Block:
    """Rows that are processed together, in float64."""

    index: np.ndarray  # row numbers
    X: np.ndarray  # the values of `columns`, the intercept's last
    columns: np.ndarray | None  # rows of theta that they multiply; None for all
    Y: np.ndarray


class StochasticBound:
    """Stochastic bound majorization (*Stochastic Bound Majorization*, Algorithm 2), full or low rank.

    For each row, in a fresh random order each pass, with w_j = s_j/S:

        H ← H + w_j B_j ⊗ x_j x_jᵀ,   μ ← μ + w_j ((p_j − y_j) ⊗ x_j + Λθ),   θ ← θ − η w_j H⁻¹μ

    where B_j and p_j are the bound and the mean of Algorithm 1 at the present θ, and Λ is alpha on the coefficients and
    0 on the intercepts. With η = 1 and equal weights the step is the paper's 1/t. (In the paper's listing φ = H⁻¹μ is
    telescoped, and μ is written inside the loop over classes; both come to the line above.)

    As published, H and μ keep every old row. Near the optimum θ* this is θ' = −(1/τ) ∫₀^τ (θ − θ*) after τ passes in
    the directions where H is the curvature, whose solution, a Bessel function J₀(2√τ), swings about θ* and shrinks as
    τ^(-1/4): F − F* = O(τ^(-1/2)). With ``refresh=True`` the first pass is as published; from the second on each row
    replaces its own old term in μ, and H is the sum over the pass before: the gradient is that of all rows, each at a θ
    of the last pass, and θ converges linearly to θ*. η grows for as long as F falls (over-relaxation as in the paper's
    reference [34]).

    Rows are taken in blocks whose recursion `run_block` follows exactly, but for one thing: within a block φ_j takes
    the penalty's part of μ at the θ of the start of the block. A block of a share q of the pass moves θ by less than
    ηqφ, and its rows weigh q in the penalty, so φ errs by at most ηq²MΛφ, which q is chosen to keep below `accuracy`.
    μ itself is exact, and φ is computed from it anew after each block, so nothing accumulates.

    The problem is not centred, with NumPy rows and a loss of ``CLASS_BOUNDS``; `start` is a theta, 0 by default. With
    `shuffle_classes` the classes of each row are taken in a random order, in which every bound is another. After each
    block theta, mu and phi are θ, μ and φ = H⁻¹μ, of shape (n_features [+ 1], n_outputs), in float64.
    """

    _given = ("problem", "weight", "rows", "penalty", "_on_block")

    def __init__(
        self,
        problem: Problem,
        curvature: StreamedBound,
        start: Array | None = None,
        *,
        eta: float = 1.0,
        refresh: bool = False,
        shuffle_classes: bool = False,
        rng: np.random.Generator | None = None,
        block_rows: int | None = None,
    ):
        self.problem, self.curvature = problem, curvature
        self.eta, self.refresh, self.shuffle_classes = eta, refresh, shuffle_classes
        self.rng = np.random.default_rng(0) if rng is None else rng
        self.block_rows, self._fixed_block = block_rows or 1, block_rows is not None
        shape = (curvature.n_rows_of_theta, problem.n_outputs)
        self.theta = np.zeros(shape) if start is None else np.array(start, dtype=np.float64)
        self.mu, self.phi = np.zeros(shape), np.zeros(shape)
        self.weight = row_shares(problem)
        self.rows = np.flatnonzero(self.weight)
        self.penalty = np.full((shape[0], 1), problem.alpha)
        if problem.fit_intercept:
            self.penalty[-1] = 0.0
        self.residuals = np.zeros((problem.rows.n_rows, shape[1])) if refresh else None
        self.accepted: _Accepted | None = None
        self.n_passes, self._share = 0, 0.0
        self._on_block: Callable[..., None] = nothing  # that of the problem, while it is not to interrupt
        self.softmax = problem.loss.domain.exclusive
        self.rank = shape[1] - 1 if self.softmax else shape[1]

    def iterates(self) -> Iterates:
        """One `Iterate` after each pass, and one at the point where the time was over."""
        for number in count(self.n_passes + 1):
            growing = not self.refresh or number == 1
            with np.errstate(over="ignore", invalid="ignore"):  # a step too long, to be taken back
                try:
                    self._pass(growing)
                except OutOfTime:
                    if number == 1 and self._share == 0.0:
                        raise
                evaluated = self._evaluate(growing, number - 1)
            self.n_passes = number
            yield replace(evaluated, state=lambda: {"run": self})
            if self._share < 1.0:
                return Status.MAX_TIME
        return None

    def _evaluate(self, growing: bool, n_before: int) -> Iterate:
        """The iterate after `n_before` passes and a share of one; evaluation is no part of a pass."""
        problem, dtype = self.problem, self.problem.rows.dtype
        # Without it there is no model, and it is short beside a pass: it is not interrupted.
        self._on_block, problem.on_block = problem.on_block, nothing
        evaluation = problem.value_and_gradient(self.theta.astype(dtype))
        if self.refresh and self._share == 1.0:
            evaluation = self._accept_or_revert(growing, evaluation)
        problem.n_passes = n_before + self._share
        evaluated = iterate(problem, self.curvature, self.theta.astype(dtype), evaluation, int(problem.n_passes))
        problem.on_block, self._on_block = self._on_block, nothing
        return evaluated

    def _pass(self, growing: bool) -> None:
        """One pass over the rows; `_share` says how much of it is done."""
        self._share = 0.0
        order = self.rng.permutation(self.rows)
        weight = self.weight[order]
        if self.refresh and not growing:
            # The rows' part of μ is complete; the penalty's gradient is that of the present theta.
            self._move_mu(self.penalty * self.theta)
        done, resized_at = 0, 0
        self._resize_blocks(growing)
        for block in self._blocks(order):
            rows = slice(done, done + len(block.index))
            done = rows.stop
            self._process(block, weight[rows], growing)
            if done > 2 * resized_at:
                self._resize_blocks(growing)
                resized_at = done
            self._share = done / len(order)
        if not self.refresh:
            self.curvature.tidy()
            self._move_mu(0.0)

    def _move_mu(self, change: np.ndarray | float) -> None:
        self.mu = self.mu + change
        self.phi = self.curvature.products(self.mu[None])[0]

    def _accept_or_revert(self, growing: bool, evaluation: Evaluation) -> Evaluation:
        """Keep a refreshed pass, or revert it if it raised F with steps longer than those that are always stable."""
        assert self.residuals is not None
        before = self.accepted
        has_fallen = before is None or evaluation.value < before.evaluation.value
        if before is not None and not has_fallen and self.eta > REFRESHED_ETA:
            self.theta, self.mu, self.residuals = before.theta.copy(), before.mu.copy(), before.residuals.copy()
            self.eta = max(self.eta / GROWTH**SETBACK, REFRESHED_ETA)
            self.curvature.discard()
            evaluation = before.evaluation
        else:
            if growing:  # the gradient of the residuals last seen
                total = self.problem.rows.rmatmat(self.residuals)
                ones = [self.residuals.sum(axis=0)] if self.problem.fit_intercept else []
                self.mu = np.vstack([total, *ones])
            else:
                self.mu = self.mu - self.penalty * self.theta
            self.eta = REFRESHED_ETA if growing or not has_fallen else self.eta * GROWTH
            try:
                self._on_block()
            except OutOfTime:  # there will be no other pass
                self.curvature.discard()
            else:
                self.curvature.renew()
            self.accepted = _Accepted(self.theta.copy(), self.mu.copy(), self.residuals.copy(), evaluation)
        self._move_mu(0.0)
        return evaluation

    def _resize_blocks(self, growing: bool) -> None:
        """Put as many rows into a block as the error of its constant penalty term allows."""
        if self._fixed_block:
            return
        share = LARGEST_SHARE
        size = float(np.linalg.norm(self.phi))
        if growing:
            by_penalty = self.curvature.products((self.penalty * self.phi)[None])[0]
            lag = min(float(np.linalg.norm(by_penalty)) / size, 1.0) if size > 0 else 1.0
            share = min(share, (self.curvature.accuracy / max(self.eta * lag, 1e-12)) ** 0.5)
        self.block_rows = int(max(1, min(self.curvature.most_rows, share * len(self.rows))))

    def _process(self, block: _Block, weight: np.ndarray, growing: bool) -> None:
        from manyclass.bound.kernels import run_block

        X, curvature, b, m = block.X, self.curvature, len(block.X), self.problem.n_outputs
        at = slice(None) if block.columns is None else block.columns
        psi = curvature.products((self.penalty * self.theta)[None])[0] if growing else np.zeros_like(self.phi)
        old = np.zeros((b, m)) if self.residuals is None else self.residuals[block.index]
        start = (X @ self.theta[at], X @ self.phi[at], X @ psi[at], curvature.gram(X, block.columns), block.Y)
        classes = np.tile(np.arange(m), (b, 1))
        if self.shuffle_classes:
            classes = self.rng.permuted(classes, axis=1)
        C, U = np.empty((b, self.rank, m)), np.empty((b * self.rank, b * self.rank))
        R, moved, lagged = sums = np.zeros((3, b * m))
        work = np.empty((4 + self.rank, b * m)), np.empty((2, m))
        by_phi, by_psi, lag_phi, lag_psi = run_block(
            self.softmax, growing, *start, weight, self.eta, classes, old, C, U, sums, *work
        )
        if self.residuals is not None:
            self.residuals[block.index] = old
        spread = np.zeros((2, *self.theta.shape))
        spread[0, at], spread[1, at] = X.T @ moved.reshape(b, m), X.T @ lagged.reshape(b, m)
        spread = curvature.products(spread)
        before = self.theta
        self.theta = before + by_phi * self.phi + by_psi * psi + spread[0]
        self.mu[at] += X.T @ R.reshape(b, m)
        if growing:
            change = weight.sum() * before + lag_phi * self.phi + lag_psi * psi + spread[1]
            curvature.absorb(C, U)
        else:
            change = self.theta - before
            curvature.collect(X, block.columns, C)
        self._move_mu(self.penalty * change)

    def _blocks(self, order: np.ndarray) -> Iterator[_Block]:
        """The rows in the given order."""
        problem, curvature = self.problem, self.curvature
        width = problem.rows.row_bytes if curvature.compact else 8 * curvature.n_rows_of_theta
        chunk_rows = max(curvature.most_rows, int(CHUNK_BYTES // max(width, 8 * self.rank * problem.n_outputs)))
        began = time.perf_counter()
        for start in range(0, len(order), chunk_rows):
            index = order[start : start + chunk_rows]
            rows, targets = problem.rows.take(index), problem.targets.take(index)
            last = 0
            while last < len(index):
                problem.on_block(time.perf_counter() - began)
                began = time.perf_counter()
                part = slice(last, min(last + self.block_rows, len(index)))
                last = part.stop
                X, columns = self._values(rows.part(part))
                yield _Block(index[part], X, columns, targets.dense(part, self.mu, problem.xp))

    def _values(self, block: Rows) -> tuple[np.ndarray, np.ndarray | None]:
        compact, columns = block.occurring() if self.curvature.compact else (block, None)
        values = compact.dense()
        if not self.problem.fit_intercept:
            return np.ascontiguousarray(values, dtype=np.float64), columns
        X = np.ones((block.n_rows, values.shape[1] + 1))
        X[:, :-1] = values
        return X, None if columns is None else np.append(columns, block.n_features)
