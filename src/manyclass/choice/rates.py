"""What this machine does in a second, measured once in a process; some ten milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from manyclass.data import ClassTargets, as_rows
from manyclass.model import SMOOTH_LOSSES, Problem


@dataclass(frozen=True)
class Rates:
    """Of one kind of numbers.

    Attributes
    ----------
    product : float
        Multiplications a second in products of dense matrices.
    stream : float
        Numbers a second that a product with few columns reads from memory.
    decomposition : float
        n² a second in an eigendecomposition of an n×n matrix, beside its products.
    sparse : float
        Multiplications a second in products of a sparse matrix with a dense one.
    elementwise : float
        Scores a second of which a softmax takes value and gradient.
    """

    product: float
    stream: float
    decomposition: float
    sparse: float
    elementwise: float

    def seconds_of_decomposition(self, n: float) -> float:
        """Of an eigendecomposition: it is bound by memory where n is small, by products where it is large."""
        return n**2 / self.decomposition + 5.0 * n**3 / self.product

    def seconds_of_cholesky(self, n: float) -> float:
        """Of a factor in float64: n³/6 products there, which are twice as long and half as fast as large ones."""
        return n**3 / (1.5 * self.product)


@cache
def rates(dtype: str) -> Rates:
    """Of "float32" or "float64"."""
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((512, 512)).astype(dtype) for _ in range(2))
    S = sp.random_array((4096, 2048), density=5e-3, format="csr", rng=rng, dtype=np.float64).astype(dtype)
    narrow = B[:, :8].copy()
    wide = np.tile(narrow, (4, 1))
    tall = np.ones((12288, 512 if dtype == "float64" else 1024), dtype=dtype)  # larger than the caches
    few = np.ones((tall.shape[1], 8), dtype=dtype)
    symmetric = (A[:192, :192] @ A[:192, :192].T).astype(dtype)
    product = 512**3 / _seconds(lambda: A @ B)
    beside = _seconds(lambda: scipy.linalg.eigh(symmetric, driver="evd", check_finite=False)) - 5.0 * 192**3 / product
    return Rates(
        product=product,
        stream=tall.size / _seconds(lambda: tall @ few, 1),
        decomposition=192**2 / max(beside, 1e-5),
        sparse=S.nnz * 8 / _seconds(lambda: S @ wide),
        elementwise=_scores_a_second(dtype),
    )


def _scores_a_second(dtype: str, n_rows: int = 4096, n_outputs: int = 32) -> float:
    rows = as_rows(np.ones((n_rows, 1), dtype=dtype))
    targets = ClassTargets(np.arange(n_rows) % n_outputs, n_outputs)
    problem = Problem(rows, targets, SMOOTH_LOSSES["softmax"], 1.0)
    theta = problem.constant_model()
    return n_rows * n_outputs / _seconds(lambda: problem.value_and_gradient(theta))


def _seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of a few times: what else the machine does only ever adds."""
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return max(min(times), 1e-7)
