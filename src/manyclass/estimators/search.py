"""The search for a penalty: models along a path, judged by rows they have not seen, and the model that is kept."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from manyclass.choice.descent import (
    TURNED,
    Descent,
    JointDescent,
    has_turned,
    mean_model,
    of_folds,
    path_curvature,
    path_method,
    seconds_of_path,
    stride,
)
from manyclass.choice.frame import Frame, occurring
from manyclass.choice.left_out import (
    Check,
    check_room,
    is_exact,
    left_out_scores,
    mended,
    refits,
    seconds_left_out,
    wants_row_space,
)
from manyclass.choice.methods import Method, choose
from manyclass.choice.relay import in_turn
from manyclass.choice.together import Together
from manyclass.curvature import Curvature
from manyclass.data.labels import Labels
from manyclass.data.rows import BLOCK_BYTES, Array, to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.judge import Judge
from manyclass.fit import Iterate, Iterates, Outcome, Run, Status, restore
from manyclass.fit.folds import Fold, known_to_fold, mean_scores, of_known
from manyclass.fit.run import OutOfTime
from manyclass.model import Problem

_TABLES = ("scores", "likelihoods", "paths", "n_iter")
SHARPER = 1e-3
"""Of tol, for fits to few rows that are left out one by one."""
PATH_BYTES = 1 << 28
"""Memory up to which the coefficients of every fold and penalty are kept."""


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    alphas: np.ndarray  # descending
    folds: list[Fold]  # empty where every row is left out in turn
    outside: Labels | None  # of rows that were given to judge
    mode: str  # "folds", "loo" or "gcv"
    per_output: bool
    leave_one_out: bool
    n_refits: int
    judging_weight: np.ndarray | None = None  # of the rows of the fit where they judge
    of_sums: bool = False  # alphas are of a sum over all rows: alpha·S/S_f in a fold whose rows weigh S_f
    is_whole: bool = False  # every alpha is tried, where the score has turned too
    by_known: bool = False  # rows of classes that no row of a fold is fitted to do not judge there
    refits: bool = True  # to all rows, with the best penalty; else the model is the mean of those of the folds

    @property
    def n_judged(self) -> int:
        """Rows of ``scores_``."""
        return max(len(self.folds), 1)


@dataclass(frozen=True)
class Selected:
    """A model, and what is known of the others."""

    coef: Array
    intercept: Array
    alpha: float | np.ndarray
    alphas: np.ndarray
    scores: np.ndarray
    paths: np.ndarray | None
    n_iter: np.ndarray
    left_out: Array | None = None
    check: Check | None = None


@dataclass
class Search(ABC):
    """Yields the best model so far after each step; how the models come about is for subclasses to say."""

    task: Task
    judge: Judge
    plan: Plan
    tol: float
    max_iter: int
    frame: Frame = field(init=False)
    scores: np.ndarray = field(init=False)
    likelihoods: np.ndarray = field(init=False)
    judges: list[Judge] = field(init=False)
    n_iter: np.ndarray = field(init=False)
    paths: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        problem, plan = self.task.problem, self.plan
        shape: tuple[int, ...] = (plan.n_judged, len(plan.alphas))
        self.scores = np.full((*shape, problem.n_outputs) if plan.per_output else shape, np.nan)
        # A search that does not end early needs no second opinion.
        self.likelihoods, likelihood = np.full(shape, np.nan), None if plan.is_whole else self.judge.of_likelihood()
        self.judges = [self.judge] if likelihood is None else [self.judge, likelihood]
        self.n_iter = np.ones(shape, dtype=np.int32)
        of_one = (problem.n_outputs, problem.rows.n_features + problem.fit_intercept)
        if np.prod([*shape, *of_one], dtype=float) * problem.rows.itemsize <= PATH_BYTES:
            dtype = to_numpy(problem.rows.zeros((0,))).dtype
            self.paths = np.full((*shape, *of_one), np.nan, dtype=dtype)

    @abstractmethod
    def iterates(self) -> Iterates:
        """From the first model to the one that is kept."""

    @property
    def best_place(self) -> Any:
        """In `alphas`, of the largest with the best mean score: one, or one for each output."""
        mean = mean_scores(self.scores)
        return np.argmax(np.where(np.isnan(mean), -np.inf, mean), axis=0)

    @property
    def best_alpha(self) -> Any:
        return self.plan.alphas[self.best_place] if self.plan.per_output else float(self.plan.alphas[self.best_place])

    def selected(self, model: tuple[Array, Array], alpha: Any = None, **more: Any) -> Selected:
        """The model, of the rows of the frame, with all that was found."""
        found = self.best_alpha if alpha is None else alpha
        if self.plan.per_output:
            found = np.broadcast_to(found, (self.task.problem.n_outputs,)).copy()
        paths = None if self.paths is None else self.paths.copy()
        scores, n_iter = self.scores.copy(), self.n_iter.copy()
        return Selected(*self.frame.lift(*model), found, self.plan.alphas, scores, paths, n_iter, **more)

    def alpha_of(self, alpha: float, weight: float) -> float:
        """The penalty of a mean over rows that weigh so much."""
        return float(alpha) * (self.task.problem.total_weight / weight if self.plan.of_sums else 1.0)

    def keep(self, fold: int, place: int, model: tuple[Array, Array]) -> None:
        """Enter a model into the path."""
        if self.paths is None:
            return
        W, b = (to_numpy(part) for part in self.frame.lift(*model))
        self.paths[fold, place] = np.hstack([W.T, b[:, None]]) if self.task.problem.fit_intercept else W.T

    def truth_and_weight(self, fold: Fold) -> tuple[np.ndarray, np.ndarray | None]:
        if fold.rows is not None:
            return self.judge.truth(fold.index, self.plan.outside), None
        weight, truth = self.plan.judging_weight, self.judge.truth(slice(None))
        weight = None if weight is None else weight[fold.index]
        if self.plan.by_known and truth.ndim == 1:
            weight = of_known(weight, known_to_fold(truth, fold))
        return truth[fold.index], weight

    def _check_scores(self) -> None:
        if np.isnan(self.scores).all():
            raise ValueError(
                f"scoring={self.judge.scoring!r} gives no number on any fold, as where no class or only one is among "
                "the rows that judge; take folds that hold every class (cv=5), or another scoring."
            )


class DescentSearch(Search):
    """From large to small penalties, all folds at once, until the score has turned."""

    def iterates(self) -> Iterates:
        plan, clock, saved = self.plan, self.task.clock, self.task.saved
        given, _ = occurring(self.task.problem)
        # A step for each row left out is one from the minimum, which fits to few rows are far from though their gap is
        # small: what tells them from it are directions that the loss hardly sees.
        is_wide = given.rows.n_rows <= 2 * given.rows.n_features
        leaves_each_out = plan.mode == "loo" or plan.leave_one_out
        last_tol = self.tol * (SHARPER if is_wide and leaves_each_out else 1.0)
        tol = last_tol if plan.mode == "loo" else self.tol
        method = path_method(given, plan.alphas, tol, plan.n_judged) if saved is None else saved["method"]
        rotate = method.row_space or (leaves_each_out and wants_row_space(given))
        needed = seconds_of_path(method, 3, plan.n_judged)
        needed += 3 * seconds_left_out(given, rotated=rotate) if plan.mode == "loo" else 0.0
        # One penalty for each output, or one for the least generalised error, takes the whole path.
        is_short = saved is None and (needed > clock.left or plan.per_output or plan.mode == "gcv")
        problem = self._framed(method.row_space if is_short else rotate, leaves_each_out)
        curvature = path_curvature(problem, method, self.task.rng)

        def descent(one: Problem, leader: Descent | None = None, tol: float = tol) -> Descent:
            kind, given = JointDescent if isinstance(one, Together) else Descent, (clock, tol, self.max_iter)
            ratio = 1.0 if isinstance(one, Together) else self.alpha_of(1.0, one.total_weight)
            return kind(one, curvature, *given, leader, problem, ratio)

        if is_short or (plan.mode == "loo" and saved is None and clock.max_time is not None):
            # In case there is no time to leave out all rows once, which is long after the fit.
            status = yield from self._middle(descent(problem))
            if is_short or status in (Status.MAX_TIME, Status.INTERRUPTED):
                return Status.INTERRUPTED if status is Status.INTERRUPTED else Status.MAX_TIME
        descents = self._descents(descent, None if saved is None else len(saved["minima"]))
        for one in descents:
            one.problem.n_passes = 0
        known: dict[str, Any] = {"tried": [], "n_iter": 0, "objective": math.nan, "kept": None, "values": []}
        if saved is not None:
            known = self._resume(saved, curvature, descents)
        last: Any = None
        state = partial(self._state, method, curvature, descents, known)
        for last in self._down(descents, known):
            if saved is None:  # else it is the one that has been yielded before
                yield replace(last[0], state=state if known["tried"] else None)
            saved = None
        self._check_scores()
        if not plan.refits:
            return None
        start = last[1]
        outcome = self._refitted(problem, last_tol, start)
        passes = last[0].n_passes + outcome.n_passes
        record = {
            "objective": outcome.history[-1].objective if outcome.history else last[0].objective,
            "n_iter": max(last[0].n_iter, outcome.n_iter),
            "duality_gap": outcome.duality_gap,
            "details": {"alpha": self.best_alpha, "score": float(np.nanmax(mean_scores(self.scores)))},
        }
        rank = -1.0 - len(plan.alphas)
        yield Iterate(lambda: self.selected(outcome.model), n_passes=passes, rank=rank, **record)
        if outcome.status in (Status.MAX_TIME, Status.INTERRUPTED):
            return outcome.status
        if plan.leave_one_out:
            more = self._left_out(descent(problem, tol=last_tol), outcome.model)
            yield Iterate(lambda: self.selected(outcome.model, **more), n_passes=passes + 2, rank=rank - 1, **record)
        return outcome.status

    def _framed(self, rotate: bool, leaves_each_out: bool) -> Problem:
        """The problem that is fitted to, of the frame that is set."""
        given = self.task.problem
        # What a tiny penalty leaves of the curvature, and squares of small columns, are rounding in float32.
        is_small = given.rows.n_rows * given.rows.row_bytes <= BLOCK_BYTES
        self.frame = Frame(
            given, rotate=rotate, wide=leaves_each_out and is_small and is_exact(given), drops_empty=True
        )
        if leaves_each_out:
            check_room(self.frame.problem)
        return self.frame.problem

    def _descents(self, descent: Callable[..., Descent], n_saved: int | None) -> list[Descent]:
        """One of all folds, or one for each with the first as their leader."""
        problem, weights = self.frame.problem, [fold.weight for fold in self.plan.folds]
        together = Together.pays(problem, weights) if n_saved is None else n_saved < len(weights)
        if together:
            return [descent(Together(problem, weights, partial(self.alpha_of, 1.0)))]
        first, *others = of_folds(problem, weights)
        leader = descent(first)
        return [leader, *(descent(one, leader) for one in others)]

    def _middle(self, full: Descent) -> Iterates:
        """Where there is no time to compare three penalties: the middle one, of all rows."""
        alpha = float(self.plan.alphas[len(self.plan.alphas) // 2])
        found = full.attempt(alpha)
        last = found.history[-1].objective if found.history else math.nan
        more: dict[str, Any] = {"duality_gap": found.duality_gap, "rank": 1.0, "details": {"alpha": alpha}}
        yield Iterate(lambda: self.selected(found.model, alpha), last, found.n_iter, found.n_passes, **more)
        return found.status

    def _refitted(self, problem: Problem, tol: float, start: tuple[Array, Array]) -> Outcome:
        """To all rows with the best penalty, by the methods that are right for this one fit, from the mean of folds."""
        problem.alpha = self.best_alpha
        iterates = in_turn(choose(problem, tol), problem, self.task.rng, start, lambda _: None, clock=self.task.clock)
        return Run(self.task.clock, tol, self.max_iter)(iterates, lambda: start)

    def _left_out(self, full: Descent, model: tuple[Array, Array]) -> dict[str, Any]:
        Z = left_out_scores(full.problem, *model, self.task.clock)
        found: dict[str, Any] = {"left_out": mended(full, model, Z)}
        if self.plan.n_refits:
            found["check"] = refits(full, model, self.plan.n_refits, self.task.rng)
        return found

    def _state(
        self, method: Method, curvature: Curvature, descents: list[Descent], known: dict[str, Any]
    ) -> dict[str, Any]:
        """All that a run has to know to go on after a penalty."""
        minima = [(list(one.known), one.problem.n_passes) for one in descents]
        held = {name: getattr(self, name) for name in _TABLES}
        return {"method": method, "down": known, "minima": minima, "rng": self.task.rng, "curvature": curvature, **held}

    def _resume(self, saved: dict[str, Any], curvature: Curvature, descents: list[Descent]) -> dict[str, Any]:
        """Bring everything to where it was in another run, and what `_down` knew there."""
        self.task.rng.bit_generator.state = saved["rng"].bit_generator.state
        restore(curvature, saved["curvature"])
        for one, (minima, n_passes) in zip(descents, saved["minima"], strict=True):
            one.known.extend(minima)
            one.problem.n_passes = n_passes
        vars(self).update({name: saved[name] for name in _TABLES})
        return dict(saved["down"])

    def _down(self, descents: list[Descent], known: dict[str, Any]) -> Iterator[tuple[Iterate, tuple[Array, Array]]]:
        """(an iterate, the best model so far of the rows of the frame) for each penalty; the last known one first."""
        plan, clock, place, spent = self.plan, self.task.clock, -1, 0.0
        while True:
            tried, values, kept = known["tried"], known["values"], known["kept"]
            if tried:
                place = tried[-1]
                details = {"alpha": float(plan.alphas[place]), "score": float(mean_scores(self.scores)[place])}
                passes = float(sum(one.problem.n_passes for one in descents))
                counts = {"n_iter": known["n_iter"], "n_passes": passes, "rank": -float(place), "details": details}
                yield Iterate(partial(self.selected, kept), known["objective"], **counts), kept
                turned = not plan.is_whole and self._has_turned(descents, known)
                if turned or place + 1 == len(plan.alphas):
                    return
            started, left = clock.seconds, math.inf if plan.is_whole else clock.left
            place += stride(len(plan.alphas) - 1 - place, spent, left)
            alpha = plan.alphas[place]
            try:
                outcomes = [found for one in descents for found in one.fits(float(alpha))]
            except (OutOfTime, KeyboardInterrupt):
                if not tried and descents[0].known:  # what the first fit has come to is better than nothing
                    yield self._unfinished(descents[0], float(alpha))
                raise
            for number, outcome in enumerate(outcomes):
                self.keep(number, place, outcome.model)
                self.n_iter[number, place] = outcome.n_iter
                judged = self._judged(number, descents[0].problem, outcome.model)
                for table, (score, _) in zip(self._tables, judged, strict=True):
                    table[number, place] = score
            values.append([of_rows for _, of_rows in judged])
            if kept is None or self.best_place == place:
                problems = [problem for one in descents for problem in one.problems]
                kept = mean_model([outcome.model for outcome in outcomes], problems)
            n_iter = max([known["n_iter"], *(outcome.n_iter for outcome in outcomes)])
            objective = float(np.mean([outcome.history[-1].objective for outcome in outcomes]))
            tried.append(place)
            spent = clock.seconds - started
            known.update(kept=kept, n_iter=n_iter, objective=objective)

    def _has_turned(self, descents: list[Descent], known: dict[str, Any]) -> bool:
        tried = known["tried"]
        if len(tried) <= TURNED:
            return False
        if "nothing" not in known:
            known["nothing"] = self._of_nothing(descents)
        # Short models may be right as often as good ones: what a smaller penalty improves they are not.
        return all(
            has_turned(
                np.hstack([[[score] for score, _ in nothing], table[:, tried]]),
                [nothing[-1][1], *(values[place] for values in known["values"])],
            )
            for place, (table, nothing) in enumerate(zip(self._tables, known["nothing"], strict=True))
        )

    @property
    def _tables(self) -> list[np.ndarray]:
        """Of each judge."""
        return [self.scores, self.likelihoods][: len(self.judges)]

    def _of_nothing(self, descents: list[Descent]) -> list[list[tuple[float, np.ndarray | None]]]:
        """By each judge, of each fold: how good a model without a coefficient is."""
        models = [model for one in descents for model in one.models_at(one.problem.constant_model())]
        if self.plan.mode == "loo":
            W, b = models[0]
            found = [self._judged_left_out(b + 0.0 * self.frame.problem.rows.matmat(W))]
        else:
            found = [self._judged(number, descents[0].problem, model) for number, model in enumerate(models)]
        return [list(of_judge) for of_judge in zip(*found, strict=True)]

    def _unfinished(self, first: Descent, alpha: float) -> tuple[Iterate, tuple[Array, Array]]:
        """The model of a fit to the first penalty that was cut short, as `_down` would yield it."""
        problem, model = first.problem, first.model_at(first.known[-1][1])
        return Iterate(lambda: self.selected(model, alpha), math.nan, 0, problem.n_passes, rank=1.0), model

    def _judged(
        self, number: int, problem: Problem, model: tuple[Array, Array]
    ) -> list[tuple[float, np.ndarray | None]]:
        """By each judge: the score of a model, and those of single rows where there is one fold."""
        if self.plan.mode == "loo":
            return self._judged_left_out(left_out_scores(problem, *model, self.task.clock))
        fold, is_one = self.plan.folds[number], self.plan.n_judged == 1
        truth, weight = self.truth_and_weight(fold)
        Z = self.frame.scores(fold, *model)
        return [
            (one.score(Z, truth, weight), _values(one, Z, truth, weight) if is_one else None) for one in self.judges
        ]

    def _judged_left_out(self, Z: Array) -> list[tuple[float, np.ndarray | None]]:
        truth, weight = self.judge.truth(slice(None)), self.plan.judging_weight
        return [(one.score(Z, truth, weight), _values(one, Z, truth, weight)) for one in self.judges]


def _values(judge: Judge, Z: Array, truth: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
    """The scores of the rows that count."""
    values = judge.values(Z, truth)
    return values if values is None or weight is None else values[weight > 0]
