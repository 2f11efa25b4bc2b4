"""Models along a path of falling penalties, each started from an extrapolation of the last two."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from manyclass.choice.methods import Method, choose
from manyclass.choice.together import HessianOfEach, Together
from manyclass.curvature import CURVATURES, Curvature
from manyclass.data.memory import room_for
from manyclass.data.penalty import ALIKE
from manyclass.data.rows import Array, present_rows
from manyclass.fit import Clock, Iterate, Outcome, Record, Run, Status
from manyclass.fit.run import OutOfTime
from manyclass.model import Problem
from manyclass.solvers.base import LOOKS_BACK, Solver, iterates_at
from manyclass.solvers.newton import Newton
from manyclass.solvers.newton_cg import NewtonCG
from manyclass.solvers.quasi_newton import QuasiNewton

WARM = 1.4
"""A fit with an extrapolated start is expected to take this many times the square root of the passes of a single fit.
The square root, because the directions that a worse metric is slow in are those the last penalties have solved."""
TURNED = 2
"""The search ends when the last so many scores are worse than the best by more than a standard error."""
CURVED = 0.1
"""Share of the zero model's objective below which the rows are nearly fitted, and hardly determine the minimum."""
LEAST = 1e-15
"""Share of the zero model's objective below which a duality gap is rounding."""
COPIES_SHARE = 0.25
"""Share of the available memory that copies of the rows of all folds may take."""


def path_method(problem: Problem, alphas: np.ndarray, tol: float, n_paths: int) -> Method:
    """The method for a whole path: its curvature is set up once, and refreshed for each penalty."""
    problem.alpha = float(np.exp(np.log(alphas).mean()))
    candidates = [one for one in choose(problem, tol, QuasiNewton()).candidates if one.fits]

    def seconds(one: Method) -> float:
        looks = 1.0 + len(alphas) / one.looks
        return looks * one.set_up + max(one.passes * one.per_pass, seconds_of_path(one, len(alphas), n_paths))

    return min(candidates, key=seconds)


def seconds_of_path(method: Method, n_alphas: int, n_paths: int) -> float:
    """Estimated seconds of all fits, each of which begins near its minimum."""
    return WARM * math.sqrt(method.passes) * n_alphas * n_paths * method.per_pass


def folds_in_time(method: Method, n_folds: int, left: float) -> int:
    """The number of folds with time to compare three penalties, and then to fit all rows with the best."""
    of_one = seconds_of_path(method, 3, 1)
    return n_folds if n_folds * of_one <= left else max(int(left / of_one) - 1, 0)


def first_place(method: Method, n_alphas: int, n_folds: int, left: float) -> int:
    """Where the path begins: at the largest penalty, or at the middle if there is no time for all of them.

    The largest penalties alone would say next to nothing about the best one.
    """
    return 0 if seconds_of_path(method, n_alphas, n_folds) <= left else n_alphas // 2


def path_curvature(problem: Problem, method: Method, rng: np.random.Generator) -> Curvature:
    """The curvature that all fits share. `Descent` refreshes it before each fit."""
    kind = CURVATURES[method.curvature]
    problem.centred = kind.center
    return kind(problem, rng)


@dataclass
class Descent:
    """The minima of one problem for falling penalties.

    The start of a fit is extrapolated from the last two minima, linearly in log alpha: W grows like log(1/alpha) if the
    rows can be separated, and hardly changes if they cannot. The folds of a cross-validation have a common leader, the
    fold that is fitted first at each penalty. The difference between its minimum and its start is added to the starts
    of the other folds, whose rows are nearly the same.

    All folds and penalties share the curvature, as any positive definite matrix is a valid metric. Only the leader
    refreshes it, and only its part between the classes, on the `whole` problem of all rows if that is given.

    `fit` and `attempt` set the ``alpha`` of the problem; `fits` multiplies its penalty by the `ratio` first. For a
    comparison of penalties, the tolerance is relative to the objective that is reached, if that is small. With tiny
    penalties on separable rows it is a thousandth of the zero model's, and a fit that ends too early has the scores of
    a larger penalty.
    """

    problem: Problem
    curvature: Curvature
    clock: Clock
    tol: float
    max_iter: int
    leader: Descent | None = None
    whole: Problem | None = None
    ratio: float = 1.0

    def __post_init__(self) -> None:
        self.known: deque[tuple[float, Array]] = deque(maxlen=2)
        self.started: Array = None
        self.reached = 1.0
        self._looks_back = LOOKS_BACK
        self._objectives: deque[float] = deque()
        # A shared curvature must not be refreshed by the rows of one fold.
        ending = NewtonCG(refreshes=self.whole is None or self.whole is self.problem)
        self.solver: Solver = QuasiNewton(frozenset(), ending)

    @property
    def problems(self) -> list[Problem]:
        """The problems solved at once: here a single one."""
        return [self.problem]

    def fits(self, alpha: float) -> list[Outcome]:
        """The outcome of each of `problems`."""
        return [self.fit(alpha * self.ratio)]

    def fit(self, alpha: float, start: tuple[Array, Array] | None = None) -> Outcome:
        """The minimum at `alpha`, from the given W and b, or else from the extrapolated start.

        Raises `OutOfTime` or `KeyboardInterrupt` if that is what ended the fit.
        """
        outcome = self.attempt(alpha, start, settles=True)
        if outcome.status is Status.MAX_TIME:
            raise OutOfTime
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return outcome

    def attempt(self, alpha: float, start: tuple[Array, Array] | None = None, *, settles: bool = False) -> Outcome:
        """As `fit`, but gives the model reached so far if the fit was cut short.

        With `settles` the fit also stops when `LOOKS_BACK` iterations (one of Newton's method) lower the objective by
        less than a tenth of `tol`. For tiny penalties the gap is a loose bound, and the rest is noise when penalties
        are compared.
        """
        problem = self.problem
        problem.alpha = alpha
        self.started = theta = self._start(alpha) if start is None else problem.pack(*start)
        if self.leader is None and not self.curvature.local:
            whole = problem if self.whole is None else self.whole
            whole.alpha, before = alpha, whole.n_passes
            self.curvature.refresh(whole, whole.pack(*self.model_at(theta)))
            taken, whole.n_passes = whole.n_passes - before, before
            problem.n_passes += taken
        run = self._run = Run(self.clock, tol=self.tol, max_iter=self.max_iter)
        if settles:
            run.on_iterate = self._has_settled
        self._objectives = deque(maxlen=self._looks_back + 1)
        outcome = run(iterates_at(self.solver, problem, self.curvature, theta), lambda: problem.coefficients(theta))
        self.known.append((math.log(alpha), problem.pack(*outcome.model)))
        if outcome.history:
            self.reached = outcome.history[-1].objective / problem.zero_value
        return outcome

    def models_at(self, theta: Array) -> list[tuple[Array, Array]]:
        """W and b of each of `problems`."""
        return [self.problem.coefficients(theta)]

    def model_at(self, theta: Array) -> tuple[Array, Array]:
        """The mean of `models_at`, where the common curvature is refreshed."""
        return mean_model(self.models_at(theta), self.problems)

    def _has_settled(self, record: Record, iterate: Iterate) -> bool:
        values = self._objectives
        values.append(record.objective)
        zero = self.problem.zero_value
        tol = max(self.tol * min(1.0, record.objective / zero / CURVED), LEAST)
        self._run.tol = tol / iterate.strictness
        return len(values) > self._looks_back and values[0] - values[-1] <= 0.1 * tol * zero

    def _start(self, alpha: float) -> Array:
        leader, rows = self.leader, self.problem.rows
        # The leader is fitted to rows that judge this fold. In directions that no row of this fold has, only the
        # penalty would remove what the leader has learned from them, and the fit ends before it has. So the leader is
        # not followed with few rows per column, nor if its rows are nearly fitted.
        is_flat = leader is not None and leader.reached < CURVED
        if leader is None or is_flat or len(present_rows(rows.n_rows, self.problem.weight)) <= 2 * rows.n_features:
            return self._predicted(alpha)
        W, b = leader.problem.coefficients(leader.known[-1][1])
        if self.known:
            alone = self._predicted(alpha)
            before, origin = leader.problem.coefficients(leader.started)
            theta = alone + self.problem.pack(W - before, b - origin)
        else:
            alone, theta = self.problem.constant_model(), self.problem.pack(W, b)
        # A class without rows in this fold has no gradient that would remove what the leader has learned of it.
        return self.problem.xp.where((self.problem.target_mean > 0)[None, :], theta, alone)

    def _predicted(self, alpha: float) -> Array:
        if not self.known:
            return self.solver.begin(self.problem, self.curvature).theta
        now, theta = self.known[-1]
        if len(self.known) < 2:
            return theta
        before, previous = self.known[0]
        return theta + (math.log(alpha) - now) / (now - before) * (theta - previous)


class JointDescent(Descent):
    """The minima of several problems on the same rows, all at once.

    They share the passes over the rows and the metric; each has curvature pairs of its own. A fit that stalls is ended
    for each problem separately.
    """

    problem: Together

    def __post_init__(self) -> None:
        super().__post_init__()
        self.solver = _Jointly(frozenset(), None)
        self._of_all = self.curvature
        if HessianOfEach.pays(self.problem):
            self.solver, self.curvature = Newton(), HessianOfEach(self.problem, np.random.default_rng(0))
            self._looks_back = 1
        self._singles: list[Descent] = []

    @property
    def problems(self) -> list[Problem]:
        return self.problem.parts

    def fits(self, alpha: float) -> list[Outcome]:
        outcome, problem = self.fit(alpha), self.problem
        models = problem.models(*outcome.model)
        # If a Newton step stalls, only rounding is left.
        if outcome.status is not Status.STALLED or self.curvature.local:
            last = replace(outcome.history[-1], objective=outcome.history[-1].objective / len(models))
            return [replace(outcome, model=model, history=[last]) for model in models]
        if not self._singles:  # the first one leads the others
            given = self._of_all, self.clock, self.tol, self.max_iter
            for part, ratio in zip(problem.parts, problem.ratios, strict=True):
                leader = self._singles[0] if self._singles else None
                self._singles.append(Descent(part, *given, leader, self.whole, ratio))
        outcomes = [one.fit(alpha * one.ratio, model) for one, model in zip(self._singles, models, strict=True)]
        problem.n_passes += sum(one.n_passes for one in outcomes)
        self.known[-1] = math.log(alpha), problem.pack(*problem.beside([one.model for one in outcomes]))
        return outcomes

    def models_at(self, theta: Array) -> list[tuple[Array, Array]]:
        return self.problem.models(*self.problem.coefficients(theta))


class _Jointly(QuasiNewton):
    """Begins at the constant models. A better start would take a pass for each problem."""

    begins_constant = True


def of_folds(problem: Problem, weights: list[Array | None]) -> list[Problem]:
    """The problem of each fold; without folds, one problem of all rows.

    If there is room, a fold has a copy of its own rows, as reading rows of weight 0 would be a waste.
    """
    rows, xp = problem.rows, problem.xp
    index = [present_rows(rows.n_rows, weight) for weight in weights]
    room = room_for(problem.memory_limit)
    has_room = sum(map(len, index)) * rows.row_bytes <= COPIES_SHARE * room
    problems = []
    for weight, own in zip(weights, index, strict=True):
        if weight is None or len(own) == rows.n_rows or not has_room:
            problems.append(problem.variant(weight=weight))
            continue
        of_own = xp.take(weight, rows.asarray(own, xp.int64))
        of_own = None if bool(xp.all(of_own == 1.0)) else of_own
        problems.append(problem.variant(rows=rows.take(own), targets=problem.targets.take(own), weight=of_own))
    return problems or [problem.variant()]


def has_turned(scores: np.ndarray, values: list[np.ndarray | None]) -> bool:
    """Whether the last `TURNED` scores are each worse than the best by more than a standard error of the difference.

    Scores have shape (n_folds, 1 + n_alphas), larger is better. The first column is the model without coefficients;
    until a penalty is clearly better than that, the answer is no. The standard error is that over the folds. With a
    single fold it is that over the rows, from the scores of single rows in `values`, one array per column.
    """
    scores = scores[~np.isnan(scores[:, 1:]).all(axis=1)]
    if not len(scores):
        return False
    mean = scores.mean(axis=0)
    mean = np.where(np.isnan(mean), -np.inf, mean)
    best = int(np.argmax(mean[1:])) + 1
    has_learned = mean[best] - mean[0] > ALIKE * abs(mean[0]) and _is_better(scores, values, best, 0)
    if mean.size - 1 - best < TURNED or not has_learned:
        return False
    return all(_is_better(scores, values, best, place) for place in range(mean.size - TURNED, mean.size))


def _is_better(scores: np.ndarray, values: list[np.ndarray | None], one: int, other: int) -> bool:
    worse = scores[:, one] - scores[:, other]
    if len(worse) == 1:
        first, last = values[one], values[other]
        if first is None or last is None:
            return False
        worse = first - last
    return bool(worse.mean() > worse.std(ddof=1) / math.sqrt(len(worse)))


def stride(to_go: int, spent: float, left: float) -> int:
    """How many places to go on along a path: 1 if there is time for all penalties, more to skip some, 0 without time.

    `to_go` penalties are left and the last fit took `spent` seconds. The next ones are counted as twice that.
    """
    affordable = max(left, 0.0) / (2.0 * spent) if spent > 0 else math.inf
    return 0 if affordable < 1.0 else max(1, math.ceil(to_go / (1.0 + affordable)))


def mean_model(models: list[tuple[Array, Array]], problems: list[Problem]) -> tuple[Array, Array]:
    """The mean of the models of the folds, which stands for the model of all rows until that is fitted.

    For each class, only folds with rows of that class count, unless no fold has any.
    """
    xp, loss = problems[0].xp, problems[0].loss
    seen = xp.stack([one.target_mean > 0 for one in problems])
    seen = seen | ~xp.any(seen, axis=0)[None, :] | (not loss.domain.exclusive)
    share = xp.astype(seen, xp.float64)
    share = share / xp.sum(share, axis=0)[None, :]
    share = xp.astype(share, models[0][0].dtype)
    (W, b), *others = ((share[place, :][None, :] * W, share[place, :] * b) for place, (W, b) in enumerate(models))
    for coef, intercept in others:
        W, b = W + coef, b + intercept
    return W, b
