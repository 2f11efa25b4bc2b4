"""Work on rows that lie in parts elsewhere: map(function, parts) → tree sum → broadcast. All that an engine has to do.

`Problem.map` and `Problem.sum` are where the rest of the package meets this; a problem whose rows are here calls the
same functions on itself, without an executor.

A new engine is one file with a subclass of `Executor`, and a line in ``ENGINES``. What Ray would need: `broadcast` is
``ray.put``; `map` is ``ray.remote(function).remote`` of the items of each part, which are object references and keep
their lineage; `sum` is `map`, remote additions in a tree, and ``ray.wait`` with a timeout in a loop around `check`;
`gather` is ``ray.get``; `places` is ``ray.experimental.get_object_locations``; `partitions` takes the references of the
blocks of a ``ray.data.Dataset``, and `lazily` is its ``map_batches``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

Check = Callable[[], None] | None
"""Called while waiting; may raise to end it."""


class Executor(ABC):
    """Keeps values on the workers that computed them, and moves as little as it can."""

    n_workers: int = 1
    bytes_moved: int = 0
    """So far. A broadcast counts once for every worker, and so does a sum."""

    @classmethod
    @abstractmethod
    def takes(cls, X: Any) -> bool:
        """Whether X lies in parts of this engine. It is asked of every X, so it must not import the engine."""

    @classmethod
    @abstractmethod
    def connected(cls) -> AbstractContextManager[Executor]:
        """A running executor. A cluster that is started for it is closed with it."""

    @classmethod
    @abstractmethod
    def lazily(cls, function: Callable[[Any], Any], X: Any, tail: tuple[int, ...], dtype: Any) -> Any:
        """A lazy collection of ``function(part)``, each of shape (n_rows of the part, *tail)."""

    @abstractmethod
    def partitions(self, X: Any, *others: Any) -> list[Any]:
        """`Parts` of X and of per-row arrays such as y, cut at the same rows; None stays None."""

    @abstractmethod
    def broadcast(self, value: Any) -> Any:
        """A reference to a value that many calls give to every part."""

    @abstractmethod
    def map(self, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> list[Any]:
        """References to ``function(common, *items)`` for the items of each part, computed where the first of these is.

        After the loss of a worker, only what it held is computed again, from its lineage.
        """

    @abstractmethod
    def sum(self, check: Check, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> Any:
        """The sum of what `map` would give, by a tree of `add`, neighbours first. It is cancelled if `check` raises."""

    @abstractmethod
    def gather(self, items: Sequence[Any]) -> list[Any]:
        """The values."""

    def places(self, items: Sequence[Any]) -> list[str]:
        """Names of the workers that hold the items."""
        return [""] * len(items)


@dataclass(frozen=True)
class Broadcast:
    """A reference that an executor gave to a value for every part."""

    item: Any


@dataclass(frozen=True)
class Parts:
    """One value with each part of the rows."""

    executor: Executor
    items: list[Any]  # references

    def map(self, function: Callable[..., Any], *arguments: Any, name: str = "map") -> Parts:
        """``function(value, *arguments)`` of each; see `Problem.map` for what becomes of the arguments."""
        return Parts(self.executor, self.executor.map(name, _call, *self._shared_and_own(function, arguments)))

    def sum(
        self, function: Callable[..., Any] | None = None, *arguments: Any, name: str = "sum", check: Check = None
    ) -> Any:
        """The sum of what `map` would give, or of the values themselves."""
        total = self.executor.sum(check, name, _call, *self._shared_and_own(function or itself, arguments))
        self.executor.bytes_moved += n_bytes(total) * self.executor.n_workers
        return total

    def _shared_and_own(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The first argument of `_call`, which all parts share, and columns of the others, with an item for each."""
        columns = [self._column(argument) for argument in arguments]
        shared = [argument for argument, column in zip(arguments, columns, strict=True) if column is None]
        self.executor.bytes_moved += n_bytes(shared) * self.executor.n_workers
        own = [column for column in columns if column is not None]
        return (function, [column is None for column in columns], shared), self.items, *own

    def _column(self, argument: Any) -> list[Any] | None:
        """An item for each part; None where all parts share the argument."""
        if isinstance(argument, Parts):
            return argument.items
        if isinstance(argument, Broadcast):
            return [argument.item] * len(self.items)
        if isinstance(argument, np.random.Generator):
            return [np.random.SeedSequence(int(seed)) for seed in argument.integers(2**63, size=len(self.items))]
        return None

    def broadcast(self, value: Any) -> Broadcast:
        self.executor.bytes_moved += n_bytes(value) * self.executor.n_workers
        return Broadcast(self.executor.broadcast(value))

    def values(self) -> list[Any]:
        values = self.executor.gather(self.items)
        self.executor.bytes_moved += n_bytes(values)
        return values

    def at(self, index: Sequence[int]) -> Parts:
        """Some of the parts, in that order."""
        return Parts(self.executor, [self.items[i] for i in index])


def _call(common: tuple[Callable[..., Any], list[bool], list[Any]], value: Any, *own: Any) -> Any:
    """``function(value, *arguments)`` of one part; seeds become generators here."""
    function, is_shared, shared = common
    sources = iter(own), iter(shared)
    arguments = (next(sources[whether]) for whether in is_shared)
    drawn = (np.random.default_rng(item) if isinstance(item, np.random.SeedSequence) else item for item in arguments)
    return function(value, *drawn)


def itself(value: Any) -> Any:
    return value


def add(a: Any, b: Any) -> Any:
    """a + b; of tuples, entry by entry."""
    return tuple(add(x, y) for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a + b


def n_bytes(value: Any) -> int:
    """Of the arrays in a value."""
    if isinstance(value, list | tuple):
        return sum(map(n_bytes, value))
    if type(value).__module__.startswith("manyclass"):
        return sum(map(n_bytes, vars(value).values()))
    size = getattr(value, "nbytes", 0)
    return size if isinstance(size, int) else 0
