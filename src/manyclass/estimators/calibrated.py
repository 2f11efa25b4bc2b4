"""Calibrated least squares: classification by least squares alone, with calibrated probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.choice.costs import FOLDS, MANY_ROWS
from manyclass.choice.features import EVERY, USUAL, LeftOut, others_cost_more, usual_rows
from manyclass.choice.frame import Frame, occurring
from manyclass.choice.representations import fits_beside, represent, soon_enough, tries_penalties
from manyclass.choice.ridge_path import moments_by_fold
from manyclass.data import MatrixTargets, Rows
from manyclass.data.rows import Array, present_rows, to_numpy
from manyclass.estimators.base import Task
from manyclass.estimators.learned_link import LearnedLink
from manyclass.estimators.parameters import CHOSEN_ALPHA, CLASS_WEIGHT, RUN, Balanced, HoldsOut
from manyclass.estimators.sampled_stream import SampledStream
from manyclass.estimators.stagewise_base import StagewiseClassifierBase
from manyclass.fit import Iterate, Iterates, Outcome, changed
from manyclass.fit.folds import Fold, known_to_others
from manyclass.fit.held_out import folds_by_content
from manyclass.model import Problem
from manyclass.stagewise import FoldsJudge, HeldOutJudge, OriginalColumns, Trials
from manyclass.stagewise.equations import SAMPLED_ROWS, Equations, NormalEquations, ProductEquations


@dataclass(eq=False, repr=False)
class CalibratedLeastSquaresClassifier(Balanced, HoldsOut, LearnedLink, SampledStream):
    """Least squares with an unknown link: *Least Squares Revisited*, Algorithm 2.

    From ŷ = 0, alternates between least squares on the residuals and least squares on functions of the predictions,

        ỹ = ŷ + argmin_{W, b} (1/2S) Σ_i s_i ‖y_i − ŷ_i − Wᵀx_i − b‖² + (alpha/2) ‖W‖²            (eq. 10)
        ŷ = Π(M G(ỹ) + c),   M, c = argmin Σ_i s_i ‖y_i − M G(ỹ_i) − c‖²                          (eq. 11)

    where y is 0 or 1 and Π projects onto the probability simplex (three or more classes) or [0, 1] per column (two
    classes, which are one column, and multi-label). The squared error never rises from one iteration to the next;
    without noise it is at most 22kκ²/t after t iterations of (10) as it stands (Theorem 2). The step of (10) is right
    for a link of slope 1. The learned link is mostly flatter, so steps are longer here: ỹ = ŷ + λ argmin, where λ
    starts at 1, doubles from one iteration to the next (up to 1024), is halved (down to 1) for as long as the error
    would rise, and is then kept for four iterations. All iterations share one factor of the second moment of X; each
    costs two passes over the rows, and one more for each time that λ is halved. This is
    `StagewiseClassifier(loss="calibrated")` over one block, the columns of X.

    The model is improper: it is the chain of its iterations, and prediction replays them. ``predict_proba`` is the
    prediction itself, fitted to be near the labels in squared error; no separate calibration is needed. As Π gives
    some classes no probability, a share (m + 1)/(n + 2) is spread evenly over all of them, if m of the n labels of the
    rows that judge had probability 0: that keeps the order of the classes, and makes the log loss finite. A softmax of
    the last scores before Π (logistic functions for two classes and for labels), at its best temperature
    (``temperature_``), takes the place of Π where it has clearly less log loss on the rows that judge, as it may with
    few rows in many classes that are far apart. Those rows are held out or left out of a fold, or, where there are
    none, the rows fitted to.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Penalty of each least-squares step, ≥ 0; ``Ridge(alpha=alpha*S)``. "auto" is the largest of a grid whose
        leave-one-out error in the first step (generalised cross-validation from four rows per feature on) is within 1 %
        of the least. With at least as many rows as features it is then multiplied by ten for as long as up to 20
        iterations have a smaller loss and fewer errors on rows that are not fitted to (2000 or more, if there are).
        That is not tried with more than 341 classes, or without an eigendecomposition, which all penalties share
        ("products", see ``choice_``). Where the spread of one column is more than ten times that of another, and
        leave-one-out errors on a sample of rows are clearly smaller that way, the penalty is on coefficients of
        standardised columns (see ``choice_``).
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
        does so from 10 000 rows on, and in each partition of a Dask collection. Fewer rows are cross-validated in five
        parts (copies of a row stay together; where there are more functions of predictions than features, parts with
        2000 rows together are enough), and the model is fitted to all of them. The first candidate is least squares
        without calibration. Calibration is kept for clearly less loss and fewer errors on those rows, for errors fewer
        by a standard error, or, with 200 labels or more, for a tenth less loss and at most half a point more errors.
    kept_rows : int, default=20000
        Rows that `partial_fit` keeps for the link.
    <shared>

    Attributes
    ----------
    models_ : list of one StagewiseModel
        Its ``stages`` hold coef, intercept and calibration of each iteration kept.
    temperature_ : float
        What scores are divided by before the softmax, where there is one.
    choice_ : dict
        "rows" is "all", or "in usual units" where `alpha` is "auto" and a few rows, most of whose numbers are far
        outside of the range of most rows, are not fitted to: where leave-one-out errors among the others become fewer
        by more than these few rows. "features" is "columns", or "standardized columns" where the penalty is on
        coefficients of these. "representation" is what stood for X: "moments" (a d×d matrix), "row-space" (n×n, for
        fewer rows than features) or "products" (conjugate gradients, no matrix), whichever of those that fit into
        memory is fastest by "estimates" (seconds). With "products" the penalty is chosen from 1024 rows, or, where
        these tell next to nothing and there are four times as many, by their errors under fits to all the others.
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree.
    MemoryError
        If not even the coefficients fit into memory.

    Notes
    -----
    In ``history_``, the objective is the squared error after an iteration; among the details, "before_calibration" is
    that between its half steps, and "length" is λ.

    `partial_fit`, `forget` and `merge` keep second moments of all rows and up to `kept_rows` rows themselves, as the
    link is a function of predictions of single rows. While all rows are kept, the model is that of one ``fit`` (below
    10 000 rows in any order; from there on the order decides, as in ``fit``, which rows are held out). With more rows
    than that, least squares on the labels and the choice of alpha (by generalised cross-validation then) still use all
    of them, while calibration, what later iterations fit to the predictions, and when to stop come from the rows kept:
    a uniform sample of the different ones, the same for any order of the pieces. Forgetting may leave fewer of these
    than would have been kept without the rows forgotten.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from manyclass import CalibratedLeastSquaresClassifier
    >>> X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    >>> model = CalibratedLeastSquaresClassifier().fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    loss = "calibrated"
    _link_proof = 2.0
    _doubt = StagewiseClassifierBase._doubt  # by all rows that judge

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **CHOSEN_ALPHA,
        **CLASS_WEIGHT,
        "basis": ["array-like"],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "kept_rows": [Interval(Integral, 1, None, closed="left")],
    }

    alpha: float | str = "auto"
    _: KW_ONLY
    basis: Sequence[float | Callable[[Array], Array]] = (1, 2, 3)
    tol: float = 1e-5
    max_iter: int = 100
    early_stopping: bool | str = "auto"
    kept_rows: int = 20_000

    def _holds_out(self, rows: Rows, weight: Any) -> bool:
        is_elsewhere = self._is_sampled or not rows.place.is_here
        many = is_elsewhere or len(present_rows(rows.n_rows, weight)) >= MANY_ROWS
        return self.early_stopping is True or (self.early_stopping == "auto" and many)

    def _iterates(self, task: Task) -> Iterates:
        if task.saved is None:
            # For a fit whose time is over before anything is chosen; so in all that choose.
            self.choice_ = {"rows": EVERY, "features": "auto", "representation": "auto", "estimates": {}}
        problem = self._usual(task) if self.alpha == "auto" else task.problem
        compact, _ = occurring(problem)
        cross_validates = self.early_stopping == "auto" and task.held_out is None
        fold = None
        if cross_validates:
            fold = folds_by_content(problem.rows, task.encoded.strata, problem.weight, FOLDS)
            fold = fold if fold.max() > 0 else None
        n_folds = 0 if fold is None else int(fold.max()) + 1
        n_judging = fits_beside(compact, n_folds, len(self.basis))
        tries = self.alpha == "auto" and tries_penalties(compact, len(self.basis))
        if task.saved is None:
            ways = represent(compact, n_folds=n_judging, chooses_alpha=self.alpha == "auto", tries=tries)
            self.choice_ |= {
                "features": self._features(problem),
                "representation": soon_enough(ways, task.clock.left).name,
                "estimates": {str(way): way.seconds for way in ways},
            }
        way = self.choice_["representation"]
        frame = Frame(problem, rotate=way == "row-space", unit=self._unit(problem), drops_empty=True)
        equations, of_folds = _equations(frame.problem, fold, n_folds, with_products=way == "products")
        trials = self._trials(frame.problem, fold, of_folds, task)
        tries = tries and way != "products" and len(trials.fits) > 0  # which has no factor for all penalties
        few = trials.few()
        judge = None if fold is None else FoldsJudge(trials if n_judging == n_folds else few)
        iterates = self._on_columns(task, frame, equations, judge, few if tries else None)
        return (
            yield from changed(iterates, lambda iterate: self._keep_left_out(task, problem, iterate, trials.judges))
        )

    def _usual(self, task: Task) -> Problem:
        """The problem without rows in other units than most, where these cost more than they are."""
        given = task.problem
        usual = usual_rows(given)
        if task.saved is None:
            self.choice_["rows"] = USUAL if others_cost_more(given, usual) else EVERY
        return given if self.choice_["rows"] == EVERY else given.variant(weight=given.weights_of(usual)[0])

    def _keep_left_out(self, task: Task, problem: Problem, iterate: Iterate, judges: list[HeldOutJudge]) -> Iterate:
        """The same iterate; keeps the left-out scores of the best iteration so far, to learn the link from."""
        task.problem.alpha = problem.alpha  # chosen for usual rows, and told of all
        scored = [(judge.kept, *judge.some[1:]) for judge in judges if judge.some is not None]
        if scored:
            Z, Y, weight = (np.concatenate([to_numpy(part) for part in parts]) for parts in zip(*scored, strict=True))
            self._left_out = LeftOut(Z.astype(np.float64) - self._midpoint, Y, weight.astype(np.float64))
        return iterate

    _learns_link = True

    def _store_outcome(self, task: Task, outcome: Outcome) -> None:
        left_out, seen = self.__dict__.pop("_left_out", None), None
        if left_out is not None and self._domain.exclusive:
            codes, k = to_numpy(task.encoded.codes), task.encoded.n_classes
            weight = None if task.problem.weight is None else to_numpy(task.problem.weight)
            seen = np.bincount(codes[known_to_others(codes, weight)], minlength=k) > 0
            # Least squares scores a class without rows like any class that is far away, so its link tells nothing.
            left_out = left_out if np.bincount(codes, weight, k).all() else None
        if left_out is not None:
            self._learn_link(left_out, seen)
        super()._store_outcome(task, outcome)

    def _trials(self, problem: Problem, fold: np.ndarray | None, equations: list[Equations], task: Task) -> Trials:
        """Fits to all rows but those of one fold; or to those that are not held out, if some are."""
        trials = Trials([], [], [], self.tol)

        def add(part: Problem, judging: Array, share: float, own: dict[int, Equations]) -> None:
            trials.judges.append(HeldOutJudge(judging, len(trials.judges) if fold is not None else None))
            trials.shares.append(share)
            fit = self._solver(part, lambda number: OriginalColumns(problem.rows), trials.judges[-1], task.clock, own)
            fit.chooses_alpha = False
            trials.fits.append(fit)

        for number, own in enumerate(equations):
            inside, weight = problem.weights_of(fold == number)
            part = own.problem if isinstance(own, ProductEquations) else problem.variant(weight=weight)
            add(part, inside, float(problem.xp.sum(inside)) / problem.total_weight, {0: own})
        if task.held_out is not None:
            add(problem.variant(), task.held_out.scored, 1.0, {})
        return trials


def _equations(
    problem: Problem, fold: np.ndarray | None, n_folds: int, *, with_products: bool
) -> tuple[dict[int, Equations], list[Equations]]:
    """The normal equations of all rows, if they are worth computing beforehand, and those of all rows but each fold."""
    parts = [problem.variant(weight=problem.weights_of(fold == number)[1]) for number in range(n_folds)]
    if with_products:
        sample = problem.sample(SAMPLED_ROWS)
        return {0: ProductEquations(problem, sample)}, [ProductEquations(part, sample) for part in parts]
    if fold is None:
        return {}, []
    folds = [Fold(part.weight, np.flatnonzero(fold == number), None, True) for number, part in enumerate(parts)]
    without_targets = problem.variant(targets=MatrixTargets(problem.rows.zeros((len(fold), 0))))
    whole, others = moments_by_fold(without_targets, folds)
    equations: list[Equations] = [NormalEquations.of(*pair) for pair in zip(others, parts, strict=True)]
    return {0: NormalEquations.of(whole, problem)}, equations
