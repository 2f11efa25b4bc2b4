"""Judges the stages by rows that the fit does not see: which stage is best, and whether to calibrate."""

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
"""To compare penalties at most so many stages are fitted; fewer if so many in a row have no clearly lower loss."""
FAR_LESS, HARDLY = 0.9, 0.005
"""A loss below this share of another is far less. Up to this share of the labels, more errors are hardly more."""
ENOUGH_ROWS = 2000
"""Held-out rows that are enough to compare penalties."""
KEPT_SCORES, LEAST_ROWS = 20_000, 200
"""A link is learned from so many predictions of each fold, but from no fewer than so many rows."""
SEARCH_SHARE = 0.4
"""Share of the remaining time that the comparison of penalties may take."""


class StageScore(NamedTuple):
    """How well a stage predicts held-out rows."""

    loss: float  # mean
    errors: float  # share of the labels that are predicted wrongly
    n_labels: float
    unforeseen: float = math.nan  # share of the labels whose predicted probability is 0

    @property
    def doubt(self) -> float:
        """The probability that the next label has a predicted probability of 0, by the rule of succession."""
        return (self.unforeseen * self.n_labels + 1.0) / (self.n_labels + 2.0)

    def predicts_better(self, other: StageScore) -> bool:
        """Whether its loss is clearly smaller (`is_better`), its errors are clearly fewer, or its loss is far smaller
        and its errors are hardly more.

        Clearly is more than a standard error of the difference of two counts, which is at most the root of their sum.
        """
        fewer, error = other.errors - self.errors, ((other.errors + self.errors) * self.n_labels) ** 0.5
        if bool(fewer * self.n_labels > error) or self.is_better(other):
            return True
        more = max(-fewer, 1.0 / self.n_labels)  # of few rows one error is a lot
        return self.loss < FAR_LESS * other.loss and more <= HARDLY and -fewer * self.n_labels <= error

    def is_better(self, other: StageScore) -> bool:
        """Whether its loss is clearly smaller, and it makes at least one error less. With many labels less is clear."""
        fewer, share = (other.errors - self.errors) * self.n_labels, min(ALIKE, max(self.n_labels, 1.0) ** -0.5)
        return bool(self.loss < (1.0 - share) * other.loss and fewer > 0.5)

    def has_less_loss(self, other: StageScore) -> bool:
        """Whether the difference counts (`ALIKE`)."""
        return self.loss < (1.0 - ALIKE) * other.loss


class Judge(ABC):
    """Ranks stages by their loss on rows that the fit does not see.

    The first least squares, before any calibration, is a candidate, too. A stage that predicts no better than that (see
    `StageScore.predicts_better`) is ranked below it: if few rows are classified correctly already, calibration fits
    noise.
    """

    plain: StageScore | None = None  # of the first least squares, before calibration

    def state(self) -> Any:
        """What a checkpoint stores, for `resume`."""
        return self

    def resume(self, saved: Any) -> None:
        restore(self, saved)

    @abstractmethod
    def before_calibration(self, update: Update, state: Array) -> None:
        """Score the first least squares, whose predictions are `state`."""

    @abstractmethod
    def note(self, update: Update, state: Array, calibration: Map) -> None:
        """Take note of predictions that are about to be calibrated, and of their calibration."""

    @abstractmethod
    def score(self, update: Update, state: Array) -> StageScore | None:
        """The score of the predictions after a stage; None if there was no time for it."""

    def __call__(self, update: Update, state: Array) -> tuple[float | None, bool, float]:
        """The loss that ranks the present stage, whether to keep its calibration, and `StageScore.doubt`."""
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
    """Judges by held-out rows, which have weight 0 in the fit."""

    _given = ("weight",)

    weight: Array  # of the held-out rows; 0 for the others
    seed: int | None = None  # to draw the rows whose scores are kept; None keeps none
    latest: StageScore | None = field(default=None, init=False)
    kept: Array = field(default=None, init=False)
    """Unprojected scores of `some` held-out rows after the stage with the least loss."""
    some: tuple[Array, Array, Array] | None = field(default=None, init=False)
    """Randomly drawn held-out rows: their numbers, labels and weights."""
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
        """Keep the scores that were noted last."""
        self.kept = self._noted

    def score(self, update: Update, state: Array) -> StageScore:
        self.plain = self._first if self.plain is None else self.plain
        self.latest = self._look(update, state)
        return self.latest

    def _look(self, update: Update, state: Array) -> StageScore:
        return StageScore(update.loss(state, self.weight), *counted(update, state, self.weight))


def counted(update: Update, state: Array, weight: Any) -> tuple[float, float, float]:
    """The fields of a `StageScore` after its loss."""
    errors, unforeseen = update.errors(state, weight)
    return errors, update.problem.effective_rows(weight) * update.labels_per_row, unforeseen


@dataclass
class Trials:
    """Fits beside the main one, each to a part of the rows and judged by the rest: one for each fold, or only one."""

    fits: list[Stagewise]
    judges: list[HeldOutJudge]  # one for each fit
    shares: list[float]  # of the held-out weight of all fits
    tol: float = 0.0  # that of the main fit: stages that gain less end a fit
    interrupted: bool = field(default=False, init=False)  # by Ctrl-C, while penalties were compared

    def few(self) -> Trials:
        """The first of the fits, up to `ENOUGH_ROWS`: with many outputs each takes as long as the main fit."""
        n_rows, n_fits = 0.0, 0
        while n_fits < len(self.fits) and n_rows < ENOUGH_ROWS:
            n_rows += self.fits[0].problem.effective_rows(self.judges[n_fits].weight)
            n_fits += 1
        total = sum(self.shares[:n_fits])
        shares = [share / total for share in self.shares[:n_fits]]
        return Trials(self.fits[:n_fits], self.judges[:n_fits], shares, self.tol)

    def step(self, runs: list[Iterates], alpha: float) -> bool:
        """Fit one more stage of every fit. Whether some fit gained enough to go on."""
        goes_on = False
        for fit, run in zip(self.fits, runs, strict=True):
            fit.problem.alpha = alpha
            iterate = next(run, None)
            goes_on |= iterate is not None and not iterate.measure <= self.tol
        return goes_on

    def mean(self, scores: list[StageScore | None]) -> StageScore:
        """The mean score of the fits that have one."""
        pairs = [(share, score) for share, score in zip(self.shares, scores, strict=True) if score is not None]
        loss = sum(share * score.loss for share, score in pairs)
        errors = sum(share * score.errors for share, score in pairs)
        unforeseen = sum(share * score.unforeseen for share, score in pairs)
        return StageScore(loss, errors, sum(score.n_labels for _, score in pairs), unforeseen)

    def best_penalty(self, alpha: float, equations: Equations) -> float:
        """The given penalty, multiplied by 10 for as long as that clearly lowers the loss, and the errors.

        The given one is best for the first least squares, by leave-one-out errors. Later stages can make up for a
        penalty that is too large for the first stage, but not for one that is too small. `equations` are those of the
        first block, for fits that have none of their own.
        """
        return self._walk(alpha, 10.0, lambda alpha, until: self._least(alpha, equations, until), StageScore.is_better)

    def _walk(
        self,
        alpha: float,
        factor: float,
        score_of: Callable[[float, float], StageScore],
        is_better: Callable[[StageScore, StageScore], bool],
    ) -> float:
        """Multiply alpha by `factor` for as long as the score improves, and give the best one.

        The walk also ends when its time is over, or by Ctrl-C, which sets `interrupted`: the caller has to end soon
        then, but still gets a penalty, so that there is a model.
        """
        least: StageScore | None = None
        now = time.perf_counter()
        until = now + SEARCH_SHARE * (self.fits[0].clock.deadline - now)
        while True:
            try:
                score = score_of(alpha, until)
            except (OutOfTime, KeyboardInterrupt) as end:
                self.interrupted = isinstance(end, KeyboardInterrupt)
                break
            if least is not None and not is_better(score, least):
                break
            least, alpha = score, factor * alpha
        return alpha if least is None else alpha / factor

    def _least(self, alpha: float, equations: Equations, until: float) -> StageScore:
        """The least score of the first stages, including the first before calibration.

        It ends after `MOST_STAGES`, or `PATIENCE` stages without a clearly lower loss.
        """
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
    """A single smaller fit: to a share of the rows, with as many blocks, each of the same share of the features."""

    scale: float = 1.0  # factor from penalties of the main fit to those of the smaller one
    best: tuple[float, Array] | None = field(default=None, init=False)  # the least loss, and the predictions with it

    def best_penalty(self, alpha: float, equations: Equations) -> float:
        """The given penalty, divided by 10 for as long as that clearly lowers the loss.

        The given one is best, by leave-one-out errors, for the first block alone: what later blocks will explain still
        counts as noise there. The more rows there are per feature of a block, the larger is that part.
        """
        return self._walk(alpha, 0.1, self._last, StageScore.has_less_loss)

    def _last(self, alpha: float, until: float) -> StageScore:
        """The score after all stages of the smaller fit."""
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
    """Judges by cross-validation: the fit of each fold advances by a stage whenever the main fit does."""

    trials: Trials
    least: float = field(default=math.inf, init=False)
    _runs: list[Iterates] = field(default_factory=list, init=False)

    def state(self) -> Any:
        return {"plain": self.plain, "least": self.least, "folds": [fit.state() for fit in self.trials.fits]}

    def resume(self, saved: Any) -> None:
        self.plain, self.least = saved["plain"], saved["least"]
        self._runs = [fit.iterates(state) for fit, state in zip(self.trials.fits, saved["folds"], strict=True)]

    def before_calibration(self, update: Update, state: Array) -> None:
        """Nothing: the judges of the folds do this."""

    def note(self, update: Update, state: Array, calibration: Map) -> None:
        """Nothing: the judges of the folds do this."""

    def __call__(self, update: Update, state: Array) -> tuple[float | None, bool, float]:
        """As of any judge. After the stage with the least loss so far, the judges of the folds keep their scores."""
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
            return None  # the main fit keeps its first least squares
        if self.plain is None:
            self.plain = trials.mean([judge.plain for judge in trials.judges])
        return trials.mean([judge.latest for judge in trials.judges])
