"""Columns of delimited text that may be text: what is in their cells, and which kind that makes them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from manyclass.data.readers.dataset import DataFileError, Dataset, HoldsTextError, Request, reads_as_number
from manyclass.data.readers.kinds import NUMBER, TEXT, TIME, dates_of

# pyarrow compares cells as they stand, and keeps a search tree of these for every column: list no more than is usual.
_WORDS = ("NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "Null", "none", "None", "NONE", "?", "-")
_TRUTHS = (("true", "True", "TRUE"), ("false", "False", "FALSE"))
MISSING = ("", " ", "  ", "   ", "    ", " NA", " NaN", " nan", " ?", " -", *_WORDS)
TRUE, FALSE = (tuple(space + word for space in ("", " ") for word in words) for words in _TRUTHS)
FEWEST_TEXTS = 0.05
"""For each number of a column, with fewer of which these are taken for mistakes."""


class TextColumn:
    """What a column holds that began as one of numbers."""

    def __init__(self, column: pa.ChunkedArray | None = None) -> None:
        self.n_texts, self.n_numbers, self.example = 0, 0, ""
        self.types: set[pa.DataType | None] = set()
        if column is not None:
            self.add(column)

    def add(self, column: pa.ChunkedArray) -> None:
        """Some rows, as text."""
        counts = pc.value_counts(column)
        texts, n_rows = counts.field("values").to_pylist(), counts.field("counts").to_numpy()
        are_numbers = np.array([reads_as_number(text) for text in texts])
        are_texts = ~are_numbers & np.array([text not in MISSING for text in texts])
        self.n_texts += int(n_rows[are_texts].sum())
        self.n_numbers += int(n_rows[are_numbers].sum())
        self.example = self.example or next((texts[place][:40] for place in np.flatnonzero(are_texts)), "")
        dates = dates_of(column, MISSING)
        if dates is None or dates.null_count < len(dates):
            self.types.add(None if dates is None else dates.type)

    @property
    def are_dates(self) -> bool:
        """Whether all are dates, with a zone or without."""
        return len(self.types) == 1 and None not in self.types

    def check(self, name: str, error: HoldsTextError | None) -> None:
        """Refuse few texts among numbers, with the one that the error names."""
        if 0 < self.n_texts < FEWEST_TEXTS * self.n_numbers:
            example = f" ('{self.example}')"
            if error is not None and name == error.columns[0]:
                example = error.example  # with its line
            raise DataFileError(
                f"column '{name}' holds text{example} in {self.n_texts} and numbers in {self.n_numbers} cells: correct "
                "the former or leave them empty, or leave the column out with drop (--drop on the command line)"
            )


class Survey:
    """One pass over chunks of a file, of which some columns are known to hold text, and what it tells of these.

    `read` takes a request and a number of rows; `errors` say what was found in these columns, or None where they are
    only read as text.
    """

    def __init__(
        self,
        read: Callable[[Request, int], Iterator[Dataset]],
        request: Request,
        errors: Mapping[str, HoldsTextError | None],
    ) -> None:
        self._read, self._errors = read, errors
        self._request = replace(request, kinds=dict(request.kinds or {}) | dict.fromkeys(errors, TEXT))
        self._columns: dict[str, TextColumn] = {}
        self._looks = True

    def chunks(self, n_rows: int, **options: Any) -> Iterator[Dataset]:
        """So many rows at a time; until the kinds are settled, their cells are looked at."""
        self._columns = {name: TextColumn() for name in self._errors} if self._looks else {}
        for chunk in self._read(replace(self._request, **options), n_rows):
            for name, column in self._columns.items():
                column.add(chunk.X[name])
            yield chunk

    def settled(self, kinds: Mapping[str, str]) -> dict[str, str]:
        """The kinds of all columns once all rows have been seen; columns of dates are such, and of numbers.

        Raises
        ------
        DataFileError
            Where texts are so few that they are rather mistakes.
        """
        for name, column in self._columns.items():
            column.check(name, self._errors[name])
        dates = [name for name, column in self._columns.items() if column.are_dates]
        numbers = [name for name, column in self._columns.items() if not column.n_texts]
        self._looks = False
        return dict(kinds) | dict.fromkeys(dates, TIME) | dict.fromkeys(numbers, NUMBER)
