"""Arrow IPC: files, streams, and what Hugging Face's ``save_to_disk`` writes; and tables of pyarrow in memory.

Uncompressed files are mapped, and columns of lists are arrays without a copy.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from manyclass.data.readers.dataset import Dataset, NoRowsError, Request
from manyclass.data.readers.kinds import without_views
from manyclass.data.readers.source import Source
from manyclass.data.readers.tables import Layout, array_without_copy, label_column, labels_of
from manyclass.data.stores import Pieces, Repeated, Store, Whole

NAME, SUFFIXES, WHAT = "arrow", (".arrow", ".feather", ".ipc"), "a whole Arrow file"
TAKES = ("target", "drop", "labels")
_FILE, _STREAM = b"ARROW1", b"\xff\xff\xff\xff"


def sniff(head: bytes) -> bool:
    return head.startswith((_FILE, _STREAM))


def read(source: Source, request: Request) -> Dataset:
    """Numeric columns, one feature each; a column of equally long lists gives one per entry."""
    table = _table(_opened(source)[0])
    return _layout(table, request).dataset(table)


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], None]:
    """The only column, or that of labels."""
    table = _table(_opened(source)[0])
    name = label_column(table.column_names)
    return labels_of(table[name], name), None


def stored(source: Source, request: Request) -> Dataset:
    """The labels, and rows that stay in the file."""
    reader, file = _opened(source)
    before = pa.total_allocated_bytes()
    first = next(_batches(reader), None)
    if first is None:
        raise NoRowsError("it has no rows")
    if pa.total_allocated_bytes() - before <= first.nbytes // 2:
        return stored_table(_table(_opened(source, file)[0]), request, (file,))
    layout = _layout(pa.Table.from_batches([first]), request)
    names = [layout.entries[j][0] for j in layout.targets]
    parts = [batch.select(list(dict.fromkeys(names))) for batch in _batches(_opened(source, file)[0])]
    labels = layout.labels(lambda _: pa.Table.from_batches(parts))
    alone = layout.of_features(first.schema, lambda names: any(first[name].null_count for name in names))

    def chunks(n_rows: int) -> Iterator[Any]:
        given = (batch.select(alone.needed) for batch in _batches(_opened(source, file)[0]))
        return (chunk.X for chunk in alone.chunks(given, n_rows))

    return dataclasses.replace(labels, X=Repeated(chunks, sum(map(len, parts)), alone.kinds))


def stored_table(table: Any, request: Request, files: Sequence[Any] = ()) -> Dataset:
    """A table, or an array of lists, of pyarrow; its memory is used as it is."""
    if isinstance(table, pa.Array | pa.ChunkedArray):
        table = pa.table([table], names=["X"])
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    layout = _layout(table, request)
    features = layout.of_features(table.schema, lambda names: any(table[name].null_count for name in names))
    if features.kinds is None:
        store: Store = Pieces([_piece(batch, features) for batch in table.to_batches() if len(batch)], files)
    else:
        store = Whole(without_views(table.select(features.needed)), features.kinds)
    return dataclasses.replace(layout.labels(table.select), X=store)


class _Columns:
    """Rows of a batch that have to be put together from several columns."""

    def __init__(self, batch: pa.RecordBatch, layout: Layout):
        self._batch, self._layout = batch.select(layout.needed), layout
        self.shape, self.dtype = (len(batch), len(layout.features)), np.dtype(layout.dtype)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            some = self._batch.slice(start, stop - start)
        else:
            some = self._batch.take(pa.array(rows))
        return self._layout.dataset(pa.Table.from_batches([some])).X


def _piece(batch: pa.RecordBatch, layout: Layout) -> Any:
    found = array_without_copy(batch, layout)
    return _Columns(batch, layout) if found is None else found


def _opened(source: Source, file: Any = None) -> tuple[Any, Any]:
    """A reader, and the memory that the file has been mapped to."""
    file = source.memory() if file is None else file
    buffer = pa.BufferReader(pa.py_buffer(file))
    is_file = source.head.startswith(_FILE)
    return (pa.ipc.open_file(buffer) if is_file else pa.ipc.open_stream(buffer)), file


def _table(reader: Any) -> pa.Table:
    return pa.Table.from_batches(list(_batches(reader)), reader.schema)


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    """Each looked at before it is used: offsets that point elsewhere would end Python."""
    batches = reader
    if hasattr(reader, "num_record_batches"):
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _layout(table: pa.Table, request: Request) -> Layout:
    return Layout.of_schema(table.schema, len(table), request, lambda name: table[name].slice(0, 1))
