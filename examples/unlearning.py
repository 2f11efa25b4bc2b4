"""
Forget one row in a hundred
===========================

Sums over rows can be subtracted from: the model is then that of the rows that are left. ``python
examples/unlearning.py`` takes 100 000 synthetic rows of 256 features, or ``--rows`` of them; ``--data FILE.npz``
arrays X and y.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from manyclass import GLMClassifier

ALPHA = 1e-3
REPEATS = 5


def synthetic(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal((k, d), dtype=np.float32)
    y = rng.integers(0, k, n)
    X += 0.25 * centers[y]
    return X, y


def timed(act: Callable[[], GLMClassifier]) -> tuple[float, GLMClassifier]:
    """Seconds until there are coefficients, which a stream computes when they are asked for."""
    started = time.perf_counter()
    model = act()
    _ = model.coef_
    return time.perf_counter() - started, model


def measure(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Seconds of each way, and how far the models are apart."""
    gone = np.random.default_rng(1).permutation(len(y)) < len(y) // 100
    X_left, y_left, X_gone, y_gone = X[~gone], y[~gone], X[gone], y[gone]
    fit, fitted = timed(lambda: GLMClassifier(ALPHA, loss="squared").fit(X_left, y_left))
    again, left = timed(lambda: GLMClassifier(ALPHA, loss="squared").partial_fit(X_left, y_left))
    stream = GLMClassifier(ALPHA, loss="squared").partial_fit(X, y)
    seconds = []
    for _ in range(REPEATS):
        forget, stream = timed(partial(stream.forget, X_gone, y_gone))
        seconds.append(forget)
        apart = [abs(stream.coef_ - other.coef_).max() / abs(left.coef_).max() for other in (left, fitted)]
        stream = stream.partial_fit(X_gone, y_gone)
    forget = float(np.median(seconds))
    times = {"fit": fit, "partial_fit": again, "forget": forget, "share": forget / fit}
    return times | {"apart": float(apart[0]), "apart from fit": float(apart[1])}


def plot(found: dict[str, float], path: str | None) -> None:
    from matplotlib import pyplot as plt

    names = ["fit", "partial_fit", "forget"]
    labels = ["fit to what is left", "partial_fit of what is left", "forget 1 %"]
    figure, axes = plt.subplots(figsize=(5.5, 2), layout="constrained")
    bars = axes.barh(labels[::-1], [found[name] for name in names[::-1]])
    axes.bar_label(bars, fmt="%.3g s", padding=3)
    axes.set(xscale="log", xlabel="seconds, solution included")
    axes.margins(x=0.2)
    if path is None:
        plt.show()
    else:
        figure.savefig(path, dpi=150)
        print(f"saved {path}")


def main(arguments: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FILE.npz", help="Arrays X and y.")
    parser.add_argument("--rows", type=int, default=100_000, help="How many synthetic ones.")
    parser.add_argument("--quick", action="store_true", help="A few rows.")
    parser.add_argument("--output", metavar="FILE.png", help="Save the plot instead of showing it.")
    options = parser.parse_args(arguments)
    if options.data is not None:
        with np.load(options.data, allow_pickle=False) as file:
            X, y = file["X"], file["y"]
    else:
        X, y = synthetic(*((4000, 16, 5) if options.quick else (options.rows, 256, 10)))
    measure(X[:2000], y[:2000])  # whatever is only slow the first time
    found = measure(X, y)
    print(f"{len(y):,} rows of {X.shape[1]} features, of which {len(y) // 100:,} are forgotten")
    print(f"a fit to those left            {found['fit']:.3f} s")
    print(f"partial_fit of those left      {found['partial_fit']:.3f} s")
    share = f"{found['share']:.2%} of a fit (median of {REPEATS})"
    print(f"forget, and the new solution   {found['forget']:.3f} s: {share}")
    print(f"Coefficients are {found['apart']:.1e} of the largest from those of partial_fit of what is left,")
    print(f"and {found['apart from fit']:.1e} from those of the fit, which stops at tol=1e-3.")
    plot(found, options.output)
    return found


if __name__ == "__main__":
    main()
