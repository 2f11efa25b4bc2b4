"""Zero start against homotopic start: suboptimality and test error per epoch and per second (Figures 3 and 5).

``python -m benchmarks.dual.homotopy {a9a,w8a,adult,kddcup,mnist,FILE} [--loss squared hinge]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import data
from benchmarks.dual.problems import signs, standardised, two_classes
from benchmarks.report import Table, figure
from manyclass.data import MatrixTargets, as_rows
from manyclass.data.targets import Targets
from manyclass.dual import DualModel, DualProblem, Limits, ascend, homotopy_path
from manyclass.dual.ascent import ROUNDING, start_state
from manyclass.dual.state import DualState
from manyclass.fit import Clock, Run
from manyclass.model import LOSSES, Loss, Problem
from manyclass.model.problem import nothing

ALPHA = 1e-6
TRAIN_SHARE = 0.8
PHASE_TOL = 1e-3
"""Estimated gap at which a phase before the last ends, the default of the estimators."""
STARTS: dict[str, str | bool | int] = {"from zero": False, "ν = 0.25·√alpha": True, "path of 6": 6}
LEVELS = (1e-1, 1e-2, 1e-3)
KDD_ROWS = 100_000
LOSSES_SHOWN = ("squared", "hinge", "logistic")
"""The log loss is what the paper conjectures of at the end of its §4, and does not show."""


@dataclass
class Curve:
    """What is seen after each epoch: measuring is not counted in the seconds."""

    path: list[float]
    epochs: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    models: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    first: int = 0
    """Epochs before the last phase."""


def labelled(y: np.ndarray, loss: Loss) -> Targets:
    """One column of the numbers by which a loss knows two classes."""
    low, high = loss.label_values or (-1.0, 1.0)
    return MatrixTargets(np.where(y > 0, high, low)[:, None])


@dataclass(frozen=True)
class Test:
    """Held-out rows, y = −1 or 1."""

    X: Any
    y: np.ndarray
    loss: Loss

    def loss_and_error(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[float, float]:
        scores = np.asarray(self.X @ coef) + intercept
        error = float(np.mean(np.where(scores[:, 0] > 0, 1.0, -1.0) != self.y))
        targets = labelled(self.y, self.loss)
        return float(self.loss.values(scores, slice(None), targets, np).mean()), error


def follow(problem: DualProblem, path: list[float], n_epochs: int, test: Test, shrinking: bool = True) -> Curve:
    """n_epochs epochs, each followed by a measurement at the alpha asked for; phases end as in `ascend`.

    Without `shrinking` every epoch visits every row.
    """
    warm = start_state(problem)
    warm.set_alpha(path[0])
    warm.epoch()
    warm.gap_terms()
    state, curve = start_state(problem), Curve(path)
    spent, zero = 0.0, max(state.zero_value, 1e-300)
    for point, alpha in enumerate(path):
        last = point == len(path) - 1
        begun = time.process_time()
        state.set_alpha(alpha)
        spent += time.process_time() - begun
        while len(curve.epochs) < n_epochs:
            begun = time.process_time()
            if not shrinking:
                state.visit_all()
            estimate = state.epoch() / zero
            spent += time.process_time() - begun
            measure(curve, state, problem, spent, test)
            # As `ascend`: the phases before the last may take half of all the epochs together.
            late = not last and len(curve.epochs) >= 0.5 * n_epochs * (point + 1) / max(len(path) - 1, 1)
            if not last and (estimate <= PHASE_TOL or late):
                curve.first = len(curve.epochs)
                break
    return curve


def measure(curve: Curve, state: DualState, problem: DualProblem, spent: float, test: Test) -> None:
    order, n_active, threshold = state.order.copy(), state.n_active, state.threshold.copy()
    terms = state.gap_terms()
    state.order, state.n_active, state.threshold = order, n_active, threshold  # measuring must not help
    curve.epochs.append(len(curve.epochs) + 1)
    curve.seconds.append(spent)
    curve.primal.append(terms.primal(problem.alpha))
    curve.dual.append(terms.dual(problem.alpha))
    W, b = state.parameters()
    curve.models.append((W, problem.problem.unshifted(W, b)))
    loss, error = test.loss_and_error(*curve.models[-1])
    curve.test.append(loss)
    curve.error.append(error)


def split(name: str) -> tuple:
    X, y = two_classes(name)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))[: KDD_ROWS if name == "kddcup" else None]
    if name in ("adult", "kddcup"):
        X = standardised(X)
    X, y = X[order], signs(y)[order]
    # float32 as users hold such data; sparse where most entries are 0, which is what a coordinate step costs.
    X = X.astype(np.float32)
    if not sparse.issparse(X) and np.mean(X != 0) < 0.3:
        X = sparse.csr_matrix(X)
    n_train = int(TRAIN_SHARE * len(y))
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def reference(problem: DualProblem, limit: float) -> tuple[float, float, DualModel]:
    """The best primal and dual values reached in a long run, and its model."""
    limits = Limits(10 * ROUNDING, 100_000, Clock(limit))
    run = Run(limits.clock, limits.tol, limits.max_iter)
    problem.problem.on_block = limits.clock.check
    found = run(ascend(problem, [problem.alpha], limits, proximal=True, measure_every=20), lambda: None)
    problem.problem.on_block = nothing
    return found.history[-1].objective, max(record["dual"] for record in found.history), found.model


def compare(
    source: str, losses: Sequence[str] = LOSSES_SHOWN, epochs: int = 60, reference_seconds: float = 40.0
) -> None:
    """The table and the figure of a set or file."""
    X, y, X_test, y_test = split(source)
    table = Table(
        f"{data.title(source)}: zero start and homotopic start at alpha {ALPHA:g}, {X.shape[0]} training rows",
        [
            "loss", "start", "epochs before alpha", *(f"epochs (s) to {level:g}" for level in LEVELS),
            f"dual left after {epochs}", f"primal left after {epochs}", "test loss", "test error",
        ],
    )  # fmt: skip
    plots = {}
    for loss in losses:
        problem = DualProblem(Problem(as_rows(X), labelled(y, LOSSES[loss]), LOSSES[loss], ALPHA))
        test, zero = Test(X_test, y_test, LOSSES[loss]), start_state(problem).zero_value
        curves = {
            label: follow(problem, homotopy_path(problem, homotopy), epochs, test) for label, homotopy in STARTS.items()
        }
        primal, dual, model = reference(problem, reference_seconds)
        primal = min(primal, *(min(curve.primal) for curve in curves.values()))
        dual = max(dual, *(max(curve.dual) for curve in curves.values()))
        print(f"{loss}: reference gap {(primal - dual) / zero:.1e}", flush=True)
        test_loss, error = test.loss_and_error(model.coef, model.intercept)
        plots[loss] = (curves, primal, dual, zero, test_loss)
        for label, curve in curves.items():
            left = np.maximum(np.array(curve.primal) - primal, primal - dual) / zero
            table.add(
                loss, label, curve.first, *(to_level(curve, left, level) for level in LEVELS),
                f"{(dual - curve.dual[-1]) / zero:.1e}", f"{(curve.primal[-1] - primal) / zero:.1e}",
                f"{curve.test[-1]:.4f}", f"{curve.error[-1]:.2%}",
            )  # fmt: skip
        table.add(
            loss,
            f"best known (gap {(primal - dual) / zero:.0e})",
            *[""] * (3 + len(LEVELS)),
            f"{test_loss:.4f}",
            f"{error:.2%}",
        )
    table.note(
        "Suboptimalities are shares of the loss of the zero model, primal and dual, both at alpha, at each epoch's own "
        "point (not the best so far); 'epochs (s) to' is for the primal. The epochs of all phases are counted, "
        "measuring is not; seconds are those of the processor. A phase before the last ends at an estimated gap of "
        f"{PHASE_TOL:g} of its own problem, or at its share of half of all epochs. 80 % of the rows train; one thread."
    )
    name = data.title(source) if tuple(losses) == LOSSES_SHOWN else "_".join([data.title(source), *losses])
    table.publish(f"dual_homotopy_{name}")
    draw(name, plots)


def to_level(curve: Curve, left: np.ndarray, level: float) -> str:
    below = np.flatnonzero(left <= level)
    return f"{curve.epochs[below[0]]} ({curve.seconds[below[0]]:.2g})" if len(below) else "–"


def draw(name: str, plots: dict[str, tuple]) -> None:
    """A row of panels for each loss (Figures 3 and 5)."""
    with figure(f"dual_homotopy_{name}", 4, (15, 3.3 * len(plots)), n_rows=len(plots), sharex=False) as axes:
        for row, (loss, left) in zip(axes, plots.items(), strict=True):
            panels(row, loss, *left)
        axes[0, 0].legend()
        axes[0, 0].figure.suptitle(f"{name}, alpha {ALPHA:g}")


def panels(
    row: Sequence[Any], loss: str, curves: dict[str, Curve], primal: float, dual: float, zero: float, best: float
) -> None:
    """What is left and the test loss, per epoch and per second; `zero` is the loss of the zero model.

    The dashed line is `best`, the test loss of the optimum.
    """
    floor = max((primal - dual) / zero, 1e-12)
    for (label, curve), colour in zip(curves.items(), ("C3", "C0", "C2"), strict=True):
        duals = np.maximum((dual - np.array(curve.dual)) / zero, floor)
        primals = np.maximum((np.array(curve.primal) - primal) / zero, floor)
        lines = (curve.epochs, duals), (curve.epochs, primals), (curve.seconds, primals), (curve.epochs, curve.test)
        for ax, (x, values) in zip(row, lines, strict=True):
            ax.plot(x, values, color=colour, label=label, linewidth=1.6)
    titles = ("dual suboptimality", "primal suboptimality", "primal suboptimality", "mean test loss")
    for ax, title, x in zip(row, titles, ("epochs", "epochs", "seconds", "epochs"), strict=True):
        ax.set(yscale="log", xlabel=x, title=f"{loss}: {title}")
    row[3].axhline(best, color="black", linestyle="--", linewidth=0.8)
    low = min(best, *(min(curve.test) for curve in curves.values()))
    row[3].set_ylim(0.95 * low, 20 * low)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data", help="a9a, w8a, adult, kddcup, mnist, or a file, of which the two largest classes are taken"
    )
    parser.add_argument("--loss", nargs="+", default=LOSSES_SHOWN)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--reference-seconds", type=float, default=40.0)
    given = parser.parse_args()
    compare(given.data, given.loss, given.epochs, given.reference_seconds)


if __name__ == "__main__":
    main()
