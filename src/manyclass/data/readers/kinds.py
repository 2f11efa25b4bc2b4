"""What kind of thing a column of an Arrow table holds, and its cells as things of a kind."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from manyclass.data.readers.dataset import DataFileError

NUMBER, TIME, TEXT = "number", "time", "text"


def is_list(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the numbers or texts themselves."""
    return kind.value_type if is_list(kind) or pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    kind = plain(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    kind, types = plain(kind), pa.types
    is_real = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    return bool(is_real or types.is_boolean(kind) or types.is_null(kind))


def kind_of(type: pa.DataType) -> str:
    """Whether a column of this type holds numbers, dates and times, or text; categories are text whatever they are."""
    if pa.types.is_dictionary(type):
        type = pa.string() if kind_of(type.value_type) else type
    if is_text(type):
        return TEXT
    if is_number(type) and plain(type) is type:
        return NUMBER
    if pa.types.is_temporal(type) and not pa.types.is_interval(type):
        return TIME
    raise DataFileError(f"{type} values are neither numbers, dates nor text")


def kinds_of(schema: pa.Schema) -> dict[str, str]:
    """The kind of each column, by name."""
    found = {}
    for field in schema:
        try:
            found[field.name] = kind_of(field.type)
        except DataFileError as error:
            raise DataFileError(f"column '{field.name}' cannot be used: {error}; convert or drop it") from None
    return found


def without_views(table: pa.Table) -> pa.Table:
    """Texts and categories in the layout that all functions of pyarrow take: few take views of text."""
    for place, field in enumerate(table.schema):
        if not pa.types.is_string_view(plain(field.type)):
            continue
        column = table[place]
        if pa.types.is_dictionary(field.type):  # which pyarrow does not cast
            text = pa.large_string()
            some = [pa.DictionaryArray.from_arrays(one.indices, one.dictionary.cast(text)) for one in column.chunks]
            column = pa.chunked_array(some, pa.dictionary(field.type.index_type, text))
        else:
            column = column.cast(pa.large_string())
        table = table.set_column(place, field.name, column)
    return table


def blank_table(kinds: Mapping[str, str], n_rows: int) -> pa.Table:
    """Rows of empty cells."""
    types = {NUMBER: pa.float64(), TIME: pa.timestamp("us"), TEXT: pa.string()}
    return pa.table({name: pa.nulls(n_rows, types[kind]) for name, kind in kinds.items()})


def is_mixed(column: pa.ChunkedArray) -> bool:
    """Whether it holds anything but numbers, of which none is missing."""
    has_nan = pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())
    return kind_of(column.type) != NUMBER or column.null_count > 0 or has_nan


def dates_of(column: pa.ChunkedArray, missing: Sequence[str] = ("",)) -> pa.ChunkedArray | None:
    """Texts as dates and times, where all are written as ISO 8601 does, all with a zone or all without; else None."""
    present = pc.if_else(pc.is_in(column, pa.array(missing)), None, pc.utf8_trim_whitespace(column))
    first = present.drop_null()[:1]  # texts that are no dates take pyarrow long
    for zone in (None, "UTC"):
        with suppress(pa.ArrowInvalid):
            first.cast(pa.timestamp("us", zone))
            return present.cast(pa.timestamp("us", zone))
    return None


def texts_of_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as they stand in text; a fraction and a time of nothing but zeros are left out."""
    column = pc.replace_substring_regex(column.cast(pa.string()), r"\.0+(Z|[+-]\d+)?$", r"\1")
    return pc.replace_substring_regex(column, r"^(\d+-\d+-\d+) 00:00:00$", r"\1")


def as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Each cell as text, whatever is in the others; whole numbers as such, however they are held."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_boolean(kind):
        column = pc.if_else(column, "True", "False")
    elif pa.types.is_temporal(kind):
        column = texts_of_times(column)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = column if pa.types.is_float32(kind) else column.cast(pa.float64())
        is_whole = pc.and_(pc.equal(pc.round(column), column), pc.less(pc.abs(column), 2.0**53))
        whole = column.cast(pa.int64(), safe=False).cast(pa.string())
        column = pc.if_else(pc.is_nan(column), None, pc.if_else(is_whole, whole, column.cast(pa.string())))
    return pc.utf8_trim_whitespace(column.cast(pa.string()))


def of_kinds(table: pa.Table, kinds: Mapping[str, str]) -> pa.Table:
    """The table with columns of one type wherever they are of one kind: text, or times without a zone, as in UTC."""
    for place, name in enumerate(table.column_names):
        column, kind = table[name], kinds.get(name)
        if kind == TEXT and kind_of(column.type) != TEXT:
            table = table.set_column(place, name, as_texts(column))
        elif kind == TIME and pa.types.is_timestamp(column.type) and column.type != pa.timestamp("us"):
            table = table.set_column(place, name, column.cast(pa.timestamp("us"), safe=False))
    return table
