"""Calibrated least squares: classification by least squares alone, with calibrated probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from manyclass.data import Rows
from manyclass.data.rows import Array
from manyclass.estimators.base import Task
from manyclass.estimators.parameters import CLASS_WEIGHT, RUN
from manyclass.estimators.stagewise_base import StagewiseClassifierBase
from manyclass.stagewise import OriginalColumns
from manyclass.stagewise.blocks import Blocks

MANY_ROWS = 10_000
"""Rows from which ``early_stopping="auto"`` holds some out."""
WIDEST = 32_768
"""Features up to which Σ̂ is formed (8.6 GB in float64)."""


@dataclass(eq=False, repr=False)
class CalibratedLeastSquaresClassifier(StagewiseClassifierBase):
    """Least squares with an unknown link: *Least Squares Revisited*, Algorithm 2.

    From ŷ = 0, alternates between least squares on the residuals and least squares on functions of the predictions,

        ỹ = ŷ + argmin_{W, b} (1/2S) Σ_i s_i ‖y_i − ŷ_i − Wᵀx_i − b‖² + (alpha/2) ‖W‖²            (eq. 10)
        ŷ = Π(M G(ỹ) + c),   M, c = argmin Σ_i s_i ‖y_i − M G(ỹ_i) − c‖²                          (eq. 11)

    where y is 0 or 1 and Π projects onto the probability simplex (three or more classes) or [0, 1] per column (two
    classes, which are one column, and multi-label). The squared error never rises, at either half step; without noise
    it is at most 22kκ²/t after t iterations (Theorem 2). All iterations share one factor of the second moment of X;
    each costs two passes over the rows. This is `StagewiseClassifier(loss="calibrated")` over one block, the columns
    of X.

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
    tol : float, default=1e-5
        Stop when an iteration lowers the squared error by less than this share of that of predicting zero.
    max_iter : int, default=100
    early_stopping : bool or "auto", default="auto"
        Hold rows out, stop when their squared error no longer falls, and keep the iterations up to the smallest. "auto"
        does so from 10 000 rows.
    <shared>

    Attributes
    ----------
    models_ : list of one StagewiseModel
        Its ``stages`` hold coef, intercept and calibration of each iteration kept.
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or X is too wide for a d×d factor.

    Notes
    -----
    In ``history_``, objective is the squared error after an iteration, and the detail "before_calibration" that between
    its half steps.

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

    loss = "calibrated"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CLASS_WEIGHT,
        "basis": ["array-like"],
        "early_stopping": ["boolean", StrOptions({"auto"})],
    }

    alpha: float = 1e-6
    _: KW_ONLY
    basis: Sequence[float | Callable[[Array], Array]] = (1, 2, 3)
    fit_intercept: bool = True
    class_weight: Any = None
    tol: float = 1e-5
    max_iter: int = 100
    max_time: float | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    random_state: Any = None

    def _check_rows(self, rows: Rows) -> None:
        if rows.n_features > WIDEST:
            raise ValueError(
                f"X has {rows.n_features} features: their factor of X'X would take "
                f"{rows.n_features**2 * 8e-9:.0f} GB; use StagewiseClassifier(features=FeatureSubset(500), "
                "loss='calibrated'), or GLMClassifier."
            )

    def _holds_out(self, rows: Rows) -> bool:
        return self.early_stopping is True or (self.early_stopping == "auto" and rows.n_rows >= MANY_ROWS)

    def _draw_blocks(self, task: Task) -> Callable[[], Blocks]:
        return OriginalColumns
