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

    where ℓ(z, y) = Φ(z) − yᵀz + Φ*(y) is the matching loss of a link g = ∇Φ and s are the sample weights. There is no
    learning rate: the second moment of the data supplies the metric (Agarwal, Kakade, Karampatziakis, Song and Valiant,
    *Least Squares Revisited*, ICML 2014, Algorithm 1).

    Parameters
    ----------
    alpha : float or "scale", default="scale"
        Penalty, ≥ 0. In other libraries' units: ``LogisticRegression(C=1/(alpha*S))``, ``Ridge(alpha=alpha*S)``,
        LIBLINEAR ``C = 1/(alpha*n)``. As a penalty has the unit of a squared column, "scale" multiplies 1/n (for up to
        a million rows; it is ``C=1`` for columns of variance 1) by the median variance of the columns that vary. It is
        at least the smaller of 1/n and 1e-4, times 2v if the variances sum to v < 1/2. It is smaller where it would
        hold back columns in small units that tell much of y (flags beside prices). n is the sum of the weights or the
        number of positive ones, whichever is more. Except for least squares, a few wild rows do not count towards the
        variances, and up to 1024 rows left out have a say: alpha is smaller where least squares is clearly better with
        less, as on embeddings and texts of unit norm, or where columns in small units say most; and larger where that
        goes for probabilities of this loss, too, as where many columns say nothing.
    loss : {"auto", "softmax", "logistic", "squared", "sparsemax"}, default="auto"
        "softmax" is multinomial logistic regression; "logistic" one logistic regression per class or label;
        "squared" least squares on −1 and 1 (no probabilities); "sparsemax" gives probabilities that can be 0. It
        fits two classes with two columns; ``coef_`` is their difference, and ‖W‖² half its square.
        "auto" takes "softmax", or "logistic" when y is an indicator matrix.
    solver : {"auto", "quasi-newton", "newton-cg", "newton", "accelerated", "majorize", "gradient", \
            "biased-gradient"}, default="auto"
        "auto" takes the one with the fewest estimated seconds (see ``choice_``). "quasi-newton" hands over to
        "newton-cg" for tight tolerances; "newton" is for few parameters in all; "majorize" is Algorithm 1 of the paper,
        which never raises the objective; "accelerated" adds momentum to it. For comparison only, and slow where X is
        badly conditioned: "gradient", gradient descent with an exact line search, and "biased-gradient", which also
        searches along the cross-covariance of X and y (*Homotopic Initialization*, equation 23).
    curvature : {"auto", "kronecker", "second-moment", "diagonal", "partition-bound", "hessian", "sampled-hessian", \
            "jacobi", "identity"}, default="auto"
        What stands in for the Hessian; "auto" is chosen together with the solver. "kronecker" costs d×d factors;
        "jacobi", the diagonal of the Hessian, and "identity" cost next to nothing; "hessian" couples all d·k
        parameters, "sampled-hessian" does so from a sample of a few rows per parameter. Majorizers, which "majorize"
        and "accelerated" need: "second-moment", the Hessian of least squares, their default; "diagonal"; and
        "partition-bound", for "majorize" only: ``BoundMajorizationClassifier(method="batch")``, without a matrix.
    tol : float, default=1e-3
        Stop when ``duality_gap_`` is at or below this: a share of the loss of the zero model, so that it means the
        same for any scaling of X, n and k. Once less than a hundredth of that loss is left, the gap has to shrink in
        proportion to what is left, down to ``tol/100``. With alpha=0 there is no gap: then both what a step is expected
        to gain and what the last ones did gain, relative to that loss, have to be at or below ``tol``.
    max_iter : int, default=500
        Limit on iterations. Each takes one pass over the rows, or a few.
    <shared>

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    choice_ : dict
        The ``solver`` and ``curvature`` taken; ``row_space``: whether fewer rows than features were first rotated into
        as many dimensions as there are rows (exact for a ridge penalty); ``estimates``: the estimated seconds of every
        method that could serve; and ``changed_to``: what took over because `max_time` was too short for the method,
        because it needed more than twice its estimate, or because rounding kept float32 products from ``tol``, so that
        float64 ones took their place. The speed of this machine is measured once and kept in the user's cache folder,
        or in the folder that the environment variable ``MANYCLASS_CACHE`` names.
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
    and `merge` are exact, as second moments determine the model. They use no solver, tolerance or held-out rows.

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
        solver, curvature = SOLVERS.get(self.solver), CURVATURES.get(self.curvature)
        if solver is None or curvature is None or not solver.needs_majorizer:
            return
        if not curvature.majorizes or (curvature.local and not solver.refreshes_majorizer):
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
        # The best curvature for L-BFGS is the best for every solver that takes any curvature.
        choice = choose(problem, self.tol, None if solver is None else QuasiNewton())
        method = choice.method
        has_solver = solver is None or solver.name == method.solver
        return choice if has_solver else Choice.of(self.solver, method.curvature, method.row_space)
