"""Generalized linear classification whose penalty the data choose."""

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.choice.features import advice
from manyclass.choice.ridge_path import RidgePath
from manyclass.data.factor import varying
from manyclass.data.labels import encode_chunk
from manyclass.data.memory import room_for
from manyclass.data.penalty import SEEN, penalties, usual_scale
from manyclass.data.rows import Array, to_numpy
from manyclass.data.validation import check_rows
from manyclass.estimators.base import Task, outside
from manyclass.estimators.classifier import LinearClassifier
from manyclass.estimators.descent_search import DescentSearch
from manyclass.estimators.model_scorer import ModelScorer
from manyclass.estimators.parameters import CLASS_WEIGHT, RUN, Balanced, Timed
from manyclass.estimators.penalty_search import PenaltySearch, Plan, Selected
from manyclass.estimators.ridge_search import RidgeSearch, memory_of_ridge, seconds_of_ridge
from manyclass.estimators.streaming import ExactStream
from manyclass.fit import Clock, Iterates
from manyclass.fit.folds import Fold, folds, known_to_others, mean_scores, of_known, without_score
from manyclass.model import LOSSES, SMOOTH_LOSSES
from manyclass.model.conformal import Conformity

_LEFT_OUT = ("loo_proba_", "loo_score_", "loo_check_", "_conformity", "coefs_paths_")
OUTWEIGHED, SHARE_OF_COLUMNS = 100.0, 0.2
"""A penalty of so many times the variance of a column leaves next to nothing of its coefficients; a warning is given
for more than this share of the columns."""


@dataclass(eq=False, repr=False)
class GLMClassifierCV(Balanced, Timed, ExactStream, LinearClassifier):
    """`GLMClassifier` with the penalty chosen on rows that a model has not seen, for the price of a few fits.

    The objective is that of `GLMClassifier`; the final model is fitted to all rows at the best of `alphas`.

    For the squared loss the whole path comes from one eigendecomposition of the second moments of the rows (in the
    space of the rows, where these are fewer than features). Leave-one-out errors are exact, (y_i − f_i)/(1 − h_i) with
    the leverage h_i of a row; generalised cross-validation is that of Golub, Heath and Wahba (1979); and for K folds
    the moments of each are subtracted from those of all, so that no row is read K times.

    For the other losses the models of all folds descend from the largest penalty together. Each starts from a linear
    extrapolation, in log alpha, of the last two, and all share one estimate of the curvature. The search ends when the
    score has clearly turned: once some penalty beats the zero model, and two in a row are worse than the best one by
    more than a standard error (over the folds; over the rows, where a single set of them judges).

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=10
        Penalties (see `GLMClassifier`), or how many: evenly spaced on a log scale from the mean squared norm of the
        centred rows, where next to nothing is left of the coefficients, to 1e-8 of it; and further down in the same
        steps where some columns have a hundred times the variance of most others.
    cv : int, "loo", "gcv", splitter, iterable of (train, test), tuple (X, y) or None, default=None
        A number of folds (what the rows hold decides who is in which, not their order); "loo", every row left out in
        turn: exactly for the squared loss, by one Newton step each for softmax and logistic (see `leave_one_out`);
        "gcv", generalised cross-validation, for the squared loss; a scikit-learn splitter or splits, for groups of rows
        ``list(splitter.split(X, y, groups))``; or held-out rows (X, y).
        None is "loo" for the squared loss and 5 otherwise.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn, by name or from ``make_scorer``. None is "neg_log_loss" for softmax and logistic, as
        it changes smoothly with alpha and needs far fewer rows than a count of errors to say which model is better; and
        "accuracy" for the squared loss, which has no probabilities, and for sparsemax, whose probabilities can be 0.
        With several labels both count the labels of a row together. "gcv" and `alpha_per_output` use the squared
        error. Scores are weighted like the objective, where the scorer takes weights. Folds for which it returns NaN
        are ignored, and so are rows of a class that is missing from the rows fitted to.
    loss : {"auto", "softmax", "logistic", "squared", "sparsemax"}, default="auto"
        As for `GLMClassifier`.
    alpha_per_output : bool, default=False
        Choose a penalty for each output, by its own squared error; for the squared loss.
    leave_one_out : bool, default=False
        Whether to compute ``loo_proba_``, ``loo_score_`` and what `predict_set` needs, for the final model. Leaving out
        row i moves its scores from z to about z + (1/S) C (I − A C/S)⁻¹ (p − y) with A = ∇²Φ(z), H = ∇²F and
        C = (x̃ᵀ ⊗ I) H⁻¹ (x̃ ⊗ I): one Newton step (Beirami et al., 2017; Rad and Maleki, 2020). H is the full Hessian
        for up to 1024 parameters in all; above that, its blocks for single outputs. With few rows per class, all steps
        are lengthened by a factor that is measured by 30 refits, each without one of the rows.
    loo_refits : int, default=0
        Refit without each of so many rows, drawn at random, and report in ``loo_check_`` how far off that step is.
    calibrate : "temperature" or None, default=None
        Divide scores by the temperature that gives the left-out rows the least log loss before they become
        probabilities (Guo, Pleiss, Sun and Weinberger, 2017), without rows kept aside; for softmax and logistic.
    tol : float, default=1e-3
        Of each fit, as for `GLMClassifier`.
    max_iter : int, default=500
        Limit on the iterations of each fit.
    <shared>

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (n_outputs,) with `alpha_per_output`
        The best penalty; of equally good ones the largest.
    alphas_ : ndarray of shape (n_alphas,)
        The penalties, descending.
    scores_ : ndarray of shape (n_folds, n_alphas), or (n_folds, n_alphas, n_outputs) with `alpha_per_output`
        Larger is better; NaN for penalties that the search did not reach. One row where there are no folds.
    best_score_ : float, or ndarray of shape (n_outputs,)
        The mean of ``scores_`` over the folds at ``alpha_``.
    coefs_paths_ : ndarray of shape (n_folds, n_alphas, n_outputs, n_features + 1)
        Coefficients, the intercept last (without it where none is fitted); only up to 256 MB in all.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    loo_proba_ : array of shape (n_samples, n_classes)
        Probabilities of the rows under the models of the others, at ``temperature_``.
    loo_score_ : float
        `scoring` of the left-out scores, before a temperature is chosen by them.
    loo_check_ : dict
        The ``rows`` of `loo_refits`, ``correlation`` and ``mean_difference`` of their approximate and exact log losses,
        and the ``largest`` difference.
    temperature_ : float
        1 unless calibrated; then from e⁻³ to e³.
    duality_gap_ : float
        Of the final model, as for `GLMClassifier`; for losses that are not squared.
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, parameters do not fit each other or the
        loss, or `scoring` gives no number on any fold.

    Notes
    -----
    Where `max_time` is expected to be too short for all penalties, the path begins at the middle one. If it is too
    short for three penalties in every fold, only the first folds have ``scores_``; if it is too short even for one
    fold, the model is that of the middle penalty, and ``scores_`` are NaN.

    All columns share one penalty. Where the smallest penalty of the default grid is the best, yet larger than the
    variance of some column, a warning advises to standardise the columns.

    With ``loss="squared"`` and ``cv="gcv"`` the choice follows from sums over rows, so that `partial_fit`, `forget` and
    `merge` are exact.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import GLMClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GLMClassifierCV(leave_one_out=True).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.9)
    True
    >>> model.predict_set(X[1200:], coverage=0.95).shape
    (597, 10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: RUN[name] for name in ("fit_intercept", "tol", "max_iter", "max_time", "random_state")},
        **CLASS_WEIGHT,
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object", StrOptions({"loo", "gcv"})],
        "scoring": [str, callable, None],
        "loss": [str],
        "alpha_per_output": ["boolean"],
        "leave_one_out": ["boolean"],
        "loo_refits": [Interval(Integral, 0, None, closed="left")],
        "calibrate": [StrOptions({"temperature"}), None],
    }
    _fits_parts: ClassVar[bool] = True
    _refits: ClassVar[bool] = True
    _alpha = 1.0
    _model_parts: ClassVar[tuple[type, ...]] = (*ExactStream._model_parts, Conformity)

    alphas: Any = 10
    _: KW_ONLY
    cv: Any = None
    scoring: Any = None
    loss: str = "auto"
    alpha_per_output: bool = False
    leave_one_out: bool = False
    loo_refits: int = 0
    calibrate: str | None = None
    max_iter: int = 500
    tol: float = 1e-3

    def predict_set(self, X: Any, coverage: float = 0.9, by_class: bool = False) -> np.ndarray:
        """Sets of labels that hold the true one, or all true ones, with a given probability (see `Conformity`).

        A row's set holds the classes whose probability (score, for the squared loss) is at least as large as that of
        the true class in all but a share 1 − coverage of the rows of the fit, each left out of the model it is
        compared by. Sets are empty where no class fits so well.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float
            Between 0 and 1.
        by_class : bool
            Whether that probability is to be reached for the rows of every class, rather than for all rows together;
            with several labels, for the rows of each label. Sets of one label grow with it.

        Returns
        -------
        sets : boolean ndarray of shape (n_samples, n_classes)

        Raises
        ------
        ValueError
            If the coverage is not between 0 and 1, or the model was not fitted with ``leave_one_out=True``.
        """
        rows = self._fitted_rows(X)
        is_share = isinstance(coverage, int | float | np.number) and 0 < coverage < 1
        if not is_share:
            raise ValueError(f"coverage={coverage!r} must lie between 0 and 1.")
        if not hasattr(self, "_conformity"):
            raise ValueError("Prediction sets go by left-out scores; fit with leave_one_out=True and time to do so.")
        return self._support(self._scores(rows)) >= self._conformity.thresholds(coverage, by_class=by_class)

    def _before_link(self, scores: Array) -> Array:
        return scores / self.temperature_

    def _stream_refusal(self) -> str | None:
        loss = SMOOTH_LOSSES.get(self.loss)
        if loss is not None and loss.quadratic and self._cv_is("gcv") and not (self.leave_one_out or self.loo_refits):
            return None
        return (
            "Sums over rows choose a penalty only for loss='squared' by cv='gcv', without left-out scores; use those, "
            "or CalibratedLeastSquaresClassifier for probabilities."
        )

    def _solve(self, clock: Clock) -> None:
        task = self._stream_task(clock)
        moments = self._stream_moments(task)
        path, mean = RidgePath(moments, self.fit_intercept), moments.target_mean
        second = moments.covariance if self.fit_intercept else moments.second_moment
        alphas = penalties(self.alphas, lambda: varying(second, moments, self._stream.precision))
        absent, present = LOSSES[self.loss_].label_values or (0.0, 1.0)
        squares = (absent + present) * mean - absent * present  # the mean of y², as y has two values
        squares = squares - mean**2 if self.fit_intercept else squares
        errors = path.spectrum.generalised_cross_validation(alphas, squares, self._stream.n_effective)
        scores = -(errors if self.alpha_per_output else errors.mean(axis=1))[None]
        places = np.argmax(scores[0], axis=0)
        alpha = alphas[places] if self.alpha_per_output else float(alphas[places])
        coef, intercept = next(path.coefficients([task.rows.asarray(alpha, dtype=mean.dtype)]))
        steps = np.ones(scores.shape[:2], dtype=np.int32)
        self._finish(task, Selected(coef, intercept, alpha, alphas, scores, None, steps), float("nan"))

    # -- the parts of a fit -----------------------------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        loss = SMOOTH_LOSSES.get(self.loss, SMOOTH_LOSSES["softmax"])  # "auto" may be logistic, which is alike here
        for is_set, name in ((self.alpha_per_output, "alpha_per_output=True"), (self._cv_is("gcv"), "cv='gcv'")):
            if is_set and not loss.quadratic:
                raise ValueError(f"{name} is for loss='squared'; leave it out for loss={self.loss!r}.")
            if is_set and self.scoring is not None:
                raise ValueError(f"{name} goes by the squared error; leave scoring={self.scoring!r} out.")
        if self.calibrate and (loss.has_kinks or not loss.probabilistic):
            raise ValueError(f"loss={self.loss!r} has nothing to calibrate; use loss='softmax' or 'logistic'.")
        if loss.has_kinks and (self.leave_one_out or self._cv_is("loo")):
            raise ValueError("Leaving one out needs a loss with a Hessian everywhere; use loss='softmax', or folds.")

    def _cv_is(self, name: str) -> bool:
        return isinstance(self.cv, str) and self.cv == name

    def _limits(self, task: Task) -> tuple[float, float | None]:
        return 0.0, None  # those of the parameters hold for each fit of the search

    def _max_iterates(self) -> int | None:
        return None if np.ndim(self.alphas) == 0 else len(self.alphas) + 2

    def _iterates(self, task: Task) -> Iterates:
        problem, needs_exact = task.problem, isinstance(self.cv, str)
        is_exact = problem.loss.quadratic and seconds_of_ridge(problem) < task.clock.left
        is_exact = is_exact and (needs_exact or memory_of_ridge(problem) <= room_for(problem.memory_limit))
        kind = RidgeSearch if is_exact else DescentSearch
        scorer = self._scorer_of(task)
        if self.alpha_per_output:
            scorer.of_rows = scorer.gains
        search: PenaltySearch = kind(task, scorer, self._plan(task, is_exact), self.tol, self.max_iter)
        return (yield from search.iterates())

    def _scorer_of(self, task: Task) -> ModelScorer:
        return ModelScorer(self, self.scoring, task.encoded)

    def _plan(self, task: Task, is_exact: bool) -> Plan:
        cv: Any = self.cv
        if cv is None:
            cv = "loo" if is_exact else 5
        outside, parts, mode = None, [], cv if isinstance(cv, str) else "folds"
        left_out = self.leave_one_out or self.calibrate is not None or self.loo_refits > 0
        if mode != "gcv" or left_out:
            task.rows.place.refuse(
                "Rows in partitions are not left out one by one or by folds; use loss='squared' with cv='gcv', or fit "
                "GLMClassifier for each penalty."
            )
        if mode == "folds":
            if isinstance(cv, tuple) and len(cv) == 2 and getattr(cv[0], "ndim", 1) == 2:
                rows, y = check_rows(self, *cv, reset=False)
                outside = encode_chunk(y, self.classes_, None, type(self).__name__, several=self.multilabel_)
                parts = [Fold(task.weight, np.arange(rows.n_rows), rows, False)]
            else:
                y = to_numpy(task.encoded.guide)
                parts = folds(cv, task.rows, y, task.encoded.strata, task.weight)
        problem, weight = task.problem, None if task.weight is None else to_numpy(task.weight)

        def scale() -> float:
            return usual_scale(problem.rows.take(problem.sample(SEEN)))

        return Plan(
            alphas=penalties(self.alphas, lambda: problem.feature_variance, scale),
            folds=parts,
            outside=outside,
            mode=mode,
            per_output=self.alpha_per_output,
            leave_one_out=left_out,
            n_refits=self.loo_refits,
            judging_weight=self._weight_left_out(task) if mode == "loo" else weight,
            by_known=True,
            refits=self._refits,
        )

    def _weight_left_out(self, task: Task) -> np.ndarray | None:
        """Weights of the rows in leave-one-out scores: 0 for the only row of a class."""
        weight, codes = None if task.weight is None else to_numpy(task.weight), to_numpy(task.encoded.guide)
        return of_known(weight, known_to_others(codes, weight)) if codes.ndim == 1 else weight

    def _fallback(self, task: Task) -> Any:
        alphas = np.atleast_1d(np.nan)
        coef, intercept = super()._fallback(task)
        return Selected(coef, intercept, float("nan"), alphas, np.full((1, 1), np.nan), None, np.zeros((1, 1)))

    def _store(self, task: Task, model: Any) -> None:
        for name in _LEFT_OUT:
            self.__dict__.pop(name, None)
        super()._store(task, (model.coef, model.intercept))
        self.alpha_, self.alphas_, self.scores_ = model.alpha, model.alphas, model.scores
        mean = mean_scores(model.scores)
        best = np.where(np.isnan(mean), -np.inf, mean).max(axis=0)
        best = np.where(np.isinf(best), np.nan, best)
        self.best_score_ = best if self.alpha_per_output else float(best)
        n_without = int(without_score(model.scores).sum())
        if n_without:
            result = f"gives no number on {n_without} of {len(model.scores)} folds: these judge nothing."
            message = f"{type(self).__name__}: scoring={self.scoring!r} {result}"
            warnings.warn(message, UserWarning, stacklevel=outside())
        if model.paths is not None:
            self.coefs_paths_ = model.paths
        self.temperature_ = 1.0
        if model.left_out is not None:
            self._store_left_out(task, model)
        self._warn_of_units(task)

    def _warn_of_units(self, task: Task) -> None:
        """Warn if the best penalty of the default grid leaves next to nothing of many columns."""
        if np.ndim(self.alphas) or len(self.alphas_) < 2 or not task.problem.rows.n_rows:  # of moments, say
            return
        scaling = advice(task.problem)
        if not scaling:
            return
        variance = to_numpy(task.problem.feature_variance)
        # A few columns, such as pixels that are hardly ever on, do not matter.
        if np.mean(np.min(self.alpha_) > OUTWEIGHED * variance[variance > 0]) > SHARE_OF_COLUMNS:
            reason = "The best penalty leaves next to nothing of many columns."
            warnings.warn(f"{type(self).__name__}: {reason}{scaling}", UserWarning, stacklevel=outside())

    def _store_left_out(self, task: Task, model: Selected) -> None:
        scorer = self._scorer_of(task)
        Z = scorer.one_column(model.left_out)
        truth = scorer.truth(slice(None))
        sample_weight, weight = None if task.weight is None else to_numpy(task.weight), self._weight_left_out(task)
        has_probabilities = SMOOTH_LOSSES[self.loss_].probabilistic
        if self.calibrate:

            def loss(t: float) -> float:
                return -float(np.average(scorer.log_likelihood(Z / np.exp(t), truth), weights=weight))

            self.temperature_ = float(np.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x))
        if has_probabilities:
            self.loo_proba_ = task.rows.asarray(self._probabilities(Z))
        self.loo_score_ = float(scorer.score(Z, truth, weight))
        if model.check is not None and has_probabilities:
            rows, refitted = model.check.rows, scorer.one_column(model.check.scores)
            approximate, exact = (scorer.log_likelihood(scores, truth[rows]) for scores in (Z[rows], refitted))
            varies = min(np.ptp(approximate), np.ptp(exact)) > 0
            self.loo_check_ = {
                "rows": len(rows),
                "correlation": float(np.corrcoef(approximate, exact)[0, 1]) if varies else float("nan"),
                "mean_difference": float(exact.mean() - approximate.mean()),
                "largest": float(np.abs(exact - approximate).max()),
            }
        self._conformity = Conformity.of(self._support(Z), truth, sample_weight)

    def _support(self, Z: Array) -> np.ndarray:
        """Probabilities of the classes, or scores if there are none, of shape (n_rows, n_classes)."""
        if not SMOOTH_LOSSES[self.loss_].probabilistic:
            return to_numpy(self._of_each_class(Z))
        return to_numpy(self._probabilities(Z))
