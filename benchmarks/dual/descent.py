"""Gradient descent against its worst-case rate and against Lemmas 5 and 7 (*Homotopic Initialization*, Figure 1).

``python -m benchmarks.dual.descent [--data a9a w8a]``
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.dual.problems import signs, two_classes
from benchmarks.report import Table, figure
from manyclass.diagnostics import ResponseCorrelation, response_correlation

ALPHA = 1e-6
NU = 0.25 * ALPHA**0.5
STEPS = 3000
MARKS = (10, 100, 1000, 3000)
LEVELS = np.geomspace(1e-8, 1.0, 400)
"""Thresholds ζ over which the bounds are minimised, as shares of λ_1."""
DATA = ("a9a", "w8a")


@dataclass
class Ridge:
    """Centred X, y of unit variance, and the eigenfeatures of X."""

    X: np.ndarray
    y: np.ndarray
    found: ResponseCorrelation

    @classmethod
    def load(cls, name: str) -> Ridge:
        X, y = two_classes(name)
        dense, target = X.toarray() if hasattr(X, "toarray") else X, signs(y)
        dense -= dense.mean(axis=0)
        target -= target.mean()
        target /= target.std()
        return cls(dense, target, response_correlation(dense, target))

    @property
    def step(self) -> float:
        """γ = 1/(λ_1 + alpha)."""
        return 1.0 / (self.found.eigenvalues[0] + ALPHA)

    def solution(self, alpha: float) -> np.ndarray:
        n, d = self.X.shape
        return np.linalg.solve(self.X.T @ self.X / n + alpha * np.eye(d), self.X.T @ self.y / n)

    def primal(self) -> np.ndarray:
        """𝒬(β_t) − 𝒬* of gradient descent from zero (equation 4)."""
        n, d = self.X.shape
        H, best = self.X.T @ self.X / n + ALPHA * np.eye(d), self.solution(ALPHA)
        b, beta, left = self.X.T @ self.y / n, np.zeros(d), []
        for _ in range(STEPS + 1):
            left.append(0.5 * (beta - best) @ H @ (beta - best))  # Lemma 4
            beta = beta - self.step * (H @ beta - b)
        return np.array(left)

    def dual(self, nu: float | None) -> np.ndarray:
        """The same for 𝒬_alpha of equation 11 with steps n·alpha·γ, from a*_ν or from zero.

        Every iterate differs from the optimum by X g + r with Xᵀr = 0, and a step maps g to g − γ(Cg + alpha g) and r
        to (1 − γ alpha) r, so that g, C and ‖r‖² are all that has to be kept.
        """
        n = len(self.y)
        C, best = self.X.T @ self.X / n, self.solution(ALPHA)
        outside = 0.0
        if nu is None:  # −a* = −(y − Xβ*), y being X y_X + r
            shares = np.linalg.lstsq(C, self.X.T @ self.y / n, rcond=1e-12)[0]
            within, outside = best - shares, float(np.sum((self.y - self.X @ shares) ** 2))
        else:  # a*_ν − a* = X(β* − β_ν)
            within = best - self.solution(nu)
        left = []
        for _ in range(STEPS + 1):
            pulled = C @ within
            left.append((n * pulled @ pulled / ALPHA + n * within @ pulled + outside) / (2 * n))
            within = within - self.step * (pulled + ALPHA * within)
            outside *= (1 - self.step * ALPHA) ** 2
        return np.array(left)

    def bound(self, factor: float, printed: bool) -> np.ndarray:
        """min over ζ of factor·[Σ_{σ_j² > ζ} σ_j² (1 − γζ)^{2t} + (d − r(ζ)) ζ].

        The paper prints ζ for each σ_j² in the sum; see `main`.
        """
        variances, t = self.found.eigenvalues, np.arange(STEPS + 1)
        lowest = np.full(STEPS + 1, np.inf)
        for zeta in LEVELS * variances[0]:
            large = variances > zeta
            first = large.sum() * zeta if printed else variances[large].sum()
            value = first * (1 - self.step * zeta) ** (2 * t) + (~large).sum() * zeta
            lowest = np.minimum(lowest, factor * value)
        return lowest


def problems(ridge: Ridge) -> dict[str, dict[str, np.ndarray]]:
    """What is left after each step and the bounds on it, of the primal and of the dual problem."""
    tau, t = ridge.found.tau, np.arange(STEPS + 1)
    slowest = ridge.found.eigenvalues[-1] + ALPHA
    worst = (1 - ridge.step * slowest) ** (2 * t)
    measured, warm = ridge.primal(), ridge.dual(NU)
    scale = tau * (NU - ALPHA) ** 2 / (NU * ALPHA)
    return {
        "primal": {
            "measured, from zero": measured,
            "worst-case rate": measured[0] * worst,
            "Lemma 5": ridge.bound(0.5 * tau, printed=False),
            "Lemma 5 as printed": ridge.bound(0.5 * tau, printed=True),
        },
        "dual": {
            "measured, from zero": ridge.dual(None),
            "measured, from a*_ν": warm,
            "worst-case rate from a*_ν": warm[0] * worst,
            "Lemma 7": ridge.bound(scale / 8, printed=False),
            "Lemma 7 as printed": ridge.bound(scale / 2, printed=True),
        },
    }


BOUNDED = {"primal": "measured, from zero", "dual": "measured, from a*_ν"}
"""The curve that the lemma of each problem bounds."""


def draw(ax: Any, curves: dict[str, np.ndarray], title: str) -> None:
    for label, values in curves.items():
        style = "-" if "measured" in label else ("--" if "worst" in label else ":")
        if "printed" not in label:
            width = 2.0 if style == "-" else 1.4
            ax.plot(np.arange(1, STEPS + 1), values[1:], style, label=label, linewidth=width)
    ax.set(xscale="log", yscale="log", title=title, xlabel="gradient steps t", ylabel="suboptimality")
    low, high = ax.get_ylim()
    ax.set_ylim(low * (low / high) ** 0.3, high)  # room for the legend
    ax.legend(fontsize="small", loc="lower left")


def compare(names: Sequence[str]) -> None:
    """The table and the figure of these sets or files."""
    table = Table(
        f"Gradient descent on ridge regression, alpha {ALPHA:g}: what is left, and what bounds it",
        ["data", "problem", "start", "curve", "t = 0", *(f"t = {mark}" for mark in MARKS), "holds"],
    )
    with figure("dual_descent", len(names), (5.5 * len(names), 8), n_rows=2) as axes:
        for column, name in zip(axes.T, names, strict=True):
            ridge, name = Ridge.load(name), data.title(name)
            for ax, (problem, curves) in zip(column, problems(ridge).items(), strict=True):
                draw(ax, curves, f"{name}: {problem}, τ = {ridge.found.tau:.2g}")
                for label, values in curves.items():
                    above = ""
                    if "Lemma" in label:
                        fails = np.flatnonzero(values < curves[BOUNDED[problem]] * (1 - 1e-9))
                        above = "yes" if not len(fails) else f"not for t ≤ {fails[-1]}"
                    marks = (f"{values[mark]:.1e}" for mark in (0, *MARKS))
                    table.add(name, problem, "a*_ν" if "ν" in label or "7" in label else "0", label, *marks, above)
    table.note(
        "X and y centred, y at unit variance; γ = 1/(λ_1 + alpha); worst-case rate: (1 − γ(λ_d + alpha))^{2t}, λ_d the "
        "smallest eigenvalue that is not 0. Bounds are minimised over 400 thresholds ζ."
    )
    table.note(
        "Lemma 5 is printed with ζ in place of each σ_j² > ζ in its first term: ½[r(ζ)(1 − γζ)^{2t} + d − r(ζ)]τζ. It "
        "falls to 0 with ζ at every t, and the suboptimality does not; its proof gives σ_j², with which it is a bound "
        "for all ζ and t ('Lemma 5'). So for Lemma 7, where τ(ν − alpha)²/(8 ν alpha), a quarter of that printed, "
        "will do, by (σ² + ν)² ≥ 4νσ²."
    )
    table.publish("dual_descent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA, help="names, or files")
    compare(parser.parse_args().data)


if __name__ == "__main__":
    main()
