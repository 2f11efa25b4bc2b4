"""Fits on one thread, in a process of their own that ends at a limit where they may take long."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable
from queue import Empty
from typing import Any

from threadpoolctl import threadpool_limits

GRACE = 0.2
"""Of the limit that a fit which keeps one by itself may take beyond it, to be told how it did."""


def in_process(work: Callable[[], Any], limit: float) -> tuple[Any, float] | None:
    """What `work` gives, and its seconds of the processor; None if that takes longer than `limit`, or fails."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    def run() -> None:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            start = time.process_time()
            try:
                answers.put((work(), time.process_time() - start))
            except (ValueError, MemoryError) as error:
                print(f"   {error}", flush=True)
                answers.put(None)

    process = context.Process(target=run)
    process.start()
    try:
        return answers.get(timeout=limit)
    except Empty:
        return None
    finally:
        process.kill()
        process.join()


def quietly(work: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """What `work` gives, and the fewest seconds of the processor it took."""
    fewest = float("inf")
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for _ in range(repeats):
            start = time.process_time()
            found = work()
            fewest = min(fewest, time.process_time() - start)
    return found, fewest
