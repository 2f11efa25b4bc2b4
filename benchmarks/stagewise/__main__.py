"""All benchmarks of ``benchmarks.stagewise``: ``python -m benchmarks.stagewise``."""

from benchmarks.stagewise.fig2 import WIDTHS
from benchmarks.suite import run_all

run_all(
    "benchmarks.stagewise",
    [
        "table1 table",
        "curves goals --rows pixels",
        "curves goals --rows patches",
        "curves figure",
        "printed",
        *(f"fig2 measure {width}" for width in WIDTHS),
        "fig2 table",
        "newsgroups",
        "calibration",
        "memory",
        "penalty",
        "cifar exact",
        "cifar averages",
        "cifar linear",
    ],
)
