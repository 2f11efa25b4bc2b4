"""The final choice of a search, and its fit to all rows, or to as many as there is time for."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from manyclass.estimators.automatic.entries import Entry, without_advice
from manyclass.estimators.automatic.feature_kinds import WAVES
from manyclass.estimators.automatic.halving import OVERRUN, Halving
from manyclass.estimators.automatic.neighbours import is_empty
from manyclass.features.landmarks import RowsTooFarError
from manyclass.fit import Status

FEWEST_SHARE = 0.25
"""If there is no time for all, generated features are cut down to this share before rows are."""
FEWEST_PASSES = 3.0
"""A linear fit to all rows that would be cut short before so many passes is made to fewer rows instead."""
MOST_AVERAGED = 6
"""Kernels whose models are averaged, at most: each costs time in every prediction."""
AVERAGING = 0.9
"""A fit that may use up all time, such as that of an average, is planned for this share of it."""
UNTIL_CUT_SHORT = {"early_stopping": True, "n_iter_no_change": 10**9}
"""Parameters of a fit that runs until its time is over, and keeps the best model on held-out rows."""
STOPPED, NO_TIME = "the search was stopped", "there was no time for all"


class Search(Halving):
    """Successive halving, the choice between the entries of its last round, and the final fit."""

    def choose(self, ranked: list[Entry]) -> Entry:
        """The entry to take (see `Ranking.choice`), with a line in `why`."""
        taken, why = self.ranking.choice(ranked)
        self.why.append(f"Taken: {taken.told()}, {why}.")
        return taken

    def averaged(self, chosen: Entry, ranked: list[Entry]) -> Entry:
        """A mean of models on the features of several kernels, if it has clearly less log loss than the chosen one.

        The best kernels come first. Of the means that there is time for, the largest is taken that is within the error
        of judging of the best.
        """
        kernels = [one for one in ranked if self._can_be_averaged(one, chosen)]
        left, n, means = self.end - time.perf_counter(), self.all_rows.n_rows, list[Entry]()
        if self.stopped or len(kernels) < 2:
            return chosen
        (first, *others), judged = sorted(kernels, key=self.ranking.key, reverse=True), kernels[0].scores
        y = {part: self.seen.y[self.judges[part]] for part in judged}
        for n_others in range(1, min(len(others), MOST_AVERAGED - 1) + 1):
            mean = first.averaged_with(others[:n_others], y, self.classes)
            if mean.seconds_for(n) + self.metrics.seconds_for(mean.candidate) > AVERAGING * left:
                break
            means.append(mean)
        best = self.ranking.best([chosen, *means])
        near = [
            one for one in means if not one.has_more_loss(best) and best.accuracy <= one.accuracy + one.standard_error
        ]
        if best is chosen or not near or not chosen.has_more_loss(near[-1]):
            return chosen
        best = near[-1]
        best.model = chosen.model
        told = f"{100 * (1 - best.accuracy):.2f} % errors, log loss {best.log_loss:.3g}"
        self.why.append(f"Averaged: {best.candidate.n_kernels} models on the features of different kernels ({told}).")
        return best

    def _can_be_averaged(self, one: Entry, chosen: Entry) -> bool:
        ours, its = chosen.candidate, one.candidate
        return (
            self.ranking.has_one_label
            and not (ours.is_linear or its.is_linear)
            and (its.scaling, its.penalty) == (ours.scaling, ours.penalty)
            and its.model.block_size == ours.model.block_size
            and one.scores.keys() == chosen.scores.keys()
            and all(score.evidence is not None for score in one.scores.values())
        )

    def refit(self, entry: Entry) -> Any:
        """The model of all rows, or of as many random ones as there is time for."""
        left, n = self.end - time.perf_counter(), self.all_rows.n_rows
        try:
            if not self.stopped:
                judged = entry.model
                with self.watch(entry, n, entry if entry.scores else None):
                    entry.has(self._fitted_to_all(entry, left - self.metrics.seconds_for(entry.candidate), n))
                if judged is None or entry.candidate.is_linear or not is_empty(entry.model):
                    return entry.model
                is_stopped = entry.model.status_ is Status.INTERRUPTED
                self._say_rows(entry.n_rows, STOPPED if is_stopped else NO_TIME)
                entry.has(judged)
                return judged
        except KeyboardInterrupt:
            self.stopped = Status.INTERRUPTED
            if not entry.scores:
                raise
        except RowsTooFarError:  # among those that were not compared
            entry.candidate = entry.candidate.of_kind(WAVES)
            return self.refit(entry)
        except MemoryError as refusal:
            if self.all_rows is self.seen:
                raise
            self._say_rows(self.seen.n_rows, without_advice(refusal))
            built = entry.candidate.built(self.seen.n_rows, self.end - time.perf_counter())
            return self.seen.fit(built, entry.candidate.scaling)
        self._say_rows(entry.n_rows, STOPPED)
        model = self._of_some(entry)
        model.status_ = self.stopped
        return model

    def _say_rows(self, n_rows: int, why: str) -> None:
        self.why.append(f"It is fitted to {n_rows:,} rows: {why}.")

    def _fitted_to_all(self, entry: Entry, left: float, n: int) -> Any:
        fitted = partial(self.all_rows.fit, scaling=entry.candidate.scaling)
        if np.isfinite(left):
            reading = self.all_rows.seconds_to_read(entry.candidate.scaling)
            for one in entry.path:
                one.reading = reading
        needed = entry.seconds_along(n)
        if not entry.scores or needed <= left:
            share = self._share(entry, left)
            if share > 1.0:
                n_models = entry.candidate.n_models(share) * entry.candidate.n_kernels
                told = f"is the mean of {n_models} models on features of their own"
                told = told if n_models > entry.candidate.n_kernels else f"has {share:.2g} times as many features"
                self.why.append(f"It {told}, as there was time for more.")
            return self._along(entry.path, share)
        share = AVERAGING * left / needed
        if not entry.candidate.is_linear and share >= FEWEST_SHARE:
            self.why.append(f"It has {100 * share:.0f} % of its features: {NO_TIME}.")
            return fitted(entry.candidate.built(n, left, share=share))
        # Rows of a file are worth a short fit to all: the sample may be a small part of it.
        if entry.passes_in(left, n) >= FEWEST_PASSES and (entry.can_go_on or self.all_rows is not self.seen):
            if not entry.can_go_on:
                self.why.append("It is fitted to all rows for as long as there was time.")
                return fitted(entry.candidate.built(n, left))
            model = self._from_fewer_rows(entry, left)
            if model.n_passes_:
                told = f"from where {entry.n_rows:,} had led: there was no time to begin anew"
                self.why.append(f"It is fitted to all rows {told}.")
            else:
                self._say_rows(entry.n_rows, NO_TIME)
            return model
        n = min(entry.rows_in(left), self.seen.n_rows)
        if max(n, entry.n_rows) < self.all_rows.n_rows:
            self._say_rows(max(n, entry.n_rows), NO_TIME)
        if n <= entry.n_rows:
            return self._of_some(entry)
        return self.seen.fit(entry.candidate.built(n, left), entry.candidate.scaling, self.seen.some(n))

    def _from_fewer_rows(self, entry: Entry, left: float) -> Any:
        """A fit to all rows that begins at the model of fewer rows.

        If it is cut short it may end worse than it began, as the first steps make coefficients too large at a tiny
        penalty. So it first keeps the best model on held-out rows.
        """
        n, scaling, start = self.all_rows.n_rows, entry.candidate.scaling, entry.model
        usual = {name: start.get_params(deep=False)[name] for name in UNTIL_CUT_SHORT}
        until = entry.candidate.built(n, AVERAGING * left, start).set_params(**UNTIL_CUT_SHORT)
        model = self.all_rows.fit(until, scaling).set_params(**usual)
        if model.status_.is_failure or entry.passes_in(self.end - time.perf_counter(), n) < 1.0:
            return model
        again = self.all_rows.fit(entry.candidate.built(n, self.end - time.perf_counter(), model), scaling)
        return model if again.status_ is Status.MAX_TIME else again

    def _along(self, path: list[Entry], share: float) -> Any:
        """Fits along the path of penalties on which the choice was judged.

        At a tiny penalty many models fit the rows equally well, and the start decides which one is found. A path is
        also faster than a fit at its end alone.
        """
        if len(path) > 1:
            self.path = [one.candidate.model.alpha for one in path[:-1]]
            told = f"from alpha={self.path[0]:.2g} down, each fit beginning where the one before ended"
            self.why.append(f"It is fitted along the path of penalties {told}.")
        model = None
        for one in path:
            built = one.candidate.built(self.all_rows.n_rows, self.end - time.perf_counter(), model, share)
            model = self.all_rows.fit(built, one.candidate.scaling)
            if model.status_ is Status.INTERRUPTED and one is not path[-1]:
                raise KeyboardInterrupt
        return model

    def _of_some(self, entry: Entry) -> Any:
        """The last model of an entry, or a new one if that was not kept, or does not know all classes."""
        if entry.model is not None and len(entry.model.classes_) == len(self.classes):
            return entry.model
        n = max(entry.n_rows, len(self.classes))
        built = entry.candidate.built(n, OVERRUN * entry.seconds_for(n))
        return self.seen.fit(built, entry.candidate.scaling, self.seen.some(n))

    def _share(self, entry: Entry, left: float) -> float:
        """Factor on the number of features that it was judged with: above 1 if a time limit leaves time for more."""
        if not entry.scores or not np.isfinite(left):
            return 1.0
        n, most = self.all_rows.n_rows, entry.candidate.most_share(self.all_rows.n_rows)
        return min(max(AVERAGING * left / entry.seconds_for(n), 1.0), most) if most > 1.0 else 1.0
