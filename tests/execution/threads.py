"""Parts in this process, on threads: the seam without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from typing import Any

from manyclass.execution.base import Check, Executor, Parts, add


class Threads(Executor):
    """Lists of parts, as a model of what other engines do; rows that are all here need no parts.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads: int = 1):
        self.pool = ThreadPoolExecutor(n_threads)

    @classmethod
    def takes(cls, X: Any) -> bool:
        return False

    @classmethod
    @contextmanager
    def connected(cls) -> Iterator[Executor]:
        one = cls()
        with one.pool:
            yield one

    @classmethod
    def lazily(cls, function: Callable[[Any], Any], X: Any, tail: tuple[int, ...], dtype: Any) -> Any:
        return map(function, X)

    def partitions(self, X: Any, *others: Any) -> list[Any]:
        return [None if one is None else Parts(self, [self.broadcast(item) for item in one]) for one in (X, *others)]

    def broadcast(self, value: Any) -> Any:
        done: Future[Any] = Future()
        done.set_result(value)
        return done

    def map(self, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> list[Any]:
        def call(items: tuple[Any, ...]) -> Any:
            return function(common, *(item.result() if isinstance(item, Future) else item for item in items))

        return [self.pool.submit(call, items) for items in zip(*columns, strict=True)]

    def sum(self, check: Check, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> Any:
        if check is not None:
            check()
        return reduce(add, self.gather(self.map(name, function, common, *columns)))

    def gather(self, items: Sequence[Any]) -> list[Any]:
        return [item.result() for item in items]
