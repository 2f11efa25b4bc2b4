"""Parquet, read by pyarrow."""

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow.parquet as pq
from numpy.typing import NDArray

from manyclass.data.readers.dataset import Dataset, Request
from manyclass.data.readers.source import Source
from manyclass.data.readers.stored import Chain
from manyclass.data.readers.tables import Layout, label_column, labels_of
from manyclass.data.stores import Store

NAME, SUFFIXES, WHAT = "parquet", (".parquet", ".pq"), "a whole Parquet file"
TAKES = ("target", "drop", "labels")
_BUFFER_BYTES = 1 << 20
"""Of a column that is read from the file at a time; without it a row group is, which may be all of it."""


def sniff(head: bytes) -> bool:
    return head.startswith(b"PAR1")


def read(source: Source, request: Request) -> Dataset:
    """Numeric columns, one feature each; a column of equally long lists gives one per entry.

    Only the columns needed are read.
    """
    file = _opened(source)
    layout = _layout(file, request)
    return layout.dataset(file.read(layout.needed))


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], None]:
    """The only column, or that of labels."""
    file = _opened(source)
    name = label_column(file.schema_arrow.names)
    return labels_of(file.read([name])[name], name), None


def stored(source: Source, request: Request) -> Dataset:
    """The labels, and rows that are read when they are asked for."""
    file = _opened(source)
    layout = _layout(file, request)
    store = _Groups(source, file, layout.of_features(file.schema_arrow, partial(_lack, file)))
    return dataclasses.replace(layout.labels(file.read), X=store)


class _Groups(Chain):
    """All rows of a file, whose row groups without a wanted row need not be read."""

    def __init__(self, source: Source, file: pq.ParquetFile, layout: Layout):
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        super().__init__([_Group(source, layout, number, size) for number, size in enumerate(sizes)])
        self._source, self._layout, self.kinds = source, layout, layout.kinds

    def chunks(self, n_rows: int) -> Iterator[NDArray[Any]]:
        return _arrays(self._source, self._layout, n_rows)


class _Group(Store):
    """Those of one row group, to take some of; what is read for that is never large."""

    def __init__(self, source: Source, layout: Layout, number: int, n_rows: int):
        self._source, self._layout, self._number, self.n_rows = source, layout, number, n_rows
        self.kinds = layout.kinds

    def chunks(self, n_rows: int) -> Iterator[NDArray[Any]]:
        return _arrays(self._source, self._layout, min(n_rows, 1 << 10), [self._number])


def _arrays(source: Source, layout: Layout, n_rows: int, groups: list[int] | None = None) -> Iterator[NDArray[Any]]:
    batches = _opened(source).iter_batches(n_rows, row_groups=groups, columns=layout.needed)
    return (dataset.X for dataset in layout.chunks(batches, n_rows))


def _lack(file: pq.ParquetFile, names: list[str]) -> bool:
    """Whether a column has empty cells, as far as the file says so."""
    groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(group.num_columns))
    those = (column.statistics for column in columns if column.path_in_schema in names)
    return any(some is not None and some.null_count for some in those)


def _opened(source: Source) -> pq.ParquetFile:
    return pq.ParquetFile(source.seekable(), buffer_size=_BUFFER_BYTES)


def _layout(file: pq.ParquetFile, request: Request) -> Layout:
    def first(name: str) -> Any:
        return next(file.iter_batches(batch_size=1, columns=[name])).column(0)

    return Layout.of_schema(file.schema_arrow, file.metadata.num_rows, request, first)
