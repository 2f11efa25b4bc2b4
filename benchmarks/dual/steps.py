"""Steps of *Homotopic Initialization* beside those we take: (18) against 1/G_rr, (23) against quasi-Newton.

``python -m benchmarks.dual.steps [a9a w8a FILE ...]``
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from numba import njit
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.dual.descent import ALPHA, NU, Ridge
from benchmarks.dual.problems import two_classes
from benchmarks.report import Table, figure
from manyclass import GLMClassifier

EPOCHS = (1, 10, 100)
SOLVERS = ("gradient", "biased-gradient", "quasi-newton")
LEVELS = (1e-2, 1e-4)
GAUSSIAN = "Gaussian rows"


@njit(cache=True)
def epoch(X, y, a, v, order, steps, penalty):
    """Coordinate steps of length γ_r/n, v = Xᵀa and penalty = μn kept up to date."""
    for r in order:
        change = -steps[r] * (np.dot(X[r], v) / penalty + a[r] - y[r])
        a[r] += change
        v += change * X[r]


def coordinate_steps(name: str, rows: int, ax: Any) -> Table:
    """Random coordinate descent on the dual of ridge regression, from zero and from a*_ν, with either steps."""
    ridge = Ridge.load(name)
    kept = np.random.default_rng(0).permutation(len(ridge.y))[:rows]
    ridge.X, ridge.y = ridge.X[kept] - ridge.X[kept].mean(axis=0), ridge.y[kept] - ridge.y[kept].mean()
    n, penalty = len(kept), ALPHA * len(kept)
    G = ridge.X @ ridge.X.T / penalty + np.eye(n)  # n times that of the paper
    lengths = {"1/G_rr": 1 / np.diag(G), "of (18)": 1 / (np.diag(G) + np.abs(G).sum(axis=1))}
    best, warm = (ridge.y - ridge.X @ ridge.solution(alpha) for alpha in (ALPHA, NU))
    table = Table(
        f"{data.title(name)}, {n} rows: dual suboptimality of coordinate descent, alpha {ALPHA:g}",
        ["steps", "start", "γ_r·G_rr, median", "at the start", *(f"after {n} epochs" for n in EPOCHS)],
    )
    for (label, steps), (start, a) in [(s, t) for s in lengths.items() for t in (("0", 0 * best), ("a*_ν", warm))]:
        a, rng, left = a.copy(), np.random.default_rng(0), []
        v = ridge.X.T @ a
        for _ in range(EPOCHS[-1] + 1):
            error = a - best
            left.append((np.sum((ridge.X.T @ error) ** 2) / penalty + error @ error) / (2 * n))
            epoch(ridge.X, ridge.y, a, v, rng.permutation(n), steps, penalty)
        shown = (f"{left[number]:.1e}" for number in (0, *EPOCHS))
        table.add(label, start, f"{np.median(steps * np.diag(G)):.1e}", *shown)
        ax.plot(left, label=f"steps {label}, from {start}")
    ax.set(yscale="log", xlabel="epochs", ylabel="dual suboptimality", title=f"{data.title(name)}: ridge regression")
    return table


def gaussian(n: int = 20_000, d: int = 20) -> data.Rows:
    """Gaussian rows, variances over four decades, and labels of a logistic model that saturates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * np.logspace(0, -2, d)
    return X, (X @ np.full(d, 4.0) + rng.logistic(size=n) > 0).astype(int)


def exact_schedule(X: np.ndarray, y: np.ndarray, best: np.ndarray, steps: int) -> list[float]:
    """F after each step of (23) with γ = 1/(Lξ₁) and η = −γξ₂ (Lemma 14), ξ from means over the rows; it knows z*."""
    covariance, bias, z, values = X.T @ X / len(X), X.T @ y / len(X), np.zeros(X.shape[1]), []
    L = np.linalg.norm(covariance, 2)

    def curvature(z: np.ndarray) -> float:
        scores = X @ z
        return float(np.mean(expit(scores) * expit(-scores)))

    for _ in range(steps + 1):
        scores = X @ z
        values.append(float(np.mean(np.logaddexp(0, scores) - y * scores) + 0.5 * ALPHA * z @ z))
        first = curvature(z)
        step = 1 / (L * first)
        z = z - step * (X.T @ expit(scores) / len(X) - bias) + step * (first / curvature(best) - 1) * bias
    return values


def biased_gradient(names: Sequence[str], steps: int, axes: Sequence[Any]) -> Table:
    """Steps to what is left of the log loss: gradient descent, (23) by a search in the plane, quasi-Newton."""
    table = Table(
        f"Log loss, alpha {ALPHA:g}: steps until (F − F*)/F(0) is below a level",
        ["data", "solver", *(f"steps to {level:g}" for level in LEVELS), f"left after {steps}"],
    )
    for name, ax in zip(names, axes, strict=True):
        X, y = gaussian() if name == GAUSSIAN else two_classes(name)
        models = {solver: fitted(X, y, solver, steps) for solver in SOLVERS}
        best = fitted(X, y, "newton-cg", 300)
        values = {solver: [record.objective for record in model.history_] for solver, model in models.items()}
        if name == GAUSSIAN:
            values["exact schedule"] = exact_schedule(X, y, best.coef_[0], steps)
        least = min(best.history_[-1].objective, *(min(several) for several in values.values()))
        for solver, several in values.items():
            left = (np.array(several) - least) / np.log(2)
            table.add(
                data.title(name), solver, *(reached(left, level) for level in LEVELS), f"{max(left[-1], 0):.1e}"
            )  # fmt: skip
            ax.plot(left, label=solver)
        ax.set(yscale="log", ylim=(1e-8, 2), xlabel="steps", title=f"{data.title(name)}: (F − F*)/F(0) of the log loss")
    return table


def reached(left: np.ndarray, level: float) -> str:
    below = np.flatnonzero(left <= level)
    return str(below[0]) if len(below) else f"> {len(left) - 1}"


def fitted(X: Any, y: np.ndarray, solver: str, steps: int) -> GLMClassifier:
    model = GLMClassifier(ALPHA, solver=solver, tol=1e-10, max_iter=steps, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Sets or files of two classes.")] = None,
    rows: int = 4000,
    steps: int = 300,
) -> None:
    names = names or ["a9a", "w8a", "adult"]
    with figure("dual_steps", 2 + len(names), (4.2 * (2 + len(names)), 3.8)) as axes:
        table = coordinate_steps(names[0], rows, axes[0])
        table.note(biased_gradient([GAUSSIAN, *names], steps, axes[1:]))
        for ax in axes[:2]:
            ax.legend(fontsize="small")
    table.note(
        "Columns of the first table centred, y at unit variance, a fresh permutation each epoch. Second table: two "
        "classes without an intercept; gradient descent from zero with steps of the best length, (23) with the best "
        "two, quasi-newton from a scaled least-squares start with the Kronecker curvature. The exact schedule is that "
        "of Lemma 14, which needs to know z*."
    )
    table.publish("dual_steps")


if __name__ == "__main__":
    typer.run(main)
