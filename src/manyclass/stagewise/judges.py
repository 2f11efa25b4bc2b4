"""Which stages predict rows best that were not fitted to, and whether calibration does them good."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from manyclass.data.penalty import ALIKE
from manyclass.data.rows import Array
from manyclass.fit import Iterates, restore
from manyclass.fit.run import OutOfTime
from manyclass.stagewise.updates import Update

if TYPE_CHECKING:
    from manyclass.model.calibrator import Map
    from manyclass.stagewise.equations import Equations
    from manyclass.stagewise.solver import Stagewise

MOST_STAGES, PATIENCE = 20, 5
"""By which penalties are compared, and stages without a clearly lower loss after which no more are fitted for that."""
FAR_LESS, HARDLY = 0.9, 0.005
"""Share of the loss, and of labels."""
ENOUGH_ROWS = 2000
"""That are not fitted to, by which penalties are compared."""
KEPT_SCORES, LEAST_ROWS = 20_000, 200
"""Predictions of each fold that a link is learned from, unless these are of fewer rows."""
SEARCH_SHARE = 0.4
"""Of the time that is left, after which no other penalty is tried."""


class StageScore(NamedTuple):
    """Mean loss on rows that were not fitted to, the share of their labels that are wrong, the number of these, and the
    share that had no probability."""

    loss: float
    errors: float
    n_labels: float
    unforeseen: float = math.nan

    @property
    def doubt(self) -> float:
        """How probable it is that the next label has no probability, by the rule of succession."""
        return (self.unforeseen * self.n_labels + 1.0) / (self.n_labels + 2.0)

    def predicts_better(self, other: StageScore) -> bool:
        """As of `is_better`, or of fewer errors by more than one standard error of a difference of counts, which is
        √(count + count) at most; or of a far smaller loss and hardly any more errors."""
        fewer, error = other.errors - self.errors, ((other.errors + self.errors) * self.n_labels) ** 0.5
        if bool(fewer * self.n_labels > error) or self.is_better(other):
            return True
        more = max(-fewer, 1.0 / self.n_labels)  # of few rows one error is a lot
        return self.loss < FAR_LESS * other.loss and more <= HARDLY and -fewer * self.n_labels <= error

    def is_better(self, other: StageScore) -> bool:
        """Of a smaller loss, clearly, and of at least one error less: of millions of labels less of it is clear."""
        fewer, share = (other.errors - self.errors) * self.n_labels, min(ALIKE, max(self.n_labels, 1.0) ** -0.5)
        return bool(self.loss < (1.0 - share) * other.loss and fewer > 0.5)

    def has_less_loss(self, other: StageScore) -> bool:
        """Clearly."""
        return self.loss < (1.0 - ALIKE) * other.loss


class Judge(ABC):
    """Ranks stages by their loss on rows that were not fitted to.

    Least squares without any calibration is one of the candidates, and what makes more errors counts for no better,
    whatever its loss: of few rows that are told apart already, calibration learns the noise.
    """

    plain: StageScore | None = None

    def state(self) -> Any:
        """What is to be stored, for `resume` in another run."""
        return self

    def resume(self, saved: Any) -> None:
        restore(self, saved)

    @abstractmethod
    def before_calibration(self, update: Update, state: Array) -> None:
        """Look at the first least squares."""

    @abstractmethod
    def note(self, update: Update, state: Array, calibration: Map) -> None:
        """Look at what is about to be calibrated by that."""

    @abstractmethod
    def score(self, update: Update, state: Array) -> StageScore | None:
        """Of the predictions after a stage; None where there was no time for it."""

    def __call__(self, update: Update, state: Array) -> tuple[float | None, bool, float]:
        """The loss by which a stage is ranked, whether its calibration is kept, and the doubt in what it predicts."""
        is_first = self.plain is None
        score = self.score(update, state)
        plain = self.plain
        if score is None:
            return None, True, math.nan
        if plain is None:
            return score.loss, True, score.doubt
        is_better = score.predicts_better(plain)
        if is_first and not (is_better and score.loss <= plain.loss):
            return plain.loss, False, plain.doubt
        return score.loss if is_better else max(score.loss, math.nextafter(plain.loss, math.inf)), True, score.doubt


@dataclass
class HeldOutJudge(Judge):
    """By rows of weight 0 in the fit."""

    _given = ("weight",)

    weight: Array  # of the rows that score; 0 for the others
    seed: int | None = None  # by which the rows are drawn whose scores are kept, if any; alike rows are in many folds
    latest: StageScore | None = field(default=None, init=False)
    kept: Array = field(default=None, init=False)
    """Scores of the stage with the least loss, before they are projected, of `some` of these rows."""
    some: tuple[Array, Array, Array] | None = field(default=None, init=False)
    """Which rows, at most `KEPT_SCORES` numbers drawn at random, their labels and weights."""
    _first: StageScore | None = field(default=None, init=False)
    _noted: Array = field(default=None, init=False)

    def before_calibration(self, update: Update, state: Array) -> None:
        self._first = self._look(update, state)
        if self.seed is not None:
            problem, xp = update.problem, update.xp
            n_kept = max(KEPT_SCORES // problem.n_outputs, LEAST_ROWS)
            index = problem.variant(weight=self.weight).sample(n_kept, self.seed)
            place = problem.rows.asarray(index, xp.int64)
            self.kept = xp.take(state, place, axis=0)
            labels = problem.targets.take(index).dense(slice(None), self.kept, xp)
            self.some = place, labels, xp.take(self.weight, place, axis=0)

    def note(self, update: Update, state: Array, calibration: Map) -> None:
        if self.some is not None:
            self._noted = update.calibrator.scores(update.xp.take(state, self.some[0], axis=0), calibration, update.xp)

    def keep(self) -> None:
        """What was noted last."""
        self.kept = self._noted

    def score(self, update: Update, state: Array) -> StageScore:
        self.plain = self._first if self.plain is None else self.plain
        self.latest = self._look(update, state)
        return self.latest

    def _look(self, update: Update, state: Array) -> StageScore:
        return StageScore(update.loss(state, self.weight), *counted(update, state, self.weight))


def counted(update: Update, state: Array, weight: Any) -> tuple[float, float, float]:
    """What a `StageScore` has beside a loss."""
    errors, unforeseen = update.errors(state, weight)
    return errors, update.problem.effective_rows(weight) * update.labels_per_row, unforeseen


@dataclass
class Trials:
    """Fits to some of the rows that others judge: to all but those of one fold each, or to those not held out."""

    fits: list[Stagewise]
    judges: list[HeldOutJudge]  # those of the fits
    shares: list[float]  # of the weight that each judges by
    tol: float = 0.0  # as of the fit to all rows, below which no stage of any is worth another
    interrupted: bool = field(default=False, init=False)  # by Ctrl-C, while penalties were compared

    def few(self) -> Trials:
        """The first of these, whose rows are enough: with many outputs each fit takes as long as that of all rows."""
        n_rows, n_fits = 0.0, 0
        while n_fits < len(self.fits) and n_rows < ENOUGH_ROWS:
            n_rows += self.fits[0].problem.effective_rows(self.judges[n_fits].weight)
            n_fits += 1
        total = sum(self.shares[:n_fits])
        shares = [share / total for share in self.shares[:n_fits]]
        return Trials(self.fits[:n_fits], self.judges[:n_fits], shares, self.tol)

    def step(self, runs: list[Iterates], alpha: float) -> bool:
        """A stage more of every fit; whether one of them gains enough by it to go on."""
        goes_on = False
        for fit, run in zip(self.fits, runs, strict=True):
            fit.problem.alpha = alpha
            iterate = next(run, None)
            goes_on |= iterate is not None and not iterate.measure <= self.tol
        return goes_on

    def mean(self, scores: list[StageScore | None]) -> StageScore:
        pairs = [(share, score) for share, score in zip(self.shares, scores, strict=True) if score is not None]
        loss = sum(share * score.loss for share, score in pairs)
        errors = sum(share * score.errors for share, score in pairs)
        unforeseen = sum(share * score.unforeseen for share, score in pairs)
        return StageScore(loss, errors, sum(score.n_labels for _, score in pairs), unforeseen)

    def best_penalty(self, alpha: float, equations: Equations) -> float:
        """Ten times as large, again and again, for as long as a tenth of it leaves clearly more loss, and more errors.

        Leave-one-out errors choose what is best for the first least squares. Those that follow make up for a penalty
        that is too large for the first, and not for one that is too small. The equations are those of the first block,
        for fits that do not know their own.
        """
        return self._walk(alpha, 10.0, lambda alpha, until: self._least(alpha, equations, until), StageScore.is_better)

    def _walk(
        self,
        alpha: float,
        factor: float,
        score_of: Callable[[float, float], StageScore],
        is_better: Callable[[StageScore, StageScore], bool],
    ) -> float:
        """The last penalty on the way by that factor before one that is not better, or for which there is no time.

        Ctrl-C ends the way as well, and whoever asks is to end soon then: so that there is a model.
        """
        least: StageScore | None = None
        now = time.perf_counter()
        until = now + SEARCH_SHARE * (self.fits[0].clock.deadline - now)
        while True:
            try:
                found = score_of(alpha, until)
            except (OutOfTime, KeyboardInterrupt) as end:
                self.interrupted = isinstance(end, KeyboardInterrupt)
                break
            if least is not None and not is_better(found, least):
                break
            least, alpha = found, factor * alpha
        return alpha if least is None else alpha / factor

    def _least(self, alpha: float, equations: Equations, until: float) -> StageScore:
        """The score with the least loss of the first stages, until there has been none clearly lower for some, and of
        the first without calibration."""
        known = [fit.equations.get(0, equations).anew() for fit in self.fits]
        trials = [replace(fit, equations={0: one}) for fit, one in zip(self.fits, known, strict=True)]
        runs, scores, goes_on = [trial.iterates() for trial in trials], list[StageScore](), True
        try:
            while (goes_on and len(scores) < MOST_STAGES) and (
                len(scores) <= PATIENCE or min(scores[-PATIENCE:]).has_less_loss(min(scores[:-PATIENCE]))
            ):
                goes_on = self.step(runs, alpha)
                if time.perf_counter() > until:
                    raise OutOfTime
                scores.append(self.mean([judge.latest for judge in self.judges]))
            plain = [judge.plain for judge in self.judges]
        finally:
            for judge in self.judges:
                judge.plain = None
        return min(scores if None in plain else [*scores, self.mean(plain)])


@dataclass
class SmallerTrials(Trials):
    """Fits of as many blocks to a share of the rows, with the same share of the features."""

    scale: float = 1.0  # times which the penalty of all rows is that of these, for the same share of the loss
    best: tuple[float, Array] | None = field(default=None, init=False)  # the least loss, and predictions of all rows

    def best_penalty(self, alpha: float, equations: Equations) -> float:
        """A tenth, again and again, for as long as that leaves clearly less loss.

        Leave-one-out errors of the first block choose what is best where the other blocks are not there: what these
        will explain counts as noise, and the more rows there are for each feature of a block, the more of it.
        """
        return self._walk(alpha, 0.1, self._last, StageScore.has_less_loss)

    def _last(self, alpha: float, until: float) -> StageScore:
        """The score of all stages."""
        (fit,), (judge,) = self.fits, self.judges
        fit.problem.alpha, judge.plain = self.scale * alpha, None
        for _ in fit.iterates():
            if time.perf_counter() > until:
                raise OutOfTime
        assert judge.latest is not None
        if self.best is None or judge.latest.loss < self.best[0]:
            self.best = judge.latest.loss, fit.fit.state
        return judge.latest


@dataclass
class FoldsJudge(Judge):
    """By cross-validation: fits to all rows but those of one fold keep step with the fit to all."""

    trials: Trials
    least: float = field(default=math.inf, init=False)
    _runs: list[Iterates] = field(default_factory=list, init=False)

    def state(self) -> Any:
        return {"plain": self.plain, "least": self.least, "folds": [fit.state() for fit in self.trials.fits]}

    def resume(self, saved: Any) -> None:
        self.plain, self.least = saved["plain"], saved["least"]
        self._runs = [fit.iterates(state) for fit, state in zip(self.trials.fits, saved["folds"], strict=True)]

    def before_calibration(self, update: Update, state: Array) -> None:
        """The folds look for themselves."""

    def note(self, update: Update, state: Array, calibration: Map) -> None:
        """So here."""

    def __call__(self, update: Update, state: Array) -> tuple[float | None, bool, float]:
        """As of any judge, of which those of the folds keep what they have noted where it has the least loss."""
        loss, keeps_calibration, doubt = super().__call__(update, state)
        if loss is not None and loss <= self.least:
            self.least = loss
            for judge in self.trials.judges if keeps_calibration else ():
                judge.keep()
        return loss, keeps_calibration, doubt

    def score(self, update: Update, state: Array) -> StageScore | None:
        trials = self.trials
        if not self._runs:
            self._runs = [fit.iterates() for fit in trials.fits]
        try:
            trials.step(self._runs, update.problem.alpha)
        except OutOfTime:
            if self.plain is not None:
                raise
            return None  # rather the first least squares than nothing
        if self.plain is None:
            self.plain = trials.mean([judge.plain for judge in trials.judges])
        return trials.mean([judge.latest for judge in trials.judges])
