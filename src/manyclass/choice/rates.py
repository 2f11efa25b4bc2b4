"""What this machine, or a device of it, does in a second: measured once in some ten milliseconds, kept on its disk."""

import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.linalg
import scipy.sparse as sp
from array_api_compat import array_namespace, device
from threadpoolctl import threadpool_info

from manyclass.data import ClassTargets, Rows, as_rows
from manyclass.data.memory import device_name, times_as_large
from manyclass.data.rows import Array
from manyclass.data.threads import blas_threads
from manyclass.data.whole_file import replaced
from manyclass.model import SMOOTH_LOSSES, Problem

WIDER = 8
"""Sides of matrices on a device, in units of those that fill a processor."""
LASTS = 86400.0
"""Seconds after which it is measured again, and the faster of both kept: what else a machine does only ever adds."""


@dataclass(frozen=True)
class Rates:
    """Of one kind of numbers."""

    product: float  # multiplications a second in products of dense matrices
    stream: float  # numbers a second that a product with few columns reads from memory
    decomposition: float  # n² a second in an eigendecomposition of an n×n matrix, beside its products
    sparse: float  # multiplications a second in products of a sparse matrix with a dense one
    elementwise: float  # scores a second of which a softmax takes value and gradient
    interpreted: float  # passes a second over a single row: all that small fits are

    def seconds_of_decomposition(self, n: float) -> float:
        """Of an eigendecomposition: it is bound by memory where n is small, by products where it is large."""
        return n**2 / self.decomposition + 5.0 * n**3 / self.product

    def seconds_of_cholesky(self, n: float) -> float:
        """Of a factor in float64: n³/6 products there, which are twice as long and half as fast as large ones."""
        return n**3 / (1.5 * self.product)


def rates_of(rows: Rows) -> Rates:
    """Where the rows are, of numbers as theirs."""
    if times_as_large(rows.device) == 1:
        return rates("float64" if rows.itemsize == 8 else "float32")
    one = rows.take(np.zeros(1, np.intp)).unwrapped()
    return rates(str(one.dtype).rpartition(".")[2], array_namespace(one), device(one))


@cache
def rates(dtype: str, xp: Any = np, place: Any = None) -> Rates:
    """Of "float32" or "float64" in NumPy, or another dtype of a namespace on one of its devices: those in the user's
    cache folder, or measured and put there where that can be.

    So that fits of one machine make one choice, whatever else it did while another process measured.
    """
    where = "" if place is None else f", {device_name(place)}, {xp.__name__}"
    path, key = cache_folder() / "rates.json", f"{dtype}{where}, {_machine()}"
    known = _known(path)
    try:
        before = Rates(**{name: float(value) for name, value in known[key]["rates"].items()})
        age = time.time() - known[key]["at"]
        if not all(0 < speed < 1e18 for speed in astuple(before)):
            raise ValueError
    except (TypeError, ValueError, LookupError, AttributeError):
        before, age = None, LASTS
    if before is not None and 0 <= age < LASTS:
        return before
    found = _measured(dtype) if place is None else _measured_there(dtype, xp, place)
    if before is not None:
        found = Rates(*(max(pair) for pair in zip(astuple(before), astuple(found), strict=True)))
    _keep(path, {**known, key: {"at": time.time(), "rates": asdict(found)}})
    return found


def cache_folder() -> Path:
    """``MANYCLASS_CACHE``, or the folder for this in the user's own."""
    named = os.environ.get("MANYCLASS_CACHE")
    if named:
        return Path(named)
    place = {"Windows": "LOCALAPPDATA"}.get(platform.system(), "XDG_CACHE_HOME")
    return Path(os.environ.get(place) or Path(os.path.expanduser("~")) / ".cache") / "manyclass"


def _machine() -> str:
    """All that decides how fast it is, as far as this process sees it."""
    blas = [one for one in threadpool_info() if one["user_api"] == "blas"]
    # In an order of their own: that of loaded libraries differs between processes, which then would not agree.
    libraries = sorted(f"{one['internal_api']} {one['version']} {one.get('architecture')}" for one in blas)
    threads = max((int(one["num_threads"]) for one in blas), default=1)
    parts = [platform.machine(), platform.node(), f"{os.cpu_count()} cores", f"{threads} threads", *libraries]
    return ", ".join([*parts, f"numpy {np.__version__}", f"scipy {scipy.__version__}"])


def _known(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _keep(path: Path, known: dict[str, Any]) -> None:
    """A cache that cannot be written costs ten milliseconds, and no message."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as temporary:
            temporary.write_text(json.dumps(known), encoding="utf-8")


def _measured(dtype: str) -> Rates:
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((512, 512)).astype(dtype) for _ in range(2))
    S = sp.random_array((4096, 2048), density=5e-3, format="csr", rng=rng, dtype=np.float64).astype(dtype)
    narrow = B[:, :8].copy()
    wide = np.tile(narrow, (4, 1))
    tall = as_rows(np.ones((12288, 512 if dtype == "float64" else 1024), dtype=dtype))  # larger than the caches
    few = np.ones((tall.n_features, 8), dtype=dtype)
    symmetric = (A[:192, :192] @ A[:192, :192].T).astype(dtype)
    product = 512**3 / _seconds_of_blas(lambda: A @ B)
    eigen = _seconds_of_blas(lambda: scipy.linalg.eigh(symmetric, driver="evd", check_finite=False))
    beside = eigen - 5.0 * 192**3 / product
    return Rates(
        product=product,
        stream=tall.n_rows * tall.n_features / _seconds_of_blas(lambda: tall.matmat(few), 1),
        decomposition=192**2 / max(beside, 1e-5),
        sparse=S.nnz * 8 / _seconds(lambda: S @ wide),
        elementwise=4096 * 32 / _seconds_of_pass(np.ones((4096, 1), dtype), 32),
        interpreted=1.0 / _seconds_of_pass(np.ones((1, 1), dtype), 2, repeats=30),
    )


def _measured_there(dtype: str, xp: Any, place: Any) -> Rates:
    """The same where a matrix has to be large before a device is busy, and a result to be read before it is done."""

    def made(shape: tuple[int, int]) -> Array:
        tile = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
        whole = xp.tile(xp.asarray(tile, device=place), tuple(-(-size // 512) for size in shape))
        return xp.astype(whole[: shape[0], : shape[1]], getattr(xp, dtype))

    def read(values: Array) -> float:
        return float(values[0, 0])

    size, tall = 512 * WIDER, as_rows(made((12288 * WIDER, 1024)))
    square, few = as_rows(made((size, size))), xp.ones((1024, 8), dtype=tall.dtype, device=place)
    operand = square.asarray(square.dense())
    small = 192 * WIDER
    symmetric = operand[:small, :small] @ operand[:small, :small].T
    product = size**3 / _seconds(lambda: read(square.matmat(operand)))
    beside = _seconds(lambda: read(xp.linalg.eigh(symmetric)[1]), 1) - 5.0 * small**3 / product
    ones = as_rows(made((4096 * WIDER, 1))).unwrapped()
    return Rates(
        product=product,
        stream=tall.n_rows * tall.n_features / _seconds(lambda: read(tall.matmat(few))),
        decomposition=small**2 / max(beside, 1e-5),
        sparse=product,
        elementwise=ones.shape[0] * 32 * WIDER / _seconds_of_pass(ones, 32 * WIDER),
        interpreted=1.0 / _seconds_of_pass(ones[:1, :], 2, repeats=30),
    )


def _seconds_of_pass(X: Array, n_outputs: int, repeats: int = 3) -> float:
    rows = as_rows(X)
    targets = ClassTargets(rows.asarray(np.arange(rows.n_rows) % n_outputs, rows.xp.int64), n_outputs)
    problem = Problem(rows, targets, SMOOTH_LOSSES["softmax"], 1.0)
    theta = problem.constant_model()
    return _seconds(lambda: problem.value_and_gradient(theta), repeats)


def _seconds_of_blas(work: Callable[[], object], repeats: int = 3) -> float:
    """With all threads, or with one: where others want the cores, threads that wait for each other take a hundred times
    as long, and what was seen at such a moment would be kept for a day."""
    with blas_threads(1):
        seconds = _seconds(work, repeats)
    return min(seconds, _seconds(work, repeats))


def _seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of a few times: what else the machine does only ever adds."""
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return max(min(times), 1e-7)
