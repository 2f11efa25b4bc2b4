"""All benchmarks of ``benchmarks.stagewise``: ``python -m benchmarks.stagewise``."""

from benchmarks.suite import run_all

run_all(
    "benchmarks.stagewise",
    [
        "table1 table",
        "curves goals --rows pixels",
        "curves goals --rows patches",
        "curves figure",
        "printed",
        "fig2 measure 2048",
        "fig2 measure 8192",
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
