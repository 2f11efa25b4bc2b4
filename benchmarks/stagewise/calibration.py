"""The probabilities of calibrated least squares against softmax and against a RidgeClassifier calibrated afterwards.

Log loss, Brier score and a reliability plot on MNIST (2048 random Fourier features), letter and satimage.

``python -m benchmarks.stagewise.calibration``
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import data
from benchmarks.report import Table, figure
from benchmarks.stagewise import mnist, table1
from manyclass import CalibratedLeastSquaresClassifier, GLMClassifier

ALPHAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
SUBSET = 12_000
N_BINS = 15
METHODS: dict[str, Callable[[float, int], Any]] = {
    "calibrated least squares": lambda alpha, n: CalibratedLeastSquaresClassifier(alpha),
    "softmax": lambda alpha, n: GLMClassifier(alpha, loss="softmax"),
    "RidgeClassifier + isotonic": lambda alpha, n: CalibratedClassifierCV(
        RidgeClassifier(alpha * n), method="isotonic"
    ),
    "RidgeClassifier + sigmoid": lambda alpha, n: CalibratedClassifierCV(RidgeClassifier(alpha * n), method="sigmoid"),
}


def tabular(name: str) -> data.Split:
    """A dense set or file, standardised."""
    X, y, X_test, y_test = data.split(name, test_size=0.25, stratify=True)
    if not isinstance(X, np.ndarray):
        raise SystemExit(f"{name} is sparse, and the columns are standardised here: give a dense set.")
    scaler = StandardScaler().fit(X.astype(np.float64))
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def rows(name: str) -> data.Split:
    if name == "MNIST":
        return table1.fourier(mnist.projected(tilt=mnist.TILT), 2048, mnist.BANDWIDTH, 0)
    return tabular(name)


def fit(method: str, alpha: float, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    model = METHODS[method](alpha, len(X))
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model, time.perf_counter() - started


def chosen_alpha(method: str, X: np.ndarray, y: np.ndarray) -> float:
    """The penalty of least log loss on a fifth of the training rows (or of the first SUBSET of them)."""
    X, X_held, y, y_held = train_test_split(X[:SUBSET], y[:SUBSET], test_size=0.2, random_state=1, stratify=y[:SUBSET])
    losses = [loss(fit(method, alpha, X, y)[0].predict_proba(X_held), y_held) for alpha in ALPHAS]
    return ALPHAS[int(np.argmin(losses))]


def loss(P: np.ndarray, y: np.ndarray) -> float:
    """Log loss; probabilities of 0 count as 1e-4, or one certain mistake would be all there is to see."""
    return float(log_loss(y, np.maximum(P, 1e-4) / np.maximum(P, 1e-4).sum(axis=1, keepdims=True)))


def reliability(P: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean confidence and accuracy in bins of equal numbers of rows, and the expected calibration error."""
    confidence, right = P.max(axis=1), P.argmax(axis=1) == y
    bins = np.array_split(np.argsort(confidence), N_BINS)
    means = np.array([[confidence[rows].mean(), right[rows].mean(), len(rows)] for rows in bins])
    return means[:, 0], means[:, 1], float(np.sum(means[:, 2] * abs(means[:, 0] - means[:, 1])) / len(y))


def main(
    names: Annotated[list[str] | None, typer.Option("--data", help="Sets or files.")] = None,
) -> None:
    names = names or ["MNIST", "letter", "satimage"]
    table = Table(
        "Probabilities",
        ["data", "method", "alpha", "error, %", "log loss", "Brier score", "calibration error", "seconds"],
        live=True,
    )
    with figure("stagewise_calibration", len(names), (4 * len(names), 4.2)) as axes:
        for ax, name in zip(axes, names, strict=True):
            X, y, X_test, y_test = rows(name)
            name = data.title(name)
            ax.plot([0, 1], [0, 1], color="gray", linewidth=0.8)
            for method in METHODS:
                alpha = chosen_alpha(method, X, y)
                model, seconds = fit(method, alpha, X, y)
                P = model.predict_proba(X_test)
                confidence, accuracy, gap = reliability(P, y_test)
                brier = np.mean(np.sum((P - np.eye(P.shape[1])[y_test]) ** 2, axis=1))
                error = 100 * np.mean(P.argmax(axis=1) != y_test)
                ax.plot(confidence, accuracy, marker=".", label=method)
                table.add(
                    name,
                    method,
                    f"{alpha:g}",
                    f"{error:.2f}",
                    f"{loss(P, y_test):.4f}",
                    f"{brier:.4f}",
                    f"{gap:.4f}",
                    f"{seconds:.2f}",
                )
            low = max(min(line.get_ydata().min() for line in ax.lines[1:]) - 0.05, 0)
            ax.set(title=name, xlabel="confidence", ylabel="accuracy", xlim=(low, 1.01), ylim=(low, 1.01))
        axes[0].legend(fontsize="small", loc="upper left")
    table.note(
        f"alpha by log loss on a fifth of the first {SUBSET} training rows, from "
        f"{', '.join(f'{alpha:g}' for alpha in ALPHAS)}. Brier score: mean of ‖p − y‖². Calibration error: mean "
        f"|confidence − accuracy| over {N_BINS} bins of equal size. Seconds of fit at the chosen alpha. In the log "
        "loss no probability counts as less than 1e-4, since projections give exact zeros."
    )
    table.publish("stagewise_calibration")


if __name__ == "__main__":
    typer.run(main)
