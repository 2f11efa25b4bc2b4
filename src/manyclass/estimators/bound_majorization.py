"""Multinomial logistic regression by quadratic bounds on the partition function."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data.validation import check_rows, check_weights
from manyclass.estimators.base import LinearClassifier, resolve_link
from manyclass.estimators.bound_methods import METHODS, BoundSettings, methods_that
from manyclass.estimators.encoding import encode
from manyclass.estimators.held_out import objective_on, split_rows
from manyclass.estimators.parameters import CLASS_WEIGHT, HELD_OUT, RUN, generator
from manyclass.model import LINKS
from manyclass.solvers.base import HeldOut, LiveRecord, Monitor


class BoundMajorizationClassifier(LinearClassifier):
    """Multinomial logistic regression by bound majorization, batch or stochastic, without a step size to tune.

    Minimises, over W of shape (n_features, n_classes) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i [log Σ_y exp(z_iy) − z_i,y_i] + (alpha/2) ‖W‖²_F,   z_i = Wᵀx_i + b,   S = Σ_i s_i,

    the objective of `GLMClassifier`. The log partition function of each row has the quadratic upper bound of Algorithm
    1 of *Stochastic Bound Majorization* (Choromanska and Jebara), with curvature B_i ⊗ x_i x_iᵀ. The batch method
    minimises the sum of all bounds and bounds anew (its equation 2); the stochastic one (its Algorithm 2) lets bounds
    and gradients of single rows accumulate and moves after each row. Two classes are fitted with one column of scores,
    labels of an indicator matrix with one partition function each.

    The curvature couples all D = n_features · n_classes parameters: O(D²) memory, O(D²·n_classes) time a row, O(D³) a
    batch step. For more than a few thousand parameters take ``rank``, or `GLMClassifier`, whose factor does not grow
    with the number of classes.

    Parameters
    ----------
    method : {"stochastic", "batch"}, default="stochastic"
    rank : int or None, default=None
        Stochastic method only: directions kept of the curvature, the rest bounded by a diagonal, for O(rank·D) memory
        and time a row. None keeps all of it.
    alpha : float, default=1e-4
        Penalty, ≥ 0; the paper's λ is ``alpha * S``.
    step : {"paper", "refreshed"} or float, default="paper"
        Stochastic method only. "paper": steps of 1/n, and statistics that keep every row ever seen. A float η₀: steps
        of η₀/n (the paper takes 50 to 100 for low rank). "refreshed": from the second pass on each row replaces its
        own old statistics and steps grow for as long as the objective falls. Only this one converges to the optimum;
        as published the objective comes near it and then swings about it.
    batch_size : int, default=1
        Stochastic method only: rows between two steps.
    fit_intercept : bool, default=True
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in scikit-learn.
    tol : float, default=1e-3
        Stop when ``certificate_`` is at or below this.
    max_iter : int, default=100
        Limit on passes over the rows (batch: steps).
    max_time : float, default=None
        Limit in seconds.
    early_stopping : bool, default=False
        Keep rows aside, stop when their log loss no longer falls, and return the best model.
    validation_fraction : float, default=0.1
        Share of the rows kept aside for it.
    n_iter_no_change : int, default=5
        Passes without improvement after which to stop.
    warm_start : bool, default=False
        Start from the present coefficients if they fit the data; statistics start empty.
    callback : callable, default=None
        Called after each pass with a record (n_passes, objective, certificate, seconds, parameters()).
    random_state : int, RandomState or None, default=None
        Seeds the order of the rows and the choice of those kept aside; None means a fixed seed.

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
        One record per pass: n_passes, objective, certificate, seconds.
    n_iter_ : int
        Passes over the rows.
    validation_scores_ : list of float
        Log loss of the rows kept aside, negated, after each pass (with early stopping).
    multilabel_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, `rank` is given for the batch method, or
        there are too many parameters for a full curvature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import BoundMajorizationClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoundMajorizationClassifier(method="batch", alpha=1e-2).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CLASS_WEIGHT,
        **HELD_OUT,
        "method": [StrOptions(set(METHODS))],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "step": [StrOptions({"paper", "refreshed"}), Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        method: str = "stochastic",
        *,
        rank: int | None = None,
        alpha: float = 1e-4,
        step: str | float = "paper",
        batch_size: int = 1,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 100,
        max_time: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        callback: Callable[[LiveRecord], Any] | None = None,
        random_state: Any = None,
    ):
        self.method = method
        self.rank = rank
        self.alpha = alpha
        self.step = step
        self.batch_size = batch_size
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoundMajorizationClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            CSR with 32- or 64-bit indices and data frames are accepted. The state of the stochastic method is float64;
            coefficients come back in the type of X.
        y : array-like of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
            Labels of any dtype.
        sample_weight : array-like of shape (n_samples,), default=None
            Rows of weight 0 are left out. The stochastic method takes a row of weight 2 once, with twice the bound,
            gradient and step.

        Returns
        -------
        self
        """
        self._validate_params()
        started = time.perf_counter()
        method = METHODS[self.method]
        if self.rank is not None and not method.takes_rank:
            others = methods_that(lambda m: m.takes_rank)
            raise ValueError(f"rank belongs to {others}; method={self.method!r} keeps the full curvature.")
        design, y = check_rows(self, X, y, reset=True)
        if method.needs_numpy and not design.is_numpy:
            others = methods_that(lambda m: not m.needs_numpy)
            raise ValueError(f"method={self.method!r} runs on NumPy arrays; use {others}, or GLMClassifier, instead.")
        labels = encode(y, type(self).__name__)
        weight = check_weights(design, y, sample_weight, self.class_weight)
        self.link_, link, label_values = resolve_link("auto", labels)
        targets = labels.one_hot(design) if label_values is None else labels.columns(design, *label_values)
        rng = generator(self.random_state)
        options: dict[str, Any] = {"fit_intercept": self.fit_intercept, "center": method.center}
        kept, held_out = None, None
        if self.early_stopping:
            kept, out = split_rows(labels, design.n_rows, self.validation_fraction, int(rng.integers(2**31)))
            aside = objective_on(out, design, targets, link, sample_weight=weight, **options)
            held_out = HeldOut(aside, self.n_iter_no_change)
        objective = objective_on(kept, design, targets, link, self.alpha, sample_weight=weight, **options)
        curvature, solver = method.build(objective, BoundSettings(self.rank, self.step, self.batch_size), rng)
        start = self._warm_start(objective, labels) if self.warm_start else None
        monitor = Monitor(self.tol, self.max_iter, self.max_time, self.callback, started, held_out)
        solution = solver.solve(objective, curvature, start, monitor)
        self._store(labels, solution.coef, solution.intercept)
        self._store_run(solution.status, solution.history, solution.n_passes)
        if held_out is not None:
            self.validation_scores_ = [-loss for loss in held_out.losses]
        return self

    def _probability_link(self) -> str:
        return LINKS[getattr(self, "link_", "softmax")].name
