"""Reading the next chunk while the present one is computed with."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import Any


def read_ahead(items: Iterator[Any], waited: list[float]) -> Generator[Any]:
    """The items, each made in a thread of its own while the one before is in use; errors are raised where it is asked.

    There are never more than two: the one in use, and the next. The thread ends when the generator is closed. The
    seconds that computations stood still because nothing had been read yet are added to the only one of `waited`.
    """
    ready: SimpleQueue[tuple[list[Any], BaseException | None]] = SimpleQueue()
    may_read, stopped = threading.Semaphore(1), threading.Event()

    def work() -> None:
        try:
            while may_read.acquire() and not stopped.is_set():
                box = list(itertools.islice(items, 1))
                is_end = not box  # once it is in the queue, the other thread empties it
                ready.put((box, None))
                if is_end:
                    return
                del box
        except BaseException as error:
            ready.put(([], error))

    thread = threading.Thread(target=work, name="manyclass-reader", daemon=True)
    thread.start()
    try:
        while True:
            started = time.perf_counter()
            box, error = ready.get()
            waited[0] += time.perf_counter() - started
            may_read.release()
            if error is not None:
                raise error
            if not box:
                return
            yield box.pop()
    finally:
        stopped.set()
        may_read.release()
        thread.join()
        if hasattr(items, "close"):
            items.close()
