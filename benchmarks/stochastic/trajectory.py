"""One run of the solver, stopped at several numbers of steps to look at the test error; looking is not timed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import data, text
from manyclass.data import Design
from manyclass.data.readers import read
from manyclass.solvers.subgradient.draws import make_draws
from manyclass.solvers.subgradient.kernel import Targets, Weights
from manyclass.solvers.subgradient.losses import LOSSES
from manyclass.solvers.subgradient.pegasos import Plan, State, Stream, as_rows, mean_square, warm_offset

ALPHAS = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)


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
    def mean_square(self) -> float:
        squares = self.X.multiply(self.X).sum() if hasattr(self.X, "multiply") else np.einsum("ij,ij->", self.X, self.X)
        return float(squares) / self.X.shape[0]

    def validation(self) -> Problem:
        """A fifth of the training rows in place of the test rows."""
        rows = np.random.default_rng(0).permutation(len(self.y))
        fit, out = np.sort(rows[len(rows) // 5 :]), np.sort(rows[: len(rows) // 5][:20_000])
        return Problem(self.X[fit], self.y[fit], self.X[out], self.y[out])


def load(name: str) -> Problem:
    """A problem of `benchmarks.text`, MNIST's pixels, or a table with columns of unit variance over √d."""
    if name in text.PROBLEMS:
        return Problem(*text.load(name))
    if name == "mnist":
        return Problem(*data.mnist("train"), *data.mnist("test"))
    table = read(data.data_dir() / "tabular" / f"{name}.tsv.gz", target="target")
    assert table.y is not None
    codes = np.unique(table.y, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(table.X, codes, test_size=0.2, random_state=0)
    scaler = StandardScaler().fit(X)
    root = np.sqrt(X.shape[1])
    rows, test_rows = ((scaler.transform(part) / root).astype(np.float32) for part in (X, X_test))
    return Problem(rows, y, test_rows, y_test)


def stream(
    problem: Problem,
    loss: str,
    multi_class: str,
    alpha: float,
    seed: int,
    index: np.ndarray | None = None,
    **options: Any,
) -> Stream:
    """The solver before its first step, `index` being the rows it may draw; alpha is relative to the mean ‖x‖²."""
    design = Design(problem.X)
    rows = as_rows(design)
    draws = make_draws(design.n_rows, seed, True, index)
    plan = Plan(LOSSES[loss, multi_class], alpha * problem.mean_square, **options)
    weights = Weights(np.empty(0), 1.0)
    offset = warm_offset(plan, mean_square(rows, draws, weights)) if plan.offset is None else plan.offset
    state = State.zero(design.n_features, problem.n_classes, design.dtype, plan, offset)
    targets = Targets(problem.y.astype(np.int64), np.zeros((0, 0), dtype=np.int8), 0)
    return Stream(rows, targets, weights, draws, plan, state)


def trajectory(one: Stream, problem: Problem, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of the processor (there is one thread) and test errors in % after so many steps."""
    design = Design(problem.X_test)
    seconds, errors, spent = [], [], 0.0
    as_feature = one.plan.loss.scale_free
    for before, after in zip([0, *steps[:-1]], steps, strict=True):
        start = time.thread_time()
        one.advance(int(after - before) * one.plan.batch_size)
        spent += time.thread_time() - start
        W, b = one.state.parameters(as_feature)
        seconds.append(spent)
        errors.append(100 * float(np.mean((design.matmat(W) + b).argmax(axis=1) != problem.y_test)))
    return np.array(seconds), np.array(errors)


def choose_alpha(problem: Problem, algorithms: list[tuple[str, str]], n_steps: int) -> float:
    """The alpha with the least mean error of the algorithms on held-out training rows."""
    held_out = problem.validation()
    steps = np.array([n_steps])
    means = [
        np.mean([trajectory(stream(held_out, *names, alpha, 0), held_out, steps)[1] for names in algorithms])
        for alpha in ALPHAS
    ]
    return ALPHAS[int(np.argmin(means))]


def geometric(first: int, last: int, per_decade: int) -> np.ndarray:
    count = round(np.log10(last / first) * per_decade) + 1
    return np.unique(np.round(np.geomspace(first, last, count)).astype(int))
