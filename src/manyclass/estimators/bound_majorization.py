"""Multinomial logistic regression by quadratic bounds on the partition function."""

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.bound import FIRST_ETA, DenseInverse, LowRank, StochasticBound
from manyclass.choice import Choice, asked_for, choose
from manyclass.choice.frame import Frame, occurring
from manyclass.curvature.partition_bound import PartitionBound
from manyclass.data.threads import threads_for
from manyclass.estimators.base import Task
from manyclass.estimators.classifier import LinearClassifier
from manyclass.estimators.linear import by_choice
from manyclass.estimators.parameters import CLASS_WEIGHT, RUN, SCALED_ALPHA, Balanced, HoldsOut
from manyclass.fit import Iterates, changed, restore
from manyclass.model import Problem
from manyclass.solvers.majorize import Majorize

FAR = 2.0
"""Rows are shifted if the mean of a column, which couples W and b, is so many standard deviations from 0."""


@dataclass(eq=False, repr=False)
class BoundMajorizationClassifier(Balanced, HoldsOut, LinearClassifier):
    """Multinomial logistic regression by bound majorization, batch or stochastic, without a step size to tune.

    Minimises, over W of shape (n_features, n_classes) and an unpenalised intercept b,

        F(W, b) = (1/S) Σ_i s_i [log Σ_y exp(z_iy) − z_i,y_i] + (alpha/2) ‖W‖²_F,   z_i = Wᵀx_i + b,   S = Σ_i s_i,

    the objective of `GLMClassifier`. The log partition function of each row has the quadratic upper bound of Algorithm
    1 of *Stochastic Bound Majorization* (Choromanska and Jebara), with curvature B_i ⊗ x_i x_iᵀ. Two classes are fitted
    with one column of scores, labels of an indicator matrix with one partition function each.

    A step of the batch method bounds all rows at the present model, and minimises the sum of the bounds on the plane of
    the last step and the gradient, in a metric that is chosen by estimated seconds (``choice_``). F never rises. A step
    costs two passes and needs no matrix of all parameters, so that there is no limit to their number. This is
    ``GLMClassifier(solver="majorize", curvature="partition-bound")``. The paper's own batch method (its equation 2,
    ``step="paper"``) minimises the sum over all parameters; its stochastic one (Algorithm 2) accumulates the bounds and
    gradients of single rows, and moves after each. Both couple all D = min(n_features, n_rows) · n_classes parameters:
    O(D²) memory, O(D²·n_classes) time a row, and D ≤ 8192. (Fewer rows than features are fitted in as many dimensions
    as there are rows, which for this penalty is the same problem.)

    Parameters
    ----------
    method : {"auto", "batch", "stochastic"}, default="auto"
        "auto" is "stochastic" where ``rank`` or ``step`` ask for it, and otherwise "batch", which was faster on every
        data set measured.
    rank : int or None, default=None
        Stochastic method only: directions kept of the curvature, the rest bounded by a diagonal, for O(rank·D) memory
        and time a row. None keeps all of it.
    alpha : float or "scale", default="scale"
        Penalty, ≥ 0; the paper's λ is ``alpha * S``, and ``2 * alpha * S`` for two classes. "scale" as in
        `GLMClassifier`.
    step : {"refreshed", "paper"} or float, default="refreshed"
        "paper": as published. Batch: to the minimum of the bound. Stochastic: steps of 1/n and statistics that keep
        every row ever seen, which comes near the optimum and then swings about it. "refreshed": converges sooner, and
        to the optimum; steps grow for as long as the objective falls. Batch: as above. Stochastic: from the second pass
        on the statistics of a row replace its old ones. A float η₀, stochastic method only: as "paper" with steps of
        η₀/n (the paper takes 50 to 100 for low rank).
    tol : float, default=1e-3
        Relative duality gap at which to stop, with the exceptions for alpha=0 and for rows that are all but fitted
        that `GLMClassifier` explains.
    max_iter : int, default=500
        Limit on steps (stochastic: passes over the rows).
    warm_start : bool, default=False
        Start from the present coefficients if they fit the data; statistics start empty.
    <shared>

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    duality_gap_ : float
        For alpha > 0 the relative duality gap: ``F − F* ≤ duality_gap_ · F(zero model)``.
    n_iter_ : int
        Steps (stochastic: whole passes over the rows).
    choice_ : dict
        Of the batch method, as for `GLMClassifier`: ``curvature`` is the metric taken.
    <shared>

    Raises
    ------
    ValueError
        If X or y hold NaN or infinity, y holds one class, shapes disagree, `rank` is given for the batch method, or
        there are too many parameters for a full curvature where one is asked for.
    TypeError
        If the stochastic method is given rows that are neither NumPy arrays nor CSR.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import BoundMajorizationClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoundMajorizationClassifier(alpha=1e-2).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RUN,
        **SCALED_ALPHA,
        **CLASS_WEIGHT,
        "method": [StrOptions({"auto", "batch", "stochastic"})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "step": [StrOptions({"paper", "refreshed"}), Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    _fits_parts: ClassVar[bool] = True

    method: str = "auto"
    _: KW_ONLY
    rank: int | None = None
    alpha: float | str = "scale"
    step: str | float = "refreshed"
    max_iter: int = 500
    tol: float = 1e-3
    warm_start: bool = False

    @property
    def _is_stochastic(self) -> bool:
        asks_for_it = self.rank is not None or self.step != "refreshed"
        return self.method == "stochastic" or (self.method == "auto" and asks_for_it)

    @property
    def _compiles(self) -> bool:
        return self._is_stochastic

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.method != "batch":
            return
        if self.rank is not None or not isinstance(self.step, str):
            name = "step" if self.rank is None else "rank"
            raise ValueError(f"{name} belongs to method='stochastic'; leave it out, or leave out method='batch'.")

    def _n_threads(self, problem: Problem) -> int | None:
        if not self._is_stochastic:
            return super()._n_threads(problem)
        # The largest product of a block or a factor is a hundred times as large, but most are of this size, and each
        # waits for its threads: on busy cores, for the time slice of another process.
        rows = problem.rows
        size = float(min(rows.n_features, rows.n_rows) + problem.fit_intercept) * problem.n_outputs
        of_rank = size if self.rank is None else self.rank * (self.rank + LowRank.span / problem.n_outputs)
        return threads_for(size * of_rank)

    def _iterates(self, task: Task) -> Iterates:
        return (yield from self._stochastic(task) if self._is_stochastic else by_choice(self, task, self._choice))

    def _choice(self, problem: Problem) -> Choice:
        if self.step == "paper":
            return asked_for(problem, Majorize.name, PartitionBound.name, "use step='refreshed'")
        return choose(problem, self.tol, Majorize())

    def _stochastic(self, task: Task) -> Iterates:
        problem = task.problem
        shift = problem.rows.pilot(problem.weight, FAR) if problem.fit_intercept and problem.shift is None else None
        if shift is not None:
            problem = problem.variant(rows=problem.rows.shifted(shift), shift=shift)
        has_row_space = occurring(problem)[0].rows.has_row_space
        frame = Frame(problem, rotate=self.rank is None and has_row_space, drops_empty=True)
        problem, start = frame.problem, frame.project(self._start(problem))
        problem.centred = False
        stochastic = StochasticBound(
            problem,
            DenseInverse(problem) if self.rank is None else LowRank(problem, int(self.rank)),
            None if start is None else problem.pack(*start),
            eta={"paper": 1.0, "refreshed": FIRST_ETA}.get(str(self.step)) or float(self.step),
            refresh=self.step == "refreshed",
            rng=task.rng,
        )
        if task.saved is not None:
            restore(stochastic, task.saved["run"])
        iterates = stochastic.iterates()
        return (yield from changed(iterates, lambda iterate: replace(iterate, model=frame.lifted(iterate.model))))
