"""All benchmarks of ``benchmarks.bound``: ``python -m benchmarks.bound``."""

from benchmarks.suite import run_all

run_all(
    "benchmarks.bound",
    [
        "toy",
        "ecoli",
        "mnist",
        "low_rank",
        "text newsgroups",
        "text a9a",
        "suboptimality toy",
        "suboptimality ecoli",
        "suboptimality mnist",
        "speed",
    ],
)
