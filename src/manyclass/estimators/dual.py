"""What the estimators by dual coordinate ascent share: constraints of their parameters, the run, and warm starts."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyclass.estimators.parameters import RUN, generator
from manyclass.estimators.portable import PortableEstimator
from manyclass.solvers.base import Monitor, Record
from manyclass.solvers.dual import DualProblem, DualSolution, ascend, homotopy_path

SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    **RUN,
    "alpha": [Interval(Real, 0, None, closed="neither")],
    "homotopy": ["boolean", StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
    "warm_start": ["boolean"],
}


class DualAscent(PortableEstimator):
    """The call of the solver, and what it leaves behind beside a model."""

    alpha: float
    homotopy: str | bool | int
    tol: float
    max_iter: int
    max_time: float | None
    warm_start: bool
    callback: Callable[[Record], Any] | None
    random_state: Any
    _dual_alpha: float

    def _ascend(self, problem: DualProblem, started: float) -> DualSolution:
        monitor = Monitor(self.tol, self.max_iter, self.max_time, self.callback, started)
        seed = int(generator(self.random_state).integers(2**31))
        path, start = homotopy_path(problem, self.homotopy), self._previous(problem)
        if start is not None and self.homotopy == "auto":  # what is solved already need not be made easier again
            path = [*(alpha for alpha in path[:-1] if alpha < self._dual_alpha), path[-1]]
        solution = ascend(problem, path, monitor, start=start, seed=seed)
        self.phase_epochs_ = solution.phase_epochs
        self.n_gap_passes_, self.gap_seconds_ = solution.n_gap_passes, solution.gap_seconds
        self.dual_coef_ = solution.dual * (problem.share / solution.dual_alpha)[:, None]
        self._dual_alpha = solution.dual_alpha
        return solution

    def _previous(self, problem: DualProblem) -> tuple[np.ndarray, np.ndarray] | None:
        """The dual variables and intercepts of the fit before, if they are about as many rows and outputs."""
        if not self.warm_start or not hasattr(self, "dual_coef_"):
            return None
        n, k = problem.design.n_rows, problem.n_outputs
        dual, intercept = self.dual_coef_, np.atleast_1d(np.asarray(self.intercept_, dtype=np.float64))
        if dual.ndim == 1:
            dual = dual[:, None]
        if problem.loss.joint and k == 2 and dual.shape[1] == 1:  # one score for two classes
            dual, intercept = np.hstack([-0.5 * dual, 0.5 * dual]), np.hstack([-0.5 * intercept, 0.5 * intercept])
        if dual.shape != (n, k):
            return None
        share = problem.share[:, None]
        return np.divide(dual * self._dual_alpha, share, out=np.zeros_like(dual), where=share > 0), intercept
