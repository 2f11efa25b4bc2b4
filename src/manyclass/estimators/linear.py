"""What linear models share: scores from coefficients, the constant model, and a fit by the method that is chosen."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from manyclass.choice import Choice, in_turn
from manyclass.choice.frame import Frame
from manyclass.data import Rows
from manyclass.data.few_columns import add_row
from manyclass.data.rows import Array
from manyclass.data.threads import blas_threads, threads_of_products
from manyclass.estimators.base import Estimator, Task
from manyclass.fit import Iterates, changed
from manyclass.model import Problem
from manyclass.model.problem import nothing


class LinearModel(Estimator):
    """Scores z = W x + b."""

    coef_: Array
    intercept_: Any
    alpha_: Any

    def _scores(self, rows: Rows) -> Array:
        return linear_scores(rows, self.coef_, self.intercept_)

    def _fallback(self, task: Task) -> Any:
        return (self._start(task.problem) if task.keeps_labels else None) or constant_model(task.problem)

    def _start(self, problem: Problem) -> tuple[Array, Array] | None:
        """W and b of the present model, for a warm start; None without `warm_start`, or if the shapes differ."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return None
        rows, xp = problem.rows, problem.xp
        coef, intercept = rows.asarray(self.coef_), rows.asarray(self.intercept_)
        coef, intercept = (coef.T, intercept) if coef.ndim == 2 else (coef[:, None], xp.reshape(intercept, (1,)))
        if problem.n_outputs == 2 and int(coef.shape[1]) == 1:  # one score for two classes
            coef = xp.concat([-0.5 * coef, 0.5 * coef], axis=1)
            intercept = xp.concat([-0.5 * intercept, 0.5 * intercept])
        if tuple(coef.shape) != (rows.n_features, problem.n_outputs):
            return None
        return coef, intercept

    def _store(self, task: Task, model: Any) -> None:
        coef, intercept = model
        self.coef_, self.intercept_ = task.rows.asarray(coef.T), task.rows.asarray(intercept)
        self.alpha_ = task.problem.alpha


def linear_scores(rows: Rows, coef: Array, intercept: Array) -> Array:
    """X coefᵀ + intercept, of shape (n_rows, n_outputs), in the wider of the two dtypes and the namespace of X.

    Coefficients may be sparse, and those of one output have one axis.
    """
    xp = rows.xp
    coef = coef.toarray() if hasattr(coef, "toarray") else coef
    coef = coef[None, :] if coef.ndim == 1 else coef
    wide = "float64" in str(coef.dtype) or rows.dtype == xp.float64
    dtype = xp.float64 if wide else rows.dtype
    W = rows.asarray(coef, dtype=dtype).T
    with blas_threads(threads_of_products(rows, int(W.shape[1]))):
        Z = rows.matmat(W)
    add_row(Z, rows.asarray(intercept, dtype=dtype))
    return Z


def constant_model(problem: Problem) -> tuple[Array, Array]:
    """W = 0 and, where there is an intercept, the b whose mean function is about the mean target."""
    rows, xp = problem.rows, problem.xp
    mean = rows.zeros((problem.n_outputs,), dtype=xp.float64)
    if problem.fit_intercept:
        mean = problem.variant(on_block=nothing).sum(_target_sum) / problem.total_weight
        if problem.loss.probabilistic:
            inside = xp.clip(mean, 1e-6, 1.0 - 1e-6)
            mean = problem.loss.scores(inside, xp)
    return rows.zeros((rows.n_features, problem.n_outputs)), xp.astype(mean, rows.dtype)


def _target_sum(part: Problem) -> Array:
    return part.targets.totals(part.weight, part.rows)


def by_choice(model: LinearModel, task: Task, choose: Callable[[Problem], Choice]) -> Iterates:
    """The iterates of the method that is chosen; ``choice_`` of the model is set, and updated if the method changes."""
    frame, saved = Frame(task.problem, drops_empty=True), task.saved
    problem = frame.problem
    if saved is None:
        # For a fit whose time is over before anything is chosen.
        model.choice_ = _described(Choice.of("auto", "auto"), [])
    choice = choose(problem) if saved is None else saved["choice"]
    changes: list[str] = [] if saved is None else model.choice_["changed_to"]
    model.choice_ = _described(choice, changes)
    start = frame.project(model._start(task.problem)) if saved is None else None
    iterates = in_turn(choice, problem, task.rng, start, lambda new: changes.append(str(new)), saved, task.clock)
    return (yield from changed(iterates, lambda iterate: replace(iterate, model=frame.lifted(iterate.model))))


def _described(choice: Choice, changes: list[str]) -> dict[str, Any]:
    method = choice.method
    return {
        "solver": method.solver,
        "curvature": method.curvature,
        "row_space": method.row_space,
        "estimates": {str(other): other.seconds for other in choice.candidates if other.seconds == other.seconds},
        "changed_to": changes,
    }
