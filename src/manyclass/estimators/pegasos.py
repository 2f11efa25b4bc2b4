"""Multi-class linear models by stochastic subgradient descent whose cost does not grow with n."""

import dataclasses
from collections.abc import Callable
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.choice.features import advice
from manyclass.choice.penalty import penalty_of_columns
from manyclass.data.labels import encode_chunk
from manyclass.data.penalty import OF_MEDIAN
from manyclass.data.units import in_other_units
from manyclass.data.validation import check_labelled, check_weights
from manyclass.estimators.base import Task
from manyclass.estimators.calibration import CALIBRATE, CrossCalibrated
from manyclass.estimators.parameters import (
    CLASS_WEIGHT,
    POSITIVE_ALPHA,
    RUN,
    Balanced,
    HoldsOut,
    all_or_nothing,
    checks_parameters,
    epochs,
    generator,
    is_scaled,
    seed_of,
)
from manyclass.fit import Clock, Iterate, Iterates, Outcome, OutOfTime, Run, Status, changed, restore
from manyclass.model import Problem, SmoothLoss
from manyclass.solvers.majorize import holds_scores
from manyclass.solvers.plane import of_lowest_scale
from manyclass.subgradient.schedule import SCHEDULES, Schedule

OVERFLOWING = 1e12
"""Chunks whose mean squared norm is so many times that of the first rows may overflow."""
FEWEST_EPOCHS, MULTIPLICATIONS = 20, 2e8
"""max_iter="auto": the least number of epochs, and the multiplications that allow more."""


@dataclass(eq=False, repr=False)
class PegasosClassifier(Balanced, HoldsOut, CrossCalibrated):
    """Linear classifier fitted by stochastic subgradient steps of length 1/(alpha t), all classes jointly.

    Minimises, over W of shape (n_features, n_outputs) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i ℓ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i,

    by W ← (1 − 1/τ) W − (1/(alpha τ r)) Σ ∂ℓ over r rows drawn at random, τ = t + ``step_offset_``. There is no
    learning rate, and a step costs r × (non-zeros of a row) × (outputs) whatever the number of rows and features is:
    the more rows there are, the less time a given accuracy takes (*Characterizing Inverse Time Dependency in
    Multi-class Learning*, Algorithm 1 and Theorems 2 and 3). Two classes are fitted with one column of scores, by the
    binary form of the loss, such as log(1 + e^{−z}).

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        Penalty, > 0. In other libraries' units: ``SGDClassifier(alpha=alpha)``, ``LinearSVC(C=1/(alpha*n))``, for its
        squared hinge too.
    loss : {"auto", "softmax", "logistic", "hinge", "squared_hinge", "crammer_singer", "squared_crammer_singer", \
            "perceptron"}, default="auto"
        Joint losses: "softmax" (eq. 6); "crammer_singer", the hinge max(0, 1 + max_{j≠y} z_j − z_y) (eq. 9), and its
        square; "perceptron", max_j z_j − z_y (eq. 11), whose predictions do not depend on alpha with
        ``schedule="paper"``. One binary loss per class against the rest, all on the same rows: "logistic"
        (K-binaryLR), "hinge" (K-Pegasos) and its square. "auto" takes "softmax", or "logistic" when y is an indicator
        matrix.
    schedule : {"auto", "paper"} or `manyclass.subgradient.Schedule`, default="auto"
        "paper" is Algorithm 1 as printed: steps 1/(alpha t), the last iterate, rows drawn with replacement. "auto"
        derives the first step from the data, for each feature by itself where they differ in size, averages the
        iterates, and draws each row once before any is drawn again; where the loss is smooth and all scores fit into
        memory, `fit` gives the average the scale at which F is least.
        A `Schedule` sets each of these by itself, and the number of rows r of a step, which otherwise is 1.
    max_iter : float or "auto", default="auto"
        Epochs, each of as many draws as there are rows; may be a fraction. T steps, whose cost does not depend on n,
        are ``max_iter=T * r / n``. "auto" is 20, or more where rows are few, as an accuracy takes a number of steps and
        not of epochs: as many as fit into 2·10⁸ multiplications, a fraction of a second. With "auto", not reaching
        `tol` is worth a warning only where columns are of very different size.
    fit_intercept : bool, default=True
        The intercept takes AdaGrad steps of unit size, as 1/(alpha t) is meaningless where there is no penalty. For the
        perceptron it is the weight of a constant feature.
    calibrate : {"sigmoid", "temperature"} or None, default=None
        Probabilities for the losses that have none, as in `SDCAClassifier`: from scores of rows left out of five more
        fits, or held out of the only one. `partial_fit` refuses it, as it cannot go back to earlier rows.
    tol : float, default=1e-3
        Stop after an epoch when its estimate of (F − F*) / F(zero model), ``estimated_gap`` among the details of
        ``history_``, is at or below this; 0 takes all steps. It is no bound, and there is none for the perceptron,
        after a warm start, and where alpha has changed. With `early_stopping` held-out rows decide instead.
    max_time : float, default=None
        Limit in seconds, set-up and compilation included (see ``compile_seconds_``); a few milliseconds of steps are
        always taken, and the model so far is kept.
    early_stopping : bool, default=False
        Hold rows out, stop when their loss no longer falls, and keep the model with the smallest. For the perceptron
        the share of them that is wrong decides. `partial_fit` takes every row once and holds none out.
    warm_start : bool, default=False
        Go on from the present model and step count if columns, labels, and the size and centre of the rows are as
        before.
    random_state : int, RandomState or None, default=None
        Decides which rows are drawn; None means a fixed seed, so results repeat. The number of threads never matters.
    <shared>

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    calibration_ : ndarray of shape (2, n_classes) or (2, 1)
        Slopes and offsets of `calibrate`, by which scores become those of the link.
    history_ : list of Record
        One record per epoch. The objective is an online estimate: the mean loss of the epoch's rows, each before its
        step, and the penalty. The details are ``steps``, and ``estimated_gap``: the relative distance of that from the
        bound that the tangents of all steps give, on average too large.
    n_iter_ : float
        Epochs, an int where they are whole.
    t_ : int
        Steps taken since the start.
    step_offset_ : float
        That of the intercept, where features have offsets of their own.
    compile_seconds_ : float
        Time spent compiling or loading compiled code; it is part of the seconds in ``history_`` and of `max_time`, and
        happens once in a process for each type of data (with `calibrate` in the first of the five models).
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or scores overflow.
    TypeError
        If X is not held in memory as a NumPy array or SciPy CSR matrix.

    Notes
    -----
    The paper's own algorithm is ``schedule="paper", fit_intercept=False, tol=0``.

    A sample weight scales its row's gradient: a row of weight 2 moves W in expectation like the row given twice, though
    on another path. A row of more than a hundred times the mean weight, or in other units than most, moves it no
    further than the curvature of the loss allows.

    Rows of a path that do not fit into memory are visited chunk by chunk, the rows of a chunk in a random order. Where
    the file can be read anywhere a chunk is made of pieces of 1 MB at most from all over it, others in each epoch;
    else chunks come in the order of the file, which must be shuffled first where it is sorted.

    `partial_fit` continues a stream with one pass over each chunk, in a random order within the chunk. The result is
    that of shuffled data if and only if the stream itself is in random order; sorted streams must be shuffled first.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import PegasosClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PegasosClassifier(alpha=1e-3, loss="crammer_singer", tol=0).fit(X[:1200] / 16, y[:1200])
    >>> bool(model.score(X[1200:] / 16, y[1200:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CLASS_WEIGHT,
        **CALIBRATE,
        **POSITIVE_ALPHA,
        "max_iter": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "loss": [str],
        "schedule": [StrOptions(set(SCHEDULES)), Schedule],
        "warm_start": ["boolean"],
    }

    alpha: float | str = "scale"
    _: KW_ONLY
    loss: str = "auto"
    schedule: str | Schedule = "auto"
    max_iter: float | str = "auto"
    calibrate: str | None = None
    tol: float = 1e-3
    warm_start: bool = False

    @all_or_nothing
    @checks_parameters
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One pass over a chunk of a stream, in random order, after all chunks before it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever occur; needed at the first call, except for indicator matrices.
        sample_weight : array-like of shape (n_samples,), default=None
            Relative to the mean weight of all rows so far.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `fit`, and if `calibrate` or balanced weights are asked for, which take all rows at once.
        """
        clock = Clock(self.max_time)
        if self.calibrate is not None:
            raise ValueError(
                f"calibrate={self.calibrate!r} leaves out fifths of the rows, which takes all rows at once: use fit, "
                "or calibrate the finished model on other rows by CalibratedClassifierCV(FrozenEstimator(model))."
            )
        is_first = not hasattr(self, "classes_")
        rows, y = check_labelled(self, X, y, reset=is_first)
        self._check_rows(rows)
        seen, several = (None, None) if is_first else (self.classes_, self.multilabel_)
        labels = encode_chunk(y, seen, classes, type(self).__name__, several=several)
        weight = check_weights(rows, y, sample_weight, self.class_weight, is_part=True)
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        self.__dict__.pop("calibration_", None)  # of another model, from here on
        problem = self._problem(rows, labels, weight, clock)
        task = Task(problem, rows, labels, weight, None, generator(self.random_state), clock)
        run = Run(clock, max_iter=1, n_threads=self._n_threads(problem))
        # A chunk without time for a single step must not reset the model.
        fallback = (lambda: self._fallback(task)) if is_first else (lambda: (self.coef_.T, self.intercept_))
        self._store_outcome(task, run(self._chunk_iterates(task), fallback), keep=True)
        return self

    # -- from the estimator's parameters to the solver's --------------------------------------------------------------

    _compiles = True

    def _memory(self, problem: Problem) -> dict[str, float]:
        table = problem.rows.n_features * problem.n_outputs * problem.rows.itemsize
        return super()._memory(problem) | {"the steps so far": 5.0 * table}

    def _schedule(self) -> Schedule:
        return self.schedule if isinstance(self.schedule, Schedule) else SCHEDULES[self.schedule]

    def _iterates(self, task: Task) -> Iterates:
        task = self._calibrate(task)
        goes_on = self.warm_start and task.keeps_labels
        # A copy, so that a fit that fails leaves the state as it was.
        self._state = deepcopy(vars(self).get("_state")) if goes_on else None
        seed, replace = seed_of(self.random_state), self._schedule().replace
        steps = self._steps(task, seed, replace, self._limits(task)[1], resume=goes_on)
        judge = cache(partial(_ignoring_other_units, task.problem))
        return (yield from changed(steps, partial(self._scaled, task.problem, judge)))

    def _scaled(self, problem: Problem, judge: Callable[[], Problem], iterate: Iterate) -> Iterate:
        """The iterate with its model multiplied by the factor of least objective, which is computed lazily.

        Where rows are few, steps are as long in the end as in the beginning, and their noise changes the length of the
        scores more than the direction. `judge` gives the problem without rows in other units: one of these with a wrong
        label would make the factor next to 0.
        """
        schedule = self._schedule()
        is_derived = schedule.offset is None and schedule.average
        if not (is_derived and isinstance(problem.loss, SmoothLoss) and iterate.n_iter >= 1 and holds_scores(problem)):
            return iterate

        def scaled_model() -> Any:
            model = iterate.model()
            try:
                return of_lowest_scale(judge(), *model)
            except OutOfTime:
                return model

        return dataclasses.replace(iterate, model=scaled_model, lasting=True)

    def _chunk_iterates(self, task: Task) -> Iterates:
        if is_scaled(self):
            alpha = vars(self).get("alpha_")  # of the first chunk, as all chunks share one objective
            task.problem.alpha = penalty_of_columns(task.problem, False) if alpha is None else alpha
        t = getattr(self, "t_", 0)
        state = vars(self).get("_state")
        if state is not None and not float(task.rows.mean_square().sum()) <= OVERFLOWING * max(state.unit, 1e-300):
            self._state = deepcopy(state)  # a chunk that may overflow, and be refused, must not change the state
        seed = int(np.random.SeedSequence([seed_of(self.random_state), t]).generate_state(1, np.uint64)[0])
        return (yield from self._steps(task, seed, False, 1, resume=True, same_stream=True))

    def _steps(
        self, task: Task, seed: int, replace: bool, n_epochs: float, *, resume: bool, same_stream: bool = False
    ) -> Iterates:
        """The iterates of the solver, from the present model if `resume`; or after other rows of the `same_stream`."""
        from manyclass.subgradient.draws import make_draws
        from manyclass.subgradient.pegasos import ChunkedPegasos, Pegasos
        from manyclass.subgradient.state import State

        problem, rows, schedule = task.problem, task.rows, self._schedule()
        draws = make_draws(rows.n_rows, seed, replace, problem.weight)
        state, others_follow = getattr(self, "_state", None), same_stream or self.warm_start
        if state is not None and not same_stream and rows.n_features == len(state.wide):
            resume = state.is_near(State.begin(problem, rows, schedule, draws, others_follow=True))
        if state is None or not resume or not state.fits(problem, schedule):
            resume = resume and getattr(self, "coef_", np.empty(0)).shape == (problem.n_outputs, rows.n_features)
            begun = dataclasses.replace(schedule, offset=self.step_offset_) if resume else schedule
            state = State.begin(problem, rows, begun, draws, others_follow=others_follow)
            if resume:
                state.resume(self.coef_.T, problem.fit_intercept * self.intercept_.astype(np.float64), self.t_)
        state.start_rows(same_stream=same_stream)
        self._state = state
        if rows.has_arrays:
            solver = Pegasos(problem, rows, draws, state, schedule.batch_size)
        else:
            solver = ChunkedPegasos(problem, rows, draws, state, schedule.batch_size, seed)
        self.compile_seconds_ = solver.compile()
        if task.saved is not None:
            restore(state, task.saved["steps"])
        return (yield from solver.iterates(n_epochs))

    def _limits(self, task: Task) -> tuple[float, float]:
        # The perceptron has no estimate of the gap, and held-out rows are better than an estimate to stop by.
        ignores_tol = task.problem.loss.scale_free or task.held_out is not None
        rows, weight, k = task.rows, task.problem.weight, self.classes_.shape[0]
        most = epochs(self.max_iter, rows, weight, k, FEWEST_EPOCHS, MULTIPLICATIONS)
        return 0.0 if ignores_tol else self.tol, most

    def _store_outcome(self, task: Task, outcome: Outcome, keep: bool = False) -> None:
        state = self.__dict__.pop("_state", None)
        self.t_: int = 0 if state is None else state.t
        self.step_offset_: float = 0.0 if state is None else state.offset
        if keep or self.warm_start:
            self._state = state
        if outcome.status is Status.MAX_ITER and self.max_iter == "auto" and not advice(task.problem):
            outcome = dataclasses.replace(outcome, status=Status.FINISHED)
        super()._store_outcome(task, outcome)


def _ignoring_other_units(problem: Problem) -> Problem:
    """The problem with weights of 0 for rows in other units than most."""
    weight = problem.weights_of(~in_other_units(problem.rows, problem.rows.take(problem.sample(OF_MEDIAN))))[0]
    return problem.variant(weight=weight) if weight.any() else problem
