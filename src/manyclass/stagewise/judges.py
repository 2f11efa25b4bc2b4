"""Which stages predict rows best that were not fitted to, and whether calibration does them good."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from manyclass.data.rows import Array
from manyclass.fit import Iterates, restore
from manyclass.fit.run import OutOfTime
from manyclass.stagewise.updates import Update

if TYPE_CHECKING:
    from manyclass.stagewise.solver import Stagewise


class Score(NamedTuple):
    """Mean loss on rows that were not fitted to, the share of their labels that are wrong, and the number of these."""

    loss: float
    errors: float
    n_labels: float

    def has_fewer_errors(self, other: Score) -> bool:
        """By more than one standard error of a difference of counts: √(count + count) at most."""
        fewer, error = other.errors - self.errors, ((other.errors + self.errors) * self.n_labels) ** 0.5
        return bool(fewer * self.n_labels > error)


class Judge(ABC):
    """Ranks stages by their loss on rows that were not fitted to.

    Least squares without any calibration is one of the candidates, and what does not make clearly fewer errors counts
    for no better: of few rows that are told apart already, calibration learns the noise.
    """

    plain: Score | None = None

    def state(self) -> Any:
        """What is to be stored, for `resume` in another run."""
        return self

    def resume(self, saved: Any) -> None:
        restore(self, saved)

    @abstractmethod
    def before_calibration(self, update: Update, state: Array) -> None:
        """Look at the first least squares."""

    @abstractmethod
    def score(self, update: Update, state: Array) -> Score | None:
        """Of the predictions after a stage; None where there was no time for it."""

    def __call__(self, update: Update, state: Array) -> tuple[float | None, bool]:
        """The loss by which a stage is ranked, and whether its calibration is kept."""
        is_first = self.plain is None
        score = self.score(update, state)
        plain = self.plain
        if score is None or plain is None:
            return None if score is None else score.loss, True
        if score.has_fewer_errors(plain):
            keeps = score.loss <= plain.loss or not is_first
            return (score.loss if keeps else plain.loss), keeps
        return (plain.loss, False) if is_first else (max(score.loss, math.nextafter(plain.loss, math.inf)), True)


@dataclass
class HeldOutJudge(Judge):
    """By rows of weight 0 in the fit.

    Parameters
    ----------
    weight : array of shape (n_rows,)
        Of the rows that score; 0 for the others.
    """

    _given = ("weight",)

    weight: Array
    latest: Score | None = field(default=None, init=False)
    _first: Score | None = field(default=None, init=False)

    def before_calibration(self, update: Update, state: Array) -> None:
        self._first = self._look(update, state)

    def score(self, update: Update, state: Array) -> Score:
        self.plain = self._first if self.plain is None else self.plain
        self.latest = self._look(update, state)
        return self.latest

    def _look(self, update: Update, state: Array) -> Score:
        n_labels = update.problem.effective_rows(self.weight) * update.labels_per_row
        return Score(update.loss(state, self.weight), update.errors(state, self.weight), n_labels)


@dataclass
class FoldsJudge(Judge):
    """By cross-validation: fits to all rows but those of one fold keep step with the fit to all.

    Parameters
    ----------
    folds : list of Stagewise
    judges : list of HeldOutJudge
        Those of the folds.
    shares : list of float
        Of the weight in each fold.
    """

    folds: list[Stagewise]
    judges: list[HeldOutJudge]
    shares: list[float]
    _runs: list[Iterates] = field(default_factory=list, init=False)

    def state(self) -> Any:
        return {"plain": self.plain, "folds": [fold.state() for fold in self.folds]}

    def resume(self, saved: Any) -> None:
        self.plain = saved["plain"]
        self._runs = [fold.iterates(state) for fold, state in zip(self.folds, saved["folds"], strict=True)]

    def before_calibration(self, update: Update, state: Array) -> None:
        """The folds look for themselves."""

    def score(self, update: Update, state: Array) -> Score | None:
        if not self._runs:
            self._runs = [fold.iterates() for fold in self.folds]
        try:
            for fold, run in zip(self.folds, self._runs, strict=True):
                fold.problem.alpha = update.problem.alpha
                next(run, None)
        except OutOfTime:
            if self.plain is not None:
                raise
            return None  # rather the first least squares than nothing
        if self.plain is None:
            self.plain = self._mean([judge.plain for judge in self.judges])
        return self._mean([judge.latest for judge in self.judges])

    def _mean(self, scores: list[Score | None]) -> Score:
        pairs = [(share, score) for share, score in zip(self.shares, scores, strict=True) if score is not None]
        loss = sum(share * score.loss for share, score in pairs)
        errors = sum(share * score.errors for share, score in pairs)
        return Score(loss, errors, sum(score.n_labels for _, score in pairs))
