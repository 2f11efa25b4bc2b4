"""Generalized linear classification with one d×d factor for all classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.curvature import CURVATURES, Curvature
from manyclass.data import Design
from manyclass.data.validation import check_rows, check_weights
from manyclass.estimators.base import LinearClassifier, resolve_link
from manyclass.estimators.encoding import encode
from manyclass.estimators.held_out import objective_on, split_weights
from manyclass.estimators.parameters import CLASS_WEIGHT, HELD_OUT, RUN, generator
from manyclass.model import LINKS, Objective
from manyclass.model.links import Link
from manyclass.solvers import SOLVERS, LiveRecord, Monitor
from manyclass.solvers.base import HeldOut

DENSE_FACTOR_FEATURES = 8192
"""Widest data for which a d×d factor is made by default (0.5 GB in float64)."""


class GLMClassifier(LinearClassifier):
    """Generalized linear classifier whose solver needs one d×d factor whatever the number of classes.

    Minimises, over W of shape (n_features, n_outputs) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i ℓ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i,

    where ℓ(z, y) = Φ(z) − yᵀz + Φ*(y) is the matching loss of the link g = ∇Φ and s are the sample weights. There is
    no learning rate: the second moment of the data supplies the metric (*Least Squares Revisited*, Algorithm 1).

    Parameters
    ----------
    alpha : float, default=1e-4
        Penalty, ≥ 0. In other libraries' units: ``LogisticRegression(C=1/(alpha*S))``, ``Ridge(alpha=alpha*S)``,
        LIBLINEAR ``C = 1/(alpha*n)``.
    link : {"auto", "softmax", "logistic", "identity", "sparsemax"}, default="auto"
        "softmax" is multinomial logistic regression; "logistic" one logistic regression per class or label;
        "identity" least squares (no probabilities); "sparsemax" gives probabilities that can be exactly zero.
        "auto" takes "softmax", or "logistic" when y is an indicator matrix.
    solver : {"quasi-newton", "newton-cg", "accelerated", "majorize", "gradient", "biased-gradient"}, \
            default="quasi-newton"
        "quasi-newton" is the fastest and hands over to "newton-cg" for tight tolerances; "majorize" is Algorithm 1 of
        the paper, which never raises the objective; "accelerated" adds momentum to it. "gradient" is gradient descent
        with an exact search, and "biased-gradient" its relative with a second direction, the cross-covariance of X and
        y (*Homotopic Initialization*, equation 23): for comparison, and slow where X is badly conditioned.
    curvature : {"auto", "kronecker", "second-moment", "diagonal", "partition-bound", "identity"}, default="auto"
        What stands in for the Hessian. "auto" takes "kronecker"; "second-moment" for least squares, where it is the
        Hessian, and for the solvers that need a majorizer; "identity" for gradient descent; "diagonal" when a d×d
        factor would not fit. "partition-bound" couples all d·k parameters (`BoundMajorizationClassifier`), for a few
        thousand of them.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in scikit-learn.
    tol : float, default=1e-3
        Stop when ``certificate_`` is at or below this: a share of the loss of the zero model, so that it means the
        same for any scaling of X, n and k.
    max_iter : int, default=500
        Limit on passes over the rows.
    max_time : float, default=None
        Limit in seconds; the best model so far is kept.
    early_stopping : bool, default=False
        Hold rows out, stop when their loss no longer falls, and keep the model with the smallest.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=5
        Iterations without gain on the held-out rows after which to stop.
    warm_start : bool, default=False
        Start from the present coefficients if they fit the data.
    callback : callable, default=None
        Called after each iteration with a `LiveRecord` (n_passes, objective, certificate, seconds, parameters()).
    random_state : int, RandomState or None, default=None
        Seeds the samples of rows from which the curvature is estimated; None means a fixed seed, so results repeat.
        It changes the path of the solver, not the solution.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    certificate_ : float
        For alpha > 0 the relative duality gap: F − F* ≤ certificate_ · F(zero model). For alpha = 0 the squared
        gradient in the metric of the curvature, relative to the zero model.
    status_ : Status
        Why the solver stopped; ``str(status_)`` says what to do.
    history_ : list of Record
        One record per iteration: n_passes, objective, certificate, seconds.
    n_iter_ : int
        Passes over the rows.
    link_ : str
        The link in use.
    validation_scores_ : list of float
        Minus the mean loss of the held-out rows after each iteration; only with early_stopping.
    multilabel_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or link, solver and curvature do not fit
        each other.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import GLMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GLMClassifier(alpha=1e-3).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    >>> print(model.status_)
    Converged: the certificate is at or below tol.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CLASS_WEIGHT,
        **HELD_OUT,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "link": [StrOptions({"auto", *LINKS})],
        "solver": [StrOptions(set(SOLVERS))],
        "curvature": [StrOptions({"auto", *CURVATURES})],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        link: str = "auto",
        solver: str = "quasi-newton",
        curvature: str = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 500,
        max_time: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        callback: Callable[[LiveRecord], Any] | None = None,
        random_state: Any = None,
    ):
        self.alpha = alpha
        self.link = link
        self.solver = solver
        self.curvature = curvature
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.callback = callback
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.link == "auto" or LINKS[self.link].label_values is not None
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GLMClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            float32 stays float32; CSR with 32- or 64-bit indices, memory maps and data frames are accepted, and arrays
            of any array-API namespace (torch, ...) are computed with where they are.
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
        design, y = check_rows(self, X, y, reset=True)
        labels = encode(y, type(self).__name__)
        weight = check_weights(design, y, sample_weight, self.class_weight)
        name, link, label_values = resolve_link(self.link, labels)
        targets = labels.one_hot(design) if label_values is None else labels.columns(design, *label_values)
        rng = generator(self.random_state)

        held_out = None
        if self.early_stopping:
            weight, scored, out = split_weights(labels, design, weight, self.validation_fraction, rng)
            aside = objective_on(out, design, targets, link, sample_weight=scored, fit_intercept=self.fit_intercept)
            held_out = HeldOut(aside, self.n_iter_no_change)
        curvature_type = self._choose_curvature(design, link)
        objective = Objective(
            design,
            targets,
            link,
            self.alpha,
            sample_weight=weight,
            fit_intercept=self.fit_intercept,
            center=curvature_type.center,
        )
        start = self._warm_start(objective, labels) if self.warm_start else None
        curvature = curvature_type.build(objective, rng)
        monitor = Monitor(self.tol, self.max_iter, self.max_time, self.callback, started, held_out)
        solution = SOLVERS[self.solver].solve(objective, curvature, start, monitor)

        self.link_ = name
        self._store(labels, solution.coef, solution.intercept)
        self._store_run(solution.status, solution.history, solution.n_passes)
        if held_out is not None:
            self.validation_scores_ = [-loss for loss in held_out.losses]
        return self

    def _choose_curvature(self, design: Design, link: Link) -> type[Curvature]:
        solver = SOLVERS[self.solver]
        needs_majorizer = solver.needs_majorizer
        name = self.curvature
        if name == "auto" and solver.default_curvature:
            name = solver.default_curvature
        elif name == "auto":
            if design.n_features > DENSE_FACTOR_FEATURES:
                name = "diagonal"
            else:
                name = "second-moment" if needs_majorizer or link.quadratic else "kronecker"
        chosen = CURVATURES[name]
        if needs_majorizer and (not chosen.majorizes or (chosen.local and not solver.refreshes_majorizer)):
            raise ValueError(
                f"solver={self.solver!r} needs a curvature that lies above the objective everywhere, which {name!r} "
                "does not; use curvature='second-moment' (or 'auto'), or solver='quasi-newton'."
            )
        return chosen

    def _probability_link(self) -> str:
        if hasattr(self, "link_"):
            return self.link_
        return "softmax" if self.link == "auto" else self.link
