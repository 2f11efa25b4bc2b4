"""Parts on the workers of a Dask cluster."""

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, reduce
from operator import getitem
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np

from manyclass.execution.base import Check, Executor, Parts, add, itself

POLL = 0.2
"""Seconds between two looks at the clock while a pass is under way."""

AT_ONCE = "split-stage"
"""A task name that Dask takes to cost nothing, so that an idle worker steals neither the task nor what it depends on.

Tasks of an unknown name are assumed to take half a second until the first is done.
"""

TRIM_VARIABLE = "MALLOC_TRIM_THRESHOLD_"
"""Set by the nannies of Dask's workers, so that what a task leaves behind goes back to the system."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of <malloc.h>
TRIM_NEVER, MMAP_LARGEST, MMAP_DEFAULT = 1 << 30, 1 << 25, 1 << 17

_lock, _n_running = Lock(), 0


class Dask(Executor):
    """Parts are futures of the active ``Client``, with their lineage; rows move only after the loss of a worker.

    A task is submitted once its rows are computed, to the worker that holds them, and at most one task per thread at a
    time. Otherwise Dask would move rows to idle workers.

    Broadcast values are results of tasks too, not scattered, so that they have a lineage after the loss of a worker;
    workers fetch them from each other.
    """

    def __init__(self, client: Any):
        self.client = client
        workers = client.scheduler_info(n_workers=-1)["workers"]
        self.n_workers = max(len(workers), 1)
        self._n_threads = {name: worker["nthreads"] for name, worker in workers.items()}

    @classmethod
    def takes(cls, X: Any) -> bool:
        if isinstance(X, list | tuple) and len(X):
            return cls.takes(X[0])
        return type(X).__module__.split(".")[0] in ("dask", "dask_expr")

    @classmethod
    @contextmanager
    def connected(cls) -> Iterator[Executor]:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise ImportError("Dask collections need dask and distributed: pip install 'manyclass[dask]'.") from error
        try:
            client = Client.current()
        except ValueError:
            # One worker in this process, as its products have all processors by themselves.
            options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
            with LocalCluster(dashboard_address=":0", **options) as cluster, Client(cluster) as client:
                yield cls(client)
            return
        if client.asynchronous:
            raise ValueError("The active dask Client is asynchronous; make a Client without asynchronous=True current.")
        yield cls(client)

    @classmethod
    def lazily(cls, function: Callable[[Any], Any], X: Any, tail: tuple[int, ...], dtype: Any) -> Any:
        import dask.array as da
        from dask import delayed

        call = delayed(function, pure=True)
        n_rows: list[Any] = _row_chunks(X) or [np.nan] * len(_delayed(X))
        blocks = [
            da.from_delayed(call(part), shape=(n, *tail), meta=np.empty((0,) * (1 + len(tail)), dtype))
            for part, n in zip(_delayed(X), n_rows, strict=True)
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    def partitions(self, X: Any, *others: Any) -> list[Any]:
        if isinstance(X, list | tuple) and isinstance(X[0], list | tuple):  # of pairs (X_i, y_i)
            X, others = [pair[0] for pair in X], ([pair[1] for pair in X], *others[1:])
        chunks, columns = _row_chunks(X), [_delayed(X)]
        columns += [[] if other is None else _delayed(other, chunks) for other in others]
        for column in columns:
            if column and len(column) != len(columns[0]):
                raise ValueError(
                    f"X has {len(columns[0])} partitions and y or sample_weight {len(column)}; cut them at the "
                    "same rows."
                )
        rows, *rest = map(self._futures, columns)
        return [Parts(self, rows), *(Parts(self, self._beside(rows, items)) if items else None for items in rest)]

    def _beside(self, rows: list[Any], items: list[Any]) -> list[Any]:
        """The items on the workers of their rows, so that they are sent once rather than with every pass."""
        self._wait(None, [*rows, *items])
        places = self.places(rows)
        if self.places(items) == places:
            return items
        keys = [_key(AT_ONCE) for _ in items]
        graph = {key: (itself, item) for key, item in zip(keys, items, strict=True)}
        return self._submit(graph, keys, dict(zip(keys, map(_preferred, places), strict=True)))

    def _futures(self, delayed: list[Any]) -> list[Any]:
        from distributed import futures_of

        return [futures_of(part)[0] for part in self.client.persist(delayed)] if delayed else []

    def broadcast(self, value: Any) -> Any:
        key = _key("broadcast")
        return self._submit({key: (_unseal, _Sealed(value))}, [key], {})[0]

    def map(self, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> list[Any]:
        graph, groups, homes = self._plan(None, name, partial(_map_group, function, len(columns)), common, columns)
        keys = {i: _key(AT_ONCE) for group in groups.values() for i in group}
        for key, group in groups.items():
            graph |= {keys[i]: (getitem, key, place) for place, i in enumerate(group)}
            homes |= {keys[i]: homes[key] for i in group}
        return self._submit(graph, [keys[i] for i in range(len(columns[0]))], homes)

    def sum(self, check: Check, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> Any:
        # One graph for the whole sum, as a short pass costs little beside what the scheduler does for a graph.
        graph, groups, homes = self._plan(check, name, partial(_sum_group, function, len(columns)), common, columns)
        keys = list(groups)
        while len(keys) > 1:
            sums = {_key("add"): (add, *pair) for pair in zip(keys[::2], keys[1::2], strict=False)}
            graph |= sums
            keys = [*sums, *keys[2 * len(sums) :]]
        futures = self._submit(graph, keys, homes)
        try:
            self._wait(check, futures)
            return futures[0].result()
        except BaseException:
            self.client.cancel(futures)
            raise

    def _plan(
        self, check: Check, name: str, function: Callable[..., Any], common: Any, columns: tuple[Sequence[Any], ...]
    ) -> tuple[dict[str, Any], dict[str, list[int]], dict[str, list[str]]]:
        """The graph of one task per thread of each worker; by key of the task, its parts and the workers for it."""
        self._wait(check, columns[0])
        groups, homes, shared = {}, {}, _key("broadcast")
        for place, group in self._groups(columns[0]):
            key = _key(name)
            groups[key], homes[key] = group, _preferred(place)
        tasks = {
            key: (function, shared, *(column[i] for i in group for column in columns)) for key, group in groups.items()
        }
        return {shared: (_unseal, _Sealed(common)), **tasks}, groups, homes

    def _groups(self, items: Sequence[Any]) -> Iterator[tuple[str, list[int]]]:
        """Numbers of the parts of each worker, divided among its threads; parts that have just been lost, singly."""
        numbers_at: dict[str, list[int]] = {}
        for i, place in enumerate(self.places(items)):
            numbers_at.setdefault(place, []).append(i)
        for place, numbers in numbers_at.items():
            n_tasks = self._n_threads.get(place, 1) if place else len(numbers)
            yield from ((place, group.tolist()) for group in np.array_split(numbers, n_tasks) if len(group))

    def _submit(self, graph: dict[str, Any], keys: list[str], homes: dict[str, list[str]]) -> list[Any]:
        """The futures of `keys`. `homes` are the workers that tasks prefer, as long as these exist."""
        from dask import annotate

        with warnings.catch_warnings(), annotate(workers=partial(_home, homes), allow_other_workers=True):
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # coefficients, anew for each pass
            return list(self.client.get(graph, keys, sync=False))

    def _wait(self, check: Check, futures: Sequence[Any]) -> None:
        """Wait until all are done, or `check` raises."""
        from distributed import wait

        while pending := [future for future in futures if not future.done()]:
            if check is not None:
                check()
            with suppress(TimeoutError):
                wait(pending, timeout=POLL)

    def gather(self, items: Sequence[Any]) -> list[Any]:
        return list(self.client.gather(list(items)))

    def places(self, items: Sequence[Any]) -> list[str]:
        workers = self.client.who_has(list(items))
        return [min(workers[item.key], default="") for item in items]


@dataclass(frozen=True)
class _Sealed:
    """Hides a value from Dask, which would search it for tasks."""

    value: Any


@contextmanager
def memory_kept() -> Iterator[None]:
    """Where Dask has lowered the trim threshold of glibc, raise it until the last thread leaves this context.

    Otherwise each temporary array is mapped anew, page by page, which takes a fifth of a pass and more.
    """
    is_lowered = sys.platform == "linux" and os.environ.get(TRIM_VARIABLE, "").isdigit()
    library: Any = ctypes.CDLL(None) if is_lowered else None
    if not (hasattr(library, "mallopt") and hasattr(library, "malloc_trim")):
        yield
        return
    global _n_running
    with _lock:
        _n_running += 1
        library.mallopt(M_TRIM_THRESHOLD, TRIM_NEVER)
        library.mallopt(M_MMAP_THRESHOLD, MMAP_LARGEST)
    try:
        yield
    finally:
        with _lock:
            _n_running -= 1
            if not _n_running:
                library.mallopt(M_MMAP_THRESHOLD, MMAP_DEFAULT)
                library.mallopt(M_TRIM_THRESHOLD, int(os.environ[TRIM_VARIABLE]))
                library.malloc_trim(0)


def _map_group(function: Callable[..., Any], n_columns: int, common: Any, *items: Any) -> list[Any]:
    with memory_kept():
        return [function(common, *items[start : start + n_columns]) for start in range(0, len(items), n_columns)]


def _sum_group(function: Callable[..., Any], n_columns: int, common: Any, *items: Any) -> Any:
    calls = (function(common, *items[start : start + n_columns]) for start in range(0, len(items), n_columns))
    with memory_kept():
        return reduce(add, calls)


def _preferred(place: str) -> list[str]:
    return [place] if place else []


def _home(homes: dict[str, list[str]], key: str) -> list[str]:
    return homes.get(key, [])


def _unseal(sealed: _Sealed) -> Any:
    return sealed.value


def _key(name: str) -> str:
    """A new key; Dask's dashboard shows what is before the last hyphen."""
    return f"{name.replace('_', ' ')}-{uuid4().hex}"


def _row_chunks(X: Any) -> list[int] | None:
    """Rows of each partition; None where unknown."""
    chunks = getattr(X, "chunks", None)
    return None if chunks is None or np.isnan(chunks[0]).any() else list(chunks[0])


def _delayed(values: Any, chunks: list[int] | None = None) -> list[Any]:
    """The partitions of a collection, cut at `chunks` where it can be."""
    if isinstance(values, list | tuple) and Dask.takes(values):
        return list(values)
    if not Dask.takes(values):
        import dask.array as da

        if chunks is None:
            raise ValueError(
                "X has partitions of unknown length, so y and sample_weight must be Dask collections cut at the same "
                "rows; or call X.compute_chunk_sizes() first."
            )
        values = np.asarray(values)
        values = da.from_array(values, chunks=(tuple(chunks), *values.shape[1:]))
    if hasattr(values, "rechunk"):
        if values.ndim > 1 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        if chunks is not None and _row_chunks(values) not in (None, chunks):
            values = values.rechunk({0: tuple(chunks)})
    return list(np.ravel(np.asarray(values.to_delayed(), dtype=object)))
