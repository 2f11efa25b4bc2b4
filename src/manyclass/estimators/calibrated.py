"""Calibrated least squares: classification by least squares alone, with calibrated probabilities."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data import Design, Moments, Targets, TrainingSet
from manyclass.data.design import Array
from manyclass.data.validation import check_rows, check_weights
from manyclass.estimators.encoding import encode
from manyclass.estimators.held_out import split_weights
from manyclass.estimators.parameters import CLASS_WEIGHT, HELD_OUT, RUN, generator
from manyclass.estimators.replayed import ReplayedClassifier, targets_and_domain
from manyclass.model.calibration import Calibrator
from manyclass.model.domains import Box, Simplex
from manyclass.solvers.base import Record
from manyclass.solvers.calibration import CalibratedLeastSquares, CalibratedSolution, replay

MANY_ROWS = 10_000
"""Rows from which ``early_stopping="auto"`` holds some out."""
WIDEST = 32_768
"""Features up to which Σ̂ is formed (8.6 GB in float64)."""


class CalibratedLeastSquaresClassifier(ReplayedClassifier):
    """Least squares with an unknown link: *Least Squares Revisited*, Algorithm 2.

    From ŷ = 0, alternates between least squares on the residuals and least squares on functions of the predictions,

        ỹ = ŷ + argmin_{W, b} (1/2S) Σ_i s_i ‖y_i − ŷ_i − Wᵀx_i − b‖² + (alpha/2) ‖W‖²            (eq. 10)
        ŷ = Π(M G(ỹ) + c),   M, c = argmin Σ_i s_i ‖y_i − M G(ỹ_i) − c‖²                          (eq. 11)

    where Π projects onto the probability simplex (multi-class) or [0, 1]^k (multi-label). The squared error never
    rises, at either half step; without noise it is at most 22kκ²/t after t iterations (Theorem 2). All iterations
    share one factor of the second moment of X; each costs two passes over the rows.

    The model is improper: it is the chain of its iterations, and prediction replays them. ``predict_proba`` is the
    prediction itself, fitted to be near the labels in squared error; no separate calibration is needed.

    Parameters
    ----------
    alpha : float, default=1e-6
        Penalty of each least-squares step, ≥ 0; ``Ridge(alpha=alpha*S)``.
    basis : sequence of numbers or callables, default=(1, 2, 3)
        G, elementwise: numbers are powers, callables map an array to one of the same shape. The identity is always
        among them.
    fit_intercept : bool, default=True
        Whether the least-squares steps have an intercept; calibration always does.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the sample weights, as in scikit-learn. Probabilities are then those of the weighted rows.
    tol : float, default=1e-5
        Stop when an iteration lowers the squared error by less than this share of that of predicting zero.
    max_iter : int, default=100
    max_time : float, default=None
        Limit in seconds; the model so far is kept.
    early_stopping : bool or "auto", default="auto"
        Choose the number of iterations on held-out rows, then repeat that many with all rows (the moments of the
        held-out rows are subtracted from those of all, so the costly Σ̂ is still summed once). "auto" does so from
        10 000 rows.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=5
        Iterations without gain on the held-out rows after which to stop.
    callback : callable, default=None
        Called after each iteration with a `CalibrationRecord`.
    random_state : int, RandomState or None, default=None
        Chooses the held-out rows; None means a fixed seed.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    steps_ : list of Step
        (coef, intercept, calibration) of each iteration.
    n_iter_ : int
        Iterations kept.
    history_ : list of CalibrationRecord
        objective (squared error after the iteration), before_calibration (between its half steps), held_out,
        certificate, n_passes, seconds. With early stopping, those of the run with held-out rows come first, and
        then those of the final one.
    status_ : Status
    certificate_ : float
        Gain of the last iteration, relative to the squared error of predicting zero.
    multilabel_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or X is too wide for a d×d factor.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from manyclass import CalibratedLeastSquaresClassifier
    >>> X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    >>> model = CalibratedLeastSquaresClassifier(alpha=1e-2).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CLASS_WEIGHT,
        **HELD_OUT,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "basis": ["array-like"],
        "early_stopping": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        alpha: float = 1e-6,
        *,
        basis: Sequence[float | Callable[[Array], Array]] = (1, 2, 3),
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-5,
        max_iter: int = 100,
        max_time: float | None = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        callback: Callable[[Record], Any] | None = None,
        random_state: Any = None,
    ):
        self.alpha = alpha
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.callback = callback
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, moments: Moments | None = None
    ) -> CalibratedLeastSquaresClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or an indicator matrix (n_samples, n_labels)
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is the same as the row given twice.
        moments : Moments, default=None
            Those of X with one 0/1 column per class in the order of ``numpy.unique(y)``, and of the same weights, if
            they are at hand: saves the summing of Σ̂.

        Returns
        -------
        self
        """
        self._validate_params()
        started = time.perf_counter()
        design, y = check_rows(self, X, y, reset=True)
        if design.n_features > WIDEST:
            raise ValueError(
                f"X has {design.n_features} features: their factor of X'X would take "
                f"{design.n_features**2 * 8e-9:.0f} GB; use StagewiseClassifier(features=FeatureSubset(500), "
                "inner='calibrated'), or GLMClassifier."
            )
        labels = encode(y, type(self).__name__)
        weight = check_weights(design, y, sample_weight, self.class_weight)
        targets, domain = targets_and_domain(labels, design)
        training = TrainingSet(design, targets, weight)
        moments = Moments.of(design, targets, weight) if moments is None else self._check_moments(moments, targets)
        solver = CalibratedLeastSquares(
            Calibrator(self.basis, domain),
            alpha=self.alpha,
            fit_intercept=self.fit_intercept,
            max_iter=self.max_iter,
            tol=self.tol,
            patience=self.n_iter_no_change,
            max_time=self.max_time,
            callback=self.callback,
        )
        if self.early_stopping is True or (self.early_stopping == "auto" and design.n_rows >= MANY_ROWS):
            fitted, scored, held_out = split_weights(
                labels, design, weight, self.validation_fraction, generator(self.random_state)
            )
            trial = solver.solve(
                TrainingSet(design, targets, fitted, scored), self._without(moments, training, held_out), started
            )
            final = replace(solver, max_iter=len(trial.steps), tol=0.0, max_time=None)
            solution = final.solve(training, moments, started)
            solution = CalibratedSolution(
                solution.steps, trial.status, trial.history + solution.history, solution.certificate, solution.n_passes
            )
        else:
            solution = solver.solve(training, moments, started)
        self._store_labels(labels, design)
        self.steps_ = solution.steps
        self._store_run(solution.status, solution.history, len(solution.steps))
        return self

    @staticmethod
    def _check_moments(moments: Moments, targets: Targets) -> Moments:
        if int(moments.xy.shape[1]) != targets.n_outputs:
            raise ValueError(
                f"moments have {int(moments.xy.shape[1])} outputs, but y has {targets.n_outputs} classes; give one 0/1 "
                "column per class to Moments.update."
            )
        return moments

    @staticmethod
    def _without(moments: Moments, training: TrainingSet, held_out: np.ndarray) -> Moments:
        """The moments of the rows that are not held out."""
        design, targets, weight = training.design, training.targets, training.weight
        part = Design(design.take(held_out))
        chosen = targets.take(held_out)
        like = design.zeros((0,))
        kept = deepcopy(moments)
        for rows, block in part.blocks(part.rows_per_block(targets.n_outputs, 32 << 20)):
            index = held_out[rows]
            part_weight = (
                None if weight is None else design.xp.take(weight, design.asarray(index, design.xp.int64), axis=0)
            )
            kept.downdate(block, chosen.dense(rows, like, design.xp), part_weight)
        return kept

    def _replay(self, design: Design) -> tuple[Array, Array]:
        xp = design.xp
        calibrator = Calibrator(self.basis, Box() if self.multilabel_ else Simplex())
        pieces = [(scores, predicted) for _, scores, predicted in replay(design, self.steps_, calibrator)]
        return xp.concat([s for s, _ in pieces]), xp.concat([p for _, p in pieces])
