"""Reading the next chunk while the present one is computed with."""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Any


def read_ahead(items: Any, waited: list[float]) -> Generator[Any]:
    """The items, each made in a thread of its own while the one before is in use; errors are raised where it is asked.

    `items` is a generator. There are never more than two: the one in use, and the next. The thread ends when the
    generator is closed. The seconds that computations stood still because nothing had been read yet are added to the
    only one of `waited`.
    """
    with closing(items), ThreadPoolExecutor(1, thread_name_prefix="manyclass-reader") as reader:
        ahead = reader.submit(list, islice(items, 1))
        while True:
            started = time.perf_counter()
            box = ahead.result()  # which alone has the item, so that it is gone once it has been used
            waited[0] += time.perf_counter() - started
            if not box:
                return
            ahead = reader.submit(list, islice(items, 1))
            yield box.pop()
