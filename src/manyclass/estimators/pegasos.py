"""Multi-class linear models by stochastic subgradient descent whose cost does not grow with n."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_X_y
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data import Design
from manyclass.data.design import Array
from manyclass.data.validation import check_rows, check_weights
from manyclass.estimators.base import LinearClassifier
from manyclass.estimators.encoding import Labels, encode
from manyclass.estimators.held_out import split_rows
from manyclass.estimators.parameters import CLASS_WEIGHT, HELD_OUT, RUN, seed_of
from manyclass.estimators.streams import chunk_labels, n_outputs_of, targets_of, weights_of
from manyclass.solvers import Record
from manyclass.solvers.subgradient.draws import make_draws
from manyclass.solvers.subgradient.held_out import HeldOut
from manyclass.solvers.subgradient.kernel import Targets, Weights
from manyclass.solvers.subgradient.losses import LOSSES, Loss
from manyclass.solvers.subgradient.pegasos import (
    Plan,
    State,
    Stopping,
    Stream,
    as_rows,
    mean_square,
    solve,
    warm_offset,
)


class PegasosClassifier(LinearClassifier):
    """Linear classifier fitted by stochastic subgradient steps of length 1/(alpha t), all classes jointly.

    Minimises, over W of shape (n_features, n_outputs) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i ℓ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i,

    by W ← (1 − 1/τ) W − (1/(alpha τ r)) Σ ∂ℓ over r rows drawn at random, τ = t + `step_offset`. There is no learning
    rate, and a step costs r × (non-zeros of a row) × (outputs) whatever the number of rows and features is: the more
    rows there are, the less time a given accuracy takes (*Characterizing Inverse Time Dependency in Multi-class
    Learning*, Algorithm 1 and Theorems 2 and 3). Two classes are fitted as one column, log(1 + e^{−z}) and its kin.

    Parameters
    ----------
    alpha : float, default=1e-4
        Penalty, > 0. In other libraries' units: ``SGDClassifier(alpha=alpha)``, ``LinearSVC(C=1/(alpha*n))``.
    loss : {"log_loss", "hinge", "squared_hinge", "perceptron"}, default="log_loss"
        Joint losses: multinomial logistic (eq. 6); Crammer and Singer's hinge max(0, 1 + max_{j≠y} z_j − z_y) (eq. 9);
        half its square; multi-class perceptron max_j z_j − z_y (eq. 11), whose predictions do not depend on alpha.
    multi_class : {"joint", "ovr"}, default="joint"
        "ovr" fits one binary loss per class against the rest, all on the same rows: K-binaryLR, K-Pegasos, and the
        objective of LinearSVC (for "squared_hinge" at half its alpha, as the square is halved here). Indicator
        targets (multi-label) always have one binary loss per label.
    batch_size : int, default=1
        r, the rows of a step.
    max_iter : int, default=20
        Passes over the rows at most.
    max_steps : int, default=None
        T, the number of steps; replaces `max_iter`, so that the work does not depend on n.
    average : bool, default=True
        Whether the model is the average of the iterates W_t with weights (t + step_offset)², rather than the last one.
    step_offset : "auto" or float, default="auto"
        The steps are 1/(alpha (t + step_offset)). 0 is the paper; "auto" makes the first step no longer than the data
        allow, L · mean‖x‖² / alpha where L bounds the curvature of the loss; a quarter of that where subgradients are
        bounded.
    replace : bool, default=False
        Whether rows are drawn with replacement, as in the paper, or each once before any is drawn again.
    fit_intercept : bool, default=True
        The intercept takes AdaGrad steps of unit size, as 1/(alpha t) is meaningless where there is no penalty. For the
        perceptron it is the weight of a constant feature.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in scikit-learn.
    tol : float, default=1e-2
        Stop after an epoch when ``certificate_`` is at or below this; 0 takes all steps. Without effect under
        `early_stopping`, where held-out rows decide.
    max_time : float, default=None
        Limit in seconds, compilation not counted; the model so far is kept.
    early_stopping : bool, default=False
        Whether to keep rows out of the fit and to stop when their mean loss, weighted, no longer falls (for the
        perceptron: the share of them that is right no longer rises); the best model is kept.
        `partial_fit` takes every row once and holds none out.
    validation_fraction : float, default=0.1
        Share of the rows kept out.
    n_iter_no_change : int, default=5
        Epochs without a better score after which to stop early.
    warm_start : bool, default=False
        Go on from the present model and step count if they fit the data.
    callback : callable, default=None
        Called after each epoch with a `Record` (n_passes, objective, certificate, seconds, parameters()).
    random_state : int, RandomState or None, default=None
        Decides which rows are drawn; None means a fixed seed, so results repeat. The number of threads never matters.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    certificate_ : float
        An estimate of (F − F*) / F(zero model) at the present intercept: the mean loss of the last epoch's rows, each
        before its step, less the bound that the tangents of all steps give. On average it is too large; it costs
        nothing. Infinite for the perceptron, after a warm start, and where alpha has changed.
    status_ : Status
        Why the solver stopped.
    history_ : list of Record
        One record per epoch; its objective is the online estimate above.
    n_iter_ : int
        Passes over the rows, rounded up.
    t_ : int
        Steps taken since the start.
    step_offset_ : float
    validation_scores_ : list of float
        Minus the mean loss of the held-out rows (perceptron: the share that is right) after each epoch; empty without
        early stopping.
    compile_seconds_ : float
        Time spent compiling or loading compiled code before the clock of ``history_`` started; it happens once in a
        process for each type of data.
    multilabel_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or scores overflow.

    Notes
    -----
    The paper's own algorithm is ``step_offset=0, average=False, replace=True, fit_intercept=False, tol=0``.

    A sample weight scales its row's gradient: a row of weight 2 moves W in expectation like the row given twice, though
    on another path.

    `partial_fit` continues a stream with one pass over each chunk, in a random order within the chunk. The result is
    that of shuffled data if and only if the stream itself is in random order; sorted streams must be shuffled first.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import PegasosClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PegasosClassifier(alpha=1e-3, loss="hinge").fit(X[:1200] / 16, y[:1200])
    >>> bool(model.score(X[1200:] / 16, y[1200:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CLASS_WEIGHT,
        **HELD_OUT,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions({loss for loss, _ in LOSSES})],
        "multi_class": [StrOptions({"joint", "ovr"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left"), None],
        "average": ["boolean"],
        "step_offset": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "replace": ["boolean"],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        loss: str = "log_loss",
        multi_class: str = "joint",
        batch_size: int = 1,
        max_iter: int = 20,
        max_steps: int | None = None,
        average: bool = True,
        step_offset: float | str = "auto",
        replace: bool = False,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-2,
        max_time: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        callback: Callable[[Record], Any] | None = None,
        random_state: Any = None,
    ):
        self.alpha = alpha
        self.loss = loss
        self.multi_class = multi_class
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.max_steps = max_steps
        self.average = average
        self.step_offset = step_offset
        self.replace = replace
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_time = max_time
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PegasosClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            float32 stays float32; CSR with 32- or 64-bit indices, memory maps and data frames are accepted.
        y : array-like of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
            Labels of any dtype.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        self._validate_params()
        design, y = self._check_rows(X, y, reset=True)
        labels = encode(y, type(self).__name__)
        weight = check_weights(design, y, sample_weight, self.class_weight)
        kept, held_out = self._split(design, labels, weight)
        n_rows = design.n_rows if kept is None else len(kept)
        draws = make_draws(n_rows, seed_of(self.random_state), self.replace, kept)
        plan = self._plan(labels)
        stream = self._stream(design, labels, weights_of(weight, kept), draws, plan, self._warm_state(design, labels))
        n_draws = self.max_iter * n_rows if self.max_steps is None else self.max_steps * self.batch_size
        stopping = Stopping(self.tol, self.max_time, held_out, self.n_iter_no_change, self.callback)
        solution, self.validation_scores_ = solve(stream, n_draws, stopping)
        self._store(labels, solution.coef, solution.intercept)
        self._store_run(solution.status, solution.history, solution.n_passes)
        self._store_stream(stream, keep=self.warm_start)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> PegasosClassifier:
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
        """
        self._validate_params()
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once: give partial_fit a dict, or sample_weight."
            )
        is_first = not hasattr(self, "classes_")
        design, y = self._check_rows(X, y, reset=is_first)
        known = None if is_first else self.classes_
        labels = chunk_labels(y, known, classes, type(self).__name__)
        weight = check_weights(design, y, sample_weight, self.class_weight)
        state = getattr(self, "_state", None)
        if state is None and not is_first:
            state = self._resumed(design, self._plan(labels))
        plan = self._plan(labels)
        seed = np.random.SeedSequence([seed_of(self.random_state), 0 if state is None else state.t])
        draws = make_draws(design.n_rows, int(seed.generate_state(1, np.uint64)[0]), False)
        values = np.empty(0) if weight is None else weight.astype(np.float64)
        stream = self._stream(design, labels, Weights(values, 1.0), draws, plan, state)
        state = stream.state
        state.rows_seen += design.n_rows
        state.weight_sum += design.n_rows if weight is None else float(weight.sum(dtype=np.float64))
        if weight is not None or state.weight_sum != state.rows_seen:
            values = values if len(values) else np.ones(design.n_rows)
            stream.weights = Weights(values, state.rows_seen / state.weight_sum if state.weight_sum > 0 else 1.0)
        state.position = 0
        stopping = Stopping(max_time=self.max_time, callback=self.callback)
        solution, self.validation_scores_ = solve(stream, design.n_rows, stopping)
        self._store(labels, solution.coef, solution.intercept)
        self._store_run(solution.status, solution.history, solution.n_passes)
        self._store_stream(stream, keep=True)
        return self

    # -- from the estimator's parameters to the solver's --------------------------------------------------------------

    def _check_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Design, Any]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if reset:
            design, y = check_rows(self, X, y, reset=True)
        else:
            # The width is compared with that of the first chunk, y is checked against X.
            design = check_rows(self, X, reset=False)[0]
            _, y = check_X_y(design.X, y, accept_sparse="csr", multi_output=True, dtype=None, ensure_all_finite=False)
        if not design.is_numpy:
            raise TypeError(
                f"{type(self).__name__} runs compiled loops over NumPy arrays and SciPy CSR matrices: pass those, or "
                "use GLMClassifier, which computes on any array library's device."
            )
        return design, y

    def _loss(self, labels: Labels) -> Loss:
        columns = labels.is_multilabel or len(labels.classes) == 2
        return LOSSES[self.loss, "ovr" if columns else self.multi_class]

    def _plan(self, labels: Labels) -> Plan:
        return Plan(
            loss=self._loss(labels),
            alpha=float(self.alpha),
            batch_size=self.batch_size,
            average=self.average,
            offset=None if self.step_offset == "auto" else float(self.step_offset),
            fit_intercept=self.fit_intercept,
        )

    def _stream(
        self, design: Design, labels: Labels, weights: Weights, draws: Any, plan: Plan, state: State | None
    ) -> Stream:
        rows = as_rows(design)
        if state is None:
            offset = plan.offset if plan.offset is not None else warm_offset(plan, mean_square(rows, draws, weights))
            state = State.zero(design.n_features, n_outputs_of(labels), design.dtype, plan, offset)
        state.set_alpha(plan.alpha)
        return Stream(rows, targets_of(labels), weights, draws, plan, state)

    def _split(self, design: Design, labels: Labels, weight: Array | None) -> tuple[np.ndarray | None, Any]:
        """Indices of the rows to fit on, and the score of a model on the others."""
        if not self.early_stopping:
            return None, None
        kept, out = split_rows(labels, design.n_rows, self.validation_fraction, seed_of(self.random_state))
        targets = targets_of(labels)
        some = Targets(targets.codes[out] if len(targets.codes) else targets.codes, targets.indicator, targets.first)
        if len(targets.indicator):
            some = some._replace(indicator=targets.indicator[out])
        share = np.ones(len(out)) if weight is None else weight[out].astype(np.float64)
        return kept, HeldOut(Design(design.take(out)), some, share, self._loss(labels)).score

    def _warm_state(self, design: Design, labels: Labels) -> State | None:
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if tuple(self.coef_.shape) != (n_outputs_of(labels), design.n_features):
            return None
        state = getattr(self, "_state", None)
        if state is None:
            state = self._resumed(design, self._plan(labels))
        elif state.average != self.average or state.table.dtype != design.dtype:
            state = self._resumed(design, self._plan(labels))
        state.position = 0
        return state

    def _resumed(self, design: Design, plan: Plan) -> State:
        """A state whose present iterate is the fitted model."""
        n_outputs, n_features = self.coef_.shape
        state = State.zero(n_features, n_outputs, design.dtype, plan, self.step_offset_)
        intercept = np.asarray(self.intercept_, dtype=np.float64)
        return state.resume(self.coef_.T, intercept, self.t_, plan.loss.scale_free)

    def _store_stream(self, stream: Stream, keep: bool) -> None:
        self.t_, self.step_offset_ = stream.state.t, stream.state.offset
        self.compile_seconds_ = stream.compile_seconds
        self._state = stream.state if keep else None

    def _probability_link(self) -> str:
        several = getattr(self, "multilabel_", False)
        loss = LOSSES.get((self.loss, "ovr" if several else self.multi_class))
        if loss is None or loss.link is None:
            raise AttributeError(
                f"loss={self.loss!r} gives scores but no probabilities; use loss='log_loss', or put "
                "CalibratedClassifierCV around this classifier."
            )
        return loss.link
