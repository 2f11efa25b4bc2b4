"""All benchmarks of ``benchmarks.selection``: ``python -m benchmarks.selection``."""

from benchmarks.suite import run_all

run_all("benchmarks.selection", ["ridge", "folds", "grid", "left_out", "auto"])
