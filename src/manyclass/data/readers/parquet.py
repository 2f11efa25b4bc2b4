"""Parquet, read by pyarrow (the extra `frames`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers.columns import Columns, choose_columns
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    Request,
    as_features,
    as_indicator,
    as_labels,
    holds_text,
)
from manyclass.data.readers.source import Source

SUFFIXES = (".parquet", ".pq")


def sniff(head: bytes) -> bool:
    return head.startswith(b"PAR1")


def read(source: Source, request: Request) -> Dataset:
    """Numeric columns, one feature each; a column of equally long lists (an embedding) gives one per entry.

    Entry i of the list column ``embedding`` is the feature ``embedding[i]``. Only the columns needed are
    read. Nulls become NaN.
    """
    pa, pq = _pyarrow()
    try:
        layout = _layout(pq.ParquetFile(source.seekable()), request, pa)
        table = layout.file.read(columns=layout.needed)
    except pa.ArrowException as error:
        raise _broken(error) from error
    return layout.dataset(table, request)


def read_chunks(source: Source, request: Request, n_rows: int) -> Iterator[Dataset]:
    """At most so many rows at a time; none are read before they are asked for."""
    pa, pq = _pyarrow()
    try:
        layout = _layout(pq.ParquetFile(source.seekable()), request, pa)
        for batch in layout.file.iter_batches(batch_size=n_rows, columns=layout.needed):
            if len(batch):
                yield layout.dataset(pa.Table.from_batches([batch]), request)
    except pa.ArrowException as error:
        raise _broken(error) from error


def _broken(error: Exception) -> DataFileError:
    return DataFileError(f"it is not a whole Parquet file ({error}): save or copy it again")


@dataclass(frozen=True)
class _Layout:
    """An open file and which of its columns are what.

    `entries` are the columns that a reader of `names` sees, as (physical column, position in its list or None).
    """

    file: Any
    widths: dict[str, int]
    entries: list[tuple[str, int | None]]
    names: list[str]
    columns: Columns
    pa: Any

    @property
    def needed(self) -> list[str]:
        chosen = [*self.columns.features, *self.columns.targets]
        return list(dict.fromkeys(self.entries[j][0] for j in chosen))

    def dataset(self, table: Any, request: Request) -> Dataset:
        pa, columns, widths = self.pa, self.columns, self.widths
        arrays = {name: _numbers(table[name], name, pa, widths[name]) for name in self.needed if name in widths}

        def column(position: int) -> NDArray[Any]:
            name, entry = self.entries[position]
            return _numbers(table[name], name, pa, None) if entry is None else arrays[name][:, entry]

        y: NDArray[Any] | None = None
        if columns.multilabel:
            y = as_indicator(np.column_stack([column(j) for j in columns.targets]), columns.label_names)
        elif columns.targets:
            target = columns.targets[0]
            y = _labels(table[self.entries[target][0]], self.names[target], pa)
        features = [as_features(column(j), request.dtype) for j in columns.features]
        X = np.empty((table.num_rows, len(features)), dtype=np.result_type(*{values.dtype for values in features}))
        for j, values in enumerate(features):
            X[:, j] = values
        return Dataset(X, y, columns.feature_names, columns.target_name, columns.label_names)


def _layout(file: Any, request: Request, pa: Any) -> _Layout:
    if not file.metadata.num_rows:
        raise DataFileError("it has no rows")
    widths = _list_widths(file, pa)
    # Every entry of a list is a column of its own.
    entries: list[tuple[str, int | None]] = []
    for name in file.schema_arrow.names:
        entries += [(name, i) for i in range(widths[name])] if name in widths else [(name, None)]
    names = [name if i is None else f"{name}[{i}]" for name, i in entries]
    drop = [
        label
        for column in request.drop
        for label in ([f"{column}[{i}]" for i in range(widths[column])] if column in widths else [column])
    ]
    columns = choose_columns(names, len(names), dataclasses.replace(request, drop=tuple(drop)))
    return _Layout(file, widths, entries, names, columns, pa)


def _list_widths(file: Any, pa: Any) -> dict[str, int]:
    """Length of the lists of every list column, as the first row has them."""
    widths = {}
    for field in file.schema_arrow:
        if pa.types.is_fixed_size_list(field.type):
            widths[field.name] = field.type.list_size
        elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            first = next(file.iter_batches(batch_size=1, columns=[field.name])).column(0)[0].as_py()
            if not first:
                raise DataFileError(f"the list in row 1 of column '{field.name}' is empty: fill it or drop the column")
            widths[field.name] = len(first)
    return widths


def _numbers(column: Any, name: str, pa: Any, width: int | None) -> NDArray[Any]:
    if width is not None:
        flat = pa.chunked_array([chunk.flatten() for chunk in column.chunks], type=column.type.value_type)
        lengths = pa.compute.list_value_length(column)
        if column.null_count or pa.compute.min_max(lengths).as_py() != {"min": width, "max": width}:
            raise DataFileError(f"the lists of column '{name}' are not all of length {width}: make them equally long")
        return _numbers(flat, name, pa, None).reshape(len(column), width)
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        if _is_text(kind, pa):
            raise holds_text([name])
        raise DataFileError(f"column '{name}' holds {kind} values: convert it to numbers or leave it out with drop")
    return column.to_numpy()


def _labels(column: Any, name: str, pa: Any) -> NDArray[Any]:
    if column.null_count:
        raise DataFileError(f"{column.null_count} rows have no label in column '{name}': fill them in or remove them")
    if _is_text(column.type, pa):
        return as_labels(np.array(column.to_pylist(), dtype=str))
    if pa.types.is_boolean(column.type):
        return np.array(column.to_pylist(), dtype=bool)
    return as_labels(_numbers(column, name, pa, None))


def _is_text(kind: Any, pa: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise DataFileError("reading Parquet needs pyarrow: pip install 'manyclass[frames]'") from error
    return pyarrow, pyarrow.parquet
