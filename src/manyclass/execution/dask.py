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
"""Name of a task that Dask knows to take no time, so that an idle worker does not steal it, and all it is taken from.

A task of any other name is thought to take half a second until one like it is done.
"""

TOLD = "MALLOC_TRIM_THRESHOLD_"
"""Set by the nannies of Dask's workers, so that what a task leaves behind goes back to the system."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of <malloc.h>
AS_USUAL, KEPT, LARGEST = 1 << 17, 1 << 30, 1 << 25

_lock, _tasks = Lock(), 0


class Dask(Executor):
    """Parts are futures of the active ``Client``, with their lineage; rows are sent to nobody who did not lose any.

    A task is submitted when what it is about is there, to the worker that has it, and a worker is given as many at a
    time as it has threads: where more wait, or rows are still being made, Dask moves rows to who has less to do.

    Broadcast values are results of tasks too, not scattered, so that a worker that is lost takes nothing with it that
    cannot be made again; workers fetch them from each other.
    """

    def __init__(self, client: Any):
        self.client = client
        workers = client.scheduler_info(n_workers=-1)["workers"]
        self.n_workers, self._n_threads = max(len(workers), 1), {name: one["nthreads"] for name, one in workers.items()}

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
        return [Parts(self, rows), *(Parts(self, self._beside(rows, one)) if one else None for one in rest)]

    def _beside(self, rows: list[Any], items: list[Any]) -> list[Any]:
        """What belongs to the rows, on their workers, as it would come there again with every pass."""
        self._arrive(None, [*rows, *items])
        places = self.places(rows)
        if self.places(items) == places:
            return items
        keys = [_key(AT_ONCE) for _ in items]
        graph = {key: (itself, item) for key, item in zip(keys, items, strict=True)}
        return self._submit(graph, keys, dict(zip(keys, map(_only, places), strict=True)))

    def _futures(self, delayed: list[Any]) -> list[Any]:
        from distributed import futures_of

        return [futures_of(one)[0] for one in self.client.persist(delayed)] if delayed else []

    def broadcast(self, value: Any) -> Any:
        key = _key("broadcast")
        return self._submit({key: (_opened, _Sealed(value))}, [key], {})[0]

    def map(self, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> list[Any]:
        graph, groups, homes = self._plan(None, name, partial(_each, function, len(columns)), common, columns)
        keys = {i: _key(AT_ONCE) for group in groups.values() for i in group}
        for key, group in groups.items():
            graph |= {keys[i]: (getitem, key, place) for place, i in enumerate(group)}
            homes |= {keys[i]: homes[key] for i in group}
        return self._submit(graph, [keys[i] for i in range(len(columns[0]))], homes)

    def sum(self, check: Check, name: str, function: Callable[..., Any], common: Any, *columns: Sequence[Any]) -> Any:
        # One graph for all of it: what a graph costs the scheduler is most of what a short pass costs.
        graph, groups, homes = self._plan(check, name, partial(_all, function, len(columns)), common, columns)
        keys = list(groups)
        while len(keys) > 1:
            added = [_key("add") for _ in keys[1::2]]
            graph |= {
                key: (add, *pair) for key, pair in zip(added, zip(keys[::2], keys[1::2], strict=False), strict=True)
            }
            keys = [*added, *keys[2 * len(added) :]]
        found = self._submit(graph, keys, homes)
        try:
            self._arrive(check, found)
            return found[0].result()
        except BaseException:
            self.client.cancel(found)
            raise

    def _plan(
        self, check: Check, name: str, function: Callable[..., Any], common: Any, columns: tuple[Sequence[Any], ...]
    ) -> tuple[dict[str, Any], dict[str, list[int]], dict[str, list[str]]]:
        """A task for what each thread of a worker holds, which parts that is, and where."""
        self._arrive(check, columns[0])
        groups, homes, shared = {}, {}, _key("broadcast")
        for place, group in self._groups(columns[0]):
            key = _key(name)
            groups[key], homes[key] = group, _only(place)
        tasks = {
            key: (function, shared, *(column[i] for i in group for column in columns)) for key, group in groups.items()
        }
        return {shared: (_opened, _Sealed(common)), **tasks}, groups, homes

    def _groups(self, items: Sequence[Any]) -> Iterator[tuple[str, list[int]]]:
        """Numbers of parts in one place, as many times as it has threads; what has just been lost by itself."""
        held: dict[str, list[int]] = {}
        for i, place in enumerate(self.places(items)):
            held.setdefault(place, []).append(i)
        for place, numbers in held.items():
            n_tasks = self._n_threads.get(place, 1) if place else len(numbers)
            yield from ((place, some.tolist()) for some in np.array_split(numbers, n_tasks) if len(some))

    def _submit(self, graph: dict[str, Any], keys: list[str], homes: dict[str, list[str]]) -> list[Any]:
        """Where tasks have a home they go there, while it is."""
        from dask import annotate

        with warnings.catch_warnings(), annotate(workers=partial(_home, homes), allow_other_workers=True):
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # coefficients, anew for each pass
            return list(self.client.get(graph, keys, sync=False))

    def _arrive(self, check: Check, futures: Sequence[Any]) -> None:
        """Until all are done; if `check` raises they are not waited for."""
        from distributed import wait

        while awaited := [future for future in futures if not future.done()]:
            if check is not None:
                check()
            with suppress(TimeoutError):
                wait(awaited, timeout=POLL)

    def gather(self, items: Sequence[Any]) -> list[Any]:
        return list(self.client.gather(list(items)))

    def places(self, items: Sequence[Any]) -> list[str]:
        held = self.client.who_has(list(items))
        return [min(held[item.key], default="") for item in items]


@dataclass(frozen=True)
class _Sealed:
    """What Dask is not to look for tasks in."""

    value: Any


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


def _each(function: Callable[..., Any], n_columns: int, common: Any, *items: Any) -> list[Any]:
    with memory_kept():
        return [function(common, *items[start : start + n_columns]) for start in range(0, len(items), n_columns)]


def _all(function: Callable[..., Any], n_columns: int, common: Any, *items: Any) -> Any:
    calls = (function(common, *items[start : start + n_columns]) for start in range(0, len(items), n_columns))
    with memory_kept():
        return reduce(add, calls)


def _only(place: str) -> list[str]:
    return [place] if place else []


def _home(homes: dict[str, list[str]], key: str) -> list[str]:
    return homes.get(key, [])


def _opened(sealed: _Sealed) -> Any:
    return sealed.value


def _key(name: str) -> str:
    """Progress is shown by what comes before the last hyphen."""
    return f"{name.replace('_', ' ')}-{uuid4().hex}"


def _row_chunks(X: Any) -> list[int] | None:
    """Rows of each partition, where that is known."""
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
