"""CIFAR-10: kernel features of pooled filter responses, one model per group of 400 filters, and their average.

The goals are 80 % with about 400 filters and polynomial features, and 85 % by averaging models on disjoint filters.
Each model has its own k-means filters, principal components and landmarks. The images are JPEG copies, not the
originals. Times are CPU seconds of all threads, so that other jobs on the machine do not count.

``python -m benchmarks.stagewise.cifar`` (``--data TRAIN,TEST``: files of images, one a row); what more filters in one
model bring:
``python -m benchmarks.stagewise.cifar --models 1 --filters 1600 --n-components 8192``
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import typer

from benchmarks.report import Table, figure
from benchmarks.stagewise import cifar_images
from benchmarks.stagewise.cifar_features import BothSides, Components
from manyclass import StagewiseClassifier
from manyclass.features import FeatureGenerator, FeatureSubset, Landmarks

FILTERS, COMPONENTS, TILT = 400, 1000, 0.7
BLOCK, BANDWIDTH = 2048, 4.0
"""Landmarks per stage; the kernel's bandwidth, where the mean squared norm of the components is 1."""
PENALTIES = (0.003, 0.01, 0.03)
"""Candidates for alpha times the number of training images: the penalty in units of the kernel matrix."""
N_CHOICE, N_HELD_OUT, PLAIN = 15_000, 5000, 4 * BLOCK
"""Training images and held-out ones for the choice of the penalty; landmarks of the model without mirror images."""
Curve = list[tuple[int, float]]


class Scores:
    """The table, the curves behind it, and the sum of the models' probabilities."""

    def __init__(self, n_filters: int, y: np.ndarray, y_test: np.ndarray):
        self.n_filters, self.y, self.y_test = n_filters, y, y_test
        self.name = "stagewise_cifar" if n_filters == FILTERS else f"stagewise_cifar_{n_filters}"
        self.table = Table(
            "CIFAR-10 (JPEG copy): test accuracy, %",
            ["model", "filters", "features", "accuracy", "CPU s for components", "CPU s to fit"],
        )
        self.curves: dict[str, Curve] = {}
        self.average: Curve = []
        self.total = np.zeros((len(y_test), 10))

    def fitted(self, name: str, model: StagewiseClassifier, Z: np.ndarray, Z_test: np.ndarray, making: float) -> None:
        """Fit, and score each stage on the test images."""
        started = time.process_time()
        model.fit(Z, self.y)
        fitting = time.process_time() - started
        self.curves[name] = []
        for record, probabilities in zip(model.history_, model.staged_predict_proba(Z_test), strict=True):
            self.curves[name].append((record["n_features"], self.accuracy(probabilities)))
        n_features, accuracy = self.curves[name][-1]
        self.table.add(name, self.n_filters, n_features, f"{accuracy:.2f}", f"{making:.0f}", f"{fitting:.0f}")
        self.last = probabilities
        print(self.table, flush=True)

    def averaged(self) -> None:
        """Add the last model to the average."""
        self.total += self.last
        n_models = len(self.average) + 1
        self.average.append((n_models, self.accuracy(self.total)))
        if n_models > 1:
            self.table.add(
                f"average of {n_models}", n_models * self.n_filters, "", f"{self.average[-1][1]:.2f}", "", ""
            )

    def accuracy(self, probabilities: np.ndarray) -> float:
        return 100 * float(np.mean(probabilities.argmax(axis=1) == self.y_test))

    def plot(self) -> None:
        several = len(self.average) > 1
        with figure(self.name, n_panels=1 + several, size=(5 + 5 * several, 4.5)) as panels:
            for name, curve in self.curves.items():
                panels[0].plot(*zip(*curve, strict=True), marker="o", label=name)
            panels[0].set(xlabel="features", ylabel="test accuracy, %", title=f"one model, {self.n_filters} filters")
            panels[0].legend(fontsize="small")
            if several:
                panels[1].plot(*zip(*self.average, strict=True), marker="s")
                panels[1].set(
                    xlabel=f"models averaged, {self.n_filters} filters each",
                    ylabel="test accuracy, %",
                    title="disjoint filters",
                )
                panels[1].xaxis.get_major_locator().set_params(integer=True)


def classifier(features: FeatureGenerator, alpha: float, n_components: int | None, seed: int) -> StagewiseClassifier:
    return StagewiseClassifier(features, alpha=alpha, n_components=n_components, block_size=BLOCK, random_state=seed)


def both_sides() -> FeatureGenerator:
    return BothSides(Landmarks(bandwidth=BANDWIDTH))


def choose(Z: np.ndarray, y: np.ndarray, n_components: int) -> float:
    """The penalty with the fewest errors on held-out training images."""
    order = np.random.default_rng(0).permutation(len(y))
    held, rest = order[:N_HELD_OUT], order[N_HELD_OUT : N_HELD_OUT + N_CHOICE]
    errors = {}
    for penalty in PENALTIES:
        model = classifier(both_sides(), penalty / len(rest), min(n_components, N_CHOICE // 4), 0).fit(Z[rest], y[rest])
        errors[penalty] = float(np.mean(model.predict(Z[held]) != y[held]))
        print(f"held out: penalty {penalty:g}, {100 * errors[penalty]:.2f} % errors", flush=True)
    return min(errors, key=lambda penalty: errors[penalty])


def groups(
    models: int, n_filters: int, train: np.ndarray, test: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Components of the training and the test images, and the seconds they took."""
    for seed in range(models):
        started = time.process_time()
        components = Components(n_filters, COMPONENTS, TILT, seed, train)
        parts = components.transform(train), components.transform(test)
        yield *parts, time.process_time() - started


def main(models: int = 2, n_components: int = 10 * BLOCK, filters: int = FILTERS, data: str = "") -> None:
    train, y, test, y_test = cifar_images.load(data)
    # They come class by class, and filters and components are learned from the first of them.
    order = np.random.default_rng(0).permutation(len(y))
    train, y = train[order], y[order]
    scores, penalty = Scores(filters, y, y_test), 0.0
    for seed, (Z, Z_test, making) in enumerate(groups(models, filters, train, test)):
        if seed == 0:
            penalty = choose(Z, y, n_components)
            scores.table.note(describe(filters, penalty))
        alpha = penalty / len(y)
        model = classifier(both_sides(), alpha, n_components, seed)
        scores.fitted(f"with mirror images, {seed + 1}", model, Z, Z_test, making)
        scores.averaged()
        if seed == 0:
            first = Z[:, :COMPONENTS], Z_test[:, :COMPONENTS], making
            scores.fitted("linear in the components", classifier(FeatureSubset(), alpha, None, 0), *first)
            plain = classifier(Landmarks(bandwidth=BANDWIDTH), alpha, min(n_components, PLAIN), 0)
            scores.fitted("without mirror images", plain, *first)
        scores.table.publish(scores.name)
        scores.plot()


def describe(n_filters: int, penalty: float) -> str:
    return (
        f"{n_filters} filters of 6 × 6 are {n_filters // 2} k-means centres of whitened patches and their mirror "
        "images, without contrast normalisation; max(±r − ¾, 0) pooled over 3 × 3 cells, square roots, standardised, "
        f"{COMPONENTS} principal components with their spread to the power {TILT}. Features are Gaussian kernel values "
        f"at training images (`Landmarks`), {BLOCK} a stage, one pass of loss='squared'. With mirror images: the "
        "features of an image and of its mirror image are added, in training and in prediction. "
        f"alpha·n = {penalty:g}, chosen on {N_HELD_OUT} held-out training images. "
        "Goals: 80 % with about 400 filters, 85 % by averaging."
    )


if __name__ == "__main__":
    typer.run(main)
