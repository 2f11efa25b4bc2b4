"""How many threads multiply matrices, by the size of what there is to multiply.

The wheels of NumPy and of SciPy bring a BLAS each, with threads of its own. After a product these wait for the next one
by spinning, tens of milliseconds long, and the threads of the other library find no free core meanwhile: fits whose
products were NumPy's and whose small factors were SciPy's took twice as long with two threads as with one.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from manyclass.data.rows import Rows

SMALL_PRODUCT = 2e6
"""Multiplications in the largest matrix product of a fit up to which one BLAS thread is faster than several: waking
others takes some microseconds, as long as the product itself."""
SLICE = 1e9
"""The same where others keep all cores busy: what takes hardly longer than a core is lent for waits for those of its
threads that have none, and there is little to gain."""
SMALL_KERNELS = ("SkylakeX", "Cooperlake", "SapphireRapids")
"""Processors for which OpenBLAS has kernels that take small matrices as they lie (`SMALL_MATRIX_OPT`)."""
NARROW, FEW_FEATURES = 1000, 64
"""Features times outputs, and features, up to which one thread with such kernels is as fast as two without: on nine
sets two took 0.94 to 1.32 times as long. Of more features products with each other take longer than with outputs."""
LARGE_FACTOR = 1e10
"""Multiplications in a call of SciPy's, tenths of a second on one thread, from which its own threads save more than
they cost others by spinning, and are slowed down by the spinning of others."""


def multiplications(rows: Rows, n_outputs: int) -> float:
    """In the product of all rows with coefficients."""
    stored = min(rows.n_features, rows.row_bytes / rows.itemsize)
    return float(rows.n_rows) * stored * n_outputs


def threads_of_products(rows: Rows, n_outputs: int) -> int | None:
    """How many BLAS threads products of all rows with coefficients should use; None for all."""
    is_narrow = n_outputs > 1 and rows.n_features <= FEW_FEATURES and rows.n_features * n_outputs <= NARROW
    if rows.is_numpy and is_narrow and _has_small_kernels() and all(one.get_num_threads() <= 2 for one in _of_numpy()):
        return 1
    return threads_for(multiplications(rows, n_outputs))


def threads_for(n_multiplications: float) -> int | None:
    """How many BLAS threads a fit whose largest product has so many multiplications should use; None for all."""
    return 1 if n_multiplications <= (SLICE if _are_cores_busy() else SMALL_PRODUCT) else None


def _are_cores_busy() -> bool:
    """Whether more has been ready to run, over the last minute, than there are cores."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5


def blas_threads(n_threads: int | None) -> AbstractContextManager[Any]:
    """One BLAS thread within a ``with`` block for 1; None leaves them as they are."""
    return nullcontext() if n_threads is None else _one_thread(_blas())


def factor_threads(n_multiplications: float) -> AbstractContextManager[Any]:
    """For calls of SciPy's BLAS and LAPACK: one thread in its library, unless there is enough to do for all."""
    return nullcontext() if n_multiplications >= LARGE_FACTOR else _one_thread(_of_scipy())


@contextmanager
def _one_thread(libraries: list[Any]) -> Iterator[None]:
    """Until the last of all that ask for it at once, in whatever Python threads, is done.

    Not by threadpoolctl's own limits, which take as long as a small factor, and restore what they saw.
    """
    with _lock:
        for one in libraries:
            n_asking, before = _asking.get(one.filepath, (0, 0))
            before = before if n_asking else one.get_num_threads()
            if before > 1 and not n_asking:
                one.set_num_threads(1)
            _asking[one.filepath] = n_asking + 1, before
    try:
        yield
    finally:
        with _lock:
            for one in libraries:
                n_asking, before = _asking.get(one.filepath, (1, 0))
                if before > 1 and n_asking == 1:
                    one.set_num_threads(before)
                _asking[one.filepath] = n_asking - 1, before


_lock = Lock()
_asking: dict[str, tuple[int, int]] = {}


def _forget_who_asks() -> None:
    """In a process that was forked, which has none of the other threads."""
    global _lock
    _lock = Lock()
    for one in _blas() if _asking else []:
        n_asking, before = _asking.get(one.filepath, (0, 0))
        if n_asking and before > 1:
            one.set_num_threads(before)
    _asking.clear()


os.register_at_fork(after_in_child=_forget_who_asks)


def multiplies_unpacked() -> bool:
    """Whether NumPy's BLAS has kernels for small products, and one thread, so that none waits while these are used."""
    return all(one.get_num_threads() == 1 for one in _of_numpy()) and _has_small_kernels()


@cache
def _has_small_kernels() -> bool:
    return bool(_of_numpy()) and all(getattr(one, "architecture", None) in SMALL_KERNELS for one in _of_numpy())


@cache
def _of_scipy() -> list[Any]:
    """The BLAS that SciPy brings; none where it shares NumPy's."""
    return [one for one in _blas() if _is_of_scipy(one)]


@cache
def _of_numpy() -> list[Any]:
    return [one for one in _blas() if not _is_of_scipy(one)]


@cache
def _blas() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]


def _is_of_scipy(library: Any) -> bool:
    return any(part.startswith("scipy") for part in Path(library.filepath).parts[:-1])
