"""Parquet, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

from manyclass.data.readers.dataset import DataFileError, Dataset, Request
from manyclass.data.readers.source import Source
from manyclass.data.readers.tables import Layout, is_list

NAME, SUFFIXES, WHAT = "parquet", (".parquet", ".pq"), "a whole Parquet file"


def sniff(head: bytes) -> bool:
    return head.startswith(b"PAR1")


def read(source: Source, request: Request) -> Dataset:
    """Numeric columns, one feature each; a column of equally long lists gives one per entry.

    Only the columns needed are read.
    """
    file = pq.ParquetFile(source.seekable())
    layout = _layout(file, request)
    return layout.dataset(file.read(layout.needed))


def read_chunks(source: Source, request: Request, n_rows: int) -> Iterator[Dataset]:
    """So many rows at a time; none are read before they are asked for."""
    file = pq.ParquetFile(source.seekable())
    layout = _layout(file, request)
    yield from layout.chunks(file.iter_batches(n_rows, columns=layout.needed), n_rows)


def _layout(file: pq.ParquetFile, request: Request) -> Layout:
    if not file.metadata.num_rows:
        raise DataFileError("it has no rows")
    widths = {}
    for field in file.schema_arrow:
        if is_list(field.type):
            # A list says its length only in its rows, unless its type has one.
            width = getattr(field.type, "list_size", None)
            if width is None:
                width = len(next(file.iter_batches(batch_size=1, columns=[field.name])).column(0)[0].as_py() or ())
            if not width:
                raise DataFileError(f"the list in row 1 of column '{field.name}' is empty: fill it or drop the column")
            widths[field.name] = width
    return Layout.of(file.schema_arrow.names, request, widths)
