"""Generalized linear classification with one d×d factor for all classes."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from manyclass.choice import Choice, asked_for, choose
from manyclass.choice.penalty import usual_penalty
from manyclass.curvature import CURVATURES
from manyclass.data.factor import varying
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import LinearClassifier
from manyclass.estimators.linear import by_choice
from manyclass.estimators.parameters import CLASS_WEIGHT, RUN, SCALED_ALPHA, Balanced, HoldsOut, is_scaled
from manyclass.estimators.streaming import ExactStream
from manyclass.fit import Clock, Iterates
from manyclass.model import SMOOTH_LOSSES, Problem
from manyclass.solvers import SOLVERS
from manyclass.solvers.quasi_newton import QuasiNewton


@dataclass(eq=False, repr=False)
class GLMClassifier(Balanced, HoldsOut, ExactStream, LinearClassifier):
    """Generalized linear classifier whose solver needs one d×d factor whatever the number of classes.

    Minimises, over W of shape (n_features, n_outputs) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i ℓ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i,

    where ℓ(z, y) = Φ(z) − yᵀz + Φ*(y) is the matching loss of a link g = ∇Φ and s are the sample weights. There is
    no learning rate: the second moment of the data supplies the metric (*Least Squares Revisited*, Algorithm 1).

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        Penalty, ≥ 0. In other libraries' units: ``LogisticRegression(C=1/(alpha*S))``, ``Ridge(alpha=alpha*S)``,
        LIBLINEAR ``C = 1/(alpha*n)``. "scale" is 1e-4, or, as a penalty has the unit of a column squared, the median
        variance of the columns that vary times 1e-4 or, of fewer than 10 000 rows, 1/n (``C=1`` where columns have
        variance 1), if that is more; and less where that would hold back columns in smaller units that tell much of y
        (flags beside prices), or, of more rows, most columns (words), but not below 1/n. Where all columns together
        have a variance below 1/2 it is as much smaller. n is the sum of the weights, or the number of those above 0, if
        that is more. But for least squares, the variances are those of most rows: a few wild ones do not count.
    loss : {"auto", "softmax", "logistic", "squared", "sparsemax"}, default="auto"
        "softmax" is multinomial logistic regression; "logistic" one logistic regression per class or label;
        "squared" least squares on −1 and 1 (no probabilities); "sparsemax" gives probabilities that can be 0, and
        fits two classes by two columns, of which ``coef_`` is the difference: ‖W‖² is half of its square there.
        "auto" takes "softmax", or "logistic" when y is an indicator matrix.
    solver : {"auto", "quasi-newton", "newton-cg", "newton", "accelerated", "majorize", "gradient", \
            "biased-gradient"}, default="auto"
        "auto" takes what is estimated to need the fewest seconds (see ``choice_``). "quasi-newton" hands over to
        "newton-cg" for tight tolerances; "newton" is for few parameters in all; "majorize" is Algorithm 1 of the paper,
        which never raises the objective; "accelerated" adds momentum to it. "gradient" is gradient descent with an
        exact search, and "biased-gradient" its relative with a second direction, the cross-covariance of X and y
        (*Homotopic Initialization*, equation 23): for comparison, and slow where X is badly conditioned.
    curvature : {"auto", "kronecker", "second-moment", "diagonal", "partition-bound", "hessian", "sampled-hessian", \
            "jacobi", "identity"}, default="auto"
        What stands in for the Hessian. "auto" is chosen with the solver: "kronecker" costs d×d factors;
        "jacobi", the diagonal of the Hessian, and "identity" next to nothing; "hessian" couples all d·k parameters,
        and "sampled-hessian" does so by a few rows for each of them; "second-moment" is the Hessian of least squares,
        and what the solvers that need a majorizer take; "diagonal" is a majorizer too, and "partition-bound", which
        with "majorize" is ``BoundMajorizationClassifier(method="batch")`` and needs no matrix then.
    tol : float, default=1e-3
        Stop when ``duality_gap_`` is at or below this: a share of the loss of the zero model, so that it means the
        same for any scaling of X, n and k. Of rows that are all but fitted, with a hundredth of that loss or less, the
        gap has to be as much smaller as that is, down to ``tol/100``. With alpha=0, where there is no gap, what a step
        is expected to gain and what the last ones did gain is compared with it, relative to that loss.
    max_iter : int, default=500
        Limit on iterations; one takes a pass over the rows, or a few.
    <shared>

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    choice_ : dict
        The solver and curvature taken, whether the rows were first rotated into as many dimensions as there are rows
        (``row_space``, for fewer rows than features: exact for a ridge penalty), and the estimated seconds of every
        method that could serve (``estimates``); and what took its place, because `max_time` is too short for it, it
        needed more than twice what was expected of it or, for float32 rows, was kept from ``tol`` by rounding, which
        the same with products in float64 is not (``changed_to``). The speed of this machine is measured once, and kept
        in the user's cache folder or that which the environment variable ``MANYCLASS_CACHE`` names.
    duality_gap_ : float
        For alpha > 0 the relative duality gap: ``F − F* ≤ duality_gap_ · F(zero model)``.
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, or loss, solver and curvature do not fit
        each other.

    Notes
    -----
    With ``loss="squared"`` rows can come in pieces, be taken out again, and models be joined: `partial_fit`, `forget`
    and `merge` are exact, as second moments determine the model. Solver, tolerance and held-out rows have no part in
    it.

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
        **SCALED_ALPHA,
        **CLASS_WEIGHT,
        "loss": [str],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "curvature": [StrOptions({"auto", *CURVATURES})],
        "warm_start": ["boolean"],
    }
    _fits_parts: ClassVar[bool] = True

    alpha: float | str = "scale"
    _: KW_ONLY
    loss: str = "auto"
    solver: str = "auto"
    curvature: str = "auto"
    max_iter: int = 500
    tol: float = 1e-3
    warm_start: bool = False

    def _validate_params(self) -> None:
        super()._validate_params()
        solver, chosen = SOLVERS.get(self.solver), CURVATURES.get(self.curvature)
        if solver is None or chosen is None or not solver.needs_majorizer:
            return
        if not chosen.majorizes or (chosen.local and not solver.refreshes_majorizer):
            raise ValueError(
                f"solver={self.solver!r} needs a curvature that lies above the objective everywhere, which "
                f"{self.curvature!r} does not; use curvature='second-moment' (or 'auto'), or solver='quasi-newton'."
            )

    def _stream_refusal(self) -> str | None:
        loss = SMOOTH_LOSSES.get(self.loss)
        if loss is not None and loss.quadratic:
            return None
        return (
            f"Sums over rows determine no model of loss={self.loss!r}; use loss='squared', for probabilities "
            "CalibratedLeastSquaresClassifier, or PegasosClassifier, whose partial_fit is not exact."
        )

    def _solve(self, clock: Clock) -> None:
        task = self._stream_task(clock)
        moments = self._stream_moments(task)
        self.choice_ = {"solver": "moments", "curvature": "second-moment", "row_space": False, "estimates": {}}
        factor = moments.factor(fit_intercept=self.fit_intercept, precision=self._stream.precision)
        if is_scaled(self):
            variance = varying(factor.S, moments, self._stream.precision)
            n_rows = max(moments.weight, moments.n)
            task.problem.alpha = usual_penalty(
                variance, n_rows, lambda: moments.cross(fit_intercept=self.fit_intercept)
            )
        model = moments.solve(task.problem.alpha, fit_intercept=self.fit_intercept, factor=factor)
        self._finish(task, model, moments.ridge_objective(model[0], fit_intercept=self.fit_intercept))

    def _iterates(self, task: Task) -> Iterates:
        return (yield from by_choice(self, task, self._choice))

    def _choice(self, problem: Problem) -> Choice:
        solver, curvature = SOLVERS.get(self.solver), CURVATURES.get(self.curvature)
        if curvature is not None:
            if curvature.local and solver is not None and solver.refreshes_majorizer:  # `BoundMajorizationClassifier`
                return choose(problem, self.tol, solver)
            return asked_for(problem, curvature.default_solver if solver is None else solver.name, curvature.name)
        if solver is not None and solver.default_curvature is not None:
            return asked_for(problem, solver.name, solver.default_curvature)
        # What is right for L-BFGS is right for all that take any curvature.
        choice = choose(problem, self.tol, None if solver is None else QuasiNewton())
        method = choice.method
        known = solver is None or solver.name == method.solver
        return choice if known else Choice.of(self.solver, method.curvature, method.row_space)
