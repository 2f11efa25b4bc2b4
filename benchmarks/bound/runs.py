"""What a method did, pass by pass, and the methods that are not SGD. Seconds are those of the processor: one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.bound.problems import Problem
from manyclass.bound import FIRST_ETA, DenseInverse, LowRank, StochasticBound
from manyclass.bound.streamed import StreamedBound
from manyclass.curvature import CURVATURES
from manyclass.solvers import SOLVERS, base


@dataclass
class Run:
    """θ, passes over the rows and seconds so far, from the start on."""

    label: str
    settings: str = ""
    thetas: list[np.ndarray] = field(default_factory=list)
    passes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, theta: np.ndarray, passes: float, seconds: float) -> None:
        self.thetas.append(np.array(theta))
        self.passes.append(passes)
        self.seconds.append(seconds)


class Watch:
    """Seconds since it was made, without those inside exempt functions.

    Looking at the objective is no part of a stochastic method, and SGD does not do it either.
    """

    def __init__(self) -> None:
        self._started, self._exempt = time.process_time(), 0.0

    def exempt(self, owner: Any, *names: str) -> None:
        for name in names:
            setattr(owner, name, self._outside(getattr(owner, name)))

    def _outside(self, function: Callable) -> Callable:
        def timed(*args: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                return function(*args, **options)
            finally:
                self._exempt += time.process_time() - started

        return timed

    @property
    def seconds(self) -> float:
        return time.process_time() - self._started - self._exempt


def lbfgs(problem: Problem, passes: int, start: np.ndarray | None = None) -> Run:
    """SciPy's L-BFGS; each evaluation of the objective is a pass."""
    objective, run, evaluations = problem.objective(), Run("L-BFGS"), 0
    start = np.zeros(problem.shape) if start is None else start
    began = time.process_time()

    def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal evaluations
        evaluations += 1
        found = objective.value_and_gradient(theta.reshape(problem.shape))
        return found.value, found.gradient.ravel()

    def note(theta: np.ndarray) -> None:
        run.add(theta.reshape(problem.shape), evaluations - 1, time.process_time() - began)

    run.add(start, 0, 0.0)
    options = {"maxfun": passes + 1, "maxiter": passes, "ftol": 0.0, "gtol": 1e-10}
    minimize(value_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", callback=note, options=options)
    return run


def bbm(problem: Problem, passes: int, start: np.ndarray | None = None) -> Run:
    """Batch bound majorization."""
    objective, run, watch = problem.objective(), Run("BBM"), Watch()
    watch.exempt(base, "duality_gap")
    curvature = CURVATURES["partition-bound"](objective, np.random.default_rng(0))
    start = np.zeros(problem.shape) if start is None else start
    for iterate in islice(SOLVERS["majorize"].iterates(objective, curvature, start), passes + 1):
        run.add(iterate.model()[0], iterate.n_passes - 1, watch.seconds)
    return run


def sbm(
    problem: Problem,
    passes: int,
    start: np.ndarray | None = None,
    *,
    rank: int | None = None,
    eta: float | None = None,
    refresh: bool = False,
    shuffle_classes: bool = False,
    seed: int = 0,
    each_row: bool = False,
) -> Run:
    """Stochastic bound majorization; `each_row` notes θ after each row instead of each pass."""
    name = "SBM" if rank is None else f"SBM rank {rank}"
    if eta is None:
        eta = FIRST_ETA if refresh else 1.0
    name += (" refreshed" if refresh else "") + (", classes shuffled" if shuffle_classes else "")
    run = Run(name, "η grows" if refresh else f"η={eta:g}/t")
    objective, watch = problem.objective(), Watch()
    watch.exempt(objective, "value_and_gradient")
    watch.exempt(base, "duality_gap")
    run.add(np.zeros(problem.shape) if start is None else start, 0, 0.0)
    curvature: StreamedBound = DenseInverse(objective) if rank is None else LowRank(objective, rank)
    rng = np.random.default_rng(seed)
    solver = StochasticBound(
        objective,
        curvature,
        start,
        eta=eta,
        refresh=refresh,
        shuffle_classes=shuffle_classes,
        rng=rng,
        block_rows=1 if each_row else None,
    )

    def note(seconds: float = 0.0) -> None:  # before each row, so after the one before it
        if not np.array_equal(solver.theta, run.thetas[-1]):
            run.add(solver.theta, run.passes[-1] + 1 / len(problem.y), watch.seconds)

    if each_row:
        objective.on_block = note
    for iterate in islice(solver.iterates(), passes):
        if each_row:
            note()
        else:
            run.add(iterate.model()[0], iterate.n_passes, watch.seconds)
    return run


RANK_STEPS = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def tuned_rank_step(problem: Problem, rank: int, passes: int) -> float:
    """η₀ of a low rank, by the log-likelihood of held-out training rows, as SGD's gains are chosen."""
    part = problem.held_out()

    def score(eta: float) -> float:
        run = sbm(part, passes, rank=rank, eta=eta)
        return part.log_likelihood_and_error(run.thetas[-1])[0]

    return max(RANK_STEPS, key=score)
