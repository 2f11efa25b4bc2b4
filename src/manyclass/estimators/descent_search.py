"""The search for a penalty by iterative fits at falling penalties, for losses that moments do not determine."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from manyclass.choice import descent, left_out
from manyclass.choice.descent import Descent, JointDescent
from manyclass.choice.frame import Frame, occurring
from manyclass.choice.methods import Method, choose
from manyclass.choice.relay import in_turn
from manyclass.choice.together import Together
from manyclass.curvature import Curvature
from manyclass.data.rows import BLOCK_BYTES, Array
from manyclass.estimators.penalty_search import PenaltySearch, Plan
from manyclass.fit import Iterate, Iterates, Outcome, Run, Status, restore
from manyclass.fit.folds import mean_scores
from manyclass.fit.run import OutOfTime
from manyclass.model import Problem

_TABLES = ("scores", "likelihoods", "paths", "n_iter")
SHARPER = 1e-3
"""Factor on tol for fits to few rows that are left out one by one."""
ScoreAndValues = tuple[float, np.ndarray | None]
"""The score of a model and, where a single set of rows judges, the scores of these rows."""


@dataclass
class Progress:
    """How far a search has come along its path. Checkpoints store it."""

    first: int  # place in `Plan.alphas` where the path begins
    places: list[int] = field(default_factory=list)  # of the penalties tried, in this order
    values: list[list[np.ndarray | None]] = field(default_factory=list)  # by penalty tried and scorer, scores of rows
    n_iter: float = 0.0  # most iterations of a fit
    objective: float = math.nan  # mean over the folds at the last penalty
    model: tuple[Array, Array] | None = None  # at the best penalty, the mean of the folds
    zero_scores: list[list[ScoreAndValues]] | None = None  # by scorer, of models without coefficients, one per fold
    is_late: bool = False  # whether the time was over before the end of the path


class DescentSearch(PenaltySearch):
    """From large to small penalties, all folds at once, until the score has turned."""

    def iterates(self) -> Iterates:
        plan, clock, saved = self.plan, self.task.clock, self.task.saved
        compact, _ = occurring(self.task.problem)
        leaves_each_out = plan.mode == "loo" or plan.leave_one_out
        # Left-out scores are Newton steps from the minimum. Fits to few rows are far from it even with a small gap, in
        # directions that the loss hardly sees.
        is_wide = compact.rows.n_rows <= 2 * compact.rows.n_features
        last_tol = self.tol * (SHARPER if is_wide and leaves_each_out else 1.0)
        tol = last_tol if plan.mode == "loo" else self.tol
        method = descent.path_method(compact, plan.alphas, tol, plan.n_splits) if saved is None else saved["method"]
        rotate = method.row_space or (leaves_each_out and left_out.wants_row_space(compact))
        left = clock.left - (3 * left_out.seconds_left_out(compact, rotated=rotate) if plan.mode == "loo" else 0.0)
        n_folds = descent.folds_in_time(method, plan.n_splits, left) if saved is None else saved["n_folds"]
        plan = self._with_folds(n_folds)
        # A penalty for each output, or generalised cross-validation, needs exact fits: without time there is no path.
        has_no_path = n_folds == 0 or (saved is None and (plan.per_output or plan.mode == "gcv"))
        problem = self._framed(method.row_space if has_no_path else rotate, leaves_each_out)
        curvature = descent.path_curvature(problem, method, self.task.rng)

        def begin(part: Problem, leader: Descent | None = None, tol: float = tol) -> Descent:
            is_joint = isinstance(part, Together)
            ratio = 1.0 if is_joint else self.alpha_of(1.0, part.total_weight)
            kind = JointDescent if is_joint else Descent
            return kind(part, curvature, clock, tol, self.max_iter, leader, problem, ratio)

        if has_no_path or (plan.mode == "loo" and saved is None and clock.max_time is not None):
            # There may be no time to leave out all rows even once, which comes long after the first fit.
            status = yield from self._fit_middle(begin(problem))
            if has_no_path or status in (Status.MAX_TIME, Status.INTERRUPTED):
                return Status.INTERRUPTED if status is Status.INTERRUPTED else Status.MAX_TIME
        descents = self._descents(begin, None if saved is None else len(saved["minima"]))
        place = descent.first_place(method, len(plan.alphas), n_folds, math.inf if plan.is_whole else left)
        progress = Progress(place) if saved is None else self._resume(saved, curvature, descents)
        last: Any = None
        for last in self._down(descents, progress):
            if saved is None:  # otherwise this iterate was yielded before
                state = partial(self._state, method, curvature, descents, progress) if progress.places else None
                yield replace(last[0], state=state)
            saved = None
        self._check_scores()
        status = Status.MAX_TIME if progress.is_late else None
        if not plan.refits:
            return status
        iterate, model = last
        ending = yield from self._fit_all(problem, last_tol, iterate, model, begin)
        return ending if ending is Status.INTERRUPTED else status or ending

    def _fit_all(
        self, problem: Problem, tol: float, last: Iterate, start: tuple[Array, Array], begin: Callable[..., Descent]
    ) -> Iterates:
        """The fit to all rows at the best penalty, and its left-out scores; `last` is the last iterate of the path."""
        outcome = self._refitted(problem, tol, start)
        passes = last.n_passes + outcome.n_passes
        record: dict[str, Any] = {
            "objective": outcome.history[-1].objective if outcome.history else last.objective,
            "n_iter": max(last.n_iter, outcome.n_iter),
            "duality_gap": outcome.duality_gap,
            "details": {"alpha": self.best_alpha, "score": float(np.nanmax(mean_scores(self.scores)))},
        }
        rank = -1.0 - len(self.plan.alphas)
        yield Iterate(lambda: self.selected(outcome.model), n_passes=passes, rank=rank, **record)
        if self.plan.leave_one_out and outcome.status not in (Status.MAX_TIME, Status.INTERRUPTED):
            more = self._left_out(begin(problem, tol=tol), outcome.model)
            yield Iterate(lambda: self.selected(outcome.model, **more), n_passes=passes + 2, rank=rank - 1, **record)
        return outcome.status

    def _with_folds(self, number: int) -> Plan:
        """The plan with the first `number` of its folds, if there is no time for all."""
        if 0 < number < self.plan.n_splits:
            self.plan = replace(self.plan, folds=self.plan.folds[:number])
            self.__post_init__()
        return self.plan

    def _framed(self, rotate: bool, leaves_each_out: bool) -> Problem:
        """Set the frame, and give its problem."""
        problem = self.task.problem
        # In float32, small curvatures beside a tiny penalty, and squares of small columns, would be rounding.
        wide = leaves_each_out and problem.rows.n_rows * problem.rows.row_bytes <= BLOCK_BYTES
        self.frame = Frame(problem, rotate=rotate, wide=wide and left_out.is_exact(problem), drops_empty=True)
        if leaves_each_out:
            left_out.check_room(self.frame.problem)
        return self.frame.problem

    def _descents(self, begin: Callable[..., Descent], n_saved: int | None) -> list[Descent]:
        """One descent of all folds together, or one for each fold, of which the first is the leader."""
        problem, weights = self.frame.problem, [fold.weight for fold in self.plan.folds]
        together = Together.pays(problem, weights) if n_saved is None else n_saved < len(weights)
        if together:
            descents = [begin(Together(problem, weights, partial(self.alpha_of, 1.0)))]
        else:
            first, *others = descent.of_folds(problem, weights)
            leader = begin(first)
            descents = [leader, *(begin(part, leader) for part in others)]
        for one in descents:
            one.problem.n_passes = 0
        return descents

    def _fit_middle(self, full: Descent) -> Iterates:
        """The fit to all rows at the middle penalty, if there is no time to compare three penalties."""
        alpha = float(self.plan.alphas[len(self.plan.alphas) // 2])
        outcome = full.attempt(alpha)
        objective = outcome.history[-1].objective if outcome.history else math.nan
        more: dict[str, Any] = {"duality_gap": outcome.duality_gap, "rank": 1.0, "details": {"alpha": alpha}}
        model = partial(self.selected, outcome.model, alpha)
        yield Iterate(model, objective, outcome.n_iter, outcome.n_passes, **more)
        return outcome.status

    def _refitted(self, problem: Problem, tol: float, start: tuple[Array, Array]) -> Outcome:
        """The fit to all rows at the best penalty, from the mean of the folds, by the methods for a single fit."""
        problem.alpha = self.best_alpha
        iterates = in_turn(choose(problem, tol), problem, self.task.rng, start, lambda _: None, clock=self.task.clock)
        return Run(self.task.clock, tol, self.max_iter)(iterates, lambda: start)

    def _left_out(self, full: Descent, model: tuple[Array, Array]) -> dict[str, Any]:
        """The fields of `Selected` that need left-out scores."""
        Z = left_out.left_out_scores(full.problem, *model, self.task.clock)
        fields: dict[str, Any] = {"left_out": left_out.mended(full, model, Z)}
        if self.plan.n_refits:
            fields["check"] = left_out.refits(full, model, self.plan.n_refits, self.task.rng)
        return fields

    def _state(
        self, method: Method, curvature: Curvature, descents: list[Descent], progress: Progress
    ) -> dict[str, Any]:
        """What a checkpoint stores after a penalty."""
        minima = [(list(one.known), one.problem.n_passes) for one in descents]
        state = {"method": method, "progress": progress, "minima": minima, "n_folds": self.plan.n_splits}
        tables = {name: getattr(self, name) for name in _TABLES}
        return state | tables | {"rng": self.task.rng, "curvature": curvature}

    def _resume(self, saved: dict[str, Any], curvature: Curvature, descents: list[Descent]) -> Progress:
        """Restore the state of another run, and give its progress."""
        self.task.rng.bit_generator.state = saved["rng"].bit_generator.state
        restore(curvature, saved["curvature"])
        for one, (minima, n_passes) in zip(descents, saved["minima"], strict=True):
            one.known.extend(minima)
            one.problem.n_passes = n_passes
        vars(self).update({name: saved[name] for name in _TABLES})
        return cast(Progress, saved["progress"])

    def _down(self, descents: list[Descent], progress: Progress) -> Iterator[tuple[Iterate, tuple[Array, Array]]]:
        """(iterate, best model so far on the rows of the frame) for each penalty, beginning with the last one tried."""
        plan, clock, place, spent = self.plan, self.task.clock, -1, 0.0
        while True:
            if progress.model is not None:
                place = progress.places[-1]
                details = {"alpha": float(plan.alphas[place]), "score": float(mean_scores(self.scores)[place])}
                passes = float(sum(one.problem.n_passes for one in descents))
                reached = partial(self.selected, progress.model), progress.objective, progress.n_iter, passes
                yield Iterate(*reached, rank=-float(place), details=details), progress.model
                has_turned = not plan.is_whole and self._has_turned(descents, progress)
                if has_turned or place + 1 == len(plan.alphas):
                    return
            started, left = clock.seconds, math.inf if plan.is_whole else clock.left
            to_go = len(plan.alphas) - 1 - place
            step = descent.stride(to_go, spent, left) if progress.places else progress.first + 1
            if step == 0:
                progress.is_late = True
                return
            place += step
            alpha = float(plan.alphas[place])
            try:
                outcomes = [outcome for one in descents for outcome in one.fits(alpha)]
            except (OutOfTime, KeyboardInterrupt):
                if not progress.places and descents[0].known:  # an unfinished fit is better than no model
                    yield self._unfinished(descents[0], alpha)
                raise
            self._enter(place, outcomes, descents, progress)
            spent = clock.seconds - started

    def _enter(self, place: int, outcomes: list[Outcome], descents: list[Descent], progress: Progress) -> None:
        """Enter the fits of all folds at a penalty into the tables of the search and into its progress."""
        for number, outcome in enumerate(outcomes):
            self.keep(number, place, outcome.model)
            self.n_iter[number, place] = outcome.n_iter
            judged = self._judged(number, descents[0].problem, outcome.model)
            for table, (score, _) in zip(self._tables, judged, strict=True):
                table[number, place] = score
        progress.values.append([values for _, values in judged])
        if progress.model is None or self.best_place == place:
            problems = [problem for one in descents for problem in one.problems]
            progress.model = descent.mean_model([outcome.model for outcome in outcomes], problems)
        progress.n_iter = max([progress.n_iter, *(outcome.n_iter for outcome in outcomes)])
        progress.objective = float(np.mean([outcome.history[-1].objective for outcome in outcomes]))
        progress.places.append(place)

    def _has_turned(self, descents: list[Descent], progress: Progress) -> bool:
        if len(progress.places) <= descent.TURNED:
            return False
        progress.zero_scores = progress.zero_scores or self._zero_scores(descents)
        # Accuracy alone may have turned while the likelihood still improves.
        return all(
            descent.has_turned(
                np.hstack([[[score] for score, _ in zero], table[:, progress.places]]),
                [zero[-1][1], *(values[number] for values in progress.values)],
            )
            for number, (table, zero) in enumerate(zip(self._tables, progress.zero_scores, strict=True))
        )

    @property
    def _tables(self) -> list[np.ndarray]:
        """The scores by each of `scorers`."""
        return [self.scores, self.likelihoods][: len(self.scorers)]

    def _zero_scores(self, descents: list[Descent]) -> list[list[ScoreAndValues]]:
        """By scorer, the scores of models without coefficients, one per fold."""
        models = [model for one in descents for model in one.models_at(one.problem.constant_model())]
        if self.plan.mode == "loo":
            W, b = models[0]
            judged = [self._judged_left_out(b + 0.0 * self.frame.problem.rows.matmat(W))]
        else:
            judged = [self._judged(number, descents[0].problem, model) for number, model in enumerate(models)]
        return [list(of_scorer) for of_scorer in zip(*judged, strict=True)]

    def _unfinished(self, first: Descent, alpha: float) -> tuple[Iterate, tuple[Array, Array]]:
        """The model of a fit to the first penalty that was cut short, as `_down` would yield it."""
        problem, model = first.problem, first.model_at(first.known[-1][1])
        return Iterate(lambda: self.selected(model, alpha), math.nan, 0, problem.n_passes, rank=1.0), model

    def _judged(self, number: int, problem: Problem, model: tuple[Array, Array]) -> list[ScoreAndValues]:
        """The scores of the model of a fold, by each scorer."""
        if self.plan.mode == "loo":
            return self._judged_left_out(left_out.left_out_scores(problem, *model, self.task.clock))
        fold = self.plan.folds[number]
        truth, weight = self.truth_and_weight(fold)
        Z = self.frame.scores(fold, *model)
        judged = [scorer.judged(Z, truth, weight) for scorer in self.scorers]
        return judged if self.plan.n_splits == 1 else [(score, None) for score, _ in judged]

    def _judged_left_out(self, Z: Array) -> list[ScoreAndValues]:
        truth, weight = self.scorer.truth(slice(None)), self.plan.judging_weight
        return [scorer.judged(Z, truth, weight) for scorer in self.scorers]
