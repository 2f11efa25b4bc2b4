"""Models along falling penalties, each started from where the last ones point to."""

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
"""Passes that a fit with a predicted start is expected to take, over the square root of those of a single one: what a
worse metric is slow to find is what the last penalties have found."""
TURNED = 2
"""Penalties in a row at which the score has to be worse, by more than a standard error, before the search ends."""
CURVED = 0.1
"""Share of the zero model's objective below which rows are all but fitted, and hardly hold a minimum any more."""
LEAST = 1e-15
"""Share of the zero model's objective below which gaps are rounding."""
COPIES_SHARE = 0.25
"""Of what memory there is, up to which the rows of each fold are copied."""


def path_method(problem: Problem, alphas: np.ndarray, tol: float, n_paths: int) -> Method:
    """The curvature for a whole path: it is set up once, and looked at anew for each penalty."""
    problem.alpha = float(np.exp(np.log(alphas).mean()))
    candidates = [one for one in choose(problem, tol, QuasiNewton()).candidates if one.fits]

    def seconds(one: Method) -> float:
        looks = 1.0 + len(alphas) / one.looks
        return looks * one.set_up + max(one.passes * one.per_pass, seconds_of_path(one, len(alphas), n_paths))

    return min(candidates, key=seconds)


def seconds_of_path(method: Method, n_alphas: int, n_paths: int) -> float:
    """Of fits that each begin near where they end."""
    return WARM * math.sqrt(method.passes) * n_alphas * n_paths * method.per_pass


def folds_in_time(method: Method, n_folds: int, left: float) -> int:
    """Of which three penalties can be compared, and all rows be fitted to with the best; 0 where of none."""
    of_one = seconds_of_path(method, 3, 1)
    return n_folds if n_folds * of_one <= left else max(int(left / of_one) - 1, 0)


def first_place(method: Method, n_alphas: int, n_folds: int, left: float) -> int:
    """The largest penalty, or the middle one where there is no time for all: the largest alone tell next to nothing."""
    return 0 if seconds_of_path(method, n_alphas, n_folds) <= left else n_alphas // 2


def path_curvature(problem: Problem, method: Method, rng: np.random.Generator) -> Curvature:
    """One that all fits share; it is looked at before a fit, and starts are near enough."""
    kind = CURVATURES[method.curvature]
    problem.centred = kind.center
    return kind(problem, rng)


@dataclass
class Descent:
    """The minima of one problem for falling penalties.

    A start is extrapolated from the last two minima, linearly in log alpha: W grows like log(1/alpha) where the rows
    can be separated, and hardly changes any more where they cannot. What a leader, whose rows are nearly the same,
    found wrong with its own start is mended in those behind it. The curvature is looked at anew by the leader, and only
    between the classes; what it knows of the features serves every penalty and every fold.

    The ``alpha`` of the problem is set here. Its curvature may be shared with problems of other weights: any positive
    definite one is a metric. The leader is always fitted first, in the same curvature, at which it looks by the `whole`
    problem of all rows where there is one.

    Fits for a comparison end at gaps relative to what they reach, where that is little. At tiny penalties of rows that
    can be separated it is a thousandth of the zero model's, and a fit cut short has the scores of a larger penalty.
    `fits` multiplies its penalty by the `ratio`.
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
        # A metric that others share was estimated from rows that are not all here.
        ending = NewtonCG(refreshes=self.whole is None or self.whole is self.problem)
        self.solver: Solver = QuasiNewton(frozenset(), ending)

    @property
    def problems(self) -> list[Problem]:
        """Those side by side, of which there is one."""
        return [self.problem]

    def fits(self, alpha: float) -> list[Outcome]:
        """Of each of the problems side by side."""
        return [self.fit(alpha * self.ratio)]

    def fit(self, alpha: float, start: tuple[Array, Array] | None = None) -> Outcome:
        """The model at `alpha`, from W and b or from those before.

        Raises `OutOfTime` and `KeyboardInterrupt` where the fit was cut short by these.
        """
        outcome = self.attempt(alpha, start, settles=True)
        if outcome.status is Status.MAX_TIME:
            raise OutOfTime
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return outcome

    def attempt(self, alpha: float, start: tuple[Array, Array] | None = None, *, settles: bool = False) -> Outcome:
        """As `fit`, with the model there is where the fit was cut short.

        With `settles` it stops, too, where `LOOKS_BACK` iterations (one of Newton's method) lower the objective by less
        than a tenth of `tol`: the gap bounds what is left only loosely for tiny penalties, and for a comparison of
        penalties the rest is noise.
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
        """W and b of each of the problems side by side."""
        return [self.problem.coefficients(theta)]

    def model_at(self, theta: Array) -> tuple[Array, Array]:
        """The mean of these, at which their common curvature is."""
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
        # What a leader knows of rows that judge here, in directions that no row here has, only the penalty would take
        # away, and not before the fit ends. Rows that are fitted hardly have any.
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
        # What rows of other folds tell of a class that is in none of these, no gradient would take away.
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
    """The minima of problems on the same rows, all at once.

    In one metric, and each with pairs of its own. So a pass over the rows serves all, and what it takes beside its
    products is taken once. Where that is slow, each is finished by itself.
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
        # Where the Hessian itself leads no further, rounding is all there is.
        if outcome.status is not Status.STALLED or self.curvature.local:
            last = replace(outcome.history[-1], objective=outcome.history[-1].objective / len(models))
            return [replace(outcome, model=model, history=[last]) for model in models]
        if not self._singles:  # each by itself, with the first as the leader of the others
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
    """From the constant models, as each of the problems would have to be looked at for more."""

    begins_constant = True


def of_folds(problem: Problem, weights: list[Array | None]) -> list[Problem]:
    """The problem of each fold: of its rows alone, where there is room for these, as others would be read for nothing.

    One of all rows where there are no folds.
    """
    rows, xp = problem.rows, problem.xp
    index = [present_rows(rows.n_rows, weight) for weight in weights]
    room = room_for(problem.memory_limit)
    has_room = sum(map(len, index)) * rows.row_bytes <= COPIES_SHARE * room
    found = []
    for weight, own in zip(weights, index, strict=True):
        if weight is None or len(own) == rows.n_rows or not has_room:
            found.append(problem.variant(weight=weight))
            continue
        of_own = xp.take(weight, rows.asarray(own, xp.int64))
        of_own = None if bool(xp.all(of_own == 1.0)) else of_own
        found.append(problem.variant(rows=rows.take(own), targets=problem.targets.take(own), weight=of_own))
    return found or [problem.variant()]


def has_turned(scores: np.ndarray, values: list[np.ndarray | None]) -> bool:
    """Whether the last `TURNED` scores are each worse than the best by more than a standard error of the difference.

    Scores, larger for better, have shape (n_folds, n_alphas), the first of which are those of models without a
    coefficient: as long as none is clearly better there is nothing to turn from. The standard error is taken from the
    `values` of single rows for each alpha where there is one fold, and these are known.
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
    """How far on the next penalty of a path is: one, or as many as the seconds that are left ask for; 0 without time.

    The next ones take longer than the last, and are counted twice.
    """
    affordable = max(left, 0.0) / (2.0 * spent) if spent > 0 else math.inf
    return 0 if affordable < 1.0 else max(1, math.ceil(to_go / (1.0 + affordable)))


def mean_model(models: list[tuple[Array, Array]], problems: list[Problem]) -> tuple[Array, Array]:
    """Of the models of the folds: what stands for that of all rows until it is fitted.

    What a fold without rows of a class says of that class counts only where none has any.
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
