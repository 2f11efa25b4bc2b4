"""Memory that blocks of rows ask for again and again, where a worker is told to give it back each time."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

TOLD = "MALLOC_TRIM_THRESHOLD_"
"""Set by the nannies of Dask's workers, so that what a task leaves behind goes back to the system."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of <malloc.h>
AS_USUAL, KEPT, LARGEST = 1 << 17, 1 << 30, 1 << 25

_lock, _tasks = Lock(), 0


@contextmanager
def memory_kept() -> Iterator[None]:
    """Where glibc is told to give back what is freed, it does so in the end only, when no thread is in here any more.

    Otherwise every temporary array is new memory of the system, page by page, which is a fifth of a pass and more.
    """
    told = sys.platform == "linux" and os.environ.get(TOLD, "").isdigit()
    library: Any = ctypes.CDLL(None) if told else None
    if not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    global _tasks
    with _lock:
        _tasks += 1
        library.mallopt(M_TRIM_THRESHOLD, KEPT)
        library.mallopt(M_MMAP_THRESHOLD, LARGEST)
    try:
        yield
    finally:
        with _lock:
            _tasks -= 1
            if not _tasks:
                library.mallopt(M_MMAP_THRESHOLD, AS_USUAL)
                library.mallopt(M_TRIM_THRESHOLD, int(os.environ[TOLD]))
                library.malloc_trim(0)
