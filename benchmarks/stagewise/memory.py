"""Claims: 65 536 features of MNIST need less than 3 GB; the Gram work runs at 0.7 of sgemm; where the time goes.

``python -m benchmarks.stagewise.memory``
"""

from __future__ import annotations

import numpy as np
import psutil
import typer

from benchmarks.ceilings import matmul_rate
from benchmarks.memory import peak_bytes, reset_peak
from benchmarks.report import Table
from benchmarks.stagewise import mnist

LIMIT_MB, SHARE = 3000, 0.7
PHASES = ("generate", "gram", "solve", "update")


def main(n_components: int = 65_536, n_passes: int = 1, data: str = "mnist") -> None:
    X, y, X_test, y_test = mnist.projected(tilt=mnist.TILT, source=data)
    sgemm = matmul_rate(np.float32)
    table = Table(
        f"MNIST, {n_components} features in blocks of {mnist.BLOCK}, {n_passes} pass",
        ["seconds", "test error, %", "peak memory of the process", *PHASES, "Gram / sgemm"],
    )
    mnist.stagewise(X, mnist.BLOCK).fit(X[:3000], y[:3000])
    reset_peak()
    before = psutil.Process().memory_info().rss
    model = mnist.stagewise(X, n_components, max_iter=n_passes).fit(X, y)
    peak, history = peak_bytes(), model.history_
    phases = {name: sum(record["phases"][name] for record in history) for name in PHASES}
    total = history[-1].seconds
    first = [record["phases"]["gram"] for record in history[: n_components // mnist.BLOCK]]
    # As a full product, 2np² flop a block, though syrk does half of it; the phase includes the correlations with the
    # residuals.
    rate = 2.0 * len(X) * mnist.BLOCK**2 * len(first) / sum(first)
    table.add(
        f"{total:.1f}",
        f"{100 * np.mean(model.predict(X_test) != y_test):.2f}",
        f"{peak >> 20} MB ({(peak - before) >> 20} beyond what fit began with)",
        *(f"{100 * phases[name] / total:.0f} %" for name in PHASES),
        f"{rate / sgemm:.2f}",
    )
    table.note(f"Goals: less than {LIMIT_MB} MB; Gram / sgemm at least {SHARE}. sgemm: {sgemm / 1e9:.0f} Gflop/s.")
    table.publish("stagewise_memory")


if __name__ == "__main__":
    typer.run(main)
