"""The search for a penalty by iterative fits at falling penalties, for losses that moments do not determine."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

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


class DescentSearch(PenaltySearch):
    """From large to small penalties, all folds at once, until the score has turned."""

    def iterates(self) -> Iterates:
        plan, clock, saved = self.plan, self.task.clock, self.task.saved
        given, _ = occurring(self.task.problem)
        # Left-out scores are Newton steps from the minimum. Fits to few rows are far from it even with a small gap, in
        # directions that the loss hardly sees.
        is_wide = given.rows.n_rows <= 2 * given.rows.n_features
        leaves_each_out = plan.mode == "loo" or plan.leave_one_out
        last_tol = self.tol * (SHARPER if is_wide and leaves_each_out else 1.0)
        tol = last_tol if plan.mode == "loo" else self.tol
        method = descent.path_method(given, plan.alphas, tol, plan.n_judged) if saved is None else saved["method"]
        rotate = method.row_space or (leaves_each_out and left_out.wants_row_space(given))
        left = clock.left - (3 * left_out.seconds_left_out(given, rotated=rotate) if plan.mode == "loo" else 0.0)
        n_folds = descent.folds_in_time(method, plan.n_judged, left) if saved is None else saved["n_folds"]
        plan = self._of_folds(n_folds)
        # A penalty for each output, or generalised cross-validation, needs exact fits: without time there is no path.
        is_short = n_folds == 0 or (saved is None and (plan.per_output or plan.mode == "gcv"))
        problem = self._framed(method.row_space if is_short else rotate, leaves_each_out)
        curvature = descent.path_curvature(problem, method, self.task.rng)

        def begin(one: Problem, leader: Descent | None = None, tol: float = tol) -> Descent:
            kind, given = JointDescent if isinstance(one, Together) else Descent, (clock, tol, self.max_iter)
            ratio = 1.0 if isinstance(one, Together) else self.alpha_of(1.0, one.total_weight)
            return kind(one, curvature, *given, leader, problem, ratio)

        if is_short or (plan.mode == "loo" and saved is None and clock.max_time is not None):
            # There may be no time to leave out all rows even once, which comes long after the first fit.
            status = yield from self._middle(begin(problem))
            if is_short or status in (Status.MAX_TIME, Status.INTERRUPTED):
                return Status.INTERRUPTED if status is Status.INTERRUPTED else Status.MAX_TIME
        descents = self._descents(begin, None if saved is None else len(saved["minima"]))
        known: dict[str, Any] = {"tried": [], "n_iter": 0, "objective": math.nan, "kept": None, "values": []}
        known["first"] = descent.first_place(method, len(plan.alphas), n_folds, math.inf if plan.is_whole else left)
        if saved is not None:
            known = self._resume(saved, curvature, descents)
        last: Any = None
        state = partial(self._state, method, curvature, descents, known)
        for last in self._down(descents, known):
            if saved is None:  # otherwise this iterate was yielded before
                yield replace(last[0], state=state if known["tried"] else None)
            saved = None
        self._check_scores()
        status = Status.MAX_TIME if known.get("is_late") else None
        if not plan.refits:
            return status
        outcome = self._refitted(problem, last_tol, last[1])
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
            more = self._left_out(begin(problem, tol=last_tol), outcome.model)
            yield Iterate(lambda: self.selected(outcome.model, **more), n_passes=passes + 2, rank=rank - 1, **record)
        return status or outcome.status

    def _of_folds(self, number: int) -> Plan:
        """The plan with the first `number` of its folds, if there is no time for all."""
        if 0 < number < self.plan.n_judged:
            self.plan = replace(self.plan, folds=self.plan.folds[:number])
            self.__post_init__()
        return self.plan

    def _framed(self, rotate: bool, leaves_each_out: bool) -> Problem:
        """Set the frame. Gives its problem, which is fitted to."""
        given = self.task.problem
        # In float32, small curvatures beside a tiny penalty, and squares of small columns, would be rounding.
        is_small = given.rows.n_rows * given.rows.row_bytes <= BLOCK_BYTES
        self.frame = Frame(
            given, rotate=rotate, wide=leaves_each_out and is_small and left_out.is_exact(given), drops_empty=True
        )
        if leaves_each_out:
            left_out.check_room(self.frame.problem)
        return self.frame.problem

    def _descents(self, begin: Callable[..., Descent], n_saved: int | None) -> list[Descent]:
        """One descent of all folds together, or one for each fold, of which the first is the leader."""
        problem, weights = self.frame.problem, [fold.weight for fold in self.plan.folds]
        together = Together.pays(problem, weights) if n_saved is None else n_saved < len(weights)
        if together:
            found = [begin(Together(problem, weights, partial(self.alpha_of, 1.0)))]
        else:
            first, *others = descent.of_folds(problem, weights)
            leader = begin(first)
            found = [leader, *(begin(one, leader) for one in others)]
        for one in found:
            one.problem.n_passes = 0
        return found

    def _middle(self, full: Descent) -> Iterates:
        """The fit to all rows at the middle penalty, if there is no time to compare three penalties."""
        alpha = float(self.plan.alphas[len(self.plan.alphas) // 2])
        found = full.attempt(alpha)
        last = found.history[-1].objective if found.history else math.nan
        more: dict[str, Any] = {"duality_gap": found.duality_gap, "rank": 1.0, "details": {"alpha": alpha}}
        yield Iterate(lambda: self.selected(found.model, alpha), last, found.n_iter, found.n_passes, **more)
        return found.status

    def _refitted(self, problem: Problem, tol: float, start: tuple[Array, Array]) -> Outcome:
        """The fit to all rows at the best penalty, from the mean of the folds, by the methods for a single fit."""
        problem.alpha = self.best_alpha
        iterates = in_turn(choose(problem, tol), problem, self.task.rng, start, lambda _: None, clock=self.task.clock)
        return Run(self.task.clock, tol, self.max_iter)(iterates, lambda: start)

    def _left_out(self, full: Descent, model: tuple[Array, Array]) -> dict[str, Any]:
        Z = left_out.left_out_scores(full.problem, *model, self.task.clock)
        found: dict[str, Any] = {"left_out": left_out.mended(full, model, Z)}
        if self.plan.n_refits:
            found["check"] = left_out.refits(full, model, self.plan.n_refits, self.task.rng)
        return found

    def _state(
        self, method: Method, curvature: Curvature, descents: list[Descent], known: dict[str, Any]
    ) -> dict[str, Any]:
        """What a checkpoint stores after a penalty."""
        minima = [(list(one.known), one.problem.n_passes) for one in descents]
        held = {name: getattr(self, name) for name in _TABLES} | {"n_folds": self.plan.n_judged}
        return {"method": method, "down": known, "minima": minima, "rng": self.task.rng, "curvature": curvature, **held}

    def _resume(self, saved: dict[str, Any], curvature: Curvature, descents: list[Descent]) -> dict[str, Any]:
        """Restore the state of another run. Gives what `_down` knew there."""
        self.task.rng.bit_generator.state = saved["rng"].bit_generator.state
        restore(curvature, saved["curvature"])
        for one, (minima, n_passes) in zip(descents, saved["minima"], strict=True):
            one.known.extend(minima)
            one.problem.n_passes = n_passes
        vars(self).update({name: saved[name] for name in _TABLES})
        return dict(saved["down"])

    def _down(self, descents: list[Descent], known: dict[str, Any]) -> Iterator[tuple[Iterate, tuple[Array, Array]]]:
        """(iterate, best model so far on the rows of the frame) for each penalty, beginning with the last one known."""
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
            step = descent.stride(len(plan.alphas) - 1 - place, spent, left) if tried else known["first"] + 1
            place += step
            if step == 0:
                known["is_late"] = True
                return
            alpha = plan.alphas[place]
            try:
                outcomes = [found for one in descents for found in one.fits(float(alpha))]
            except (OutOfTime, KeyboardInterrupt):
                if not tried and descents[0].known:  # an unfinished fit is better than no model
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
                kept = descent.mean_model([outcome.model for outcome in outcomes], problems)
            n_iter = max([known["n_iter"], *(outcome.n_iter for outcome in outcomes)])
            objective = float(np.mean([outcome.history[-1].objective for outcome in outcomes]))
            tried.append(place)
            spent = clock.seconds - started
            known.update(kept=kept, n_iter=n_iter, objective=objective)

    def _has_turned(self, descents: list[Descent], known: dict[str, Any]) -> bool:
        tried = known["tried"]
        if len(tried) <= descent.TURNED:
            return False
        if "nothing" not in known:
            known["nothing"] = self._of_nothing(descents)
        # Accuracy alone may have turned while the likelihood still improves.
        return all(
            descent.has_turned(
                np.hstack([[[score] for score, _ in nothing], table[:, tried]]),
                [nothing[-1][1], *(values[place] for values in known["values"])],
            )
            for place, (table, nothing) in enumerate(zip(self._tables, known["nothing"], strict=True))
        )

    @property
    def _tables(self) -> list[np.ndarray]:
        """The scores by each of `scorers`."""
        return [self.scores, self.likelihoods][: len(self.scorers)]

    def _of_nothing(self, descents: list[Descent]) -> list[list[tuple[float, np.ndarray | None]]]:
        """By each scorer, the scores of models without coefficients, one per fold."""
        models = [model for one in descents for model in one.models_at(one.problem.constant_model())]
        if self.plan.mode == "loo":
            W, b = models[0]
            found = [self._judged_left_out(b + 0.0 * self.frame.problem.rows.matmat(W))]
        else:
            found = [self._judged(number, descents[0].problem, model) for number, model in enumerate(models)]
        return [list(of_scorer) for of_scorer in zip(*found, strict=True)]

    def _unfinished(self, first: Descent, alpha: float) -> tuple[Iterate, tuple[Array, Array]]:
        """The model of a fit to the first penalty that was cut short, as `_down` would yield it."""
        problem, model = first.problem, first.model_at(first.known[-1][1])
        return Iterate(lambda: self.selected(model, alpha), math.nan, 0, problem.n_passes, rank=1.0), model

    def _judged(
        self, number: int, problem: Problem, model: tuple[Array, Array]
    ) -> list[tuple[float, np.ndarray | None]]:
        """By each scorer, the score of a model and, with a single fold, the scores of its rows."""
        if self.plan.mode == "loo":
            return self._judged_left_out(left_out.left_out_scores(problem, *model, self.task.clock))
        fold = self.plan.folds[number]
        truth, weight = self.truth_and_weight(fold)
        Z = self.frame.scores(fold, *model)
        found = [one.judged(Z, truth, weight) for one in self.scorers]
        return found if self.plan.n_judged == 1 else [(score, None) for score, _ in found]

    def _judged_left_out(self, Z: Array) -> list[tuple[float, np.ndarray | None]]:
        truth, weight = self.scorer.truth(slice(None)), self.plan.judging_weight
        return [one.judged(Z, truth, weight) for one in self.scorers]
