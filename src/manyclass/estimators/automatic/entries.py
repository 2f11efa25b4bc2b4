"""A candidate in a search: its last model, its scores so far, and the seconds that further fits would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manyclass.estimators.automatic.candidates import Candidate, chosen_parameters
from manyclass.estimators.automatic.rounds import Parts
from manyclass.estimators.automatic.scores import THRESHOLDS, Score, mean_score

NOTHING = 0.005
"""A model leaves nothing to gain if its share of errors, plus two standard errors, is below this."""
QUICK = 1.0
"""A fit to fewer rows than columns may take so many seconds in any case."""
CLEARLY = 3.0
"""A difference of so many standard errors is hardly due to chance."""


@dataclass(eq=False)
class Entry:
    """A candidate, with its last fit and its scores."""

    candidate: Candidate
    expected: float  # seconds of a fit to `n_rows` rows: estimated at first, then those of the last fit
    n_rows: int
    scores: dict[int, Score] = field(default_factory=dict)  # by part
    model: Any = None  # the last that was fitted, while it may be needed again
    parameters: dict[str, Any] = field(default_factory=dict)  # of that model
    n_passes: float = 1.0  # over the rows, in that fit
    seconds: float = 0.0  # spent on it so far
    judging: float = 0.0  # seconds to judge it on one part, in addition to the fit
    is_needless: bool = False  # whether a candidate that takes less time is as good
    n_judged: int = 0  # rows that it was judged by
    threshold: float = THRESHOLDS[0]  # probability from which on labels are predicted
    links: set[bool] = field(default_factory=set)  # of its fits: whether each had a fixed link (no ``temperature_``)
    leader: Entry | None = None  # the one at a larger penalty from whose fits its own began
    beside: Entry | None = None  # the one whose bandwidth or kind of features was varied to get it
    of_all: tuple[float, int] | None = None  # estimated seconds of a fit, and to how many rows
    reading: tuple[float, float] = (0.0, 0.0)  # further seconds for each row of a fit to all, and in each pass

    @property
    def can_go_on(self) -> bool:
        """Whether a fit can begin where the last ended."""
        return self.candidate.can_go_on and self.model is not None

    @property
    def path(self) -> list[Entry]:
        """The entries that its fits go back to, from the largest penalty down to itself."""
        return [*(self.leader.path if self.leader is not None else ()), self]

    def has(self, model: Any) -> None:
        """Take note of a newly fitted model."""
        self.model, self.parameters = model, chosen_parameters(model)
        self.n_passes = max(float(model.n_passes_), 1.0)
        self.links.add(getattr(model, "temperature_", None) is None)

    def forget(self) -> None:
        """Drop the model, and its predictions for the rows that judge it."""
        self.model = None
        self.scores = {part: one._replace(evidence=None) for part, one in self.scores.items()}

    def averaged_with(self, others: list[Entry], y: Mapping[int, np.ndarray], classes: Any) -> Entry:
        """The mean of its own model and of those of others, which were judged by the same rows."""
        members = [self, *others]
        mean = replace(self, candidate=self.candidate.averaged_with([one.candidate for one in others]), leader=None)
        mean.expected = sum(one.expected for one in members)
        if self.of_all is not None:
            mean.of_all = len(members) * self.of_all[0], self.of_all[1]
        mean.scores = {part: mean_score([one.scores[part] for one in members], y[part], classes) for part in y}
        mean.seconds = sum(one.seconds for one in members)
        return mean

    def seconds_for(self, n_rows: int) -> float:
        """Expected seconds of a fit to so many rows."""
        (fixed, per_work), (once, in_pass) = self._seconds(), self.reading
        return fixed + per_work * self.candidate.work(n_rows) + n_rows * (once + self.n_passes * in_pass)

    def seconds_with(self, parts: Parts) -> float:
        """Expected seconds of the fits of a round and of judging them."""
        per_feature = self.judging / self.candidate.n_features(self.n_rows)
        sizes = [len(learn) for learn, _ in parts.values()]
        return sum(self.seconds_for(n) + per_feature * self.candidate.n_features(n) for n in sizes)

    def seconds_along(self, n_rows: int) -> float:
        """Expected seconds of all fits of its path."""
        return sum(one.seconds_for(n_rows) for one in self.path)

    def rows_in(self, seconds: float) -> int:
        """To how many rows a fit is expected to take so long."""
        fixed, per_work = self._seconds()
        return self.candidate.rows_for(max(seconds - fixed, 0.0) / per_work)

    def passes_in(self, seconds: float, n_rows: int) -> float:
        """How many passes over so many rows the seconds allow, at the pace of the last fit."""
        return seconds / self.seconds_for(n_rows) * self.n_passes

    def _seconds(self) -> tuple[float, float]:
        """The fixed seconds of a fit, and those per unit of work.

        With generated features, the seconds by which few rows exceed the estimate are taken for fixed ones.
        """
        expected, work = self.expected, self.candidate.work(self.n_rows)
        if self.candidate.is_linear or self.of_all is None:
            return 0.0, expected / work
        likely = self.of_all[0] * work / self.candidate.work(self.of_all[1])
        return max(expected - likely, 0.0), min(expected, likely) / work

    @property
    def kin(self) -> Any:
        """Equal for entries whose fits can begin where those of another ended."""
        return self.candidate.family or self

    @property
    def accuracy(self) -> float:
        return float(np.mean([one.accuracy for one in self.scores.values()]))

    @property
    def log_loss(self) -> float:
        return float(np.mean([one.log_loss for one in self.scores.values()]))

    @property
    def loss_told(self) -> float:
        """The log loss as far as it can be known: n rows without an error do not tell it from 1/n."""
        return max(self.log_loss, 1.0 / self.n_judged)

    def threshold_for_f1(self, level: float) -> tuple[float, float]:
        """For several labels per row: of the thresholds with an accuracy of at least `level`, the one with the best F1
        score, and that score, which is negative if there is none."""
        accuracies, f1 = np.mean([np.asarray(one.cells) for one in self.scores.values()], axis=0)
        place = int(np.argmax(np.where(accuracies >= level, f1, -1.0)))
        return THRESHOLDS[place], float(f1[place]) if accuracies[place] >= level else -1.0

    @property
    def standard_error(self) -> float:
        error = 1.0 - self.accuracy
        return float(((error * (1.0 - error) + 1.0 / self.n_judged) / self.n_judged) ** 0.5)

    @property
    def is_flawless(self) -> bool:
        """Whether it may make no errors at all, by enough rows."""
        error, deviation = 1.0 - self.accuracy, self.standard_error
        return error <= deviation and error + 2.0 * deviation <= NOTHING

    def has_more_loss(self, other: Entry, n_errors: float = 1.0) -> bool:
        """Whether its log loss exceeds another's by more than so many standard errors of the difference, row by row."""
        differences = np.concatenate([one.losses - other.scores[part].losses for part, one in self.scores.items()])
        weights = np.concatenate([one.weights for one in self.scores.values()])
        more = self.log_loss - other.log_loss
        return bool(more > n_errors * np.sum((weights * (differences - more)) ** 2) ** 0.5 / np.sum(weights))

    def told(self) -> str:
        return f"{self.candidate} ({100 * (1 - self.accuracy):.2f} % errors, log loss {self.log_loss:.3g})"

    def row(self) -> dict[str, Any]:
        """Its row of ``leaderboard_``."""
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
    """The order in which to try entries if there is no time for all, as the ends of a path are the least likely to win.

    With fewer rows than columns, the largest of the penalties about the middle comes first, as a fit that begins far
    from its minimum takes longest.
    """
    of_kin: dict[Any, list[Entry]] = {}
    for one in entries:
        of_kin.setdefault(one.kin, []).append(one)

    def distance(one: Entry) -> int:
        kin = of_kin[one.kin]
        return abs(kin.index(one) - len(kin) // 2)

    def is_beside(one: Entry) -> bool:
        """The middle of a path is one guess at the penalty; its neighbours tell more than another kernel does."""
        return one.candidate.is_linear and distance(one) <= 1

    def place(one: Entry) -> int:
        return 0 if is_wide and is_beside(one) else distance(one)

    return sorted(entries, key=lambda one: (not is_beside(one), one.expected, place(one)))


def without_advice(refusal: Exception) -> str:
    """A refusal without the limit, which is a share of the user's, and without advice on a single estimator."""
    told = str(refusal).partition(", more than")[0].partition(";")[0]
    return f"{told}, more than there is room for" if isinstance(refusal, MemoryError) else told
