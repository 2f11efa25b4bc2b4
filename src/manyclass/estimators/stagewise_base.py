"""Base of the estimators whose models are stages: their fits, and their scores."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from manyclass.choice.features import LeftOut
from manyclass.choice.frame import Frame, occurring
from manyclass.choice.representations import represent
from manyclass.data import Rows
from manyclass.data.rows import Array, to_numpy
from manyclass.data.threads import blas_threads, multiplications, threads_for
from manyclass.estimators.base import Estimator, Task
from manyclass.estimators.classifier import Classifier
from manyclass.estimators.linear import constant_model
from manyclass.fit import Clock, Iterate, Iterates, changed
from manyclass.fit.history import NAN
from manyclass.model import LOSSES, Problem
from manyclass.model.calibrator import Calibrator
from manyclass.model.sets import Box, ConvexSet, Simplex
from manyclass.stagewise import UPDATES, HeldOutJudge, Stage, Stagewise, StagewiseModel, Trials
from manyclass.stagewise.blocks import Blocks, OriginalColumns
from manyclass.stagewise.equations import SAMPLED_ROWS, Equations, ProductEquations
from manyclass.stagewise.judges import Judge


class StagewiseEstimator(Estimator):
    """The average of models that are sums of stages.

    Subclasses give the iterates of `_solver`, and the calibrator.
    """

    _model_parts: ClassVar[tuple[type, ...]] = (Stage, StagewiseModel)
    _fits_parts: ClassVar[bool] = True

    models_: list[StagewiseModel]
    alpha_: float
    n_models: int = 1
    max_iter: int

    def _calibrator(self) -> Calibrator | None:
        """The calibrator, for loss="calibrated"; None for other losses."""
        return None

    @property
    def _learns_link(self) -> bool:
        """Whether a link from scores to probabilities is learned from held-out rows."""
        return False

    def _learn_link(self, left_out: LeftOut, seen: np.ndarray | None = None) -> None:
        """Learn the link from left-out predictions. `seen` says which classes the models have been fitted to; by
        default those with another row among these."""

    def _learn_from(self, problem: Problem, scored: Array, scores: Array) -> None:
        """Learn the link from held-out rows, those of positive weight in `scored`, and the scores of all rows."""

    @property
    def _n_models(self) -> int:
        """Number of models that are averaged."""
        return self.n_models

    def _on_columns(
        self,
        task: Task,
        frame: Frame,
        equations: dict[int, Equations],
        judge: Judge | None = None,
        trials: Trials | None = None,
    ) -> Iterates:
        """The iterates of a single block, the columns of the frame, as models of the given rows."""
        judge = judge or judge_of(task)
        solver = self._solver(
            frame.problem, lambda number: OriginalColumns(frame.problem.rows), judge, task.clock, equations
        )
        solver.trials = trials
        return (yield from lifted_to_rows(solver.iterates(task.saved), frame))

    def _fastest(self, problem: Problem) -> str:
        """The name of the fastest `Representation` of the columns for least squares."""
        return represent(occurring(problem)[0], n_folds=0, chooses_alpha=True)[0].name

    def _least_squares(self, task: Task, representation: str, unit: Array | None = None) -> Iterates:
        """The iterates of least squares on the columns, or on columns divided by `unit`."""
        frame = Frame(task.problem, unit=unit, drops_empty=True)
        equations: dict[int, Equations] = {}
        if representation != "moments":
            equations = {0: ProductEquations(frame.problem, frame.problem.sample(SAMPLED_ROWS))}
        return (yield from self._on_columns(task, frame, equations))

    def _at_first(self, task: Task) -> Iterator[Iterate]:
        """Least squares on the columns, for a fit whose time is over before anything is chosen."""
        for iterate in self._least_squares(task, self._fastest(task.problem)):
            yield replace(iterate, n_iter=0, measure=NAN, rank=math.inf, held_out_loss=None, state=None)
            break

    def _solver(
        self,
        problem: Problem,
        draw_blocks: Callable[[int], Blocks],
        judge: Judge | None = None,
        clock: Clock | None = None,
        equations: dict[int, Equations] | None = None,
    ) -> Stagewise:
        return Stagewise(
            problem,
            UPDATES[self.loss_](problem, self._calibrator()),
            draw_blocks,
            self.max_iter,
            self._n_models,
            judge,
            clock or Clock(),
            chooses_alpha=self.alpha == "auto",
            equations=equations or {},
        )

    @property
    def _alpha(self) -> float:
        return 0.0 if self.alpha == "auto" else float(self.alpha)

    def _memory(self, problem: Problem) -> dict[str, float]:
        # The predictions, their mean over models, and their change along the line search of Newton's method.
        copies = 1 + (self._n_models > 1) + UPDATES[self.loss_].weighs_rows
        states = float(copies * problem.rows.n_rows * problem.n_outputs * problem.rows.itemsize)
        return super()._memory(problem) | {"the predictions of all rows": states}

    @property
    def coef_(self) -> Any:
        """Of shape (n_outputs, n_features), where all features are columns of X and nothing is calibrated."""
        return self._linear()[0]

    @property
    def intercept_(self) -> Any:
        """Of shape (n_outputs,), where there is ``coef_``."""
        return self._linear()[1]

    def _linear(self) -> tuple[Any, Any]:
        models = vars(self).get("models_", ())
        stages = [(model.blocks[stage.block], stage) for model in models for stage in model.stages]
        if not stages or any(
            stage.calibration is not None or not (block is None or hasattr(block, "feature_indices_"))
            for block, stage in stages
        ):
            raise AttributeError("There is coef_ where the features are columns of X, and no calibration follows.")
        share, first = 1.0 / len(models), stages[0][1]
        coef = np.zeros((first.intercept.shape[0], self.n_features_in_), dtype=to_numpy(first.coef).dtype)
        intercept = np.zeros_like(coef[:, 0])
        for block, stage in stages:
            part = to_numpy(stage.coef).T * share
            coef[:, slice(None) if block is None else block.feature_indices_] += part
            intercept += to_numpy(stage.intercept) * share
        intercept = intercept - self._midpoint
        return coef, intercept if self._shift is None else intercept - coef @ to_numpy(self._shift)

    def _fallback(self, task: Task) -> tuple[StagewiseModel, ...]:
        coef, intercept = constant_model(task.problem)
        return (StagewiseModel((None,), (Stage(0, coef, intercept),)),)

    def _store(self, task: Task, model: tuple[StagewiseModel, ...]) -> None:
        self.models_, self.alpha_ = list(model), task.problem.alpha
        self._shift, self._dtype = task.problem.shift, str(task.rows.dtype).rsplit(".", 1)[-1]

    def _fitted_rows(self, X: Any) -> Rows:
        """Rows to predict, in the wider of their own dtype and that of the fit, which blocks are generated in."""
        rows = super()._fitted_rows(X)
        xp = rows.xp
        common = xp.result_type(rows.dtype, getattr(xp, self._dtype))
        if rows.dtype != common:
            rows = rows.typed(common)
        return rows if self._shift is None else rows.shifted(rows.asarray(self._shift, dtype=xp.float64))

    @property
    def _midpoint(self) -> float:
        """What is subtracted from predictions to give scores, which are positive where a label is present."""
        return 0.0

    def _averaged(self, predictions: list[Array]) -> Array:
        """Scores from the predictions of each model."""
        mean = sum(predictions[1:], predictions[0]) / len(predictions)
        return mean - self._midpoint if self._midpoint else mean

    def _scores(self, rows: Rows) -> Array:
        calibrator = self._calibrator()
        with blas_threads(threads_for(multiplications(rows, self.models_[0].n_outputs))):
            return self._averaged([model.scores(rows, calibrator) for model in self.models_])

    def _staged_scores(self, rows: Rows) -> Iterator[Array]:
        """`_scores` after each stage (of every model, if there are several)."""
        runs = [model.staged_scores(rows, self._calibrator()) for model in self.models_]
        present = [next(run) for run in runs]
        for _ in range(max(len(model.stages) for model in self.models_)):
            yield self._averaged(present)
            present = [next(run, last) for run, last in zip(runs, present, strict=True)]


def lifted_to_rows(iterates: Iterates, frame: Frame) -> Iterates:
    """The iterates on the problem of a frame, with models of the rows in front of it."""

    def lifted(iterate: Iterate) -> Iterate:
        frame.given.alpha = frame.problem.alpha
        if frame.is_given:
            return iterate
        models, xp = iterate.model, frame.given.xp
        return replace(iterate, model=lambda: tuple(m.mapped(frame.lift_near, xp) for m in models()), lasting=True)

    return (yield from changed(iterates, lifted))


def judge_of(task: Task) -> HeldOutJudge | None:
    """The judge by held-out rows; None without any."""
    return None if task.held_out is None else HeldOutJudge(task.held_out.scored)


class StagewiseClassifierBase(StagewiseEstimator, Classifier):
    """Labels and probabilities from the scores of stages.

    A loss without a link predicts probabilities, up to a projection; its scores are these before the projection, less
    `_midpoint`.
    """

    basis: Any = (1, 2, 3)

    _has_probabilities = True

    # -- for subclasses -------------------------------------------------------------------------------------------

    @property
    def _per_column(self) -> bool:
        return self.multilabel_ or int(self.classes_.shape[0]) == 2

    @property
    def _domain(self) -> ConvexSet:
        """The convex set of probabilities."""
        return Box() if self._per_column else Simplex()

    @property
    def _midpoint(self) -> float:
        """Halfway between the targets of an absent and a present label, for independent columns without a link."""
        loss = LOSSES[self.loss_]
        if loss.probabilistic or loss.label_values is None or not self._per_column:
            return 0.0
        return 0.5 * sum(loss.label_values)

    @property
    def _doubt(self) -> float:
        """The share of even probabilities: it keeps the order of the classes, and none is 0.

        It is that of the last model, as the judge has seen the mean of the models up to it.
        """
        return float(self.models_[-1].doubt)

    def _calibrator(self) -> Calibrator | None:
        return Calibrator(self.basis, self._domain) if UPDATES[self.loss_].calibrates else None

    def _probabilities(self, scores: Array) -> Array:
        loss, xp = LOSSES[self._link], array_namespace(scores)
        if loss.probabilistic or loss.label_values is None:
            return super()._probabilities(scores)
        absent, present = loss.label_values
        P = self._domain.project((scores + (self._midpoint - absent)) / (present - absent), xp)
        P = P + self._doubt * ((0.5 if self._per_column else 1.0 / int(P.shape[1])) - P)
        return xp.concat([1.0 - P, P], axis=1) if self._is_single(P) else P
