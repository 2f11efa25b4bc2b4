"""Successive halving: candidates on few rows first, the better of them on more, within the time there is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from manyclass.choice.descent import CURVED
from manyclass.estimators.automatic import neighbours
from manyclass.estimators.automatic.candidates import GAP, NEARER, Candidate
from manyclass.estimators.automatic.entries import QUICK, Entry, middle_first, without_advice
from manyclass.estimators.automatic.neighbours import LearnedMetrics
from manyclass.estimators.automatic.ranking import FINALISTS, Ranking
from manyclass.estimators.automatic.rounds import Parts
from manyclass.estimators.automatic.sampled_rows import Labelled
from manyclass.estimators.automatic.scalings import taken
from manyclass.estimators.automatic.scores import Score, learn_temperature, score
from manyclass.features.landmarks import RowsTooFarError
from manyclass.fit import Status

FIRST_SHARE = 0.3
"""Share of the time of the search that the first round may take, if it is not the smallest."""
SEARCH = 0.7
"""Share of the time that the search may take; the rest is for the fit to all rows."""
OVERRUN = 4.0
"""A fit may take so many times its expected seconds; or its share of half of the remaining time, if that is more."""

Watch = Callable[[Entry, int, Entry | None], AbstractContextManager[None]]


class Halving:
    """The rounds of a search.

    Candidates learn from `seen` and are judged by it; the choice is fitted to `all_rows`, if that is more. Everything
    has to be done by `end`, a value of ``time.perf_counter``. `watch` is a context for each fit, and is given the
    entry, its number of rows, and the best entry so far.
    """

    def __init__(self, objective: str, seen: Labelled, classes: Any, end: float, *, all_rows: Labelled | None = None):
        self.seen, self.classes, self.ranking = seen, classes, Ranking(objective, seen.y.ndim == 1)
        self.all_rows = seen if all_rows is None else all_rows
        now = time.perf_counter()
        self.end, self.search_end = end, now + SEARCH * (end - now)
        self.stopped: Status | None = None  # set by Ctrl-C or a callback
        self.path: list[float] = []  # penalties that led to the fit to all rows
        self.last_fits: dict[tuple[str, int], tuple[Entry, Any]] = {}  # by family and part
        self.metrics = LearnedMetrics()
        self.judges: dict[int, np.ndarray] = {}  # numbers of rows, by part
        self.late: set[Entry | None] = set()  # for which there was no time in a round
        self.why: list[str] = []
        self.watch: Watch = lambda entry, n_rows, best: nullcontext()

    def affordable(self, rounds: list[Parts], entries: list[Entry], enough: float) -> list[Parts]:
        """The rounds from the first with `enough` rows on; from an earlier one if there is no time to begin there."""
        most = FIRST_SHARE * (self.search_end - time.perf_counter())
        sizes = [len(next(iter(parts.values()))[0]) for parts in rounds]
        first = next((place for place, size in enumerate(sizes) if size >= enough), max(len(rounds) - 1, 0))
        while first and sum(one.seconds_with(rounds[first]) for one in entries) > most:
            first -= 1
        return rounds[first:]

    def run(self, entries: list[Entry], rounds: list[Parts]) -> list[Entry]:
        """All entries that were tried: those of the last round, the best first, then those of earlier rounds."""
        entries = sorted(entries, key=lambda one: (not one.candidate.is_linear, one.expected))
        alive = list(entries)
        if rounds and sum(one.seconds_with(rounds[0]) for one in alive) > self.search_end - time.perf_counter():
            alive = middle_first(alive, self.seen.is_wide)
        ranked, tried = list[Entry](), list[Entry]()
        for parts in rounds:
            if ranked and parts is not rounds[-1] and self._can_be_last(alive, tried, rounds[-1]):
                continue
            if ranked and not self._is_worth(alive, parts):
                break
            leader, alive = self._with_time(alive, parts) if ranked else (None, alive)
            self.last_fits.clear()
            self.metrics.clear()
            self.judges |= {number: judging for number, (_, judging) in parts.items()}
            tried = self._round(alive, parts, one_at_least=not ranked)
            is_last = parts is rounds[-1]
            asked = [one for one in alive if is_last or one.candidate.is_linear]
            while more := self._beside(tried, entries, asked, parts if is_last else None):
                asked.append(more)
                found = self._round([more], parts, tried)
                tried += found
                if not found and is_last:
                    break
            tried = self.ranking.in_order(tried)
            others = [one for one in ranked if one not in tried]
            is_behind = leader not in tried and (leader in self.late or bool(self.stopped and others))
            ranked = [*others, *tried] if is_behind else [*tried, *others]
            if not tried or is_behind or self.stopped or time.perf_counter() > self.search_end:
                break
            self.why.append(f"Of {len(tried)} models of {tried[0].n_rows:,} rows the best was {tried[0].told()}.")
            going_on = self.ranking.going_on(tried)
            for one in tried if parts is not rounds[-1] else ():
                if one not in going_on:
                    one.forget()  # models may be large; those that go on may be needed as they are
            # The most promising family first, as there may be no time for all. In a family, the largest penalty first.
            families = list(dict.fromkeys(one.kin for one in going_on))
            alive = sorted(going_on, key=lambda one: (families.index(one.kin), entries.index(one)))
        return ranked

    def _beside(self, tried: list[Entry], entries: list[Entry], asked: list[Entry], last: Parts | None) -> Entry | None:
        """What to try next to the best. In the last round, kernels only if `max_time` leaves time for the final fit."""
        if not tried or self.stopped:
            return None
        best = self.ranking.best(tried)
        found = neighbours.next_penalty(best, tried, entries) or neighbours.beyond_the_end(tried, entries)
        if last is not None and self.seen.is_wide and (found is None or found in asked):
            found = neighbours.nearer(best, tried, entries)
        if found and found not in asked:
            return found
        if last is None:
            return neighbours.other_bandwidth(self.ranking.best, tried, entries, asked)
        has_time = self._needed_to_end([best], last) <= self.end - time.perf_counter() < np.inf
        return neighbours.other_kernel(self.ranking.best, tried, entries, asked) if has_time else None

    def _can_be_last(self, alive: list[Entry], tried: list[Entry], parts: Parts) -> bool:
        """Whether to go straight to the last round, as no round removes one of the last two entries.

        Not if the smallest penalty was the best: that may be due to few rows, and a few more show it in less time.
        """
        if len(alive) > FINALISTS or self._needed_to_end(alive, parts) > self.end - time.perf_counter():
            return False
        best = self.ranking.best(tried)
        others = [one.candidate.alpha for one in tried if one.kin == best.kin and one is not best]
        return not others or min(others) < best.candidate.alpha

    def _needed_to_end(self, alive: list[Entry], parts: Parts) -> float:
        """Seconds of a round and of the final fit, which takes at least the time that is set aside for it."""
        in_round = sum(one.seconds_with(parts) for one in alive)
        return in_round + max(alive[0].seconds_along(self.all_rows.n_rows), self.end - self.search_end)

    def _is_worth(self, alive: list[Entry], parts: Parts) -> bool:
        """Whether another round can change the choice, and leaves time for the final fit.

        Generated features gain more from a final fit to all rows than from a choice between the last few entries.
        """
        leader = self.ranking.best(alive)
        if alive[0].candidate.is_linear:
            return self._has_time([leader], leader.seconds_with(parts), self.search_end)
        if len(alive) == 1 and self.end == np.inf:
            return False  # with a limit, the remaining time is for neighbours of the entry
        # If a linear model may still win, there is time for more rows, as its final fit takes hardly any.
        near = [one for one in alive if one.accuracy >= leader.accuracy - leader.standard_error]
        is_left = any(one.candidate.is_linear and leader.has_more_loss(one) for one in near)
        if is_left and leader.seconds_with(parts) <= (left := SEARCH * (self.end - time.perf_counter())):
            self.search_end = max(self.search_end, time.perf_counter() + left)
            return True
        return self._has_time(alive, self._needed_to_end(alive, parts), self.end)

    def _has_time(self, some: list[Entry], needed: float, end: float) -> bool:
        if needed <= end - time.perf_counter():
            return True
        told = "1 model was" if len(some) == 1 else f"{len(some)} models were"
        self.why.append(f"{told} not compared on more rows, for which {needed:.2g} s would be needed.")
        return False

    def _with_time(self, alive: list[Entry], parts: Parts) -> tuple[Entry, list[Entry]]:
        """The best entry so far, and the entries that there is time for, in their order.

        Time is given to the best first, which is always among them: the others are compared with it.
        """
        going_on: list[Entry] = []
        left = self.search_end - time.perf_counter()
        for one in sorted(alive, key=self.ranking.key, reverse=True):
            if one.seconds_with(parts) <= left or not going_on:
                going_on, left = [*going_on, one], left - one.seconds_with(parts)
        if late := [one for one in alive if one not in going_on]:
            self._has_time(late, sum(one.seconds_with(parts) for one in late), time.perf_counter())
        return going_on[0], [one for one in alive if one in going_on]

    def _round(
        self, alive: list[Entry], parts: Parts, before: Sequence[Entry] = (), *, one_at_least: bool = False
    ) -> list[Entry]:
        tried: list[Entry] = []
        refused: dict[str, list[Candidate]] = {}
        turned: list[Entry] = []
        late: list[Entry] = []
        needless: Entry | None = None
        most = 0.0
        for entry in alive:
            if not entry.candidate.is_linear and (needless := self.ranking.flawless(tried)):
                continue
            is_new = not entry.scores
            if is_new and (self.ranking.leads_elsewhere(entry.candidate, tried) or self._is_dear(entry, parts, tried)):
                continue
            if self.ranking.has_turned(entry, tried):
                turned.append(entry)
                continue
            left = self.search_end - time.perf_counter()
            if entry.seconds_with(parts) > left and (tried or not one_at_least):
                late, most = [*late, entry], max(most, left)
                self.late.add(entry)
                continue
            try:
                known = [*before, *tried]
                with self.watch(entry, len(next(iter(parts.values()))[0]), self.ranking.best(known) if known else None):
                    self._try(entry, parts)
            except (MemoryError, RowsTooFarError) as refusal:
                refused.setdefault(without_advice(refusal), []).append(entry.candidate)
                continue
            except KeyboardInterrupt:
                self.stopped = Status.INTERRUPTED
            if entry.scores:
                tried.append(entry)
                self._let_go([one for one in tried if not one.candidate.is_linear])
            if self.stopped and not tried and one_at_least:
                raise KeyboardInterrupt
            if self.stopped:
                break
        for first in {one.kin: one for one in reversed(turned)}.values():
            self.why.append(f"{first.candidate} and smaller penalties were left out: larger ones were clearly better.")
        if needless:
            told = f"{needless.candidate} makes next to no error on {needless.n_judged:,} rows"
            self.why.append(f"Generated features were left out: {told}.")
        if late:
            needed = sum(one.seconds_with(parts) for one in late)
            refused[f"about {needed:.2g} s would be needed, and {most:.2g} s were left"] = [x.candidate for x in late]
        for needs, ones in refused.items():
            others = f" and {len(ones) - 1} more were" if len(ones) > 1 else " was"
            self.why.append(f"{ones[0]}{others} left out: {needs}.")
        return tried

    def _let_go(self, kernels: list[Entry]) -> None:
        """Drop models, which may be large, except the best two, which are taken if there is no time for a final fit."""
        kept = {self.ranking.best(kernels), min(kernels, key=lambda one: one.log_loss)} if kernels else set()
        for one in kernels:
            one.model = one.model if one in kept else None

    def _is_dear(self, entry: Entry, parts: Parts, tried: list[Entry]) -> bool:
        """Whether least squares or hinges, with one label per row, would take longer than all fits of softmax so far.

        With fewer rows than columns, they may take `QUICK` seconds in any case.
        """
        is_beside = not entry.candidate.family or entry.candidate.has_temperature
        is_alone = entry.candidate.is_linear and is_beside and self.ranking.has_one_label
        most = max(QUICK * len(parts) * self.seen.is_wide, sum(one.seconds for one in tried if one.candidate.can_go_on))
        return is_alone and bool(tried) and entry.seconds_with(parts) > most

    def _try(self, entry: Entry, parts: Parts) -> None:
        """Fit and score an entry on each part that has no score from an earlier round.

        If that is stopped before the first part is scored, the entry stays as it was.
        """
        known = entry.scores
        scores = {number: known[number] for number in parts if number in known}
        left_out = [number for number in parts if number not in known]
        if not scores:
            entry.links = set()
        started, n_fits, judging = time.perf_counter(), 0, 0.0
        try:
            for number in left_out:
                # At a tiny penalty many models fit the rows equally well. The one to find is at the end of a path of
                # penalties on the same rows; from a model of fewer rows the fit might end at another.
                entry.leader, start = self.last_fits.get((entry.candidate.family, number), (None, None))
                if entry.leader is not None and entry.leader.candidate.alpha < entry.candidate.alpha:
                    entry.leader = start = None
                if entry.candidate.family:
                    entry.candidate = entry.candidate.within(self._gap_near(entry.leader))
                left = self.search_end - time.perf_counter()
                share = 0.5 * left / (len(left_out) - n_fits)
                seconds = min(left, max(OVERRUN * entry.seconds_for(len(parts[number][0])), share))
                model, scores[number], spent = self._judged(entry.candidate, number, parts[number], seconds, start)
                judging += spent
                if entry.candidate.can_go_on:
                    self.last_fits[entry.candidate.family, number] = entry, model
                entry.has(model)
                entry.n_rows, n_fits = len(parts[number][0]), n_fits + 1
                if model.status_ is Status.INTERRUPTED:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.stopped = Status.INTERRUPTED
        if not n_fits and left_out:
            return
        entry.scores, entry.n_judged = scores, sum(len(parts[number][1]) for number in scores)
        spent = time.perf_counter() - started
        entry.seconds += spent
        if n_fits:
            entry.expected, entry.judging = (spent - judging) / n_fits, judging / n_fits

    def _gap_near(self, leader: Entry | None) -> float:
        """The gap to fit to: proportional to the loss of the leader, if that is small.

        Without a leader, fewer rows than columns take a smaller gap, as models far from the minimum fit them well.
        """
        if leader is None:
            return NEARER if self.seen.is_wide else GAP
        zero = math.log(2 if self.seen.y.ndim == 2 else len(self.classes))
        return GAP * leader.loss_told / (CURVED * zero)

    def _judged(
        self, candidate: Candidate, number: int, part: tuple[np.ndarray, np.ndarray], seconds: float, start: Any
    ) -> tuple[Any, Score, float]:
        """A model, its score, and the seconds that judging took."""
        learn, judge = part
        model = candidate.built(len(learn), seconds, start)
        if candidate.has_temperature:
            model.set_params(calibrate=None)
        with self.metrics.shared(candidate, number, model):
            self.seen.fit(model, candidate.scaling, learn)
        fitted = time.perf_counter()
        weight = None if self.seen.judging_weight is None else self.seen.judging_weight[judge]
        X, y = taken(self.seen.scaled[candidate.scaling], judge), self.seen.y[judge]
        if candidate.has_temperature:
            learn_temperature(model, X, y, weight)
        found = score(model, X, y, self.classes, weight)
        found = found._replace(evidence=None) if candidate.is_linear else found
        return model, found, time.perf_counter() - fitted
