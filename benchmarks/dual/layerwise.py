"""Layer-wise initialisation of a deep network (*Homotopic Initialization*, §5, §6.3 and Figure 4).

``python -m benchmarks.dual.layerwise mnist [--activation relu] [--rows 50000] [--steps 2000] [--device cuda]``, or
``cifar10``, or a file. Needs torch (``pip install 'manyclass[torch]'``).
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from benchmarks import data
from benchmarks.report import Table, figure
from benchmarks.stagewise import cifar_images
from manyclass import GLMClassifier
from manyclass.diagnostics import ResponseCorrelation, ResponseCorrelationDisplay, response_correlation

WIDTH, DEPTH, SHALLOW = 100, 10, 5
STEP = 0.1
PAPER_ROWS = {"mnist": 50_000, "cifar10": 20_000}
GAINS = {"tanh": 1.0, "relu": 2.0**0.5}
"""Of Glorot's uniform weights."""
WEIGHTS = ("Glorot's", "torch's")
"""How random weights are drawn, which the paper does not say: in the scale that keeps the size of what goes through a
layer (biases 0), and in torch's default, 1/√3 of that for tanh, in which it shrinks from layer to layer."""
ALPHA, LAST_STEPS = 1e-6, 100
"""Of the last layer alone."""
UPPER = ("upper zero, as printed", "upper identity, output zero", "upper random, output zero")
"""What is above the first layers that were trained before."""


@dataclass
class Nets:
    """One kind of random weights: training errors per step of each start, and the features of last hidden layers."""

    errors: dict[str, tuple[int, np.ndarray]] = field(default_factory=dict)
    """Steps of the small network before, and the training errors of each step after them."""
    correlations: dict[str, ResponseCorrelation] = field(default_factory=dict)
    last_layers: dict[str, tuple[list[float], float]] = field(default_factory=dict)
    """Objectives after each step of gradient descent on the output layer alone, and the training error in the end."""


def load(name: str, rows: int) -> data.Rows:
    """Random training rows, columns centred, largest value 1; labels 0 .. k − 1."""
    X, y = cifar_images.load()[:2] if name == "cifar10" else data.rows(name)
    kept = np.random.default_rng(0).permutation(len(y))[:rows]
    X = np.asarray(X[kept], dtype=np.float32)
    X /= np.abs(X).max()
    return X - X.mean(axis=0), np.unique(y[kept], return_inverse=True)[1]


def network(n_inputs: int, n_classes: int, depth: int, activation: str, weights: str, seed: int) -> Any:
    """`depth` hidden layers of `WIDTH` units and an output layer."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    layers: list[Any] = []
    for width in (n_inputs, *[WIDTH] * (depth - 1)):
        layers += [nn.Linear(width, WIDTH), {"tanh": nn.Tanh, "relu": nn.ReLU}[activation]()]
    net = nn.Sequential(*layers, nn.Linear(WIDTH, n_classes))
    for layer in linear(net) if weights == WEIGHTS[0] else []:
        nn.init.xavier_uniform_(layer.weight, GAINS[activation])
        nn.init.zeros_(layer.bias)
    return net


def linear(net: Any) -> list[Any]:
    return [layer for layer in net if hasattr(layer, "weight")]


def deepened(small: Any, deep: Any, upper: str) -> Any:
    """`deep` with the hidden layers of `small` as its first ones."""
    import torch
    from torch import nn

    deep = deepcopy(deep)
    with torch.no_grad():
        for mine, theirs in zip(linear(deep), linear(small)[:-1], strict=False):
            mine.load_state_dict(theirs.state_dict())
        *hidden, output = linear(deep)[len(linear(small)) - 1 :]
        for layer in hidden:
            if upper == UPPER[0]:
                nn.init.zeros_(layer.weight)
            elif upper == UPPER[1]:
                nn.init.eye_(layer.weight)
            if upper != UPPER[2]:
                nn.init.zeros_(layer.bias)
        nn.init.zeros_(output.weight)
        nn.init.zeros_(output.bias)
    return deep


def descend(net: Any, X: Any, y: Any, steps: int) -> np.ndarray:
    """Full-batch gradient descent on the mean log loss; the training error before each step and after the last."""
    import torch

    weights, errors = list(net.parameters()), []
    for step in range(steps + 1):
        Z = net(X)
        errors.append(float((Z.argmax(1) != y).float().mean()))
        if step < steps:
            slopes = torch.autograd.grad(torch.nn.functional.cross_entropy(Z, y), weights)
            with torch.no_grad():
                for weight, slope in zip(weights, slopes, strict=True):
                    weight -= STEP * slope
    return np.array(errors)


def features(net: Any, X: Any) -> np.ndarray:
    """What the output layer sees."""
    import torch

    with torch.no_grad():
        return net[:-1](X).cpu().numpy().astype(np.float64)


def last_layer(Z: np.ndarray, y: np.ndarray) -> tuple[list[float], float]:
    """The convex case: the last layer alone, from zero (and the best intercept) on frozen features."""
    model = GLMClassifier(ALPHA, solver="gradient", tol=1e-12, max_iter=LAST_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(Z, y)
    return [record.objective for record in model.history_], 1 - model.score(Z, y)


def run(X: np.ndarray, y: np.ndarray, activation: str, weights: str, steps: int, device: str) -> Nets:
    """All starts; the small network is trained for half of the steps, the deep ones made of it for the other half."""
    half = steps // 2
    import torch

    rows, codes, found = torch.from_numpy(X).to(device), torch.from_numpy(y).to(device), Nets()
    shapes = X.shape[1], int(y.max()) + 1
    deep, small = (
        network(*shapes, depth, activation, weights, seed).to(device) for depth, seed in ((DEPTH, 0), (SHALLOW, 1))
    )

    def look(name: str, net: Any) -> None:
        Z = features(net, rows)
        found.correlations[name] = response_correlation(Z, y)
        found.last_layers[name] = last_layer(Z, y)

    look(f"{SHALLOW} layers, random", small)
    found.errors[f"{SHALLOW} layers alone"] = 0, descend(small, rows, codes, half)
    look(f"{SHALLOW} layers, trained", small)
    for upper in UPPER:
        found.errors[upper] = half, descend(deepened(small, deep, upper), rows, codes, steps - half)
    look(f"{DEPTH} layers, random", deep)
    found.errors["random start"] = 0, descend(deep, rows, codes, steps)
    look(f"{DEPTH} layers, trained", deep)
    return found


def draw(name: str, activation: str, runs: dict[str, Nets], steps: int) -> None:
    with figure(
        f"dual_layerwise_{name}_{activation}", 3, (14, 3.8 * len(runs)), n_rows=len(runs), sharex=False
    ) as axes:
        for row, (weights, found) in zip(axes, runs.items(), strict=True):
            for label, colour in ((f"{DEPTH} layers, random", "C3"), (f"{DEPTH} layers, trained", "C0")):
                display = ResponseCorrelationDisplay(found.correlations[label], name=label)
                display.plot(row[0], show_tau=False, color=colour, s=5)
            row[0].locator_params(axis="x", nbins=7)
            row[0].legend()
            row[0].set_title(f"{weights} weights: last hidden layer")
            for label, (before, errors) in found.errors.items():
                row[1].plot(before + np.arange(len(errors)), errors, label=label)
            row[1].axvline(steps // 2, color="gray", linewidth=0.6)
            row[1].set(xlabel=f"gradient steps, those of the {SHALLOW} layers first", ylabel="training error")
            for label, (objectives, _) in found.last_layers.items():
                row[2].plot(objectives, label=label)
            row[2].set(xscale="symlog", yscale="log", xlabel="gradient steps", title="last layer alone: objective")
            row[1].legend(fontsize="small")
            row[2].legend(fontsize="small")
        axes[0, 0].figure.suptitle(f"{name}, {activation}")


def tables(name: str, activation: str, runs: dict[str, Nets], rows: int, steps: int) -> Table:
    half = steps // 2
    marks = sorted({steps // 20, steps // 10, steps // 4, half})
    training = Table(
        f"{name}: training error of {DEPTH} hidden layers of {WIDTH}, {activation}, by gradient descent",
        ["weights", "start", "steps before", *(f"after {mark}" for mark in marks), f"after {steps}"],
    )
    bounded = Table(
        "Boundedness of the last hidden layer, and the output layer alone by gradient descent from zero",
        ["weights", "features", "τ", "τ · total variance", "max ρ²", "objective after 10", f"{LAST_STEPS}", "error"],
    )
    for weights, found in runs.items():
        for label, (before, errors) in found.errors.items():
            last = f"{errors[steps]:.2%}" if len(errors) > steps else ""
            training.add(weights, label, before, *(f"{errors[mark]:.2%}" for mark in marks), last)
        for label, correlation in found.correlations.items():
            (objectives, error), tau = found.last_layers[label], correlation.tau
            bounded.add(
                weights, label, f"{tau:.3g}", f"{tau * correlation.spectrum.eigenvalues.sum():.3g}",
                f"{correlation.rho_squared.max():.2g}", f"{objectives[min(10, len(objectives) - 1)]:.3g}",
                f"{objectives[-1]:.3g}", f"{error:.2%}",
            )  # fmt: skip
    training.note(
        f"{rows} rows, columns centred; full-batch gradient descent on the mean log loss with step {STEP:g}. "
        f"The starts named by what is above begin with the hidden layers of the {SHALLOW} trained alone, whose {half} "
        f"steps stand as 'steps before' (each {cost(SHALLOW) / cost(DEPTH):.0%} of one of the deep network on MNIST). "
        "The random start has as many steps as they have together."
    )
    training.note(str(bounded))
    training.note(
        "τ as in the theory page, the largest over the classes; it has the unit of 1/z², and is comparable once "
        "multiplied by the total variance of the features. The output layer alone: "
        f"GLMClassifier(solver='gradient') at alpha {ALPHA:g}, steps of the best length."
    )
    return training


def cost(depth: int, n_inputs: int = 784) -> int:
    """Weights of a network of so many hidden layers, which a step costs in proportion."""
    return WIDTH * (n_inputs + (depth - 1) * WIDTH + 10)


def main(
    name: Annotated[str, typer.Argument(help="mnist, cifar10, or a dense file.")] = "mnist",
    rows: int | None = None,
    steps: int = 2000,
    activation: str = "tanh",
    device: Annotated[str, typer.Option(help="As torch calls it.")] = "cpu",
) -> None:
    X, y = load(name, rows or PAPER_ROWS.get(name, 20_000))
    runs = {weights: run(X, y, activation, weights, steps, device) for weights in WEIGHTS}
    name = data.title(name)
    tables(name, activation, runs, len(y), steps).publish(f"dual_layerwise_{name}_{activation}")
    draw(name, activation, runs, steps)


if __name__ == "__main__":
    typer.run(main)
