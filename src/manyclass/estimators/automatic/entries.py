"""What becomes of a candidate in a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manyclass.estimators.automatic.candidates import Candidate, chosen_parameters
from manyclass.estimators.automatic.rounds import Parts
from manyclass.estimators.automatic.scores import THRESHOLDS, Score, mean_score

QUICK = 1.0
"""Seconds that are not worth saving where rows are few."""


@dataclass(eq=False)
class Entry:
    """A candidate and what became of it."""

    candidate: Candidate
    expected: float  # seconds of a fit to `n_rows` rows: by the cost model, then by the last fit
    n_rows: int
    scores: dict[int, Score] = field(default_factory=dict)  # by part
    model: Any = None  # the last that was fitted, while it may be wanted again
    parameters: dict[str, Any] = field(default_factory=dict)  # of that
    n_passes: float = 1.0  # over the rows, of its fit
    seconds: float = 0.0
    judging: float = 0.0  # seconds for a part that judges it, beside those of the fit
    is_needless: bool = False  # as what takes less time is as good
    n_judged: int = 0  # rows that it was judged by
    threshold: float = THRESHOLDS[0]  # of probabilities, from which on labels are predicted
    links: set[bool] = field(default_factory=set)  # whether the link of what judged it is fixed
    leader: Entry | None = None  # whose fits, at a larger penalty, its own began from
    beside: Entry | None = None  # the best so far, next to which it was tried
    of_all: tuple[float, int] | None = None  # seconds of a fit to so many rows by the cost model

    @property
    def can_go_on(self) -> bool:
        """Whether a fit can begin where the last ended."""
        return self.candidate.can_go_on and self.model is not None

    @property
    def path(self) -> list[Entry]:
        """From the largest penalty that its fits go back to, to itself."""
        return [*(self.leader.path if self.leader is not None else ()), self]

    def has(self, model: Any) -> None:
        """A new model, fitted."""
        self.model, self.parameters = model, chosen_parameters(model)
        self.n_passes = max(float(model.n_passes_), 1.0)
        self.links.add(getattr(model, "temperature_", None) is None)

    def forget(self) -> None:
        """The model, and all that it says of the rows that judge it."""
        self.model = None
        self.scores = {part: one._replace(evidence=None) for part, one in self.scores.items()}

    def averaged_with(self, others: list[Entry], y: Mapping[int, np.ndarray], classes: Any) -> Entry:
        """The mean of models like its own and those of others, which were judged by the same rows."""
        members = [self, *others]
        mean = replace(self, candidate=self.candidate.averaged_with([one.candidate for one in others]), leader=None)
        mean.expected = sum(one.expected for one in members)
        if self.of_all is not None:
            mean.of_all = len(members) * self.of_all[0], self.of_all[1]
        mean.scores = {part: mean_score([one.scores[part] for one in members], y[part], classes) for part in y}
        mean.seconds = sum(one.seconds for one in members)
        return mean

    def seconds_for(self, n_rows: int) -> float:
        """Expected of a fit to so many rows."""
        fixed, per_work = self._seconds()
        return fixed + per_work * self.candidate.work(n_rows)

    def seconds_with(self, parts: Parts) -> float:
        """Expected of the fits of a round, and of judging them."""
        per_feature = self.judging / self.candidate.n_features(self.n_rows)
        sizes = [len(learn) for learn, _ in parts.values()]
        return sum(self.seconds_for(n) + per_feature * self.candidate.n_features(n) for n in sizes)

    def seconds_along(self, n_rows: int) -> float:
        """Expected of the fits of its path."""
        return sum(one.seconds_for(n_rows) for one in self.path)

    def rows_in(self, seconds: float) -> int:
        """To which a fit is expected to take so long."""
        fixed, per_work = self._seconds()
        return self.candidate.rows_for(max(seconds - fixed, 0.0) / per_work)

    def passes_in(self, seconds: float, n_rows: int) -> float:
        """Over so many rows, of a fit like the last."""
        return seconds / self.seconds_for(n_rows) * self.n_passes

    def _seconds(self) -> tuple[float, float]:
        """Of any fit, and more of one for its work.

        What generated features take on few rows beyond what was expected does not grow with these.
        """
        expected, work = self.expected, self.candidate.work(self.n_rows)
        if self.candidate.is_linear or self.of_all is None:
            return 0.0, expected / work
        likely = self.of_all[0] * work / self.candidate.work(self.of_all[1])
        return max(expected - likely, 0.0), min(expected, likely) / work

    @property
    def kin(self) -> Any:
        """What it shares with those that can begin where it ended."""
        return self.candidate.family or self

    @property
    def accuracy(self) -> float:
        return float(np.mean([one.accuracy for one in self.scores.values()]))

    @property
    def log_loss(self) -> float:
        return float(np.mean([one.log_loss for one in self.scores.values()]))

    @property
    def loss_told(self) -> float:
        """What can be told of the log loss: n rows without an error tell none below 1/n."""
        return max(self.log_loss, 1.0 / self.n_judged)

    def threshold_for_f1(self, level: float) -> tuple[float, float]:
        """Of several labels per row, the threshold with the best F1 score of those that leave the accuracy at `level`
        or above, and this score; a negative one where none does."""
        accuracies, f1 = np.mean([np.asarray(one.cells) for one in self.scores.values()], axis=0)
        place = int(np.argmax(np.where(accuracies >= level, f1, -1.0)))
        return THRESHOLDS[place], float(f1[place]) if accuracies[place] >= level else -1.0

    @property
    def standard_error(self) -> float:
        error = 1.0 - self.accuracy
        return float(((error * (1.0 - error) + 1.0 / self.n_judged) / self.n_judged) ** 0.5)

    def has_more_loss(self, other: Entry, n_errors: float = 1.0) -> bool:
        """Than another that was judged by the same rows, by more than so many standard errors of the difference."""
        differences = np.concatenate([one.losses - other.scores[part].losses for part, one in self.scores.items()])
        weights = np.concatenate([one.weights for one in self.scores.values()])
        more = self.log_loss - other.log_loss
        return bool(more > n_errors * np.sum((weights * (differences - more)) ** 2) ** 0.5 / np.sum(weights))

    def told(self) -> str:
        return f"{self.candidate} ({100 * (1 - self.accuracy):.2f} % errors, log loss {self.log_loss:.3g})"

    def row(self) -> dict[str, Any]:
        """For the leaderboard."""
        return {
            "estimator": self.candidate.estimator,
            "parameters": self.parameters,
            "scaling": self.candidate.scaling,
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "n_rows": self.n_rows,
            "seconds": self.seconds,
        }


def middle_first(entries: list[Entry], is_wide: bool) -> list[Entry]:
    """Where there is no time for all, those at the ends of a path are the least likely to be right; of those beside the
    middle the largest comes first where columns are more than rows, as a fit that begins nowhere near takes longest."""
    of_kin: dict[Any, list[Entry]] = {}
    for one in entries:
        of_kin.setdefault(one.kin, []).append(one)

    def distance(one: Entry) -> int:
        kin = of_kin[one.kin]
        return abs(kin.index(one) - len(kin) // 2)

    def is_beside(one: Entry) -> bool:
        """The middle is one guess at the penalty: those on both sides of it tell more than another kernel does."""
        return one.candidate.is_linear and distance(one) <= 1

    def place(one: Entry) -> int:
        return 0 if is_wide and is_beside(one) else distance(one)

    return sorted(entries, key=lambda one: (not is_beside(one), one.expected, place(one)))


def without_advice(refusal: Exception) -> str:
    """What a fit would take: the limit that is named is a share of the user's, and the advice is for who chose."""
    told = str(refusal).partition(", more than")[0].partition(";")[0]
    return f"{told}, more than there is room for" if isinstance(refusal, MemoryError) else told
