"""What the machine can do: the rates every benchmark is measured against.

``python -m benchmarks.ceilings``
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.report import Table

REPEATS = 5


def best_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def matmul_rate(dtype, size: int = 3072) -> float:
    """Flop per second of a square matrix product, through the BLAS that NumPy uses."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((size, size)).astype(dtype)
    B, out = A.copy(), np.empty_like(A)
    return 2 * size**3 / best_seconds(lambda: np.matmul(A, B, out=out))


def read_rate(n_bytes: int = 1 << 30) -> float:
    """Bytes per second when memory is read once, by a matrix-vector product (as threaded as BLAS is)."""
    A = np.ones((n_bytes // 4 // 4096, 4096), dtype=np.float32)
    v = np.ones(4096, dtype=np.float32)
    return A.nbytes / best_seconds(lambda: A @ v)


def main() -> None:
    table = Table("Ceilings", ["operation", "rate"])
    table.add("sgemm, 3072 × 3072", f"{matmul_rate(np.float32) / 1e9:.0f} Gflop/s")
    table.add("dgemm, 3072 × 3072", f"{matmul_rate(np.float64) / 1e9:.0f} Gflop/s")
    table.add("memory read (sgemv over 1 GiB)", f"{read_rate() / 1e9:.1f} GB/s")
    table.publish("ceilings")


if __name__ == "__main__":
    main()
