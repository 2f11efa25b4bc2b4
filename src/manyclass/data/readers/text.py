"""CSV, TSV and other delimited text.

Read by `numpy.loadtxt`, whose C parser knows quoting and takes about as long as a data-frame library's, so
that the commonest format needs none of these. The `csv` module reads the header and, when loadtxt refuses,
finds the cell to name in the message.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.data.readers.columns import TARGET_NAMES, Columns, choose_columns
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    Request,
    as_features,
    as_indicator,
    as_labels,
    holds_text,
    labels_from_codes,
)
from manyclass.data.readers.source import Source

SUFFIXES = (".csv", ".tsv", ".tab")
_DELIMITERS = {".tsv": "\t", ".tab": "\t"}
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}


def sniff(head: bytes) -> bool:
    return b"\x00" not in head


def read(source: Source, request: Request) -> Dataset:
    """Rows of a delimited text file.

    The first row is taken for a header unless `request.header` says otherwise or most of its cells are
    numbers (a header of the numbers 0, 1, 2, … is recognised). Empty cells, NA, NaN, null and ? become NaN.
    """
    delimiter, first = _first_row(source)
    has_header = _is_header(first) if request.header is None else request.header
    names = [cell.strip() for cell in first] if has_header else None
    columns = choose_columns(names, len(first), request)
    codes: dict[str, int] = {}
    single = columns.targets[0] if columns.targets and not columns.multilabel else None
    converters: dict[int | str, Callable[[str], Any]] = {}
    for j in set(range(len(first))) - {*columns.features, *columns.targets}:
        converters[j] = lambda _cell: 0.0
    if single is not None:
        converters[single] = lambda cell: codes.setdefault(cell, len(codes))
    try:
        values = _load(source, delimiter, has_header, converters)
    except ValueError as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        for j in _columns_with_gaps(source, delimiter, has_header, columns, len(first), error):
            converters[j] = _number_or_nan
        codes.clear()
        values = _load(source, delimiter, has_header, converters)
    if not values.size:
        raise DataFileError("it has a header but no rows")
    y: NDArray[Any] | None = None
    if single is not None:
        row_codes = values[:, single].astype(np.intp)
        _refuse_empty_labels(codes, row_codes, columns.label(single))
        y = labels_from_codes(list(codes), row_codes)
    elif columns.targets:
        y = as_indicator(values[:, columns.targets], columns.label_names)
    return Dataset(
        X=as_features(np.ascontiguousarray(values[:, columns.features]), request.dtype),
        y=y,
        feature_names=columns.feature_names,
        target_name=columns.target_name,
        label_names=columns.label_names,
    )


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Labels, one row for each row of the data file; a row more than that is a header."""
    delimiter, first = _first_row(source)
    with source.text() as file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    names = None
    if len(rows) == n_rows + 1:
        names = tuple(cell.strip() for cell in rows.pop(0))
    if len(first) == 1:
        return as_labels([row[0] for row in rows]), None
    try:
        return as_indicator(np.array(rows, dtype=np.float64), names), names
    except ValueError as error:
        raise DataFileError(
            f"it has {len(first)} columns, so they must hold 0 or 1 for as many labels ({error})"
        ) from error


def _first_row(source: Source) -> tuple[str, list[str]]:
    with source.text() as file:
        line = next((line for line in file if line.strip()), "")
    if not line:
        raise DataFileError("it is empty")
    candidates = [_DELIMITERS.get(source.suffix, ","), ",", "\t", ";", "|"]
    delimiter = max(candidates, key=lambda mark: len(next(csv.reader([line], delimiter=mark))))
    with source.text() as file:
        return delimiter, _first_record(csv.reader(file, delimiter=delimiter))


def _first_record(rows: Any) -> list[str]:
    return next(row for row in rows if any(cell.strip() for cell in row))


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


def _number_or_nan(cell: str) -> float:
    return float("nan") if cell.strip().lower() in _MISSING else float(cell)


def _load(
    source: Source, delimiter: str, has_header: bool, converters: dict[int | str, Callable[[str], Any]]
) -> NDArray[np.float64]:
    with source.text() as file, warnings.catch_warnings():
        if has_header:
            _first_record(csv.reader(file, delimiter=delimiter))
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        return np.loadtxt(
            file, delimiter=delimiter, quotechar='"', comments=None, converters=converters or None, ndmin=2
        )


def _columns_with_gaps(
    source: Source, delimiter: str, has_header: bool, columns: Columns, n_columns: int, error: ValueError
) -> set[int]:
    """Numeric columns with missing cells; raises where the fault is another one."""
    numeric = columns.features + (columns.targets if columns.multilabel else [])
    gaps: set[int] = set()
    text: dict[int, str] = {}
    with source.text() as file:
        rows = csv.reader(file, delimiter=delimiter)
        if has_header:
            _first_record(rows)
        for row in rows:
            if not row:
                continue
            if len(row) != n_columns:
                raise DataFileError(
                    f"line {rows.line_num} has {len(row)} cells where the first line has {n_columns}: "
                    "correct that line, or quote cells that contain the separator"
                ) from error
            for j in numeric:
                if _is_number(row[j]):
                    continue
                if row[j].strip().lower() in _MISSING:
                    gaps.add(j)
                else:
                    text.setdefault(j, f"'{row[j].strip()[:40]}' in line {rows.line_num}")
    if text:
        raise holds_text([columns.label(j).strip("'") for j in text], next(iter(text.values()))) from error
    if not gaps:
        raise DataFileError(f"its numbers cannot be read ({error})") from error
    return gaps


def _refuse_empty_labels(codes: dict[str, int], row_codes: NDArray[np.intp], column: str) -> None:
    empty = [code for label, code in codes.items() if not label.strip()]
    if empty:
        row = int(np.flatnonzero(np.isin(row_codes, empty))[0]) + 1
        raise DataFileError(f"row {row} has no label (column {column} is empty): fill it in or remove the row")
