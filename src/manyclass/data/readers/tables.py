"""Arrow tables as datasets: what the formats that pyarrow reads have in common.

A column of equally long lists (an embedding) gives one feature per entry: entry i of the column ``embedding`` is
called ``embedding[i]``. Nulls become NaN.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from manyclass.data.readers.columns import TARGET_NAMES, choose_columns
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    NoRowsError,
    Request,
    as_indicator,
    as_labels,
    fits_float32,
    holds_text,
    labels_from_codes,
    quoted,
)
from manyclass.data.readers.kinds import (
    NUMBER,
    is_list,
    is_mixed,
    is_number,
    is_text,
    kinds_of,
    of_kinds,
    plain,
    texts_of_times,
    without_views,
)

# Columns are written into the rows of X so many rows at a time, which the cache holds until they are whole.
_BLOCK_ROWS = 512


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what.

    `entries` are the columns that a user sees, as (column of the table, position in its list or None), called `names`
    if the file has names; `features` and `targets` are positions among them. The columns of the table in `widths` hold
    lists of that length.
    """

    entries: list[tuple[str, int | None]]
    names: list[str] | None
    widths: dict[str, int]
    features: list[int]
    targets: list[int]
    multilabel: bool
    dtype: Any
    text_labels: bool = False
    kinds: Mapping[str, str] | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        request: Request,
        widths: dict[str, int],
        has_names: bool = True,
        hidden: Sequence[str] = (),
    ) -> Self:
        """The layout of a table with these columns, of which the hidden ones are neither features nor labels."""
        entries = _entries(columns, widths)
        names = [name if i is None else f"{name}[{i}]" for name, i in entries] if has_names else None
        drop, unseen = (
            [entry for c in some for entry in ([f"{c}[{i}]" for i in range(widths[c])] if c in widths else [c])]
            for some in (request.drop, hidden)
        )
        request = dataclasses.replace(request, drop=tuple(drop))
        features, targets = choose_columns(names, len(entries), request, unseen)
        if not request.needs_labels:
            targets = []
        several = len(targets) > 1 or bool(request.multilabel) or bool(request.n_label_columns)
        is_multilabel = bool(targets) and several
        options = (request.dtype, request.text_labels, request.kinds)
        return cls(entries, names, widths, features, targets, is_multilabel, *options)

    @classmethod
    def of_schema(cls, schema: pa.Schema, n_rows: int, request: Request, first: Callable[[str], pa.Array]) -> Self:
        """The layout of a table with these types; `first` gives the first row of a column."""
        if not n_rows:
            raise NoRowsError("it has no rows")
        widths = {}
        for field in schema:
            if is_list(field.type):
                # A list says its length only in its rows, unless its type has one.
                width = getattr(field.type, "list_size", None) or len(first(field.name)[0].as_py() or ())
                if not width:
                    raise DataFileError(
                        f"the list in row 1 of column '{field.name}' is empty: fill it or drop the column"
                    )
                widths[field.name] = width
        return cls.of(schema.names, request, widths, hidden=_index_columns(schema, request))

    def of_features(self, schema: pa.Schema, lacks: Callable[[list[str]], bool]) -> Self:
        """Of the features alone, in the narrowest type that holds the numbers of all their columns.

        Where rows may be a table, they are one if there is more in it than numbers, or a column `lacks` some.
        """
        alone, names = dataclasses.replace(self, targets=[], multilabel=False), self._feature_columns
        if self._may_be_table:
            kinds = kinds_of(pa.schema([schema.field(name) for name in names]))
            if self.kinds or {*kinds.values()} != {NUMBER} or lacks(names):
                return dataclasses.replace(alone, kinds=kinds | dict(self.kinds or {}))
        refuse_text(schema, names)
        dtype = self.dtype or np.result_type(*(_stored_as(schema.field(name).type) for name in names))
        return dataclasses.replace(alone, kinds=None, dtype=dtype)

    def columns(self, chosen: Iterable[int]) -> list[str]:
        """The columns of the table that hold these entries."""
        return list(dict.fromkeys(self.entries[j][0] for j in chosen))

    @property
    def _feature_columns(self) -> list[str]:
        return self.columns(self.features)

    @property
    def _may_be_table(self) -> bool:
        return self.kinds is not None and not self.widths.keys() & set(self._feature_columns)

    def labels(self, read: Callable[[list[str]], pa.Table]) -> Dataset:
        """A dataset without features; `read` gives some columns of all rows."""
        names = self.columns(self.targets)
        table = read(names) if names else None
        return self.dataset(table, X=np.empty((0 if table is None else len(table), 0)))

    @property
    def needed(self) -> list[str]:
        """The columns of the table that are to be read."""
        return self.columns([*self.features, *self.targets])

    @property
    def label_column(self) -> str | None:
        """The column of the class labels, which may be text."""
        return self.entries[self.targets[0]][0] if self.targets and not self.multilabel else None

    def dataset(self, table: pa.Table, start: int = 0, X: Any = None) -> Dataset:
        """The rows of a table, of which `start` came before in the file; `X` has the features if it does not."""
        X = self._features(table) if X is None else X
        y: NDArray[Any] | None = None
        chosen = None if self.names is None else tuple(self.names[j] for j in self.targets)
        if self.multilabel:
            y = as_indicator(self._matrix(table, self.targets, np.float64), chosen, start)
        elif self.label_column is not None:
            y = labels_of(table[self.label_column], self.label_column, start, self.text_labels)
        return Dataset(
            X,
            y,
            feature_names=None if self.names is None else tuple(self.names[j] for j in self.features),
            target_name=chosen[0] if chosen is not None and len(chosen) == 1 else None,
            label_names=chosen if self.multilabel else None,
        )

    def chunks(
        self,
        batches: Iterable[pa.RecordBatch],
        n_rows: int,
        converted: Callable[[pa.Table], pa.Table] = lambda table: table,
    ) -> Iterator[Dataset]:
        """The rows of all batches in order, `n_rows` at a time, as they are `converted` to."""
        start = 0
        for table in _regrouped(batches, n_rows):
            yield self.dataset(converted(table), start)
            start += len(table)

    def _features(self, table: pa.Table) -> Any:
        """A matrix, or a table where that is asked for and there is more in it than numbers."""
        if self._may_be_table:
            some = without_views(table.select(self._feature_columns))
            kinds_of(some.schema)  # which names a column that cannot be used
            for column in some.columns:
                if pa.types.is_dictionary(column.type):
                    column.validate(full=True)  # as categories of a damaged file may have numbers that are none's
            if self.kinds or any(map(is_mixed, some.columns)):
                return of_kinds(some, self.kinds or {})
        return self._matrix(table, self.features, self.dtype)

    def _matrix(self, table: pa.Table, chosen: list[int], dtype: Any) -> NDArray[Any]:
        names = self.columns(chosen)
        refuse_text(table.schema, names)
        if dtype is None:
            chunks = (chunk for name in names for chunk in table[name].chunks)
            parts = (numbers_of(chunk.flatten() if is_list(chunk.type) else chunk) for chunk in chunks)
            dtype = np.float32 if all(map(fits_float32, parts)) else np.float64
        held = _entries(names, self.widths)
        X = _joined(table.select(names), self.widths, len(held), dtype)
        if held == [self.entries[j] for j in chosen]:
            return X
        place = {entry: i for i, entry in enumerate(held)}
        return np.take(X, [place[self.entries[j]] for j in chosen], axis=1)


def _index_columns(schema: pa.Schema, request: Request) -> list[str]:
    """What pandas stored as the names of the rows, unless it is asked for, by its name or by one that labels have."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):
        return []
    wanted = {*(request.feature_names or ()), *(request.targets or ()), *request.drop}
    found = [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []
    found = [name for name in found if name.strip().lower() not in TARGET_NAMES]
    return [name for name in found if name in schema.names and name not in wanted]


def _entries(columns: Sequence[str], widths: dict[str, int]) -> list[tuple[str, int | None]]:
    return [(name, i) for name in columns for i in (range(widths[name]) if name in widths else (None,))]


def _joined(table: pa.Table, widths: dict[str, int], n_entries: int, dtype: Any) -> NDArray[Any]:
    """All entries of all columns side by side; without a copy where one column of lists is in one piece."""
    if table.num_columns == 1 and table[0].num_chunks == 1 and n_entries > 1:
        return _block(table[0].chunk(0), table.column_names[0], n_entries).astype(dtype, copy=False)
    X = np.empty((len(table), n_entries), dtype)
    done = 0
    for batch in table.to_batches():
        blocks = [_block(array, name, widths.get(name)) for name, array in zip(table.column_names, batch, strict=True)]
        for first in range(0, len(batch), _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, len(batch))
            column = 0
            for block in blocks:
                X[done + first : done + last, column : column + block.shape[1]] = block[first:last]
                column += block.shape[1]
        done += len(batch)
    return X


def array_without_copy(batch: pa.RecordBatch, layout: Layout) -> NDArray[Any] | None:
    """The features of a batch where they are one column of lists without nulls, in the memory of that."""
    names = layout.columns(layout.features)
    if len(names) != 1 or [layout.entries[j] for j in layout.features] != _entries(names, layout.widths):
        return None
    column = batch.column(names[0])
    if not is_list(column.type) or pa.types.is_boolean(plain(column.type)) or column.flatten().null_count:
        return None
    return _block(column, names[0], layout.widths[names[0]])


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


def _stored_as(kind: pa.DataType) -> Any:
    """The NumPy type that chunks of such numbers have, whatever is in them."""
    kind = plain(kind)
    if pa.types.is_float16(kind) or pa.types.is_float32(kind):
        return kind.to_pandas_dtype()
    return np.float32 if pa.types.is_boolean(kind) or pa.types.is_int8(kind) or pa.types.is_uint8(kind) else np.float64


def refuse_text(schema: pa.Schema, names: list[str]) -> None:
    kinds = {name: schema.field(name).type for name in names}
    text = [name for name, kind in kinds.items() if is_text(kind)]
    others = {name: kind for name, kind in kinds.items() if not is_number(kind) and name not in text}
    if text:
        which = ", ".join(dict.fromkeys(map(str, others.values())))
        raise holds_text([*text, *others], f" or {which} values" if others else "")
    for name, kind in others.items():
        raise DataFileError(
            f"column '{name}' holds {kind} values: convert it to numbers or leave it out with drop (--drop on the "
            "command line)"
        )


def _block(array: pa.Array, name: str, width: int | None) -> NDArray[Any]:
    """The values of a column as a matrix, without a copy where there are no nulls."""
    if width is None:
        return numbers_of(array)[:, None]
    lengths = pc.min_max(pc.list_value_length(array)).as_py()
    if array.null_count or lengths != {"min": width, "max": width}:
        raise DataFileError(f"the lists of column '{name}' are not all of length {width}: make them equally long")
    return numbers_of(array.flatten()).reshape(len(array), width)


def numbers_of(array: pa.Array) -> NDArray[Any]:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        array = array.cast(pa.float64())
    return np.asarray(array.to_numpy(zero_copy_only=False))


def label_column(names: Sequence[str]) -> str:
    """The column of labels in a table beside that of the features."""
    found = [name for name in names if name.strip().lower() in TARGET_NAMES]
    if not found and len(names) > 1:
        raise DataFileError(f"none of its columns is called {quoted(TARGET_NAMES)}: rename that of the labels")
    return (found or list(names))[0]


def labels_of(column: pa.ChunkedArray, name: str, start: int = 0, as_text: bool = False) -> NDArray[Any]:
    """Class labels or responses, of which none is missing; `start` rows came before in the file."""
    if pa.types.is_dictionary(column.type) and pa.types.is_boolean(column.type.value_type):
        column = column.cast(pa.bool_())
    if pa.types.is_boolean(column.type):  # as they are read from text, and from arrays
        column = pa.chunked_array([pc.if_else(column, "True", "False")]) if len(column) else column.cast(pa.string())
    if is_list(column.type):
        raise DataFileError(f"column '{name}' holds lists: give the labels one each, or as columns of 0 and 1")
    if pa.types.is_temporal(column.type):
        column = texts_of_times(column)
    are_texts = is_text(column.type)
    is_empty = column.is_null()
    if are_texts:
        column = column.cast(pa.string())
        is_empty = pc.or_kleene(is_empty, pc.equal(pc.utf8_trim_whitespace(column), ""))
    first = pc.index(is_empty, True).as_py()
    if first >= 0:
        raise DataFileError(
            f"row {start + first + 1} has no label (column '{name}' is empty): fill it in or remove the row"
        )
    if are_texts:
        encoded = pc.dictionary_encode(column).combine_chunks()
        return labels_from_codes(encoded.dictionary.to_pylist(), encoded.indices.to_numpy(), as_text)
    refuse_text(pa.schema([(name, column.type)]), [name])
    return as_labels(np.concatenate([numbers_of(chunk) for chunk in column.chunks]))
