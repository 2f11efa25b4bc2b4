"""One run of the solver, stopped at several numbers of steps to look at the test error; looking is not timed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks import data, text
from benchmarks.objective import column_loss
from manyclass.data import as_rows
from manyclass.data.labels import encode
from manyclass.model import Problem as Objective
from manyclass.subgradient.draws import make_draws
from manyclass.subgradient.pegasos import Pegasos
from manyclass.subgradient.schedule import SCHEDULES, Schedule
from manyclass.subgradient.state import State

ALPHAS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)
WITH_REPLACEMENT = Schedule(replace=True)
VARIANTS: dict[str, dict[str, Any]] = {
    "": {"schedule": WITH_REPLACEMENT},
    ", as printed": {"schedule": SCHEDULES["paper"], "fit_intercept": False},
}
"""Options of `stream` by what stands behind the name of a loss: our defaults but for the draws, and Algorithm 1."""
SETTINGS = (
    "r = 1, rows drawn with replacement, one thread. Plain names: steps 1/(alpha (t + offset)), the iterates averaged "
    "with weights (t + offset)², an intercept. 'As printed': Algorithm 1 to the letter, steps 1/(alpha t), the last "
    "iterate, no intercept."
)


@dataclass(frozen=True)
class Problem:
    """Training and test rows with class codes."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def classes(self) -> np.ndarray:
        """The codes that there are training rows of: one for each column of the scores, but with two classes."""
        return np.unique(self.y)

    @property
    def mean_square(self) -> float:
        return float(as_rows(self.X).mean_square().sum())

    def validation(self) -> Problem:
        """A fifth of the training rows in place of the test rows."""
        rows = np.random.default_rng(0).permutation(len(self.y))
        fit, out = np.sort(rows[len(rows) // 5 :]), np.sort(rows[: len(rows) // 5][:20_000])
        return Problem(self.X[fit], self.y[fit], self.X[out], self.y[out])


def load(name: str) -> Problem:
    """A problem of `benchmarks.text`, MNIST's pixels, or a table with columns of unit variance over √d.

    Files are taken as such a table where they are dense, as they are where they are sparse.
    """
    if name in text.PROBLEMS:
        return Problem(*text.load(name))
    X, y, X_test, y_test = data.split(name, several=False)
    if name == "mnist" or not isinstance(X, np.ndarray):
        return Problem(X, y, X_test, y_test)
    scaler, root = StandardScaler().fit(X), np.sqrt(X.shape[1])
    rows, test_rows = ((scaler.transform(part) / root).astype(np.float32) for part in (X, X_test))
    return Problem(rows, y, test_rows, y_test)


def stream(
    problem: Problem,
    loss_name: str,
    alpha: float,
    seed: int,
    schedule: Schedule = WITH_REPLACEMENT,
    *,
    index: np.ndarray | None = None,
    fit_intercept: bool = True,
) -> Pegasos:
    """The solver before its first step, `index` being the rows it may draw; alpha is relative to the mean ‖x‖²."""
    rows, labels = as_rows(problem.X), encode(problem.y, "Pegasos")
    loss, weight = column_loss(labels, loss_name), None
    if index is not None:
        weight = np.zeros(rows.n_rows, dtype=rows.dtype)
        weight[index] = 1.0
    targets = labels.targets(rows, loss.label_values)
    objective = Objective(rows, targets, loss, alpha * problem.mean_square, weight=weight, fit_intercept=fit_intercept)
    draws = make_draws(rows.n_rows, seed, schedule.replace, weight)
    return Pegasos(objective, rows, draws, State.begin(objective, rows, schedule, draws))


def trajectory(one: Pegasos, problem: Problem, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of the processor (there is one thread) and test errors in % after so many steps."""
    rows, spent = as_rows(problem.X_test), 0.0
    one.compile()
    seconds, errors = [], []
    for before, after in zip([0, *steps[:-1]], steps, strict=True):
        start = time.thread_time()
        one.advance(int(after - before) * one.rule.batch_size)
        spent += time.thread_time() - start
        W, b = one.state.parameters()
        scores = rows.matmat(W) + b
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        seconds.append(spent)
        errors.append(100 * float(np.mean(problem.classes[best] != problem.y_test)))
    return np.array(seconds), np.array(errors)


def choose_alpha(problem: Problem, losses: Iterable[str], n_steps: int, **options: Any) -> float:
    """The alpha with the least mean error of the losses on held-out training rows."""
    held_out = problem.validation()
    steps = np.array([n_steps])
    means = [
        np.mean([trajectory(stream(held_out, loss, alpha, 0, **options), held_out, steps)[1] for loss in losses])
        for alpha in ALPHAS
    ]
    return ALPHAS[int(np.argmin(means))]


def chosen_alphas(problem: Problem, losses: Iterable[str], n_steps: int) -> dict[str, float]:
    """One for each of `VARIANTS`."""
    return {variant: choose_alpha(problem, losses, n_steps, **options) for variant, options in VARIANTS.items()}


def described(alphas: dict[str, float]) -> str:
    return "alpha = " + " and ".join(
        f"{alpha:g}{' (as printed)' if variant else ''}" for variant, alpha in alphas.items()
    )


def geometric(first: int, last: int, per_decade: int) -> np.ndarray:
    count = round(np.log10(last / first) * per_decade) + 1
    return np.unique(np.round(np.geomspace(first, last, count)).astype(int))
