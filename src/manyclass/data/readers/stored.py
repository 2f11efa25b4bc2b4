"""Rows that stay in their files, with the labels that have been read from these."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers.dataset import DataFileError, Dataset, NoRowsError, Request, quoted, reads_as_number
from manyclass.data.readers.kinds import NUMBER, TEXT, kinds_of
from manyclass.data.stores import Pieces, Repeated, Store, stacked, taken

SURVEYED_BYTES = 16 << 20
"""Of a chunk while a file of text is surveyed."""


class Guarded(Store):
    """The rows of another store; what reading them raises is raised within `guard`, and none may be missing."""

    def __init__(self, store: Store, guard: Callable[[], AbstractContextManager[None]]):
        self.guarded, self._guard = store, guard
        self.n_rows, self.kinds, self.is_slow = store.n_rows, store.kinds, store.is_slow

    @property
    def has_random_access(self) -> bool:
        return self.guarded.has_random_access

    def chunks(self, n_rows: int) -> Iterator[Any]:
        with self._guard():
            n_read = 0
            for chunk in self.guarded.chunks(n_rows):
                n_read += chunk.shape[0]
                yield chunk
            if n_read != self.n_rows:
                raise DataFileError(f"it announces {self.n_rows} rows and holds {n_read}: copy or download it again")

    def read(self, start: int, stop: int) -> Any:
        with self._guard():
            return self.guarded.read(start, stop)

    def take(self, index: NDArray[Any]) -> Any:
        with self._guard():
            return self.guarded.take(index)


def joined(parts: Sequence[Dataset]) -> Dataset:
    """Several files as one."""
    first, stores = parts[0], [part.X for part in parts]
    if len(parts) == 1:
        return first
    labels = [part.y for part in parts if part.y is not None]
    odd = next((part for part in parts if part.feature_names != first.feature_names), None)
    if odd is not None or len(labels) not in (0, len(parts)):
        raise DataFileError(f"its files differ in their columns{_difference(first, odd)}")
    if len({getattr(store, "n_features", None) for store in stores}) > 1:
        raise DataFileError("its files differ in their number of columns: keep only files of one table in a folder")
    if len({y.ndim for y in labels}) > 1:
        raise DataFileError("some of its files have one label a row and some several: keep only files of one table")
    names = first.label_names
    if any(part.label_names != names for part in parts):
        # Of columns all are in each file; of LIBSVM text those are that some row has.
        if first.zero_based is None and any(set(part.label_names or ()) != set(names or ()) for part in parts):
            raise DataFileError("its files differ in their labels: keep only files of one table in a folder")
        y, names = _all_labels([(part.y, part.label_names) for part in parts])
    else:
        y = np.concatenate(labels) if labels else None
    mapped = [store for store in stores if isinstance(store, Pieces)]
    if len(mapped) == len(stores):
        pieces = [piece for store in mapped for piece in store.pieces]
        files = [file for store in mapped for file in store.files]
        return dataclasses.replace(first, X=Pieces(pieces, files), y=y, label_names=names)
    return dataclasses.replace(first, X=Chain(stores), y=y, label_names=names)


def _difference(first: Dataset, odd: Dataset | None) -> str:
    """What tells the columns of another file from those of the first, and what to do."""
    ours, theirs = ((part.feature_names or ()) if part else () for part in (first, odd))
    only = [name for name in (*ours, *theirs) if (name in ours) != (name in theirs)]
    if ours and theirs and only:
        return f" ({quoted(only)} not in all of them): write them with the same columns, or keep those of one table"
    if ours and theirs:
        return " (the same names in another order): write them in one order"
    return ": keep only files of one table in a folder"


def agreed(request: Request, parts: Sequence[Dataset]) -> Request | None:
    """The request with what files of one table have in common and some do not show; None where all agree.

    That LIBSVM text counts features from 0, or has several labels in a row, or how many features; that labels are text;
    and the kinds of columns.
    """
    bases = {part.zero_based for part in parts}
    labels = [part.y for part in parts if part.y is not None]
    more: dict[str, Any] = {}
    if request.zero_based is None and len(bases) > 1:
        more["zero_based"] = True
    if request.multilabel is None and len({y.ndim for y in labels}) > 1:
        more["multilabel"] = True
    elif not request.text_labels and len({y.dtype.kind == "U" for y in labels if y.ndim == 1}) > 1:
        more["text_labels"] = True
    kinds = [part.X.kinds for part in parts]
    if any(one != kinds[0] for one in kinds):
        more["kinds"] = _common(kinds)
    if not more and request.features is None and None not in bases:
        widths = {next(iter(part.X.chunks(1))).shape[1] for part in parts}
        more = {"features": max(widths)} if len(widths) > 1 else {}
    return dataclasses.replace(request, **more) if more else None


def _common(kinds: Sequence[Mapping[str, str] | None]) -> dict[str, str]:
    """Kinds that columns have in all of several tables, else text; None is a table of numbers."""
    names = next(one for one in kinds if one is not None)
    found = {name: {NUMBER if one is None else one.get(name, NUMBER) for one in kinds} for name in names}
    return {name: some.pop() if len(some) == 1 else TEXT for name, some in found.items()}


class Chain(Store):
    """The rows of several stores, one after the other."""

    def __init__(self, stores: Sequence[Store]):
        self._stores = stores
        self._starts = np.cumsum([0, *(store.n_rows for store in stores)])
        self.n_rows, self.kinds = int(self._starts[-1]), stores[0].kinds
        self.is_slow = any(store.is_slow for store in stores)

    def chunks(self, n_rows: int) -> Iterator[Any]:
        return itertools.chain.from_iterable(store.chunks(n_rows) for store in self._stores)

    def take(self, index: NDArray[Any]) -> Any:
        order = np.argsort(index, kind="stable")
        owner = np.searchsorted(self._starts, index[order], side="right") - 1
        found = [
            self._stores[number].take(index[order[owner == number]] - self._starts[number])
            for number in np.unique(owner).tolist()
        ]
        return taken(stacked(found), np.argsort(order, kind="stable"))


def surveyed(
    read: Callable[..., Iterable[Dataset]],
    n_features: int | None,
    settled: Callable[[dict[str, str]], Mapping[str, str]] = dict,
) -> Dataset:
    """A file of which only chunks can be had: one pass for its size, width, type and labels.

    `read` takes a number of rows and options of `readers.read`, and gives datasets, as wide as `n_features` says. Where
    chunks are tables, all are read with the kinds that columns are `settled` to have after that pass.
    """
    n_rows, width, dtype, step = 0, 0, np.dtype(np.float32), 64
    bases: set[bool | None] = set()
    labels: list[Any] = []
    kinds: Mapping[str, str] | None = None
    first = next(iter(read(step)), None)
    if first is None:
        raise NoRowsError("it holds no rows: give a file with data")
    row_bytes = first.X.nbytes / first.X.shape[0] if first.is_table else 8 * max(first.X.shape[1], 64)
    step = max(int(SURVEYED_BYTES // max(row_bytes, 1)), step)
    for chunk in read(step):
        n_rows, width = n_rows + chunk.X.shape[0], max(width, chunk.X.shape[1])
        if chunk.is_table:
            kinds = kinds_of(chunk.X.schema)
        else:
            dtype = np.result_type(dtype, chunk.X.dtype)
        bases.add(chunk.zero_based)
        labels.append((chunk.y, chunk.label_names))
    kinds = None if kinds is None else settled(dict(kinds))
    zero_based = None if bases == {None} else True in bases
    width -= zero_based is False
    if n_features is not None and width > n_features:
        raise DataFileError(f"it has {width} features where {n_features} are expected: use a file with those features")
    width = width if n_features is None else n_features
    if len({y.dtype.kind == "U" for y, _ in labels if y is not None and y.ndim == 1}) > 1:
        labels = [(chunk.y, None) for chunk in read(step, text_labels=True)]
    y, names = _all_labels(labels)

    def chunks(size: int) -> Iterator[Any]:
        options = {"dtype": dtype, "zero_based": zero_based, "features": first.feature_names or width}
        given = {} if kinds is None else {"kinds": kinds}
        return (chunk.X for chunk in read(size, **options, **given))

    store = Repeated(chunks, n_rows, kinds)
    return dataclasses.replace(first, X=store, y=y, label_names=names, zero_based=zero_based)


def _all_labels(parts: list[Any]) -> tuple[Any, tuple[str, ...] | None]:
    """Labels of all chunks; one column for each label that occurs in any."""
    if any(y is None for y, _ in parts):
        return None, None
    if parts[0][0].ndim == 1 or parts[0][1] is None:
        return np.concatenate([y for y, _ in parts]), None
    names = sorted({name for _, some in parts for name in some}, key=by_number)
    place = {name: column for column, name in enumerate(names)}
    together = np.zeros((sum(len(y) for y, _ in parts), len(names)), dtype=np.int8)
    start = 0
    for y, some in parts:
        together[start : start + len(y), [place[name] for name in some]] = y
        start += len(y)
    return together, tuple(names)


def by_number(name: str) -> tuple[int, float, str]:
    return (0, float(name), name) if reads_as_number(name) else (1, 0.0, name)
