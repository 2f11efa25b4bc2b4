"""Linear models by stochastic dual coordinate ascent."""

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.data.labels import Responses
from manyclass.data.rows import to_numpy
from manyclass.dual import DualModel, DualProblem, DualStart, Limits, ascend, homotopy_path, is_hard
from manyclass.estimators.base import Task, outside
from manyclass.estimators.calibration import CALIBRATE, CrossCalibrated
from manyclass.estimators.classifier import LinearClassifier
from manyclass.estimators.linear import LinearModel
from manyclass.estimators.parameters import CLASS_WEIGHT, EPOCH, POSITIVE_ALPHA, RUN, Balanced, HoldsOut, epochs
from manyclass.estimators.regressor import LinearRegressor
from manyclass.fit import Iterates
from manyclass.model import Loss, Problem

FEWEST_EPOCHS, MULTIPLICATIONS = 1000, 2e9
"""max_iter="auto": the least number of epochs, and the multiplications that allow more."""
HELD_BACK = 0.05
"""Share of the spread of responses: predictions that differ no more explain at most a tenth of the variance."""


@dataclass(eq=False, repr=False)
class DualEstimator(HoldsOut, LinearModel):
    """What estimators by dual coordinate ascent share: the solver, and the dual variables beside the model."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        "loss": [str],
        **POSITIVE_ALPHA,
        "homotopy": ["boolean", StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "warm_start": ["boolean"],
    }

    _: KW_ONLY
    alpha: float | str = "scale"
    homotopy: str | bool | int = "auto"
    tol: float = 1e-3
    max_iter: int | str = "auto"
    warm_start: bool = False

    _compiles = True

    def _memory(self, problem: Problem) -> dict[str, float]:
        # The present ones, those of the best point, and temporaries of the duality gap.
        of_rows = {"dual variables": 6 * 8.0 * problem.rows.n_rows * problem.n_outputs}
        # W, the centre, the points before and ahead, and temporaries of a move of the centre.
        return super()._memory(problem) | of_rows | {"centres": 6 * 8.0 * problem.rows.n_features * problem.n_outputs}

    def _limits(self, task: Task) -> tuple[float, float | None]:
        return self.tol, None if isinstance(self.max_iter, str) else self.max_iter

    def _iterates(self, task: Task) -> Iterates:
        problem = DualProblem(task.problem)
        self._check_problem(problem)
        iterates = ascend(
            problem,
            homotopy_path(problem, self.homotopy),
            self._limits_of_ascent(task),
            proximal=self.homotopy == "auto" and is_hard(problem),
            start=self._previous(problem),
            seed=int(task.rng.integers(2**31)),
            # Held-out rows judge every epoch: later, there would be little left to stop.
            measure_every=None if task.held_out is None else 1,
            saved=task.saved,
        )
        return (yield from iterates)

    def _limits_of_ascent(self, task: Task) -> Limits:
        tol, max_iter = self._limits(task)
        if max_iter is not None:
            return Limits(tol, max_iter, task.clock)
        rows, weight, k = task.problem.rows, task.problem.weight, task.problem.n_outputs
        work = epochs("auto", rows, weight, k, 0, MULTIPLICATIONS)
        return Limits(tol, FEWEST_EPOCHS, task.clock, work, EPOCH * work / MULTIPLICATIONS)

    def _check_problem(self, problem: DualProblem) -> None:
        """Warn of a problem whose solution is useless."""

    def _previous(self, problem: DualProblem) -> DualStart | None:
        """The dual variables and the model of the fit before, if rows and outputs are as many."""
        if not self.warm_start or not hasattr(self, "dual_coef_"):
            return None
        dual, share = np.reshape(self.dual_coef_, (len(self.dual_coef_), -1)), problem.share[:, None]
        if dual.shape != (problem.n_rows, problem.n_outputs) or np.shape(self.coef_)[-1] != problem.n_features:
            return None
        center = problem.center if problem.problem.shift is None else problem.center + problem.problem.shift
        intercept = np.atleast_1d(self.intercept_) + np.atleast_2d(self.coef_) @ center - problem.origin
        dual = np.divide(dual * self._dual_alpha, share, out=np.zeros(dual.shape), where=share > 0)
        return DualStart(dual, intercept, np.atleast_2d(self.coef_).T.astype(np.float64))

    def _held_out_loss(self, task: Task, model: DualModel) -> float:
        return super()._held_out_loss(task, (model.coef, model.intercept))

    def _fallback(self, task: Task) -> Any:
        problem = task.problem
        coef, intercept = super()._fallback(task)
        is_warm = task.keeps_labels and self._start(problem) is not None
        has_duals = is_warm and len(getattr(self, "dual_coef_", ())) == problem.rows.n_rows
        duals = None if has_duals else np.zeros((problem.rows.n_rows, problem.n_outputs))
        return DualModel(coef, intercept, duals, problem.alpha)

    def _store(self, task: Task, model: Any) -> None:
        super()._store(task, (model.coef, model.intercept))
        if model.dual is None:
            return
        weight = 1.0 if task.problem.weight is None else np.asarray(task.problem.weight, dtype=np.float64)[:, None]
        dual_coef = model.dual
        if dual_coef.any():  # zeros mean no time for a step: they stay unallocated pages
            dual_coef = dual_coef * (weight / (task.problem.total_weight * model.alpha))
        self.dual_coef_ = dual_coef[:, 0] if np.ndim(self.coef_) == 1 else dual_coef
        self._dual_alpha = model.alpha


@dataclass(eq=False, repr=False)
class SDCAClassifier(Balanced, CrossCalibrated, DualEstimator, LinearClassifier):
    """Linear classifier by stochastic dual coordinate ascent, stopped on its duality gap.

    Minimises, over W of shape (n_features, n_outputs) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i φ(Wᵀx_i + b, y_i) + (alpha/2) ‖W‖²_F,   S = Σ_i s_i,

    by exact steps in one dual variable (one row) at a time, in a fresh random order each epoch (Shalev-Shwartz and
    Zhang, 2013; Hsieh et al., 2008). There is no learning rate. Good at sparse wide data, at hinge losses, and where a
    d×d factor would not fit; where it does, `GLMClassifier` needs fewer passes for smooth losses.

    Parameters
    ----------
    loss : {"auto", "squared_hinge", "hinge", "logistic", "squared", "crammer_singer", "softmax"}, default="auto"
        "auto" takes "softmax", or "logistic" when y is an indicator matrix, as everywhere.
        Each class (or label) against the rest, all in one pass over X: φ(z, y) with y = ±1 is max(0, 1 − yz)²,
        max(0, 1 − yz), log(1 + exp(−yz)) or ½(y − z)². All classes of a row together, with one dual point in the
        simplex per row: max_j (z_j + [j ≠ y]) − z_y ("crammer_singer") or log Σ_j exp z_j − z_y ("softmax"); with two
        classes these are "hinge" and "logistic".
    alpha : float or "scale", default="scale"
        Penalty, > 0. In other libraries' units: ``LinearSVC(C=1/(alpha*S))``, ``LogisticRegression(C=1/(alpha*S))``,
        LIBLINEAR ``C = 1/(alpha*n)``, and 2C for its ``-s 1``-type losses written with a factor ½. "scale" as in
        `GLMClassifier`.
    homotopy : "auto", bool or int, default="auto"
        How to approach the minimum where alpha is small for the rows: where q = mean ‖x‖²/(alpha·n) is above 4.
        "auto" is a sequence of proximal points: minima of F plus a pull towards a centre Y, (kappa/2)‖u∘(W − Y)‖². Each
        takes a few epochs from the dual variables of the last, and the centres, which are accelerated, approach the
        minimum of F. u holds the standard deviations of the columns, so that it does not matter how different in size
        they are, or one number for all; kappa adapts. The other choices solve at larger penalties before alpha
        (*Homotopic Initialization*): True at ν = 0.25·√alpha (§3.2), an integer P at P points in geometric progression
        from the larger of ν and mean ‖x‖²/n to alpha. A phase ends when its estimated gap is at most ``tol``, or its
        even share of half of ``max_iter`` or ``max_time`` is spent. False is alpha alone.
    fit_intercept : bool, default=True
        The intercept is not penalised. X is centred (inside the products: sparse rows are not filled), and b is found
        by a proximal-point method: a constant feature, penalised by its distance from the present intercept. Dense rows
        far from the origin, and those in Fortran order, are copied once.
    calibrate : {"sigmoid", "temperature"} or None, default=None
        Probabilities for the losses that have none, hinges above all, learned from the scores of rows that are left out
        of five more fits. "sigmoid" is 1/(1 + exp(−a_j z_j − b_j)) for each column (Platt, 1999), divided by the sum
        over the classes; "temperature" is softmax(a z), or the logistic function of a z for one column and for several
        labels. Labels stay those with the largest scores, which under "sigmoid" need not have the largest
        probabilities. Where half of ``max_time`` is too short for five fits, a tenth of the rows is held out of the
        only one instead.
    tol : float, default=1e-3
        Stop when ``duality_gap_`` is at or below this; for rows that are all but fitted, see `GLMClassifier`.
    max_iter : int or "auto", default="auto"
        Limit on the epochs of all penalties together. "auto" is 1000, or more where few rows are visited: as many as
        fit into 2·10⁹ multiplications, a few seconds.
    early_stopping : bool, default=False
        Hold rows out, measure after each epoch, stop when their loss no longer falls, and keep the best model. That may
        be one of the larger penalties of the homotopy.
    n_iter_no_change : int, default=5
        Epochs without a smaller loss of the held-out rows after which to stop.
    warm_start : bool, default=False
        Start from the present dual variables if rows and outputs are as many as before.
    <shared>

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    dual_coef_ : array of shape (n_samples, n_classes) or (n_samples, 1)
        ``coef_ = dual_coef_.T @ (X - X.mean(axis=0))``, the mean being weighted, without a few rows that are many
        times as far from most as these are from each other; without an intercept ``coef_ = dual_coef_.T @ X``. After
        proximal points this is exact at the minimum only; elsewhere (alpha/2) ‖difference‖² is a part of
        ``duality_gap_``. Rows of weight 0 have 0.
    calibration_ : ndarray of shape (2, n_classes) or (2, 1)
        a and b of `calibrate`.
    duality_gap_ : float
        (F − D)/F(zero model) ≥ 0, so that ``F − F* ≤ duality_gap_ · F(zero model)``. It is measured by a pass of its
        own over all rows, at a dual point that satisfies every constraint. (For the squared loss with an intercept the
        zero model is the best constant one.)
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree.
    TypeError
        If X is not on the CPU in NumPy or CSR form.

    Notes
    -----
    Rows of a path that do not fit into memory are visited chunk by chunk, as by `PegasosClassifier`; where chunks come
    in the order of the file, more epochs are needed. The dual variables stay in memory.

    ``history_`` has one record per measured gap. Its ``details`` are F and D at that very point (``primal``, ``dual``),
    the penalty of the phase (``alpha``), the epochs of each phase (``phase_epochs``), the number of proximal points
    (``proximal_points``), and the seconds spent on measuring (``gap_seconds``). Of ``n_passes_`` an epoch is one, and a
    measured gap two.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization",
    JMLR 14, 2013. C.-J. Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008.
    H. Daneshmand, H. Hassani and T. Hofmann, "Accelerated dual learning by homotopic initialization", 2017.
    R. D. C. Monteiro and B. F. Svaiter, "An accelerated hybrid proximal extragradient method for convex optimization
    and its implications to second-order methods", SIAM J. Optim. 23, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import SDCAClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SDCAClassifier("crammer_singer", alpha=1.0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DualEstimator._parameter_constraints,
        **CLASS_WEIGHT,
        **CALIBRATE,
    }

    loss: str = "auto"
    _: KW_ONLY
    calibrate: str | None = None

    def _iterates(self, task: Task) -> Iterates:
        task = self._calibrate(task)
        return (yield from super()._iterates(task))


@dataclass(eq=False, repr=False)
class SDCARegressor(DualEstimator, LinearRegressor):
    """Linear regression by stochastic dual coordinate ascent, stopped on its duality gap.

    Minimises F of `SDCAClassifier` with a loss of real responses. The outputs of a multi-output y are fitted in one
    pass over X: a row touches n_outputs contiguous numbers for each of its non-zeros.

    Parameters
    ----------
    loss : {"squared", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"}, default="squared"
        With ``r = |y − z|`` and ε = ``epsilon``: ½r²; ½r² up to ε and ε(r − ε/2) beyond; max(0, r − ε); max(0, r − ε)².
    epsilon : float, default=0.1
        In units of y; not used by the squared loss. With 0, "epsilon_insensitive" is the absolute error, and "huber",
        which would be 0 for any prediction, is refused. Where all y of an output are within ε of one number, that
        number is the model of an ε-insensitive loss, and a warning says so.
    alpha : float or "scale", default="scale"
        Penalty, > 0. For the squared loss ``Ridge(alpha=alpha*S)``; for the ε-insensitive losses
        ``LinearSVR(C=1/(alpha*S))``. "scale" is 1e-4 in units of the columns, as y may have any unit; or
        what up to 1024 rows left out ask for, where that is clearly better. Where it is so large
        that X hardly matters, a warning says so.
    homotopy, max_iter
        As in `SDCAClassifier`.
    tol : float, default=1e-3
        As in `SDCAClassifier`; for "huber" and "epsilon_insensitive", for which a few y far from most hardly matter, of
        the loss of the zero model without these.
    <shared>

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or array of shape (n_outputs,)
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_outputs)
    duality_gap_ : float
        (F − D)/F(zero model) ≥ 0, the zero model being the mean of y where there is an intercept.
    <shared>

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
    >>> model.duality_gap_ <= model.tol
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DualEstimator._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }

    loss: str = "squared"
    _: KW_ONLY
    epsilon: float = 0.1

    def _choose_loss(self, encoded: Responses) -> tuple[str, Loss]:
        name, loss = super()._choose_loss(encoded)
        Y = to_numpy(encoded.guide)
        low, high = Y.min(axis=0), Y.max(axis=0)
        reach = 0.5 * (high - low) if self.fit_intercept else np.maximum(abs(low), abs(high))
        if ((high > low) & (reach <= loss.blind)).any():
            fact = f"All y of an output lie within epsilon={loss.blind:g} of one number, which is the model;"
            warnings.warn(f"{type(self).__name__}: {fact} choose it in units of y.", UserWarning, stacklevel=outside())
        return name, loss

    def _check_problem(self, problem: DualProblem) -> None:
        reach = float(np.min(problem.reach, where=problem.targets.Y.any(axis=0), initial=np.inf))
        if 0 < reach < HELD_BACK:
            remedy = "lower it, or scale X" if problem.loss.top == np.inf else "lower it, or scale y or X"
            reason = f"alpha={problem.alpha:g} holds predictions to {reach:.1g} of the spread of y, whatever X tells;"
            warnings.warn(f"{type(self).__name__}: {reason} {remedy}.", UserWarning, stacklevel=outside())
