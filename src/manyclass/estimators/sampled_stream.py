"""Calibrated least squares on rows in pieces: moments of all of them, and a sample of the rows for the link."""

from typing import Any

import numpy as np

from manyclass.choice.features import (
    COLUMNS,
    EVERY,
    IN_UNITS,
    column_units,
    errors_of_representations,
    in_units_is_better,
)
from manyclass.choice.frame import Frame
from manyclass.data import Moments, Rows, as_rows
from manyclass.data.kept_rows import ALL, KeptRows
from manyclass.data.labels import Labels
from manyclass.data.rows import Array
from manyclass.estimators.base import Task
from manyclass.estimators.stagewise_base import StagewiseClassifierBase
from manyclass.estimators.streaming import ExactStream
from manyclass.fit import Clock, Iterates
from manyclass.model import Problem
from manyclass.stagewise.equations import Equations
from manyclass.stagewise.streamed import StreamedEquations


class SampledStream(ExactStream, StagewiseClassifierBase):
    """`ExactStream` of a model that needs predictions of single rows beside the moments: it keeps some rows."""

    _model_parts = (*StagewiseClassifierBase._model_parts, *ExactStream._model_parts, KeptRows)

    kept_rows: int
    _kept: KeptRows

    @property
    def _is_sampled(self) -> bool:
        """Whether there are rows of which only the moments are known."""
        return "_kept" in vars(self) and not self._kept.is_complete

    def _stream_refusal(self) -> str | None:
        return None

    def _keep(self, rows: Rows, y: Any, weight: Any) -> None:
        is_first = "_kept" not in vars(self)
        part = KeptRows.of(rows, y, weight, ALL if is_first else self._kept.limit)
        self._kept = (part.taken(np.arange(0)) if is_first else self._kept).merge(part, self.kept_rows)

    def _unkeep(self, rows: Rows, y: Any, weight: Any) -> None:
        self._kept = self._kept.without(KeptRows.of(rows, y, weight, self._kept.limit))

    def _take_over(self, other: Any) -> None:
        if "_kept" not in vars(other):
            raise ValueError(
                "The link is fitted to rows, of which ClassMoments and other estimators keep none; merge with a "
                f"{type(self).__name__} that partial_fit was called on."
            )
        super()._take_over(other)
        self._kept = self._kept.merge(other._kept, self.kept_rows) if "_kept" in vars(self) else other._kept

    def _solve(self, clock: Clock) -> None:
        kept = self._kept
        if self._is_sampled:  # in an order that does not depend on the stream, as rows are held out by position
            kept = kept.taken(np.argsort(kept.keys, kind="stable"))
        rows = as_rows(kept.X)
        codes = None if self.multilabel_ else np.searchsorted(self.classes_, kept.y)
        labels = Labels(self.classes_, codes, kept.y if self.multilabel_ else None)
        task = self._task(rows, labels, None if (kept.weight == 1).all() else rows.asarray(kept.weight), clock)
        iterates = self._sampled_iterates(task) if self._is_sampled else self._iterates(task)
        self._store_outcome(task, self._run(task)(iterates, lambda: self._fallback(task)))

    def _sampled_iterates(self, task: Task) -> Iterates:
        """The iterates if only moments are known of most rows."""
        problem, whole = task.problem, self._stream_moments(task)
        n = self._stream.n_effective
        if task.held_out is not None:
            out = task.held_out.index
            weight = problem.xp.take(task.held_out.scored, task.rows.asarray(out, problem.xp.int64), axis=0)
            whole = whole.without(Moments.of(task.rows.take(out), problem.targets.take(out), weight))
            n *= whole.weight / self._stream.features.weight
        self.choice_ = {
            "rows": EVERY,
            "features": self._features(problem),
            "representation": "moments",
            "estimates": {},
        }
        frame = Frame(problem, unit=self._unit(problem))
        equations: dict[int, Equations] = {0: StreamedEquations.of_stream(whole, n, frame.problem, frame.unit)}
        return (yield from self._on_columns(task, frame, equations))

    def _features(self, problem: Problem) -> str:
        """Columns as they are, or standardised if the penalty is chosen and that predicts better."""
        unit = column_units(problem) if self.alpha == "auto" else None
        errors = errors_of_representations(problem, unit) if unit is not None else {}
        return IN_UNITS if in_units_is_better(errors, COLUMNS, IN_UNITS) else COLUMNS

    def _unit(self, problem: Problem) -> Array | None:
        return column_units(problem) if self.choice_["features"] == IN_UNITS else None
