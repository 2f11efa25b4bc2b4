"""Arrow tables as datasets: what the formats that pyarrow reads have in common.

A column of equally long lists (an embedding) gives one feature per entry: entry i of the column ``embedding`` is
called ``embedding[i]``. Nulls become NaN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from manyclass.data.readers.columns import Columns, choose_columns
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    Request,
    as_indicator,
    as_labels,
    fits_float32,
    holds_text,
    labels_from_codes,
    no_label,
)

# Columns are written into the rows of X so many rows at a time, which the cache holds until they are whole.
_BLOCK_ROWS = 512


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what.

    `entries` are the columns that a user sees, as (column of the table, position in its list or None).
    """

    entries: list[tuple[str, int | None]]
    widths: dict[str, int]
    columns: Columns
    dtype: Any

    @classmethod
    def of(cls, names: Sequence[str], request: Request, widths: dict[str, int], has_names: bool = True) -> Layout:
        """The layout of a table with these columns, of which those in `widths` hold lists of that length."""
        entries: list[tuple[str, int | None]] = []
        for name in names:
            entries += [(name, i) for i in range(widths[name])] if name in widths else [(name, None)]
        shown = [_shown(entry) for entry in entries]
        drop: list[str | int] = []
        for column in request.drop:
            whole = isinstance(column, str) and column in widths
            drop += [_shown(entry) for entry in entries if entry[0] == column] if whole else [column]
        request = dataclasses.replace(request, drop=tuple(drop))
        return cls(entries, widths, choose_columns(shown if has_names else None, len(shown), request), request.dtype)

    @property
    def needed(self) -> list[str]:
        """The columns of the table that are to be read."""
        chosen = [*self.columns.features, *self.columns.targets]
        return list(dict.fromkeys(self.entries[j][0] for j in chosen))

    @property
    def label_column(self) -> str | None:
        """The column of the class labels, which may be text."""
        targets = self.columns.targets
        return self.entries[targets[0]][0] if targets and not self.columns.multilabel else None

    def dataset(self, table: pa.Table, start: int = 0, X: Any = None) -> Dataset:
        """The rows of a table, of which `start` came before in the file; `X` has the features if it does not."""
        columns = self.columns
        y: NDArray[Any] | None = None
        if self.label_column is not None:
            y = _labels(table[self.label_column], self.label_column, start)
        elif columns.multilabel:
            y = as_indicator(self._matrix(table, columns.targets, np.float64), columns.label_names, start)
        X = self._matrix(table, columns.features, self.dtype) if X is None else X
        return Dataset(X, y, columns.feature_names, columns.target_name, columns.label_names)

    def chunks(self, batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[Dataset]:
        """The rows of all batches in order, `n_rows` at a time."""
        start = 0
        for table in _regrouped(batches, n_rows):
            yield self.dataset(table, start)
            start += len(table)

    def _matrix(self, table: pa.Table, chosen: list[int], dtype: Any) -> NDArray[Any]:
        parts: dict[str, tuple[list[int], list[int]]] = {}
        for position, j in enumerate(chosen):
            name, entry = self.entries[j]
            positions, wanted = parts.setdefault(name, ([], []))
            positions.append(position)
            wanted.append(entry or 0)
        refuse_text(table.schema, list(parts))
        if dtype is None:
            dtype = np.float32 if all(_fits_float32(table[name]) for name in parts) else np.float64
        widths = {name: self.widths.get(name) for name in parts}
        if len(parts) == 1 and chosen == list(range(chosen[0], chosen[0] + (widths[name] or 0))):
            if table[name].num_chunks == 1:
                return _block(table[name].chunk(0), name, widths[name]).astype(dtype, copy=False)
        X = np.empty((len(table), len(chosen)), dtype)
        rows = slice(0, 0)
        for batch in table.select(list(parts)).to_batches():
            blocks = [
                (_as_slice(positions), _block(array, name, widths[name]), _as_slice(wanted))
                for (name, (positions, wanted)), array in zip(parts.items(), batch.columns, strict=True)
            ]
            for first in range(0, len(batch), _BLOCK_ROWS):
                last = min(first + _BLOCK_ROWS, len(batch))
                rows = slice(rows.stop, rows.stop + last - first)
                for places, values, entries in blocks:
                    X[rows, places] = values[first:last, entries]
        return X


def _shown(entry: tuple[str, int | None]) -> str:
    return entry[0] if entry[1] is None else f"{entry[0]}[{entry[1]}]"


def _as_slice(indices: list[int]) -> slice | list[int]:
    # Indexing by a list copies; neighbours, which are the rule, need not be.
    run = range(indices[0], indices[0] + len(indices))
    return slice(run.start, run.stop) if indices == list(run) else indices


def _regrouped(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    n_missing = n_rows
    for batch in batches:
        while len(batch) >= n_missing:
            yield pa.Table.from_batches([*held, batch.slice(0, n_missing)])
            batch, held, n_missing = batch.slice(n_missing), [], n_rows
        if len(batch):
            held.append(batch)
            n_missing -= len(batch)
    if held:
        yield pa.Table.from_batches(held)


def is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the numbers or texts themselves."""
    return kind.value_type if is_list(kind) or pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    kind = _plain(kind)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def refuse_text(schema: pa.Schema, names: list[str]) -> None:
    text = [name for name in names if _is_text(schema.field(name).type)]
    if text:
        raise holds_text(text)
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    for name in names:
        kind = schema.field(name).type
        if not any(is_known(_plain(kind)) for is_known in known):
            raise DataFileError(f"column '{name}' holds {kind} values: convert it to numbers or leave it out with drop")


def _block(array: pa.Array, name: str, width: int | None) -> NDArray[Any]:
    """The values of a column as a matrix, without a copy where there are no nulls."""
    if width is None:
        return _numbers(array)[:, None]
    lengths = pc.min_max(pc.list_value_length(array)).as_py()
    if array.null_count or lengths != {"min": width, "max": width}:
        raise DataFileError(f"the lists of column '{name}' are not all of length {width}: make them equally long")
    return _numbers(array.flatten()).reshape(len(array), width)


def _numbers(array: pa.Array) -> NDArray[Any]:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        array = array.cast(pa.float64())
    return array.to_numpy(zero_copy_only=False)


def _fits_float32(column: pa.ChunkedArray) -> bool:
    return all(fits_float32(_numbers(chunk.flatten() if is_list(chunk.type) else chunk)) for chunk in column.chunks)


def _labels(column: pa.ChunkedArray, name: str, start: int) -> NDArray[Any]:
    if column.null_count:
        raise no_label(start + 1 + pc.index(column.is_null(), True).as_py(), name)
    if not _is_text(column.type):
        refuse_text(pa.schema([(name, column.type)]), [name])
        return as_labels(np.concatenate([_numbers(chunk) for chunk in column.chunks]))
    encoded = pc.dictionary_encode(column.cast(pa.string())).combine_chunks()
    texts, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    empty = [code for code, text in enumerate(texts) if not text.strip()]
    if empty:
        raise no_label(start + 1 + int(np.flatnonzero(np.isin(codes, empty))[0]), name)
    return labels_from_codes(texts, codes)
