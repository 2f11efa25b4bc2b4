"""Fig. 1 (a) with the inner updates that the paper prints, beside ours: error and seconds for blocks of each size.

``python -m benchmarks.stagewise.printed``: MNIST, random Fourier features, one pass. A stage fits y − ŷ by least
squares ("linear"), with ŷ (long version of the paper) or ŷ, ŷ², ŷ³ (short version) as further features of each block,
or takes 50 steps of Algorithm 1 on the log loss with the scores so far as offset ("logistic").
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import typer
from scipy.linalg import cho_factor, cho_solve

from benchmarks import data
from benchmarks.report import Table, figure, plain_ticks
from benchmarks.stagewise import curves, mnist
from manyclass.features import RandomFourierFeatures, median_squared_distance

BLOCKS, INNER_STEPS, LIPSCHITZ = "300,512,1024,2048", 50, 0.5
OURS = ("squared", "calibrated", "softmax")
Solve = Callable[[np.ndarray], np.ndarray]


@dataclass
class Stage:
    """A block of features of the training rows, with a column of ones, and the factor that solves for it."""

    features: np.ndarray
    alpha: float

    def factored(self, lipschitz: float) -> Solve:
        n, p = self.features.shape
        gram = (self.features.T @ self.features).astype(np.float64) * (lipschitz / n)
        gram.flat[:: p + 1] += self.alpha
        factor = cho_factor(gram, overwrite_a=True)
        return lambda right: cho_solve(factor, right)

    def least_squares(self, residual: np.ndarray) -> np.ndarray:
        return self.factored(1.0)(self.features.T @ residual / len(residual)).astype(np.float32)

    def algorithm_1(self, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """50 steps from zero on the log loss of scores + features·W."""
        solve = self.factored(LIPSCHITZ)
        W = np.zeros((self.features.shape[1], Y.shape[1]))
        for _ in range(INNER_STEPS):
            P = _softmax(scores + self.features @ W.astype(np.float32))
            W -= solve(self.features.T @ (P - Y) / len(Y) + self.alpha * W)
        return W.astype(np.float32)


@dataclass(frozen=True)
class Update:
    """An inner update: `powers` of ŷ are further features; `fit` gives the coefficients."""

    fit: Callable[[Stage, np.ndarray, np.ndarray], np.ndarray]
    powers: tuple[int, ...] = ()

    def columns(self, Z: np.ndarray, state: np.ndarray) -> np.ndarray:
        return np.hstack([Z, np.ones_like(Z[:, :1]), *(state**power for power in self.powers)])


def _residual_fit(stage: Stage, state: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return stage.least_squares(Y - state)


UPDATES: dict[str, Update] = {
    "linear": Update(_residual_fit),
    "ŷ as features": Update(_residual_fit, (1,)),
    "ŷ, ŷ², ŷ³ as features": Update(_residual_fit, (1, 2, 3)),
    "logistic, 50 steps of Algorithm 1": Update(lambda stage, state, Y: stage.algorithm_1(state, Y)),
}


def run(split: mnist.Split, n_components: int, block_size: int, update: Update, alpha: float) -> curves.Run:
    """One pass over blocks of new features; test rows keep step, and their seconds are not counted."""
    X, y, X_test, y_test = split
    rng, began, apart = np.random.default_rng(0), time.process_time(), 0.0
    generator = RandomFourierFeatures(bandwidth=mnist.BANDWIDTH * median_squared_distance(X), random_state=0).fit(X)
    Y = np.eye(int(y.max()) + 1, dtype=np.float32)[y]
    state, test = np.zeros_like(Y), np.zeros((len(y_test), Y.shape[1]), np.float32)
    seconds, errors, n_features = [], [], []
    for start in range(0, n_components, block_size):
        drawn = generator.draw(min(block_size, n_components - start), rng)
        stage = Stage(update.columns(drawn.transform(X), state), alpha)
        coef = update.fit(stage, state, Y)
        state += stage.features @ coef
        seconds.append(time.process_time() - began - apart)
        paused = time.process_time()
        test += update.columns(drawn.transform(X_test), test) @ coef
        errors.append(100 * float(np.mean(test.argmax(axis=1) != y_test)))
        n_features.append(start + drawn.n_features_out)
        apart += time.process_time() - paused
    return curves.Run(np.array(seconds), np.array(errors), np.array(n_features))


def measure(n_components: int, blocks: tuple[int, ...], rows: int, source: str) -> tuple[Table, dict[str, curves.Run]]:
    """The table, and the curve of each method and block size."""
    X, y, X_test, y_test = mnist.projected(tilt=mnist.TILT, source=source)
    split = (X[:rows] if rows else X, y[:rows] if rows else y, X_test, y_test)
    ways: dict[str, Callable[[int], curves.Run]] = {}
    for name, update in UPDATES.items():
        ways[f"as printed: {name}"] = partial(_printed, split, n_components, update)
    for loss in OURS:
        ways[f"ours: {loss}"] = partial(_ours, split, n_components, loss)
    table = Table(
        f"{data.title(source)}, {len(split[1])} rows, {n_components} features in one pass: seconds and test error (%)",
        ["inner update", *(f"blocks of {size}" for size in blocks)],
        live=True,
    )
    found: dict[str, curves.Run] = {}
    for name, way in ways.items():
        for size in blocks:
            found[f"{name}, {size}"] = way(size)
        ends = [found[f"{name}, {size}"] for size in blocks]
        table.add(name, *(f"{one.seconds[-1]:.1f} s, {one.errors[-1]:.2f}" for one in ends))
    return table, found


def _printed(split: mnist.Split, n_components: int, update: Update, size: int) -> curves.Run:
    return run(split, n_components, size, update, mnist.ALPHA)


def _ours(split: mnist.Split, n_components: int, loss: str, size: int) -> curves.Run:
    return curves.run(split, n_components, processor=True, loss=loss, block_size=size)


def _softmax(Z: np.ndarray) -> np.ndarray:
    Z -= Z.max(axis=1, keepdims=True)
    np.exp(Z, out=Z)
    Z /= Z.sum(axis=1, keepdims=True)
    return Z


def main(n_components: int = 8192, blocks: str = BLOCKS, rows: int = 0, source: str = "mnist") -> None:
    table, found = measure(n_components, tuple(map(int, blocks.split(","))), rows, source)
    table.note(
        f"{mnist.DIMENSIONS} principal components, random Fourier features, alpha = {mnist.ALPHA:g} in every block. "
        "Seconds are those of the processor for training. The paper found small blocks (300) and linear stages to "
        "give the best error for the time."
    )
    table.publish("stagewise_printed")
    with figure("stagewise_printed", n_panels=2, size=(13, 5.5)) as panels:
        sizes = list(dict.fromkeys(name.rpartition(", ")[2] for name in found))
        ways = list(dict.fromkeys(name.rpartition(", ")[0] for name in found))
        for name, one in found.items():
            way, _, size = name.rpartition(", ")
            style = {
                "color": f"C{ways.index(way)}",
                "linestyle": ("-", "--", "-.", ":")[sizes.index(size) % 4],
                "marker": ".",
            }
            panels[int(way.startswith("ours"))].plot(one.seconds, one.errors, label=name.partition(": ")[2], **style)
        for ax, title in zip(panels, ("as printed", "ours"), strict=True):
            ax.set(xscale="log", yscale="log", xlabel="seconds of fit", ylabel="test error, %", title=title)
            plain_ticks(ax.xaxis)
            plain_ticks(ax.yaxis)
            ax.legend(fontsize="x-small", ncols=2)


if __name__ == "__main__":
    typer.run(main)
