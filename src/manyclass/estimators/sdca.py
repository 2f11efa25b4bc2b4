"""Linear models by stochastic dual coordinate ascent."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from manyclass.data import Design
from manyclass.data.validation import check_rows, check_weights
from manyclass.estimators.base import LinearClassifier, linear_scores
from manyclass.estimators.dual import SHARED_CONSTRAINTS, DualAscent
from manyclass.estimators.encoding import Labels, encode
from manyclass.estimators.parameters import CLASS_WEIGHT
from manyclass.solvers.base import Record
from manyclass.solvers.dual import COLUMN_LOSSES, JOINT_LOSSES, DualProblem


class SDCAClassifier(LinearClassifier, DualAscent):
    """Linear classifier by stochastic dual coordinate ascent, stopped on its duality gap.

    Minimises, over W of shape (n_features, n_outputs) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i φ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i,

    by exact steps in one dual variable (one row) at a time, in a fresh random order each epoch (Shalev-Shwartz and
    Zhang, 2013; Hsieh et al., 2008). There is no learning rate. Good at sparse wide data, at hinge losses, and where a
    d×d factor would not fit; where it does, `GLMClassifier` needs fewer passes for smooth losses.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "log_loss", "squared"}, default="squared_hinge"
        φ(z, y) with y = ±1: max(0, 1 − yz)², max(0, 1 − yz), log(1 + exp(−yz)), or ½(y − z)².
    alpha : float, default=1e-4
        Penalty, > 0. In other libraries' units: ``LinearSVC(C=1/(alpha*S))``, ``LogisticRegression(C=1/(alpha*S))``,
        LIBLINEAR ``C = 1/(alpha*n)``, and 2C for its ``-s 1``-type losses written with a factor ½.
    multi_class : {"ovr", "crammer_singer", "multinomial"}, default="ovr"
        "ovr" fits each class (or label) against the rest, all of them in one pass over X. With three or more classes
        "crammer_singer" (for loss="hinge") is max_j (z_j + [j ≠ y]) − z_y and "multinomial" (for loss="log_loss") is
        log Σ_j exp z_j − z_y: one dual point in the simplex per row.
    homotopy : "auto", bool or int, default="auto"
        Penalties to solve at before alpha, each from the dual point of the last. True is ν = 0.25·√alpha
        (*Homotopic Initialization*, §3.2), an integer P is P points in geometric progression from the larger of ν and
        mean ‖x‖²/n to alpha, and "auto" goes there from mean ‖x‖²/n in steps of at most 4. A phase ends when its
        estimated gap is at most ``tol``, or its even share of half of ``max_iter`` or ``max_time`` is spent.
    fit_intercept : bool, default=True
        The intercept is not penalised: by centring for the squared loss, by a proximal-point method in b for the
        others (a constant feature whose penalty is around the present intercept).
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in scikit-learn.
    tol : float, default=1e-3
        Stop when ``certificate_`` is at or below this.
    max_iter : int, default=1000
        Limit on epochs, those of all penalties together.
    max_time : float, default=None
        Limit in seconds; the best model so far is kept.
    warm_start : bool, default=False
        Start from the present dual variables if they are about as many rows and outputs.
    callback : callable, default=None
        Called with a `DualRecord` whenever the gap is measured.
    random_state : int, RandomState or None, default=None
        Seeds the permutations; None means a fixed seed, so results repeat.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    dual_coef_ : array of shape (n_samples, n_classes) or (n_samples, 1)
        ``coef_ = dual_coef_.T @ X``; rows of weight 0 have 0.
    certificate_ : float
        Relative duality gap (F − D)/F(zero model) ≥ 0, so that F − F* ≤ certificate_ · F(zero model). It is measured by
        a pass of its own over all rows, at a dual point that satisfies every constraint. (For the squared loss with an
        intercept the zero model is the best constant one.)
    status_ : Status
        Why the solver stopped; ``str(status_)`` says what to do.
    history_ : list of DualRecord
        One record per measured gap: n_passes, objective, certificate, seconds, primal, dual, alpha, gap_seconds.
    n_iter_ : int
        Epochs.
    phase_epochs_ : list of int
        Epochs at each penalty of the homotopy.
    n_gap_passes_ : int
        Passes spent on gaps beside the epochs, and ``gap_seconds_``, the time they took.
    multilabel_ : bool
    n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, X is not on the CPU in NumPy or CSR form, or
        loss and multi_class do not fit each other.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization",
    JMLR 14, 2013. C.-J. Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008.
    H. Daneshmand, H. Hassani and T. Hofmann, "Accelerated dual learning by homotopic initialization", 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import SDCAClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SDCAClassifier(loss="hinge", multi_class="crammer_singer", alpha=1.0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    >>> bool(model.certificate_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_CONSTRAINTS,
        "loss": [StrOptions({name for name, loss in COLUMN_LOSSES.items() if loss.labels} | {"squared"})],
        "multi_class": [StrOptions({"ovr", *JOINT_LOSSES})],
        **CLASS_WEIGHT,
    }

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        alpha: float = 1e-4,
        multi_class: str = "ovr",
        homotopy: str | bool | int = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callable[[Record], Any] | None = None,
        random_state: Any = None,
    ):
        self.loss = loss
        self.alpha = alpha
        self.multi_class = multi_class
        self.homotopy = homotopy
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.multi_class not in JOINT_LOSSES
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SDCAClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            float32 stays float32 (all sums are float64); CSR with 32- or 64-bit indices, memory maps and data frames
            are accepted.
        y : array-like of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
            Labels of any dtype.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the same as the row given twice.

        Returns
        -------
        self
        """
        self._validate_params()
        started = time.perf_counter()
        joint = JOINT_LOSSES.get(self.multi_class)
        if joint is not None and joint.form_of != self.loss:
            raise ValueError(
                f"multi_class={self.multi_class!r} is a form of loss={joint.form_of!r} and there is none for "
                f"loss={self.loss!r}; set the one or use multi_class='ovr'."
            )
        design, y = check_rows(self, X, y, reset=True)
        labels = encode(y, type(self).__name__)
        weight = check_weights(design, y, sample_weight, self.class_weight)
        problem = self._problem(design, labels, weight)
        solution = self._ascend(problem, started)
        self._store(labels, design.asarray(solution.coef), design.asarray(solution.intercept))
        if labels.is_binary and self.dual_coef_.shape[1] == 2:
            self.dual_coef_ = self.dual_coef_[:, 1:] - self.dual_coef_[:, :1]
        self._store_run(solution.status, solution.history, solution.n_passes)
        return self

    def _problem(self, design: Design, labels: Labels, weight: Any) -> DualProblem:
        shared = {"sample_weight": weight, "fit_intercept": self.fit_intercept}
        joint = JOINT_LOSSES.get(self.multi_class)
        if joint is not None:
            if labels.is_multilabel:
                raise ValueError(
                    f"multi_class={self.multi_class!r} gives each row exactly one class, but y is an indicator matrix "
                    "of several labels; use multi_class='ovr'."
                )
            return DualProblem(design, joint, self.alpha, len(labels.classes), codes=labels.codes, **shared)
        loss = COLUMN_LOSSES[self.loss]
        if labels.is_multilabel:
            Y = np.where(np.asarray(labels.indicator) != 0, 1.0, -1.0)
            return DualProblem(design, loss, self.alpha, Y.shape[1], Y=Y, **shared)
        if labels.is_binary:
            Y = np.where(labels.codes == 1, 1.0, -1.0)[:, None]
            return DualProblem(design, loss, self.alpha, 1, Y=Y, **shared)
        return DualProblem(design, loss, self.alpha, len(labels.classes), codes=labels.codes, **shared)

    def _probability_link(self) -> str:
        column = COLUMN_LOSSES[self.loss]
        link = JOINT_LOSSES.get(self.multi_class, column).link
        if column.link is None or link is None:
            raise AttributeError(f"loss={self.loss!r} gives scores but no probabilities; use loss='log_loss'.")
        return link


class SDCARegressor(RegressorMixin, MultiOutputMixin, DualAscent):
    """Linear regression by stochastic dual coordinate ascent, stopped on its duality gap.

    Minimises F of `SDCAClassifier` with a loss of real responses. The outputs of a multi-output y are fitted in one
    pass over X: a row touches n_outputs contiguous numbers for each of its non-zeros.

    Parameters
    ----------
    loss : {"squared", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"}, default="squared"
        With r = |y − z| and ε = ``epsilon``: ½r²; ½r² up to ε and ε(r − ε/2) beyond; max(0, r − ε); max(0, r − ε)².
    epsilon : float, default=0.1
        In units of y; not used by the squared loss. With 0, "epsilon_insensitive" is the absolute error.
    alpha : float, default=1e-4
        Penalty, > 0. For the squared loss ``Ridge(alpha=alpha*S)``; for the ε-insensitive losses
        ``LinearSVR(C=1/(alpha*S))``.
    homotopy, fit_intercept, tol, max_iter, max_time, warm_start, callback, random_state
        As in `SDCAClassifier`.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or array of shape (n_outputs,)
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_outputs)
        ``coef_ = dual_coef_.T @ X``.
    certificate_ : float
        (F − D)/F(zero model) ≥ 0, the zero model being the mean of y where there is an intercept.
    status_, history_, n_iter_, phase_epochs_, n_gap_passes_, gap_seconds_, n_features_in_, feature_names_in_
        As in `SDCAClassifier`.

    Raises
    ------
    ValueError
        As in `SDCAClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from manyclass import SDCARegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SDCARegressor(alpha=1e-4).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.51
    >>> model.certificate_ <= model.tol
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_CONSTRAINTS,
        "loss": [StrOptions({name for name, loss in COLUMN_LOSSES.items() if not loss.labels})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        loss: str = "squared",
        *,
        epsilon: float = 0.1,
        alpha: float = 1e-4,
        homotopy: str | bool | int = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callable[[Record], Any] | None = None,
        random_state: Any = None,
    ):
        self.loss = loss
        self.epsilon = epsilon
        self.alpha = alpha
        self.homotopy = homotopy
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SDCARegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        self._validate_params()
        started = time.perf_counter()
        design, y = check_rows(self, X, y, reset=True)
        Y = np.asarray(y.toarray() if hasattr(y, "toarray") else y, dtype=np.float64)
        weight = check_weights(design, y, sample_weight, None)
        columns = Y[:, None] if Y.ndim == 1 else Y
        problem = DualProblem(
            design, COLUMN_LOSSES[self.loss], self.alpha, columns.shape[1], Y=columns, sample_weight=weight,
            fit_intercept=self.fit_intercept, epsilon=self.epsilon,
        )  # fmt: skip
        solution = self._ascend(problem, started)
        coef, intercept = design.asarray(solution.coef).T, design.asarray(solution.intercept)
        if Y.ndim == 1:
            coef, intercept, self.dual_coef_ = coef[0], intercept[0], self.dual_coef_[:, 0]
        self.coef_, self.intercept_ = coef, intercept
        self._store_run(solution.status, solution.history, solution.n_passes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Responses of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self, "coef_")
        design, _ = check_rows(self, X, reset=False)
        Z = linear_scores(design, np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_))
        return Z[:, 0] if self.coef_.ndim == 1 else Z
