"""CSV, TSV and other delimited text, read by pyarrow.

The `csv` module reads the first row, which says how the others are to be read, and finds the cell to name in the
message where pyarrow refuses.
"""

import csv
import io
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from manyclass.data.readers.columns import TARGET_NAMES
from manyclass.data.readers.dataset import (
    DataFileError,
    Dataset,
    HoldsTextError,
    NoRowsError,
    Request,
    as_indicator,
    as_labels,
    holds_text,
    quoted,
    reads_as_number,
)
from manyclass.data.readers.kinds import NUMBER, TEXT, TIME, dates_of
from manyclass.data.readers.source import Source, first_line
from manyclass.data.readers.stored import surveyed
from manyclass.data.readers.tables import Layout
from manyclass.data.readers.text_columns import FALSE, MISSING, TRUE, Survey, TextColumn

NAME, SUFFIXES, WHAT = "csv", (".csv", ".tsv", ".tab"), "delimited text"
TAKES = ("target", "drop", "labels")
_DELIMITERS = {".tsv": "\t", ".tab": "\t"}
_BLOCK_BYTES = 1 << 20
MOST_FAULTS = 2
"""Rows that a file is read up to, as one turns out to hold text; after that all columns are read as text at once."""
_SHOWN_ROWS = 64
_HEADER_CHARACTERS = 1 << 16
_NUMBERS = (
    (re.compile(r"[-+]?[0-9]*,[0-9]+(?:[eE][-+]?[0-9]+)?"), "decimal commas", "with decimal points", "decimal=','"),
    (
        re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?"),
        "commas between thousands",
        "without them",
        "thousands=','",
    ),
    (re.compile(r"[-+]?[0-9]*[.,]?[0-9]+ ?%"), "signs of per cent", "without them", "converters=..."),
)
"""What numbers look like that are written otherwise: a pattern, its name, how to save them, and what pandas needs."""


_JSON = re.compile(rb'\s*(?:\{\s*"|\[\s*[\[{])')


def sniff(head: bytes) -> bool:
    return b"\x00" not in head and not _JSON.match(head)


def read(source: Source, request: Request) -> Dataset:
    """Rows of a delimited text file; where these may be a table, columns with a cell that is no number are of text.

    The first row is taken for a header unless `request.header` says otherwise, or some of its cells are numbers above
    numbers and none is text above numbers (a header of the numbers 0, 1, 2, … is recognised). Empty cells, NA, NaN,
    null, ? and - become NaN, and true and false 1 and 0 in columns of features.
    """
    text = _Text(source, request)
    while True:
        try:
            with text.opened(arrow_csv.read_csv) as table:
                return text.layout.dataset(text.with_kinds(table))
        except HoldsTextError as error:
            if request.kinds is None or not text.may_be_text(error):
                raise
            if len({*text.errors.values()}) > MOST_FAULTS:
                text.expect_text()


def read_chunks(source: Source, request: Request, n_rows: int) -> Iterator[Dataset]:
    """So many rows at a time; labels are numbers where all of one chunk are."""
    text = _Text(source, request)
    with text.opened(arrow_csv.open_csv) as batches:
        yield from text.layout.chunks(batches, n_rows, text.with_kinds)


def stored(source: Source, request: Request) -> Dataset | None:
    """Where rows may be a table: one pass for what its columns hold, which begins again where one turns out to be text.

    None where rows are numbers.
    """
    if request.kinds is None:
        return None
    errors: dict[str, HoldsTextError | None] = {}
    while True:
        survey = Survey(partial(read_chunks, source), request, errors)
        try:
            return surveyed(survey.chunks, request.n_features, survey.settled)
        except HoldsTextError as error:
            if not error.columns or {*error.columns} & {*errors, *request.kinds}:
                raise
            errors |= dict.fromkeys(error.columns, error)
            if len({*errors.values()}) > MOST_FAULTS:
                errors = dict.fromkeys(_Text(source, request).undecided) | errors


def read_labels(source: Source, n_rows: int) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Labels, one row for each row of the data file; a row more than that is a header."""
    with source.text() as file:
        rows = [row for row in csv.reader(file, delimiter=_delimiter(source)) if row]
    names = None
    if len(rows) == n_rows + 1:
        names = tuple(cell.strip() for cell in rows.pop(0))
    n_columns = max(map(len, rows), default=0)
    if n_columns == 1:
        return as_labels([row[0] for row in rows]), None
    if names is not None and len(names) != n_columns:
        raise DataFileError(f"its first line names {len(names)} labels and the others hold {n_columns}: correct it")
    short = next((place for place, row in enumerate(rows, 1 + (names is not None)) if len(row) != n_columns), None)
    if short is not None:
        raise DataFileError(
            f"some rows hold {n_columns} labels and row {short} does not: give each row one, in quotes where it holds "
            "a delimiter, or 0 or 1 for each label"
        )
    try:
        return as_indicator(np.array(rows, dtype=np.float64), names), names
    except ValueError as error:
        raise DataFileError(
            f"it has {n_columns} columns, so they must hold 0 or 1 for as many labels ({first_line(error)})"
        ) from error


class _Text:
    """What the first row says of the others; without a header the columns are called by their numbers."""

    def __init__(self, source: Source, request: Request) -> None:
        self.source, self.delimiter = source, _delimiter(source)
        with source.text() as file:
            rows = csv.reader(file, delimiter=self.delimiter)
            first = next((row for row in rows if any(cell.strip() for cell in row)), None)
            if first is None:
                raise DataFileError("it has no cell that is not empty: give a file with data")
            n_lines, below = rows.line_num, list[list[str]]()
            with suppress(csv.Error):  # of a cell that is too long, which ends what is looked at
                below.extend(itertools.islice(filter(None, rows), _SHOWN_ROWS))
            has_header = _is_header(first, below, request) if request.header is None else request.header
            shown = below if has_header else [first, *below]
            are_truths = [_all(_is_truth, j, shown) for j in range(len(first))]
            self.n_header_lines = n_lines if has_header else 0
            if has_header and not below:
                raise NoRowsError("it has a header but no rows")
        self.names = [cell.strip() for cell in first] if has_header else [str(j + 1) for j in range(len(first))]
        self.n_bytes = sum(map(len, first))
        self.layout = Layout.of(self.names, request, {}, has_header)
        if "" in self.layout.needed:
            self._check_nameless(below, request)
        types = (pa.bool_() if truths else pa.float64() for truths in are_truths)
        self.types = dict(zip(self.names, types, strict=True))
        self.kinds, self.errors = dict(request.kinds or {}), dict[str, HoldsTextError]()
        self.types |= {name: pa.string() for name, kind in self.kinds.items() if kind != NUMBER}
        if self.layout.label_column is not None:
            self.types[self.layout.label_column] = pa.string()

    def _check_nameless(self, below: Sequence[Sequence[str]], request: Request) -> None:
        """Refuse columns that nobody meant: numbers of rows would foretell the labels of sorted rows."""
        out = "leave the column out with drop='' (--drop '' on the command line)"
        if not self.names[-1] and not any(row[-1].strip() for row in below):
            raise DataFileError(
                f"its last column has no name and no values, as where lines end with '{self.delimiter}': take these "
                f"off, or {out}"
            )
        numbers = {row[0].strip() for row in below}
        is_index = len(numbers) == len(below) > 1 and all(map(str.isdecimal, numbers))
        if not self.names[0] and is_index and (request.features is None or isinstance(request.features, int)):
            raise DataFileError(
                "its first column has no name and another whole number in each row, as the index that pandas writes: "
                f"{out}, or give it a name"
            )

    def may_be_text(self, error: HoldsTextError) -> bool:
        """Read the columns that hold some as text from now on; False if they are already."""
        are_new = bool(error.columns) and not any(self.types[name] == pa.string() for name in error.columns)
        self.types |= dict.fromkeys(error.columns, pa.string())
        self.errors |= dict.fromkeys(error.columns, error)
        return are_new

    @property
    def undecided(self) -> list[str]:
        """Columns of features that may turn out to be text."""
        return [name for name in self.layout.needed if name != self.layout.label_column and name not in self.kinds]

    def expect_text(self) -> None:
        """Read all columns that may be text as such."""
        self.types |= dict.fromkeys(self.undecided, pa.string())

    def with_kinds(self, table: pa.Table) -> pa.Table:
        """The table with dates where they are known, or all texts of a column are some; and so with truth values.

        Raises
        ------
        DataFileError
            Where next to all cells of a column are numbers, or were when the model was fitted: the others are rather
            mistakes than names.
        """
        if self.layout.kinds is None:
            return table
        for place, name in enumerate(table.column_names):
            column, kind = table[name], self.kinds.get(name)
            if name == self.layout.label_column or column.type != pa.string():
                continue
            if kind is None and name not in self.errors and (numbers := _numbers(column)) is not None:
                table = table.set_column(place, name, numbers)
            elif kind in (None, NUMBER) and (truths := _truths(column)) is not None:
                table = table.set_column(place, name, truths)
            elif kind == NUMBER:
                raise self.errors[name]
            elif kind != TEXT and (dates := dates_of(column, MISSING)) is not None:
                table = table.set_column(place, name, dates)
            elif kind == TIME:
                raise DataFileError(f"column '{name}' holds text where the model was fitted on dates: correct it")
            elif kind is None:
                TextColumn(column).check(name, self.errors.get(name))
        return table

    @contextmanager
    def opened(self, read: Callable[..., Any]) -> Iterator[Any]:
        """What pyarrow's `read_csv` or `open_csv` gives; a cell that it refuses is named."""
        needed = self.layout.needed
        reading = arrow_csv.ReadOptions(
            column_names=self.names,
            skip_rows=self.n_header_lines,
            block_size=max(_BLOCK_BYTES, 64 * self.n_bytes),  # a block must hold a whole row
        )
        parsing = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        converting = arrow_csv.ConvertOptions(
            column_types={name: self.types[name] for name in needed},
            include_columns=needed,
            null_values=MISSING,
            true_values=TRUE,
            false_values=FALSE,
        )
        try:
            # Arrow's threads may let go of what they read from after Python has ended, which a file of Python's own
            # does not survive.
            path, is_plain = os.fsencode(self.source.path), self.source.is_plain
            with pa.OSFile(path) if is_plain else self.source.binary() as file:
                yield read(file, reading, parsing, converting)
        except pa.ArrowException as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> DataFileError:
        """The cell that pyarrow cannot read, or the row that has too many or too few."""
        read = set(self.layout.needed) - {self.layout.label_column}
        numeric = [j for j, name in enumerate(self.names) if name in read and self.types[name] != pa.string()]
        is_read = [_is_truth if self.types[name] == pa.bool_() else reads_as_number for name in self.names]
        with self.source.text() as file:
            rows = csv.reader(file, delimiter=self.delimiter)
            for row in rows:
                if not row or rows.line_num <= self.n_header_lines:
                    continue
                if len(row) != len(self.names):
                    return DataFileError(
                        f"line {rows.line_num} has {len(row)} cells where the first line has {len(self.names)}: "
                        "correct that line, or quote cells that contain the separator"
                    )
                text = [j for j in numeric if not is_read[j](row[j]) and row[j] not in MISSING]
                if text:
                    kinds = [_written(row[j].strip()) for j in text]
                    kind = None if None in kinds else kinds[0]  # what no number looks like is told first
                    named = [j for j, one in zip(text, kinds, strict=True) if one == kind]
                    example = f" ('{row[named[0]].strip()[:40]}' in line {rows.line_num})"
                    columns = [self.names[j] for j in named]
                    if kind is None:
                        return holds_text(columns, example)
                    subject = "column {} holds" if len(columns) == 1 else "columns {} hold"
                    _, what, how, option = _NUMBERS[kind]
                    return DataFileError(
                        f"{subject.format(quoted(columns))} {what}{example}: save the file {how}, for instance by "
                        f"pandas' read_csv({option}) and to_csv"
                    )
        return DataFileError(f"its cells cannot be read ({first_line(error)}): correct them or save the file again")


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Numbers, if all texts are some."""
    present = pc.if_else(pc.is_in(column, pa.array(MISSING)), None, pc.utf8_trim_whitespace(column))
    with suppress(pa.ArrowInvalid):
        return present.cast(pa.float64())
    return None


def _truths(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Truth values, if all texts are some: the rows that are looked at first may all lack theirs."""
    present = pc.if_else(pc.is_in(column, pa.array(MISSING)), None, column)
    is_true = pc.is_in(present, pa.array(TRUE))
    are_truths = pc.all(pc.or_(pc.or_(is_true, pc.is_in(present, pa.array(FALSE))), pc.is_null(present)))
    return pc.if_else(pc.is_null(present), None, is_true) if are_truths.as_py() else None


def _written(cell: str) -> int | None:
    """Which of `_NUMBERS` it is, if any."""
    return next((kind for kind, (pattern, *_) in enumerate(_NUMBERS) if pattern.fullmatch(cell)), None)


def _delimiter(source: Source) -> str:
    with source.text() as file:
        # No more than csv takes for one cell, which the first row is to a candidate that does not divide it.
        start = file.read(_HEADER_CHARACTERS).lstrip("\r\n")
    if not start.strip():
        raise DataFileError("it is empty")
    candidates = [_DELIMITERS.get(source.suffix, ","), ",", "\t", ";", "|"]
    return max(candidates, key=lambda mark: len(next(csv.reader(io.StringIO(start, newline=""), delimiter=mark))))


def _is_header(cells: Sequence[str], below: Sequence[Sequence[str]], request: Request) -> bool:
    names = [cell.strip() for cell in cells]
    if request.feature_names and set(request.feature_names) <= set(names):
        return True
    if request.kinds and not request.feature_names and not below:  # a row for a model that was fitted without names
        return False
    numbers = [float(cell) for cell in cells if reads_as_number(cell)]
    counts_up = numbers == list(range(len(numbers)))
    if len(numbers) == len(cells):
        return counts_up and len(cells) > 3  # a row of so many that counts is no coincidence
    n_truths = sum(_is_truth(cell) and _all(_is_truth, j, below) for j, cell in enumerate(cells))
    if counts_up and not n_truths:
        return True
    if any(name.lower() in TARGET_NAMES for name in names):
        return True
    # Numbers are names, too, where they are years and the like: whole ones, each another.
    are_names = len(set(numbers)) == len(numbers) and all(number >= 1000 and number % 1 == 0 for number in numbers)
    has_names = any(_is_name(name, j, below) for j, name in enumerate(names))
    if 2 * (len(numbers) + n_truths) < len(cells):
        # A number above numbers is another one of them, unless others of these have names.
        are_rows = any(reads_as_number(cell) and _all(reads_as_number, j, below) for j, cell in enumerate(cells))
        return are_names or has_names or not are_rows
    return are_names and has_names


def _is_name(cell: str, j: int, below: Sequence[Sequence[str]]) -> bool:
    """Whether it is text, of which there is none below it."""
    if reads_as_number(cell) or _is_truth(cell) or cell in MISSING or not any(map(str.isalpha, cell)):
        return False
    return _all(reads_as_number, j, below) or _all(_is_truth, j, below)


def _all(test: Callable[[str], bool], j: int, rows: Sequence[Sequence[str]]) -> bool:
    """Whether all cells of a column that are not missing, of which there is one, pass."""
    present = (row[j] for row in rows if j < len(row) and row[j] not in MISSING)
    return test(next(present, "")) and all(map(test, present))


def _is_truth(cell: str) -> bool:
    return cell in TRUE or cell in FALSE
