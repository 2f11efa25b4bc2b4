"""Generalized linear classification with one d×d factor for all classes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from manyclass.curvature import CURVATURES, Curvature
from manyclass.data.rows import Array
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import LinearClassifier
from manyclass.estimators.parameters import CLASS_WEIGHT, RUN
from manyclass.fit import Iterates
from manyclass.model import Problem
from manyclass.solvers import SOLVERS, Solver

DENSE_FACTOR_FEATURES = 8192
"""Widest data for which a d×d factor is made by default (0.5 GB in float64)."""


@dataclass(eq=False, repr=False)
class GLMClassifier(LinearClassifier):
    """Generalized linear classifier whose solver needs one d×d factor whatever the number of classes.

    Minimises, over W of shape (n_features, n_outputs) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i ℓ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i,

    where ℓ(z, y) = Φ(z) − yᵀz + Φ*(y) is the matching loss of a link g = ∇Φ and s are the sample weights. There is
    no learning rate: the second moment of the data supplies the metric (*Least Squares Revisited*, Algorithm 1).

    Parameters
    ----------
    alpha : float, default=1e-4
        Penalty, ≥ 0. In other libraries' units: ``LogisticRegression(C=1/(alpha*S))``, ``Ridge(alpha=alpha*S)``,
        LIBLINEAR ``C = 1/(alpha*n)``.
    loss : {"auto", "softmax", "logistic", "squared", "sparsemax"}, default="auto"
        "softmax" is multinomial logistic regression; "logistic" one logistic regression per class or label;
        "squared" least squares on −1 and 1 (no probabilities); "sparsemax" gives probabilities that can be exactly zero.
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
    tol : float, default=1e-3
        Stop when ``duality_gap_`` is at or below this: a share of the loss of the zero model, so that it means the
        same for any scaling of X, n and k. With alpha=0, where there is no gap, the squared gradient in the metric of
        the curvature is compared with it, relative to the zero model.
    max_iter : int, default=500
        Limit on iterations; one takes a pass over the rows, or a few.
    <shared>

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    duality_gap_ : float
        For alpha > 0 the relative duality gap: F − F* ≤ duality_gap_ · F(zero model).
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or loss, solver and curvature do not fit
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
    Converged: the duality gap, a bound on the distance from the minimum, is at or below tol.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CLASS_WEIGHT,
        "loss": [str],
        "solver": [StrOptions(set(SOLVERS))],
        "curvature": [StrOptions({"auto", *CURVATURES})],
        "warm_start": ["boolean"],
    }
    _also_losses: ClassVar[tuple[str, ...]] = ("auto",)

    alpha: float = 1e-4
    _: KW_ONLY
    loss: str = "auto"
    solver: str = "quasi-newton"
    curvature: str = "auto"
    fit_intercept: bool = True
    class_weight: Any = None
    tol: float = 1e-3
    max_iter: int = 500
    max_time: float | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    warm_start: bool = False
    random_state: Any = None

    def _validate_params(self) -> None:
        super()._validate_params()
        solver = SOLVERS[self.solver]
        chosen = CURVATURES.get(self.curvature)
        if chosen is None or not solver.needs_majorizer:
            return
        if not chosen.majorizes or (chosen.local and not solver.refreshes_majorizer):
            raise ValueError(
                f"solver={self.solver!r} needs a curvature that lies above the objective everywhere, which "
                f"{self.curvature!r} does not; use curvature='second-moment' (or 'auto'), or solver='quasi-newton'."
            )

    def _iterates(self, task: Task) -> Iterates:
        curvature = self._choose_curvature(task.problem)
        return (yield from curved_iterates(task, SOLVERS[self.solver], curvature, self._start(task.problem)))

    def _choose_curvature(self, problem: Problem) -> type[Curvature]:
        solver, name = SOLVERS[self.solver], self.curvature
        if name == "auto" and solver.default_curvature:
            name = solver.default_curvature
        elif name == "auto" and problem.rows.n_features > DENSE_FACTOR_FEATURES:
            name = "diagonal"
        elif name == "auto":
            name = "second-moment" if solver.needs_majorizer or problem.loss.quadratic else "kronecker"
        return CURVATURES[name]


def curved_iterates(
    task: Task, solver: Solver, kind: type[Curvature], start: tuple[Array, Array] | None = None
) -> Iterates:
    """A solver in the metric of a kind of curvature, from W and b or from where that solver begins."""
    problem = task.problem
    problem.centred = kind.center
    curvature = kind.build(problem, task.rng)
    theta = solver.begin(problem, curvature) if start is None else problem.pack(*start)
    return (yield from solver.iterates(problem, curvature, theta))
