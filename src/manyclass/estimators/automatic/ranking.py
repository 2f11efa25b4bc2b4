"""Which of several entries are better, and how clearly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyclass.estimators.automatic.candidates import Candidate
from manyclass.estimators.automatic.entries import CLEARLY, Entry

KEPT = 3
"""One entry in so many goes on to the next round; up to half, if more are within the error of judging of the best."""
FINALISTS = 2
"""At least so many go on from any round."""
TURNED = 2.0
"""Standard errors of a difference between log losses beyond which a path of penalties has turned."""


@dataclass(frozen=True)
class Ranking:
    """Compares entries by accuracy and then by log loss, or the other way round."""

    objective: str  # "accuracy" or "log_loss", the one that comes first
    has_one_label: bool  # whether each row has a single label

    def key(self, entry: Entry) -> tuple[float, float]:
        """The larger, the better."""
        found = (entry.accuracy, -entry.log_loss)
        return found if self.objective == "accuracy" else found[::-1]

    def best(self, entries: list[Entry]) -> Entry:
        return max(entries, key=self.key)

    def going_on(self, tried: list[Entry]) -> list[Entry]:
        """Those that go on to the next round, from entries `in_order`."""
        best = tried[0]
        going_on = tried[: max(-(-len(tried) // KEPT), min(self._n_close(tried), len(tried) // 2), FINALISTS)]
        if not best.candidate.is_linear:
            # With more rows, another kernel or a smaller penalty may be the better one.
            going_on = [one for one in going_on if not one.is_needless]
            return [one for one in going_on if not (one.candidate.is_linear and self.is_clearly_worse(one, best))]
        linear = [one for one in going_on if one.candidate.is_linear]
        rest = [one for one in tried if one.candidate.is_linear and one.candidate.scaling != best.candidate.scaling]
        # Where the models of a path hardly differ, one makes room for the best on another scaling of the columns.
        if len(linear) > FINALISTS and rest and not {*rest} & {*linear} and not self.is_clearly_worse(rest[0], best):
            going_on = [*(one for one in going_on if one is not linear[-1]), rest[0]]
        # Generated features gain more from more rows than a linear model does.
        kernel = next((one for one in tried if not one.candidate.is_linear), best)
        has_one = kernel in going_on or self.is_clearly_worse(kernel, best)
        return going_on if has_one else [*going_on, kernel]

    def in_order(self, tried: list[Entry]) -> list[Entry]:
        """The best first, except for landmarks that are not clearly better than random features: they take longer."""
        tried = sorted(tried, key=self.key, reverse=True)
        waves = next((one for one in tried if not (one.candidate.is_linear or one.candidate.is_dear)), None)
        is_clear = waves is None or self.is_clearly_worse(waves, tried[0])
        for one in tried:
            one.is_needless = one.candidate.is_dear and not is_clear
        return sorted(tried, key=lambda one: one.is_needless)

    def _n_close(self, tried: list[Entry]) -> int:
        """How many are within the error of judging of the best, by accuracy and then by log loss."""
        if self.objective != "accuracy":
            return 0
        close = [one for one in tried if one.accuracy >= tried[0].accuracy - tried[0].standard_error]
        least = min(close, key=lambda one: one.log_loss)
        return sum(not one.has_more_loss(least, TURNED) for one in close)

    def is_clearly_worse(self, one: Entry, best: Entry) -> bool:
        """Whether the first one is worse by more than chance explains."""
        if self.objective == "log_loss":
            return one.has_more_loss(best, CLEARLY)
        margin = CLEARLY * float(np.hypot(one.standard_error, best.standard_error))
        return best.accuracy - one.accuracy > margin

    def leads_elsewhere(self, candidate: Candidate, tried: list[Entry]) -> bool:
        """Whether the best so far differs in an attribute that the candidate has to share with it."""
        for names, is_linear in ((candidate.follows, candidate.is_linear), (candidate.follows_linear, True)):
            kin = [one for one in tried if one.candidate.is_linear == is_linear]
            best = self.best(kin).candidate if kin else candidate
            if any(getattr(candidate, name) != getattr(best, name) for name in names):
                return True
        return False

    def flawless(self, tried: list[Entry]) -> Entry | None:
        """The best linear model that leaves nothing to gain."""
        if self.objective != "accuracy" or not self.has_one_label:
            return None
        return max((one for one in tried if one.candidate.is_linear and one.is_flawless), key=self.key, default=None)

    def has_turned(self, entry: Entry, tried: list[Entry]) -> bool:
        """Whether its path has turned before: the smallest of its larger penalties was less accurate than another, and
        had clearly more log loss."""
        larger = [one for one in tried if one.kin == entry.kin and one.candidate.alpha > entry.candidate.alpha]
        path = sorted(larger, key=lambda one: one.candidate.alpha)
        return any(path[0].accuracy < one.accuracy and path[0].has_more_loss(one, TURNED) for one in path[1:])

    def choice(self, ranked: list[Entry]) -> tuple[Entry, str]:
        """The entry to take, and why: the best of those that were judged by the same rows as the first of `ranked`.

        By accuracy, entries within a standard error of the best cannot be told apart, but their log losses may: of
        those whose log loss is hardly above the least, the best is taken. With several labels per row few labels are
        present, and a model that is sure that all are absent has little log loss. So there the one with the best F1
        score is taken, each at the best threshold within that error.
        """
        judged = [one for one in ranked if one.scores.keys() == ranked[0].scores.keys() and not one.is_needless]
        best = self.best(judged)
        taken, why = best, f"the best on {best.n_judged:,} rows that it had not seen"
        if self.objective == "accuracy":
            level, its = best.accuracy - best.standard_error, "with less log loss"
            if self.has_one_label:
                near = [one for one in judged if one.accuracy >= level]
                least = min(near, key=lambda one: one.log_loss)
                taken = self.best([one for one in near if not one.has_more_loss(least)])
            else:
                taken = max(judged, key=lambda one: one.threshold_for_f1(level)[1])
                taken.threshold, f1 = taken.threshold_for_f1(level)
                its = f"labels predicted from a probability of {taken.threshold:g} on have an F1 score of {f1:.3g}"
                why += f"; {its}"
            if taken is not best:
                why = f"within the error of judging of the best, {best.told()}, and {its}"
        return taken, why
