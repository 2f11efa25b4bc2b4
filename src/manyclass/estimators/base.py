"""The one ``fit`` of the package: check, encode, hold out, run, store. Subclasses give the iterates."""

import math
import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from manyclass.choice.features import advice
from manyclass.choice.penalty import USUAL, advice_on_penalty, penalty_of_columns
from manyclass.data import Rows, Targets
from manyclass.data.labels import Labels, Responses
from manyclass.data.memory import as_bytes
from manyclass.data.opening import check_memory, is_stored
from manyclass.data.rows import to_numpy
from manyclass.data.threads import threads_of_products
from manyclass.data.validation import check_labelled, check_rows, check_weights
from manyclass.estimators.callbacks import Metadata, for_scorers, tell_callbacks
from manyclass.estimators.fingerprint import fingerprint
from manyclass.estimators.parameters import all_or_nothing, checks_parameters, complete_docstring, generator, is_scaled
from manyclass.estimators.parted import fits_parts
from manyclass.estimators.vocabulary import check_loss
from manyclass.fit import Checkpoint, Clock, Iterate, Iterates, Outcome, Parametrised, Record, Run, Status
from manyclass.fit.held_out import HeldOut, hold_out, hold_out_in_parts
from manyclass.model import Loss, Problem
from manyclass.model.losses import ZeroOneLoss
from manyclass.model.problem import nothing

NO_TIME = "max_time was over before the first iteration, and nothing was learned from these rows; raise max_time."


@dataclass(frozen=True)
class Task:
    """The checked input of a fit.

    In the problem, held-out rows have weight 0; `rows` and `weight` are of all rows. `saved` is the `Iterate.state` of
    an interrupted fit, from which this one continues. `keeps_labels` says whether the classes are those of the model
    before the fit.
    """

    problem: Problem
    rows: Rows
    encoded: Any
    weight: Any
    held_out: HeldOut | None
    rng: np.random.Generator
    clock: Clock
    saved: dict[str, Any] | None = None
    keeps_labels: bool = False


class Estimator(CallbackSupportMixin, Parametrised, ABC):
    """Has ``status_``, ``history_``, ``n_iter_``, ``n_passes_``, and ``duality_gap_`` exactly where it is a bound.

    A subclass declares its parameters as the fields of a dataclass, and defines `_encode`, `_choose_loss`, `_iterates`,
    `_fallback` and `_store`. Callbacks are scikit-learn's (``set_callbacks``); their ``metadata`` holds the `Record` of
    the iteration.

    ``status_`` and ``history_`` are pickled as strings and numbers, so that loading a file needs no trusted types.
    """

    _divides_by_weight: ClassVar[bool] = True
    """Whether the loss is a mean over the rows, so that only ratios of weights matter."""

    _model_parts: ClassVar[tuple[type, ...]] = ()
    """Classes of fitted models, beside estimators and generators of features, that model files may name."""

    _fits_parts: ClassVar[bool] = False
    """Whether rows may lie in partitions of a Dask collection."""

    n_iter_: float
    n_passes_: float
    status_: Status
    history_: list[Record]
    duality_gap_: float
    choice_: dict[str, Any]

    alpha: Any
    random_state: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__ and "<shared>" in cls.__doc__:
            cls.__doc__ = complete_docstring(cls.__doc__, cls)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    @checks_parameters
    @fits_parts
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        memory_limit: float | str | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), Rows, or path
            float32 stays float32; CSR with 32- or 64-bit indices, memory maps, data frames and arrays of any array-API
            namespace (where the estimator computes with those) are accepted, and so are tables of pyarrow. Dense
            float16, bfloat16, integers and booleans are kept as they are and converted block by block: integers of 32
            and 64 bits to float64, the others to float32. (Compiled loops may need another layout or origin; then the
            rows are copied once.) Sparse rows of such types are converted to float64 as a whole. A path is a file or
            folder that `manyclass.data.open_rows` knows, and may be larger than memory. Some estimators take Dask
            collections: arrays, data frames, lists of delayed parts.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs)
            Labels of any dtype, or an indicator matrix; for regressors real responses. Where X is a path, also the name
            of their column, or the path of a file that holds them; by default, the column called target, label, class
            or y, or else the last one.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the same as the row given twice; rows of weight 0 count for nothing.
        memory_limit : float or str, default=None
            Bytes, or text such as "2GB", that the fit may use beside the model: rows of a path that need more stay in
            the file, and a fit that needs more in any case is refused. None is half of the free memory.
        checkpoint : path, default=None
            A file in which the state of the fit is stored every few seconds. If it is killed at any moment and called
            again with the same data and parameters, the fit goes on from there and ends with the same model; called
            again after it has ended by itself, it returns that model at once. The file is yours to delete.

        Returns
        -------
        self

        Raises
        ------
        MemoryError
            If the fit needs more than `memory_limit`.
        CheckpointError
            A ValueError, if the file at `checkpoint` is damaged, of another fit, or of another version.
        """
        clock = Clock(getattr(self, "max_time", None))
        limit = None if memory_limit is None else as_bytes(memory_limit)
        rows, y = check_labelled(self, X, y, memory_limit=memory_limit)
        self._check_rows(rows)
        weight = self._row_weights(rows, y, sample_weight)  # before `_encode` sets what predictions need
        before = vars(self).get("classes_")
        encoded = self._encode(rows, y)
        labels = vars(self).get("classes_")  # of responses there are none
        keeps_labels = labels is before
        if labels is not None and before is not None:
            keeps_labels = bool(np.array_equal(to_numpy(before), to_numpy(labels)))
        task = replace(self._task(rows, encoded, weight, clock), keeps_labels=keeps_labels)
        task.problem.memory_limit = limit
        check_memory(self._memory(task.problem), memory_limit, self._memory_advice)
        run = self._run(task, X, y, sample_weight)
        if checkpoint is not None:
            task = self._resumed(task, run, checkpoint)
        self._store_outcome(task, run(self._scaled_iterates(task), lambda: self._fallback(task)))
        tell_callbacks(self, X, y, sample_weight)
        return self

    # -- for subclasses -------------------------------------------------------------------------------------------

    @abstractmethod
    def _encode(self, rows: Rows, y: Any) -> Labels | Responses:
        """y, checked, from which targets can be made."""

    @abstractmethod
    def _choose_loss(self, encoded: Any) -> tuple[str, Loss]:
        """The name of the model's loss, and the loss that is fitted to the columns of scores."""

    @abstractmethod
    def _iterates(self, task: Task) -> Iterates:
        """The iterates of the fit. They include the set-up, so that it is limited by `max_time` and interruptible."""

    def _scaled_iterates(self, task: Task) -> Iterates:
        """The iterates, after ``alpha="scale"`` has been turned into a number, which takes a pass over the rows."""
        if task.saved is None and is_scaled(self):
            task.problem.alpha = penalty_of_columns(task.problem, counts_rows=not is_regressor(self))
        return (yield from self._iterates(task))

    @abstractmethod
    def _fallback(self, task: Task) -> Any:
        """The model of a fit without time for a single iterate."""

    @abstractmethod
    def _store(self, task: Task, model: Any) -> None:
        """Set the public attributes of a model."""

    @property
    def _alpha(self) -> float:
        """The penalty that a fit begins with."""
        return USUAL if is_scaled(self) else float(self.alpha)

    @property
    def _compiles(self) -> bool:
        """Whether the first fit on a machine compiles loops."""
        return False

    def _check_rows(self, rows: Rows) -> None:
        """Refuse rows that the estimator cannot work with."""
        if self._compiles and not rows.can_be_visited:
            raise TypeError(
                f"{type(self).__name__} runs compiled loops over NumPy arrays and SciPy CSR matrices here: pass those, "
                f"or use {'StagewiseRegressor' if is_regressor(self) else 'GLMClassifier'}, which computes where X is."
            )

    _memory_advice = "fit fewer rows, or use GLMClassifier or PegasosClassifier, whose memory does not grow with them"

    def _memory(self, problem: Problem) -> dict[str, float]:
        """Bytes beside rows and model, by what they are for."""
        chunk = problem.rows.block_limit
        return {"chunks of rows": 2.0 * chunk if chunk < math.inf else 0.0, "labels": 24.0 * problem.rows.n_rows}

    def _holds_out(self, rows: Rows, weight: Any) -> bool:
        """Whether rows are held out for early stopping."""
        return bool(getattr(self, "early_stopping", False))

    def _held_out_loss(self, task: Task, model: Any) -> float:
        """Mean loss of a model on the held-out rows, for iterates without `Iterate.held_out_loss`."""
        assert task.held_out is not None
        loss = ZeroOneLoss() if task.problem.loss.scale_free else task.problem.loss
        return task.held_out.loss(task.problem.variant(rows=task.rows, shift=None, on_block=nothing, loss=loss), *model)

    def _limits(self, task: Task) -> tuple[float, float | None]:
        """The tolerance and the number of iterations at which to stop."""
        return getattr(self, "tol", 0.0), getattr(self, "max_iter", None)

    def _max_iterates(self) -> int | None:
        """The most iterates that there can be; None if unknown."""
        limit = getattr(self, "max_iter", None)
        return None if limit is None or limit == "auto" else math.ceil(limit)

    def _n_threads(self, problem: Problem) -> int | None:
        """Threads of BLAS for the largest product of an iteration (small ones are faster on one); None for all."""
        return threads_of_products(problem.rows, problem.n_outputs)

    # -- the parts of a fit -----------------------------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        if isinstance(loss := vars(self).get("loss"), str):
            check_loss(type(self), loss)

    def _task(self, rows: Rows, encoded: Any, weight: Any, clock: Clock) -> Task:
        rng = generator(self.random_state)
        held_out = None
        if self._holds_out(rows, weight):
            divide = hold_out if rows.place.is_here else hold_out_in_parts
            held_out = divide(rows, encoded.strata, weight, self.validation_fraction, rng)
        problem = self._problem(rows, encoded, weight if held_out is None else held_out.weight, clock)
        return Task(problem, rows, encoded, weight, held_out, rng, clock)

    def _problem(self, rows: Rows, encoded: Any, weight: Any, clock: Clock) -> Problem:
        loss, targets = self._loss_and_targets(rows, encoded)
        fit_intercept = getattr(self, "fit_intercept", True)
        problem = Problem(rows, targets, loss, self._alpha, weight=weight, fit_intercept=fit_intercept)
        problem.on_block = clock.check
        return problem

    def _loss_and_targets(self, rows: Rows, encoded: Any) -> tuple[Loss, Targets]:
        """The loss that is fitted, and y as its targets; sets ``loss_``."""
        self.loss_, loss = self._choose_loss(encoded)
        one_column = loss.label_values is not None or self.loss_ != loss.name
        return loss, encoded.targets(rows, loss.label_values, one_column=one_column)

    def _row_weights(self, rows: Rows, y: Any, sample_weight: Any) -> Any:
        class_weight = getattr(self, "class_weight", None)
        return check_weights(rows, y, sample_weight, class_weight, relative=self._divides_by_weight)

    def _run(self, task: Task, X: Any = None, y: Any = None, sample_weight: Any = None) -> Run:
        held_out_loss = None if task.held_out is None else partial(self._held_out_loss, task)
        on_iterate = None
        if getattr(self, "_skl_callbacks", None) and X is not None:
            on_iterate = self._callback_bridge(task, X, y, for_scorers(sample_weight))
        tol, max_iter = self._limits(task)
        return Run(
            task.clock,
            tol=tol,
            max_iter=max_iter,
            held_out_loss=held_out_loss,
            patience=getattr(self, "n_iter_no_change", 5),
            on_iterate=on_iterate,
            n_threads=self._n_threads(task.problem),
        )

    def _resumed(self, task: Task, run: Run, path: Any) -> Task:
        """Give the run a checkpoint at `path`; if one exists, restore its state, and give the task with the rest."""
        before, parameters = dict(vars(self)), self.get_params(deep=False)

        def beside_the_run() -> dict[str, Any]:
            """Attributes that the fit has set so far, such as ``choice_``, and the penalty."""
            new = {name: value for name, value in vars(self).items() if before.get(name) is not value}
            return {"attributes": new, "alpha": task.problem.alpha}

        belongs_to = fingerprint(type(self).__name__, parameters, task.rows, task.encoded, task.weight)
        run.checkpoint = Checkpoint(path, belongs_to, beside_the_run)
        rows = task.rows
        run.saved = saved = run.checkpoint.read(
            lambda array: rows.asarray(array, dtype=getattr(rows.xp, str(array.dtype)))
        )
        if saved is None:
            return task
        self.__dict__.update(saved["more"]["attributes"])
        task.problem.alpha = saved["more"]["alpha"]
        return replace(task, saved=saved["solver"])

    def _callback_bridge(self, task: Task, X: Any, y: Any, metadata: dict[str, Any]) -> Any:
        """A function that reports each iterate to scikit-learn's callbacks, as a finished subtask of the fit."""
        context = self._init_callback_context(max_subtasks=self._max_iterates())
        context.call_on_fit_task_begin(estimator=self, X=X, y=y, metadata=metadata)

        def show(record: Record, iterate: Iterate) -> bool:
            def attributes() -> dict[str, Any]:
                twin = type(self).__new__(type(self))
                twin.__dict__.update(self.__dict__)
                twin._store(task, iterate.model())
                twin.status_, twin.history_ = Status.STOPPED_BY_CALLBACK, [record]
                twin.n_iter_, twin.n_passes_ = record.n_iter, record.n_passes
                return {name: value for name, value in vars(twin).items() if name.endswith("_") or name[:1] == "_"}

            step = context.subcontext(task_name="iteration")
            details = {"estimator": self, "X": X, "y": y, "metadata": Metadata(metadata, record=record)}
            step.call_on_fit_task_begin(**details)
            return bool(step.call_on_fit_task_end(**details, reconstruction_attributes=attributes))

        return show

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        self._store(task, outcome.model)
        self.n_iter_, self.n_passes_ = outcome.n_iter, outcome.n_passes
        self.status_, self.history_ = outcome.told(getattr(self, "tol", 0.0)), list(outcome.history)
        self.__dict__.pop("duality_gap_", None)
        if outcome.duality_gap == outcome.duality_gap:
            self.duality_gap_ = outcome.duality_gap
        if self.status_.is_failure:
            has_gap = hasattr(self, "duality_gap_")
            message = f"{self.status_}{f' (duality gap {self.duality_gap_:.2g})' if has_gap else ''}"
            if self.status_ in (Status.MAX_ITER, Status.NOT_CONVERGED):
                message += advice(task.problem) + (advice_on_penalty(task.problem) if has_gap else "")
            message = message if self.status_ is not Status.MAX_TIME or outcome.history else NO_TIME
            warnings.warn(f"{type(self).__name__}: {message}", ConvergenceWarning, stacklevel=outside())

    def _fitted_rows(self, X: Any) -> Rows:
        """The rows to predict, checked."""
        check_is_fitted(self, "status_")
        return check_rows(self, X, reset=False)[0]

    def _opened(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X and y for ``score``, read from the file if X is a path."""
        check_is_fitted(self, "status_")
        return check_rows(self, X, True if y is None else y, reset=False) if is_stored(X) else (X, y)

    # -- for pickle, joblib, skops and copy ---------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if isinstance(state.get("status_"), Status):
            state["status_"] = state["status_"].name
        history = state.get("history_")
        if history and isinstance(history[0], Record):
            rows = [vars(record) | {"details": dict(record.details)} for record in history]
            state["history_"] = {"fields": list(rows[0]), "values": [list(row.values()) for row in rows]}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if isinstance(state.get("status_"), str):
            state["status_"] = Status[state["status_"]]
        history = state.get("history_")
        if isinstance(history, dict):
            state["history_"] = [Record(**dict(zip(history["fields"], row, strict=True))) for row in history["values"]]
        super().__setstate__(state)


def outside() -> int:
    """The `stacklevel` at which a warning of the caller names the user's line, outside of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(("manyclass.", "sklearn.base")):
        frame, level = frame.f_back, level + 1
    return level
