"""All benchmarks of ``benchmarks.dual``: ``python -m benchmarks.dual``."""

from benchmarks.suite import run_all

run_all(
    "benchmarks.dual",
    [
        "speed 20news-unit",
        "speed a9a --C 1 30",
        "speed rcv1-like-4",
        "homotopy a9a",
        "homotopy w8a",
        "homotopy adult",
        "homotopy kddcup",
        "homotopy mnist",
        "spectra table",
        "spectra definitions",
        "descent",
        "steps",
        "svm",
        "layerwise mnist --activation tanh",
        "layerwise mnist --activation relu",
        "layerwise cifar10 --activation tanh",
        "layerwise cifar10 --activation relu",
    ],
)
