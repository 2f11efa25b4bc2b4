"""Tables whose columns are not all numbers, as pyarrow holds them: what a column is, and what is in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from array_api_compat import is_array_api_obj, is_numpy_array

from manyclass.data.opening import is_stored
from manyclass.data.readers import kinds
from manyclass.data.readers.dataset import is_number, reads_as_number
from manyclass.data.readers.kinds import NUMBER, TEXT, TIME, as_texts, dates_of, kind_of, kinds_of
from manyclass.data.readers.tables import numbers_of
from manyclass.data.rows import Rows
from manyclass.data.stored_table import StoredTable

__all__ = [
    "NUMBER",
    "TEXT",
    "TIME",
    "as_table",
    "cycles_of",
    "in_numbers",
    "is_mixed",
    "kind_of",
    "kinds_of",
    "n_missing",
]

DAY = {"s": 86_400.0, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}


def is_mixed(X: Any) -> bool:
    """Whether X is a table or an array that holds dates, text, or numbers that are missing.

    False for what is no table at all, and for what is not looked at: paths, sparse rows, arrays of other namespaces.
    """
    if isinstance(X, StoredTable):  # where files hold numbers alone, they are opened as `Rows`
        return True
    if isinstance(X, Rows) or sp.issparse(X) or (is_stored(X) and not hasattr(X, "column_names")):
        return False
    if hasattr(X, "sparse"):  # a frame of pandas whose columns are all sparse, and numbers
        return False
    if hasattr(X, "columns") or is_stored(X):
        if hasattr(X, "collect"):  # a lazy frame
            return False
        table = as_table(X)
        return bool(kinds_of(table.schema)) and any(map(kinds.is_mixed, table.columns))
    if is_array_api_obj(X) and not is_numpy_array(X):
        return False
    try:
        values = np.asarray(X)
    except ValueError:  # of rows that are not equally long
        return False
    if values.ndim != 2:
        return False
    if values.dtype.kind == "f":
        return bool(values.size and np.isnan(np.min(values)))  # which is NaN where any is
    return values.dtype.kind in "OUS" and any(map(_is_mixed, as_table(X).columns))


def _is_mixed(column: pa.ChunkedArray) -> bool:
    """Of an array, which has one type for all of its columns: texts that all read as numbers may be some."""
    if kind_of(column.type) == TEXT and not column.null_count:
        return not all(map(reads_as_number, pc.unique(column).to_pylist()))
    return kinds.is_mixed(column)


def as_table(X: Any) -> pa.Table:
    """A frame of pandas or polars, a table of pyarrow, or rows of anything, as a table.

    Columns without names are called by their numbers.
    """
    if sp.issparse(X):
        raise TypeError("Sparse data was passed, whose columns are numbers already: they need no encoding as a table.")
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    if isinstance(X, pa.Table):
        return kinds.without_views(X)
    if hasattr(X, "collect"):
        raise ValueError("X is a lazy frame, which holds no rows yet: give X.collect().")
    is_column = len(getattr(X, "shape", (0, 0))) < 2
    if hasattr(X, "to_arrow") and not is_column:
        return X.to_arrow()
    if hasattr(X, "iloc") and not is_column:
        return pa.table([_column(X.iloc[:, j]) for j in range(X.shape[1])], names=[str(name) for name in X.columns])
    values = X if is_numpy_array(X) else np.array(X, dtype=object)
    if values.ndim != 2:
        raise ValueError(f"Expected 2D array, got {values.ndim}D array instead: Reshape your data to rows of columns.")
    return pa.table([_column(column) for column in values.T], names=[str(j) for j in range(values.shape[1])])


def _column(values: Any) -> Any:
    """A column of pandas or NumPy; one of several types as text."""
    if hasattr(values, "sparse"):
        values = values.sparse.to_dense()
    if getattr(values.dtype, "kind", "") == "c":
        of = f" of column {values.name!r} of X" if hasattr(values, "name") else ""
        raise ValueError(f"Complex data not supported: give real and imaginary part{of} by themselves.")
    if getattr(values.dtype, "kind", "") == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    if _are_objects(getattr(values.dtype, "categories", None)):
        values = values.cat.rename_categories(str)
    try:
        return pa.array(np.ascontiguousarray(values) if is_numpy_array(values) else values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _texts_of_objects(values)


def _are_objects(categories: Any) -> bool:
    """Whether categories of pandas are intervals, as those of `cut`, periods and the like."""
    return categories is not None and categories.dtype.name.startswith(("interval", "period"))


def _texts_of_objects(values: Any) -> pa.Array:
    """Each value as the text that it is in a column of its type alone: as other rows do not change it."""
    places: dict[type, list[int]] = {}
    for place, one in enumerate(values):
        places.setdefault(type(one), []).append(place)
    found, held = np.full(len(values), None, dtype=object), np.asarray(values, dtype=object)
    for some in places.values():
        try:
            column = pa.chunked_array([pa.array(held[some], from_pandas=True)])
            kind_of(column.type)
        except (pa.ArrowException, ValueError, OverflowError):
            wrong = held[some[0]]
            if not isinstance(wrong, str | int | float | np.generic):
                raise TypeError(f"X holds {wrong!r}: an argument must be a string or a number, or a date.") from None
            column = pa.chunked_array([[str(one) for one in held[some]]])
        found[some] = as_texts(column).to_pylist()
    return pa.array(found, pa.string())


def kinds_in(X: Any) -> dict[str, str]:
    """The kind of each column of a table of pyarrow, or of one in a file."""
    return X.kinds if isinstance(X, StoredTable) else kinds_of(X.schema)


def in_numbers(X: Any) -> tuple[Any, list[str] | None]:
    """X and None, or the matrix and the names of columns of a table of pyarrow that are all numbers."""
    if not isinstance(X, pa.Table):
        return X, None
    return np.column_stack([numbers(column) for column in X.columns]), X.column_names


def n_missing(table: pa.Table) -> tuple[int, int]:
    """How many cells are missing or empty, in how many rows."""
    missing = np.zeros(len(table), dtype=np.int64)
    for column in table.columns:
        is_text = kind_of(column.type) == TEXT
        lacks = texts(column)[1] < 0 if is_text else np.isnan(numbers(column).astype(np.float64))
        missing += lacks
    return int(missing.sum()), int(np.count_nonzero(missing))


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers, or the days since 1970 of dates and times, NaN where they are missing.

    Raises
    ------
    ValueError
        With the text that is no number.
    """
    kind = kind_of(column.type)
    if kind == TIME:
        return _days(column)
    if kind == TEXT:
        column = as_texts(column)
        wrong = next((one for one in pc.unique(column).to_pylist() if one and not reads_as_number(one)), None)
        if wrong is not None:
            raise ValueError(f"it holds text ({wrong!r})")
        column = pc.if_else(pc.equal(column, ""), None, column).cast(pa.float64())
    return np.concatenate([np.zeros(0, np.float32), *map(numbers_of, column.chunks)])


def is_category(column: pa.ChunkedArray) -> bool:
    """Whether a column is said to be one of categories."""
    return bool(pa.types.is_dictionary(column.type))


def as_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, or its texts as dates and times if all are some; categories stay what they are said to be."""
    if kind_of(column.type) != TEXT or is_category(column):
        return column
    times = dates_of(as_texts(column))
    return column if times is None or times.null_count == len(times) else times


def cycles_of(kind: pa.DataType) -> tuple[str, ...]:
    """The cycles in which what a column of this type holds has a place."""
    if pa.types.is_time(kind):
        return ("day",)
    dates = ("week", "year") if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else ()
    return ("day", *dates) if pa.types.is_timestamp(kind) else dates


def _days(column: pa.ChunkedArray) -> np.ndarray:
    kind = column.type
    if pa.types.is_date(kind):
        return np.asarray(column.cast(pa.date32()).cast(pa.int32()).to_numpy(), dtype=np.float64)
    whole = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    return np.asarray(whole.to_numpy(), dtype=np.float64) / DAY[kind.unit]


def texts(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """The different texts of a column, without space around them, and the place of each row's; −1 where it is missing
    or empty."""
    kind_of(column.type)
    encoded = pc.dictionary_encode(as_texts(column)).combine_chunks()
    values = encoded.dictionary.to_pylist()
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(), dtype=np.int64)
    if "" in values:
        codes[codes == values.index("")] = -1
    return values, codes


def numbers_and_words(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The texts of a column that are numbers, and the others, each with gaps for the other."""
    values, codes = texts(column)
    are_numbers = pa.array([*map(is_number, values), None], pa.bool_()).take(pa.array(codes % (len(values) + 1)))
    held = as_texts(column)
    return pc.if_else(are_numbers, held, None), pc.if_else(are_numbers, None, held)


def joined(blocks: Iterable[list[Any]], shape: tuple[int, int], sparse_output: bool, dtype: Any) -> Any:
    """Blocks of rows, each of arrays and CSR arrays side by side, as one array or CSR array."""
    if sparse_output:
        found = [beside(parts) for parts in blocks]
        return sp.csr_array(sp.vstack(found, "csr"), dtype=dtype) if found else sp.csr_array(shape, dtype=dtype)
    X, start = np.empty(shape, dtype), 0
    for parts in blocks:
        rows, done = slice(start, start + parts[0].shape[0]), 0
        for part in parts:
            X[rows, done : done + part.shape[1]] = part.toarray() if sp.issparse(part) else part
            done += part.shape[1]
        start = rows.stop
    return X


def beside(parts: list[Any]) -> Any:
    """Arrays and CSR arrays side by side, as a CSR array."""
    return sp.csr_array(sp.hstack([sp.csr_array(part) for part in parts], "csr"))
