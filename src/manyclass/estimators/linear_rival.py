"""A linear model with a link, as an alternative to stages of least squares: taken where it errs less."""

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.model_selection import ShuffleSplit

from manyclass.choice.features import CLEARLY, COLUMNS, IN_UNITS, SAMPLED_ROWS, outputs_to_compare
from manyclass.choice.frame import Frame
from manyclass.data.penalty import best, outweighing, path_of_rows, usual_scale
from manyclass.data.rows import Array, to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import Classifier
from manyclass.estimators.glm import GLMClassifier
from manyclass.estimators.glm_cv import GLMClassifierCV
from manyclass.fit import InOrder, Iterate, Iterates, OutOfTime, Status
from manyclass.fit.folds import TooFewRowsError
from manyclass.fit.held_out import folds_by_content
from manyclass.model import Problem
from manyclass.stagewise import Stage, StagewiseModel

LINKED = "columns with a link"
NEAR = 1.25
"""Up to so many times the error of the rival, generated features may still be better with more rows."""
PENALTIES = 5
"""Penalties of the first comparison: so many powers of 1/10 of the mean squared norm, and more if columns differ."""
COARSE, FOLDS = 1e-2, 10
"""The tolerance and the folds of the first comparison. The folds are many, as a link needs more rows than least squares
does, whose errors leave out single rows."""
MOST_ROWS = 8192
"""Rows of the second comparison, half of which judge; and rows that choose the penalty."""
COLUMNS_ROWS = 4096
"""Rows of the second comparison with least squares on the columns, half of which judge."""
LABEL_PENALTIES = 19
"""Penalties that are compared for several labels: more, as counts of errors are not a smooth score."""
FEW_ROWS, HELD_OUT = 2500, 0.25
"""Up to so many rows the penalty is cross-validated; of more, this share is held out."""
SHARE_OF_TIME, FOR_PENALTY = 0.2, 0.6
"""Shares of the remaining time, for one comparison and for the choice of the penalty."""


class _Penalties(GLMClassifierCV):
    """`GLMClassifierCV` without the final fit: only the penalty that it chooses is used."""

    _refits: ClassVar[bool] = False


@dataclass(eq=False)
class LinearRival:
    """`GLMClassifier` on the columns, which may take the place of the stages of a classifier (`owner`)."""

    owner: Classifier  # gets the loss and the penalty if the rival takes its place
    task: Task  # what the owner is fitted to
    unit: Array | None = None  # columns are divided by these before they are penalised
    _first_alpha: float = field(default=math.nan, init=False)  # the best penalty of the first comparison

    def wins(self, errors: dict[str, float], generated: Classifier) -> bool:
        """Whether it errs less than all others, and, if they are near, also does so on more rows.

        `errors` are those of `errors_of_representations`; the error of the rival is added. With more rows than those of
        the first comparison, it may also be near least squares on the columns, if it gains more from them. `generated`
        is the classifier on generated features.
        """
        of_columns = min(error for name, error in errors.items() if name in (COLUMNS, IN_UNITS))
        of_generated = min(error for name, error in errors.items() if name not in (COLUMNS, IN_UNITS))
        has_seen_most = self.task.problem.n_present <= 2 * SAMPLED_ROWS
        own = errors[LINKED] = self._error(SAMPLED_ROWS)
        if not own < of_generated:
            return False
        if has_seen_most:
            return own < of_columns
        if not CLEARLY * own < of_columns and not (self._is_near(own, of_columns) and self._gains_more()):
            return False
        return of_generated > NEAR * own or self._errs_less(generated)

    def iterates(self) -> Iterates:
        """The iterates of `GLMClassifier` at its best penalty, as models of one stage, up to the first within tol."""
        whole, frame = self.task.problem, self._frame
        if self.task.saved is None:
            whole.alpha = self._penalty()
        model = GLMClassifier(whole.alpha, fit_intercept=whole.fit_intercept)
        model.classes_, model.multilabel_ = self.owner.classes_, self.owner.multilabel_
        model.choice_ = {"changed_to": []}
        loss, targets = model._loss_and_targets(whole.rows, self.task.encoded)
        self.owner.loss_ = model.loss_
        problem = frame.problem.variant(loss=loss, targets=targets, shift=None)
        problem.alpha = whole.alpha
        iterates = InOrder(model._iterates(replace(self.task, problem=problem)))
        for iterate in iterates:
            is_last = iterate.duality_gap <= model.tol * iterate.strictness
            yield replace(iterate, model=partial(self._stages, iterate), n_iter=float(is_last))
            if is_last or iterate.n_iter >= model.max_iter:
                return None if is_last else Status.MAX_ITER
        return iterates.reason

    def _stages(self, iterate: Iterate) -> tuple[StagewiseModel, ...]:
        return (StagewiseModel((None,), (Stage(0, *self._frame.lift(*iterate.model())),)),)

    def _penalty(self) -> float:
        """The best penalty of at most `MOST_ROWS` rows, by cross-validation.

        By log loss, unless it errs clearly more there than in the first comparison: a few rows far from all others may
        have log losses beside which those of the others do not count.
        For more rows it falls with the root of their weight (see `ProductEquations.best_alpha`).
        """
        part, y = self._sample(MOST_ROWS)
        splits = _splits(part, y)
        search = _Penalties(LABEL_PENALTIES if y.ndim == 2 else 10, cv=splits, fit_intercept=part.fit_intercept)
        model = self._fit(search, part, y, FOR_PENALTY)
        alpha = float(model.alpha_)
        if model.status_ is Status.MAX_TIME:  # only the largest penalties were tried
            part, y = self._sample(SAMPLED_ROWS)
            alpha = float(self._fit(self._search(part), part, y, FOR_PENALTY).alpha_)
        elif y.ndim == 2 and model.coefs_paths_ is not None:
            alpha = _penalty_of_labels(model, part, y, splits)
        elif y.ndim == 1 and self._errs_more_than_before(alpha, part, y, splits[0]):
            alpha = float(self._fit(search.set_params(scoring=self._scoring), part, y, FOR_PENALTY).alpha_)
        if not alpha > 0:
            raise OutOfTime
        return alpha * math.sqrt(part.total_weight / self.task.problem.total_weight)

    # -- comparisons --------------------------------------------------------------------------------------------------

    def _error(self, n_rows: int) -> float:
        """The cross-validated error on so many rows, as in `errors_of_representations`; nan if unknown."""
        part, y = self._sample(n_rows)
        if (y.ndim == 1 and np.ptp(y) == 0) or not float(part.xp.sum(part.feature_variance)) > 0:
            return math.nan
        try:
            model = self._fit(self._search(part, self._scoring), part, y)
        except TooFewRowsError:
            return math.nan
        if model.status_ is Status.MAX_TIME:  # an unfinished search says nothing
            return math.nan
        score, self._first_alpha = float(model.best_score_), float(model.alpha_)
        return -score / _variance(y) if self._has_columns else 1.0 - score

    @property
    def _scoring(self) -> Any:
        if self._has_columns:
            return make_scorer(_square, response_method="predict_proba", greater_is_better=False)
        return "accuracy"

    def _errs_more_than_before(
        self, alpha: float, part: Problem, y: np.ndarray, split: tuple[np.ndarray, np.ndarray]
    ) -> bool:
        fitted, judging = split
        model = GLMClassifier(alpha, fit_intercept=part.fit_intercept, tol=COARSE)
        own = self._error_on(self._fit(model, part.taken(fitted), y[fitted]), part.taken(judging), y[judging])
        before = self.owner.choice_["errors"][LINKED]
        return bool(own > NEAR * before + 2.0 * math.sqrt((own + before) / len(judging)))

    def _search(self, part: Problem, scoring: Any = None) -> _Penalties:
        variances = part.feature_variance
        n_penalties = PENALTIES + math.ceil(math.log10(outweighing(variances, usual_scale(part.rows))))
        alphas = float(part.xp.sum(variances)) * 10.0 ** -np.arange(1, n_penalties + 1)
        cv = FOLDS if part.rows.n_rows >= 2 * FOLDS else 5
        return _Penalties(alphas, cv=cv, scoring=scoring, fit_intercept=part.fit_intercept, tol=COARSE)

    def _is_near(self, own: float, other: float) -> bool:
        """Whether the errors differ by less than a standard error, for shares of `SAMPLED_ROWS` rows."""
        if self._has_columns:
            return False
        return own - other < math.sqrt((own + other) / SAMPLED_ROWS)

    def _gains_more(self) -> bool:
        """Whether it errs clearly less than least squares on the columns if both are fitted to more rows."""
        part, _ = self._sample(SAMPLED_ROWS)
        Y = part.xp.astype(part.targets.dense(slice(None), part.rows.zeros((0,)), part.xp), part.xp.float64)
        weight = None if part.weight is None else part.xp.astype(part.weight, part.xp.float64)
        alphas, errors, _ = path_of_rows(part.rows, Y, weight, fit_intercept=part.fit_intercept)
        penalties = {"auto": self._first_alpha, "squared": best(alphas, errors)}
        factor = math.sqrt(part.rows.n_rows / min(COLUMNS_ROWS / 2, self.task.problem.rows.n_rows / 2))
        ours, theirs = (
            GLMClassifier(factor * alpha, loss=loss, fit_intercept=part.fit_intercept, tol=COARSE)
            for loss, alpha in penalties.items()
        )
        return self._errs_less(theirs, ours, COLUMNS_ROWS)

    def _errs_less(self, other: Any, own: Any = None, n_rows: int = MOST_ROWS) -> bool:
        """Whether `own` errs clearly less than `other` on unseen rows; or a coarse search less, without `own`."""
        part, y = self._sample(n_rows)
        is_fitted = folds_by_content(part.rows, y if y.ndim == 1 else None, None, 2) == 0
        fitted, judging = np.flatnonzero(is_fitted), np.flatnonzero(~is_fitted)
        if y.ndim == 1 and np.ptp(y[fitted]) == 0:
            return False
        seen, unseen = part.taken(fitted), part.taken(judging)
        cv, is_coarse = _splits(seen, y[fitted]), own is None
        own = own or GLMClassifierCV(5, cv=cv, fit_intercept=part.fit_intercept, tol=COARSE)
        ours, theirs = (self._error_on(self._fit(model, seen, y[fitted]), unseen, y[judging]) for model in (own, other))
        return ours < (theirs if is_coarse else CLEARLY * theirs)

    @cached_property
    def _frame(self) -> Frame:
        return Frame(self.task.problem, unit=self.unit, drops_empty=True)

    @property
    def _has_columns(self) -> bool:
        """Whether the outputs are independent labels, so that squared errors are compared."""
        return bool(self.task.encoded.is_multilabel or self.task.encoded.is_binary)

    def _sample(self, n_rows: int) -> tuple[Problem, np.ndarray]:
        """A sample of the rows, and their class numbers, or the labels on which models are compared."""
        problem = self._frame.problem
        part = problem.taken(problem.sample(min(n_rows, problem.rows.n_rows)))
        Y = to_numpy(part.targets.dense(slice(None), part.rows.zeros((0,)), part.xp)) > 0
        if Y.shape[1] == 1:  # two classes, or a single label
            return part, Y[:, 0].astype(np.int64)
        if self.task.encoded.is_multilabel:  # a sample of labels is enough, as each has a model of its own
            return part, Y[:, outputs_to_compare(Y)].astype(np.int64)
        return part, Y.argmax(axis=1)

    def _fit(self, model: Any, part: Problem, y: np.ndarray, share: float = SHARE_OF_TIME) -> Any:
        clock = self.task.clock
        left = clock.left
        model.set_params(max_time=None if math.isinf(left) else max(share * left, 1e-3))
        with warnings.catch_warnings():
            # Warnings about a sample do not concern the user.
            warnings.simplefilter("ignore", UserWarning)
            model.fit(part.rows, y, part.weight, memory_limit=part.memory_limit)
        if model.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt
        clock.check()
        return model

    def _error_on(self, model: Any, part: Problem, y: np.ndarray) -> float:
        weight = None if part.weight is None else to_numpy(part.weight)
        if not self._has_columns:
            return float(np.average(to_numpy(model.predict(part.rows)) != y, weights=weight))
        P = to_numpy(model.predict_proba(part.rows))
        return _square(y, P[:, 1] if y.ndim == 1 else P, weight) / _variance(y)


def _splits(part: Problem, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of (rows to fit to, rows to judge by)."""
    n_rows = part.rows.n_rows
    if n_rows > FEW_ROWS:
        return list(ShuffleSplit(1, test_size=HELD_OUT, random_state=0).split(np.zeros(n_rows)))
    fold = folds_by_content(part.rows, y if y.ndim == 1 else None, part.weight, 5)
    return [(np.flatnonzero((fold >= 0) & (fold != out)), np.flatnonzero(fold == out)) for out in range(5)]


def _penalty_of_labels(
    model: GLMClassifierCV, part: Problem, y: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]]
) -> float:
    """The penalty with the best F1 score, of those whose errors are within a standard error of the fewest.

    Of equals it is the largest. If none predicts any label, it is the penalty with the least log loss, whose model
    predicts hardly any label if few are present.
    """
    rows, d, counts = part.rows, part.rows.n_features, []
    for models, (_, judging) in zip(model.coefs_paths_, splits, strict=False):  # time may have ended the search
        own, present = rows.take(judging), y[judging] > 0
        scores = [to_numpy(own.matmat(rows.asarray(coef[:, :d].T))) + coef[:, d:].sum(axis=1) for coef in models]
        predicted = np.stack(scores) > 0
        counts.append(np.stack([(predicted & present).sum(axis=2), predicted.sum(axis=2) + present.sum(axis=1)]))
    right, total = np.concatenate(counts, axis=2)  # true positives; predicted and present labels
    wrong, judging = total - 2 * right, np.concatenate([judging for _, judging in splits[: len(counts)]])
    weight = np.ones(len(judging)) if part.weight is None else to_numpy(part.weight)[judging]
    errors, f1 = wrong @ weight, 2 * (right @ weight) / np.maximum(total @ weight, 1e-300)
    least = int(np.argmin(errors))
    error = np.sqrt(np.sum((weight * (wrong[least] - errors[least] / weight.sum())) ** 2))
    f1 = np.where(errors <= errors[least] + error, f1, 0.0)
    return float(model.alphas_[np.argmax(f1)] if f1.max() > 0 else model.alpha_)


def _square(y: np.ndarray, P: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
    """The mean squared error of probabilities of labels that are 0 or 1."""
    return float(np.average((P - y) ** 2, axis=0, weights=sample_weight).mean())


def _variance(y: np.ndarray) -> float:
    return max(float(np.var(y, axis=0).mean()), 1e-300)
