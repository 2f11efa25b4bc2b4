from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from manyclass.curvature import Curvature
from manyclass.curvature.streamed import StreamedBound
from manyclass.data.design import Array, Design
from manyclass.model.objective import Evaluation, Objective
from manyclass.solvers.base import Monitor, Solver, Status

if TYPE_CHECKING:
    from collections.abc import Callable

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


class StochasticBound(Solver):
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

    Parameters
    ----------
    eta : float
        Length of the steps in a pass together (of the first pass, with `refresh`).
    batch_size : int
        Rows between two steps; the step is then the sum of theirs.
    refresh : bool
    rng : numpy Generator
    on_step : callable, optional
        Called with theta after each block of rows (each row where blocks are of one row), to watch a run.
    """

    name = "stochastic-bound"
    needs_majorizer = False

    def __init__(
        self,
        eta: float = 1.0,
        batch_size: int = 1,
        refresh: bool = False,
        rng: np.random.Generator | None = None,
        block_rows: int | None = None,
        on_step: Callable[[np.ndarray], object] | None = None,
    ):
        self.eta, self.batch_size, self.refresh = eta, batch_size, refresh
        self.rng = np.random.default_rng(0) if rng is None else rng
        self.block_rows, self.on_step = block_rows, on_step

    def begin(self, objective: Objective, curvature: Curvature) -> Array:
        return np.zeros((objective.design.n_features + objective.fit_intercept, objective.n_outputs))

    def run(self, objective: Objective, curvature: Curvature, theta: Array, monitor: Monitor) -> tuple[Array, Status]:
        if not isinstance(curvature, StreamedBound):
            raise TypeError("StochasticBound needs a curvature that grows row by row: DenseInverse or LowRank.")
        state = _Pass(self, objective, curvature, theta)
        status: Status | None = None
        while status is None:
            growing = not self.refresh or monitor.n_passes == 0
            with np.errstate(over="ignore", invalid="ignore"):  # a step too long, to be taken back
                finished = state.run(growing, monitor)
                theta = state.theta.astype(objective.design.dtype)
                # Looking at the objective is no part of the algorithm, so it does not count as a pass.
                evaluation = objective.value_and_gradient(theta)
            monitor.n_passes += 1
            if self.refresh and finished:
                evaluation = state.settle(growing, evaluation)
                theta = state.theta.astype(objective.design.dtype)
            status = monitor.stop(objective, curvature, theta, evaluation)
            if not finished and status is None:
                status = Status.MAX_TIME
        return theta, status


@dataclass(frozen=True)
class _Settled:
    """The state after a refreshed pass that was kept."""

    theta: np.ndarray
    mu: np.ndarray
    residuals: np.ndarray
    evaluation: Evaluation


class _Pass:
    """θ, μ and φ = H⁻¹μ, and the passes that move them.

    Rows are taken in blocks whose recursion `run_block` follows exactly, but for one thing: within a block φ_j takes
    the penalty's part of μ at the θ of the start of the block. A block of a share q of the pass moves θ by less than
    ηqφ, and its rows weigh q in the penalty, so φ errs by at most ηq²MΛφ, which q is chosen to keep below `accuracy`.
    μ itself is exact, and φ is computed from it anew after each block, so nothing accumulates.
    """

    def __init__(self, solver: StochasticBound, objective: Objective, curvature: StreamedBound, start: Array):
        self.solver, self.objective, self.curvature = solver, objective, curvature
        design, m = objective.design, objective.n_outputs
        shape = (curvature.n_rows_of_theta, m)
        self.eta = solver.eta
        self.theta = np.array(start, dtype=np.float64)
        self.mu = np.zeros(shape)
        self.phi = np.zeros(shape)
        weight = np.ones(design.n_rows) if objective.sample_weight is None else objective.sample_weight
        self.weight = np.asarray(weight, dtype=np.float64) / objective.total_weight
        self.rows = np.flatnonzero(self.weight)
        self.penalty = np.full((shape[0], 1), objective.alpha)
        if objective.fit_intercept:
            self.penalty[-1] = 0.0
        self.residuals = np.zeros((design.n_rows, m)) if solver.refresh else None
        self.settled: _Settled | None = None
        self.softmax = objective.link.name == "softmax"
        self.rank = m - 1 if self.softmax else m
        self.block_rows = solver.block_rows or 1

    def run(self, growing: bool, monitor: Monitor) -> bool:
        """One pass; whether there was time for all of it."""
        order = self.solver.rng.permutation(self.rows)
        weight = self.weight[order]
        step = self._steps(weight, self.eta)
        if self.solver.refresh and not growing:
            # The rows' part of μ is complete; the penalty's gradient is that of the present theta.
            self._replace_penalty()
        at, look = 0, 0
        self._fit_block(growing)
        for index, X, columns, Y in self._blocks(order):
            rows = slice(at, at + len(index))
            at = rows.stop
            self._block(index, X, columns, Y, weight[rows], step[rows], growing)
            if at > look:
                self._fit_block(growing)
                look = 2 * at
            if self.solver.on_step is not None:
                self.solver.on_step(self.theta)
            if monitor.max_time is not None and monitor.seconds > monitor.max_time:
                return False
        if not self.solver.refresh:
            self.curvature.tidy()
            self.phi = self.curvature.products(self.mu[None])[0]
        return True

    def settle(self, growing: bool, evaluation: Evaluation) -> Evaluation:
        """Keep a refreshed pass, or go back where longer steps than are always stable have raised F."""
        assert self.residuals is not None
        before = self.settled
        lower = before is None or evaluation.value < before.evaluation.value
        if before is not None and not lower and self.eta > REFRESHED_ETA:
            self.theta, self.mu, self.residuals = before.theta.copy(), before.mu.copy(), before.residuals.copy()
            self.eta = max(self.eta / GROWTH**SETBACK, REFRESHED_ETA)
            self.curvature.discard()
            evaluation = before.evaluation
        else:
            self.mu = self._rows_gradient() if growing else self.mu - self.penalty * self.theta
            self.eta = REFRESHED_ETA if growing or not lower else self.eta * GROWTH
            self.curvature.renew()
            self.settled = _Settled(self.theta.copy(), self.mu.copy(), self.residuals.copy(), evaluation)
        self.phi = self.curvature.products(self.mu[None])[0]
        return evaluation

    def _fit_block(self, growing: bool) -> None:
        """As many rows to a block as the error of their common penalty allows."""
        if self.solver.block_rows is not None:
            return
        share = LARGEST_SHARE
        size = float(np.linalg.norm(self.phi))
        if growing:
            by_penalty = self.curvature.products((self.penalty * self.phi)[None])[0]
            lag = min(float(np.linalg.norm(by_penalty)) / size, 1.0) if size > 0 else 1.0
            share = min(share, (self.curvature.accuracy / max(self.eta * lag, 1e-12)) ** 0.5)
        self.block_rows = int(max(1, min(self.curvature.most_rows, share * len(self.rows))))

    def _steps(self, weight: np.ndarray, eta: float) -> np.ndarray:
        """Length of the step after each row: its share of the pass, gathered at the end of each minibatch."""
        share, size = eta * weight, self.solver.batch_size
        if size == 1:
            return share
        step = np.zeros_like(share)
        firsts = np.arange(0, len(share), size)
        step[np.minimum(firsts + size, len(share)) - 1] = np.add.reduceat(share, firsts)
        return step

    def _block(
        self,
        index: np.ndarray,
        X: np.ndarray,
        columns: np.ndarray | None,
        Y: np.ndarray,
        weight: np.ndarray,
        step: np.ndarray,
        growing: bool,
    ) -> None:
        from manyclass.solvers.bound_kernels import run_block

        b, m, curvature = len(X), self.objective.n_outputs, self.curvature
        at = slice(None) if columns is None else columns
        psi = curvature.products((self.penalty * self.theta)[None])[0] if growing else np.zeros_like(self.phi)
        H = curvature.gram(X, columns)
        C, U = np.empty((b, self.rank, m)), np.empty((b * self.rank, b * self.rank))
        R, moved, lagged = np.empty((3, b * m))
        old = np.zeros((b, m)) if self.residuals is None else self.residuals[index]
        by_phi, by_psi, lag_phi, lag_psi = run_block(
            self.softmax,
            growing,
            X @ self.theta[at],
            X @ self.phi[at],
            X @ psi[at],
            H,
            Y,
            weight,
            step,
            old,
            C,
            U,
            R,
            moved,
            lagged,
        )
        if self.residuals is not None:
            self.residuals[index] = old
        spread = np.zeros((2, *self.theta.shape))
        spread[0, at], spread[1, at] = X.T @ moved.reshape(b, m), X.T @ lagged.reshape(b, m)
        spread = curvature.products(spread)
        before = self.theta
        self.theta = before + by_phi * self.phi + by_psi * psi + spread[0]
        self.mu[at] += X.T @ R.reshape(b, m)
        if growing:
            lag = weight.sum() * before + lag_phi * self.phi + lag_psi * psi + spread[1]
            self.mu += self.penalty * lag
            curvature.absorb(C, U)
        else:
            self.mu += self.penalty * (self.theta - before)
            curvature.collect(X, columns, C)
        self.phi = curvature.products(self.mu[None])[0]

    def _replace_penalty(self) -> None:
        self.mu += self.penalty * self.theta
        self.phi = self.curvature.products(self.mu[None])[0]

    def _rows_gradient(self) -> np.ndarray:
        """Σ_j x_j r_jᵀ of the residuals last seen."""
        assert self.residuals is not None
        total = self.objective.design.X.T @ self.residuals
        return np.vstack([total, self.residuals.sum(axis=0)]) if self.objective.fit_intercept else np.asarray(total)

    def _blocks(self, order: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]]:
        """(row numbers, rows on their common columns, these columns, targets) in the given order, in float64."""
        objective, design = self.objective, self.objective.design
        keep_sparse = design.is_sparse and not hasattr(self.curvature, "M")
        width = design.row_bytes if keep_sparse else 8 * self.curvature.n_rows_of_theta
        chunk_rows = max(self.curvature.most_rows, int(CHUNK_BYTES // max(width, 8 * self.rank * objective.n_outputs)))
        for start in range(0, len(order), chunk_rows):
            index = order[start : start + chunk_rows]
            rows, targets = Design(design.take(index)), objective.targets.take(index)
            full = None if keep_sparse else self._filled(rows)
            last = 0
            while last < len(index):
                part = slice(last, min(last + self.block_rows, len(index)))
                last = part.stop
                X, columns = self._compact(rows.rows(part)) if full is None else (full[part], None)
                yield index[part], X, columns, targets.dense(part, self.mu, np)

    def _filled(self, rows: Design) -> np.ndarray:
        """Rows as a dense matrix in float64, with the column of ones of the intercept."""
        filled = np.ones((rows.n_rows, self.curvature.n_rows_of_theta))
        filled[:, : rows.n_features] = rows.X.toarray() if rows.is_sparse else rows.X
        return filled

    def _compact(self, block: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
        """Sparse rows as a dense matrix on the columns they use, the intercept's last."""
        columns, place = np.unique(block.indices, return_inverse=True)
        extra = int(self.objective.fit_intercept)
        X = np.zeros((block.shape[0], len(columns) + extra))
        np.add.at(X, (np.repeat(np.arange(block.shape[0]), np.diff(block.indptr)), place), block.data)
        if extra:
            X[:, -1] = 1.0
            columns = np.append(columns, self.objective.design.n_features)
        return X, columns
