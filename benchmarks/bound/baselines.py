"""SGD with constant gain and ASGD with both schedules, compiled, and the paper's grids (its sections 2.1 and 4)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from benchmarks.bound.problems import Problem
from benchmarks.bound.runs import Run, bbm, lbfgs, sbm

STEPS = tuple(10.0**e for e in range(2, -13, -1))
"""η₀, largest first: the range of the paper, 1 to 1e-12, and two decades more, which rows of unit length need."""
TAUS = tuple(10.0**e for e in range(6))
GRID_PASSES = 10
FEW_ROWS = 5000


@dataclass(frozen=True)
class Gain:
    """η_i = η₀ · a / (b + c·i) for the i-th step, i = 1, 2, ..., of `batch` rows each."""

    eta: float
    batch: int
    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    @classmethod
    def searching(cls, eta: float, batch: int, tau: float) -> Gain:
        """τ/(τ+i)·η₀; τ = 0 stands for η₀/i."""
        return cls(eta, batch, tau or 1.0, tau, 1.0)

    def __str__(self) -> str:
        schedule = "" if self.c == 0 else ", η₀/i" if self.b == 0 else f", τ={self.b:g}"
        return f"η₀={self.eta:.1g}, m={self.batch}{schedule}"


@njit(cache=True)
def sgd_rows(data, indices, indptr, y, order, V, scale, decay, first, eta, a, b, c, batch):
    """Steps over the rows in `order` on θ = scale·V, of shape (d, m); `decay` is λ/t. Returns the new scale."""
    m = V.shape[1]
    R = np.empty((batch, m))
    step = first
    for start in range(0, len(order), batch):
        size = min(batch, len(order) - start)
        gain = eta * a / (b + c * step)
        step += 1
        for r in range(size):
            j = order[start + r]
            z = np.zeros(m)
            for at in range(indptr[j], indptr[j + 1]):
                for k in range(m):
                    z[k] += data[at] * V[indices[at], k]
            if m == 1:
                R[r, 0] = 1.0 / (1.0 + np.exp(-scale * z[0])) - y[j]
            else:
                z *= scale
                z = np.exp(z - z.max())
                R[r] = z / z.sum()
                R[r, y[j]] -= 1.0
        shrunk = scale * (1.0 - gain * decay * size)
        if abs(shrunk) < 1e-9 * abs(scale) or abs(shrunk) < 1e-100:
            V *= shrunk
            shrunk = 1.0
        scale = shrunk
        for r in range(size):
            j = order[start + r]
            for at in range(indptr[j], indptr[j + 1]):
                factor = gain / scale * data[at]
                for k in range(m):
                    V[indices[at], k] -= factor * R[r, k]
    return scale


def every_number(X: Any) -> sparse.csr_array:
    """X in CSR form; of dense rows the zeros too, so that a step costs what a dense one does."""
    if sparse.issparse(X):
        return sparse.csr_array(X)
    n, d = X.shape
    return sparse.csr_array((X.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)), shape=(n, d))


def sgd(
    problem: Problem,
    gain: Gain,
    passes: int,
    start: np.ndarray | None = None,
    seed: int = 0,
    rows_a_record: int = 0,
    suffix: str = "",
) -> Run:
    """θ after each pass, or after each `rows_a_record` rows of it; `suffix` is added to the name of the method."""
    X, name = every_number(problem.X), ("SGD" if gain.c == 0 else "ASGD") + suffix
    run, rng, n = Run(name, str(gain)), np.random.default_rng(seed), len(problem.y)
    V: Any = np.zeros(problem.shape) if start is None else start.copy()
    run.add(V, 0.0, 0.0)
    scale, step, seconds = 1.0, 1, 0.0
    for number in range(passes):
        order = rng.permutation(n)
        for first in range(0, n, rows_a_record or n):
            part = order[first : first + (rows_a_record or n)]
            started = time.process_time()
            numbers = gain.eta, gain.a, gain.b, gain.c, gain.batch
            arrays = X.data, X.indices, X.indptr, problem.y, part, V
            scale = sgd_rows(*arrays, scale, problem.alpha, step, *numbers)
            seconds += time.process_time() - started
            step += -(-len(part) // gain.batch)
            with np.errstate(over="ignore", invalid="ignore"):
                run.add(scale * V, number + (first + len(part)) / n, seconds)
        if not np.isfinite(V).all():
            break
    return run


def tuned(problem: Problem, schedules: str, batches: tuple[int, ...], passes: int = GRID_PASSES) -> Gain:
    """The gain with the best log-likelihood on held-out training rows, mean over the later half of `passes` passes.

    All τ of the grid and each batch size with all η₀ downwards, until three η₀ in a row have been worse than a
    larger one; then half a decade to either side of the best.
    """
    # Few rows tell little, so few rows are split several times.
    parts = [problem.held_out(seed=seed) for seed in range(1 if len(problem.y) > FEW_ROWS else 3)]

    def score(gain: Gain) -> float:
        late = ((part, theta) for part in parts for theta in sgd(part, gain, passes).thetas[-(passes // 2) :])
        return float(np.mean([part.log_likelihood_and_error(theta)[0] for part, theta in late]))

    taus = (np.inf,) if schedules == "SGD" else (0.0, *TAUS)
    best, best_score = Gain(0.0, 1), -np.inf
    for batch, tau in itertools.product(batches, taus):
        make = partial(Gain, batch=batch) if tau == np.inf else partial(Gain.searching, batch=batch, tau=tau)
        here, worse = -np.inf, 0
        for eta in STEPS:
            value = score(make(eta))
            worse = worse + 1 if value < here else 0
            here = max(here, value)
            if value > best_score:
                best, best_score = make(eta), value
            if worse == 3:
                break
    beside = [Gain(best.eta * f, best.batch, best.a, best.b, best.c) for f in (0.3, 3.0)]
    return max([best, *beside], key=score)


def best_sgd(problem: Problem, passes: int) -> list[Run]:
    """SGD and ASGD, each with its best gain."""
    return [sgd(problem, tuned(problem, schedules, (1, 10)), passes) for schedules in ("SGD", "ASGD")]


def full_rank(
    problem: Problem, gains: Iterable[Gain], printed: Iterable[Gain], passes: int, start: np.ndarray, seed: int
) -> list[Run]:
    """The methods of Figures 2 and 3 from one start."""
    runs = [lbfgs(problem, passes, start)]
    runs += [sgd(problem, gain, passes, start, seed=seed) for gain in gains]
    runs += [sgd(problem, gain, passes, start, seed=seed, suffix=" as printed") for gain in printed]
    runs += [bbm(problem, passes, start), sbm(problem, passes, start, seed=seed)]
    runs.append(sbm(problem, passes, start, shuffle_classes=True, seed=seed))
    return [*runs, sbm(problem, passes, start, refresh=True, seed=seed)]
