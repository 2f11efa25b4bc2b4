"""CSV, TSV and other delimited text, read by pyarrow.

The `csv` module reads the first row, which says how the others are to be read, and finds the cell to name in the
message where pyarrow refuses.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers.columns import TARGET_NAMES
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    Request,
    as_indicator,
    as_labels,
    holds_text,
)
from manyclass.data.readers.source import Source, first_line

SUFFIXES = (".csv", ".tsv", ".tab")
_DELIMITERS = {".tsv": "\t", ".tab": "\t"}
# pyarrow compares cells as they stand, and keeps a search tree of these for every column: list no more than is usual.
_WORDS = ("NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "Null", "none", "None", "NONE", "?")
_MISSING = ("", " ", "  ", "   ", "    ", " NA", " NaN", " nan", " ?", *_WORDS)
_BLOCK_BYTES = 1 << 22
_HEADER_CHARACTERS = 1 << 16
# Once a fault is found, so many further rows are searched for others like it.
_FAULTY_ROWS = 1000


def sniff(head: bytes) -> bool:
    return b"\x00" not in head


def read(source: Source, request: Request) -> Dataset:
    """Rows of a delimited text file.

    The first row is taken for a header unless `request.header` says otherwise or most of its cells are
    numbers (a header of the numbers 0, 1, 2, … is recognised). Empty cells, NA, NaN, null and ? become NaN.
    """
    import pyarrow as pa
    from pyarrow.csv import read_csv

    opening = _opening(source, request.header)
    layout = _layout(opening, request)
    try:
        with source.binary() as file:
            table = read_csv(file, **_options(opening, layout))
    except pa.ArrowException as error:
        raise _fault(source, opening, layout, error) from error
    return layout.dataset(table)


def read_chunks(source: Source, request: Request, n_rows: int) -> Iterator[Dataset]:
    """So many rows at a time; labels are numbers where all of one chunk are."""
    import pyarrow as pa
    from pyarrow.csv import open_csv

    opening = _opening(source, request.header)
    layout = _layout(opening, request)
    try:
        with source.binary() as file:
            yield from layout.chunks(open_csv(file, **_options(opening, layout)), n_rows)
    except pa.ArrowException as error:
        raise _fault(source, opening, layout, error) from error


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Labels, one row for each row of the data file; a row more than that is a header."""
    delimiter = _opening(source, header=False).delimiter
    with source.text() as file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    names = None
    if len(rows) == n_rows + 1:
        names = tuple(cell.strip() for cell in rows.pop(0))
    n_columns = max(map(len, rows), default=0)
    if n_columns == 1:
        return as_labels([row[0] for row in rows]), None
    try:
        return as_indicator(np.array(rows, dtype=np.float64), names), names
    except ValueError as error:
        raise DataFileError(
            f"it has {n_columns} columns, so they must hold 0 or 1 for as many labels ({first_line(error)})"
        ) from error


@dataclass(frozen=True)
class _Opening:
    """What the first row says; without a header the columns are called by their numbers."""

    delimiter: str
    names: list[str]
    has_header: bool
    n_header_lines: int
    n_bytes: int


def _opening(source: Source, header: bool | None) -> _Opening:
    with source.text() as file:
        # No more than csv takes for one cell, which the first row is to a candidate that does not divide it.
        start = file.read(_HEADER_CHARACTERS).lstrip("\r\n")
    if not start.strip():
        raise DataFileError("it is empty")
    candidates = [_DELIMITERS.get(source.suffix, ","), ",", "\t", ";", "|"]
    delimiter = max(candidates, key=lambda mark: len(next(csv.reader(io.StringIO(start, newline=""), delimiter=mark))))
    with source.text() as file:
        rows = csv.reader(file, delimiter=delimiter)
        first = next((row for row in rows if any(cell.strip() for cell in row)), None)
        if first is None:
            raise DataFileError("it has no cell that is not empty: give a file with data")
        has_header = _is_header(first) if header is None else header
        n_lines = rows.line_num if has_header else 0
        if has_header and not any(rows):
            raise DataFileError("it has a header but no rows")
    names = [cell.strip() for cell in first] if has_header else [str(j + 1) for j in range(len(first))]
    return _Opening(delimiter, names, has_header, n_lines, sum(map(len, first)))


def _layout(opening: _Opening, request: Request) -> Any:
    # pyarrow takes a tenth of a second to import, which commands that read no table need not wait for.
    from manyclass.data.readers.tables import Layout

    return Layout.of(opening.names, request, {}, opening.has_header)


def _options(opening: _Opening, layout: Any) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    types = {name: pa.string() if name == layout.label_column else pa.float64() for name in layout.needed}
    return {
        "read_options": arrow_csv.ReadOptions(
            column_names=opening.names,
            skip_rows=opening.n_header_lines,
            # A block must hold a whole row.
            block_size=max(_BLOCK_BYTES, 64 * opening.n_bytes),
        ),
        "parse_options": arrow_csv.ParseOptions(delimiter=opening.delimiter, newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=types, include_columns=layout.needed, null_values=_MISSING
        ),
    }


def _is_header(cells: Sequence[str]) -> bool:
    numbers = [float(cell) for cell in cells if _is_number(cell)]
    if len(numbers) == len(cells):
        return False
    counts_up = numbers == list(range(len(numbers)))
    named = any(cell.strip().lower() in TARGET_NAMES for cell in cells)
    return 2 * len(numbers) < len(cells) or counts_up or named


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _fault(source: Source, opening: _Opening, layout: Any, error: Exception) -> DataFileError:
    """The cell that pyarrow cannot read, or the row that has too many or too few."""
    numeric = {opening.names.index(name) for name in layout.needed if name != layout.label_column}
    text: dict[int, str] = {}
    last = None
    with source.text() as file:
        rows = csv.reader(file, delimiter=opening.delimiter)
        for row in rows:
            if not row or rows.line_num <= opening.n_header_lines:
                continue
            if len(row) != len(opening.names):
                return DataFileError(
                    f"line {rows.line_num} has {len(row)} cells where the first line has {len(opening.names)}: "
                    "correct that line, or quote cells that contain the separator"
                )
            for j in numeric:
                if not _is_number(row[j]) and row[j] not in _MISSING:
                    text.setdefault(j, f"'{row[j].strip()[:40]}' in line {rows.line_num}")
            last = rows.line_num + _FAULTY_ROWS if text and last is None else last
            if last is not None and rows.line_num > last:
                break
    if text:
        return holds_text([opening.names[j] for j in sorted(text)], text[next(iter(text))])
    return DataFileError(f"its cells cannot be read ({first_line(error)}): correct them or save the file again")
