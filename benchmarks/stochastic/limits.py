"""Work in a process of its own that ends when its time is up: compiled peers cannot be interrupted otherwise.

The time is that of the processor, as other work may go on beside it.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

LIMIT = 120.0


def limited(work: Callable[[], Any], seconds: float = LIMIT) -> Any:
    """What `work` returns, or None if it took longer. Memory is shared until written to; nothing is pickled but the
    answer.

    Raises
    ------
    RuntimeError
        If `work` failed.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, sender, math.ceil(seconds)))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL):
            return None
        raise RuntimeError(f"{work} ended without an answer") from None
    finally:
        process.kill()
        process.join()


def _work(work: Callable[[], Any], sender: Connection, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    sender.send(work())
