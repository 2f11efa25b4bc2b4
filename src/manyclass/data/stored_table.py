"""Tables whose rows stay where they lie: what is learned of them from some, and the numbers that all become."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyclass.data.rows import Rows, present_rows
from manyclass.data.stores import Store, Transformed

MEASURED_ROWS = 64
"""By which the memory of a row is estimated."""
CHECKED_ROWS = 1 << 14
"""That are read at a time where a column is looked through."""


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Columns of any kind in a file, which are read in pieces: `TableEncoder` makes `Rows` of them.

    Parameters
    ----------
    store : Store
        Of tables of pyarrow.
    opened : callable
        The rows of a store of arrays, as `open_rows` gives them.
    sample_bytes : float
        What a sample may take.
    """

    store: Store
    opened: Callable[[Store], Rows]
    sample_bytes: float

    @property
    def kinds(self) -> dict[str, str]:
        """Of each column, by its name."""
        return dict(self.store.kinds or {})

    @property
    def column_names(self) -> list[str]:
        return list(self.kinds)

    @property
    def shape(self) -> tuple[int, int]:
        return self.store.n_rows, len(self.kinds)

    @cached_property
    def row_bytes(self) -> float:
        """Memory of one row, in bytes, as in the first of them."""
        first = next(iter(self.store.chunks(MEASURED_ROWS)))[:MEASURED_ROWS]
        return float(first.nbytes / max(len(first), 1))

    def take(self, index: np.ndarray) -> Any:
        """The rows named by an integer array, as a table in memory."""
        return self.store.take(index)

    def sample(self, weight: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        """Rows with a weight above 0, as a table in memory, and their numbers: all, or as many at random as may be.

        Texts that are dates in the sample alone are categories there, which stay texts.
        """
        index = present_rows(self.store.n_rows, weight)
        most = max(int(self.sample_bytes / max(self.row_bytes, 1)), 1)
        if most < len(index):
            index = np.sort(np.random.default_rng(0).choice(index, most, replace=False))
        found = self.take(index)
        for place, name in enumerate(found.column_names):
            if len(index) < self.store.n_rows and self._may_be_dates(found[name]) and not self._are_dates(name):
                found = found.set_column(place, name, found[name].dictionary_encode())
        return found, index

    @staticmethod
    def _may_be_dates(column: Any) -> bool:
        """Whether all are texts that read as dates."""
        from manyclass.data.frames import as_times

        return bool(as_times(column).type != column.type)

    def _are_dates(self, name: str) -> bool:
        """Whether this is so in all rows; what ends before is text."""
        columns = (chunk[name] for chunk in self.store.chunks(CHECKED_ROWS))
        return all(self._may_be_dates(column) for column in columns if column.null_count < len(column))

    def encoded(self, function: Callable[[Any], Any]) -> Rows:
        """The rows as numbers: what a function makes of tables, row by row, whenever they are read."""
        made = Transformed(self.store, function, self.row_bytes)
        made.is_slow = True
        return self.opened(made)
