"""Rows that are read in chunks, each time they are needed, from where they lie."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyclass.data.cells import refusal, unusable_cell
from manyclass.data.dense import DenseRows
from manyclass.data.gram import GramSum
from manyclass.data.memory import told
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, Rows
from manyclass.data.sparse import SparseRows
from manyclass.data.stores import Repeated, Store, Transformed

PIECES_PER_CHUNK, PIECE_BYTES = 64, 1 << 20
"""Of a chunk that is drawn at random, and of one of its pieces, at most: few chunks that stay the same converge slowly,
and short pieces are slow to read."""


class ChunkedRows(Rows):
    """Rows of a file, or of anything that can be read again and again, of which two chunks are in memory at a time.

    The next chunk is read, by a thread of its own, while the present one is computed with. In the first pass every
    number is looked at.

    Parameters
    ----------
    source : Store, or callable
        What is called for each pass over the rows; gives their arrays (NumPy or CSR, of one kind and dtype) in order.
    n_rows : int, optional
        Of a callable.
    chunk_bytes : int
        Of a chunk, where the store can choose; blocks that are computed with are no larger either.
    visit_bytes : int
        Of a chunk in `visits`.
    whole_bytes : int
        What all rows may take where something needs them at once.
    name, columns : object, sequence of str or None
        What messages call the rows and their columns.
    all_needed : bool
        Whether a model was fitted on these columns, so that none can be left out.
    """

    can_be_visited, can_be_centred, row_bytes = True, True, 0.0

    def __init__(
        self,
        source: Store | Callable[[], Iterable[Any]],
        n_rows: int | None = None,
        *,
        chunk_bytes: int = GRAM_BLOCK_BYTES,
        visit_bytes: int = 4 * GRAM_BLOCK_BYTES,
        whole_bytes: float = 0,
        name: object = "Input X",
        columns: Sequence[str] | None = None,
        all_needed: bool = False,
    ):
        self.store = source if isinstance(source, Store) else Repeated(lambda _: source(), int(n_rows or 0))
        self.n_rows, self._dtype = self.store.n_rows, None
        self.block_limit, self._visit_bytes, self.most_bytes = chunk_bytes, visit_bytes, whole_bytes
        self._waited, self._checked = [0.0], [False]  # which all that are made of these share
        self._name, self._columns, self._all_needed, self._places = name, columns, all_needed, None
        self._first = next(self.store.chunks(64))[:64]
        self._look_at_first()

    def _look_at_first(self) -> None:
        first = self._kind(self._first)
        self.xp, self.device, self.dtype = first.xp, first.device, first.dtype
        self.n_features, self.can_be_centred, self.row_bytes = first.n_features, first.can_be_centred, first.row_bytes
        self._stored_bytes = max(self.row_bytes * self._first.dtype.itemsize / self.itemsize, self.store.row_bytes)
        self._empty = first.part(slice(0, 0))

    def _like(self, **changes: Any) -> ChunkedRows:
        twin = copy(self)
        vars(twin).update(changes)
        twin._look_at_first()
        return twin

    def _kind(self, chunk: Any) -> Rows:
        held: Rows = SparseRows.of(chunk) if sp.issparse(chunk) else DenseRows(chunk)
        held = held if self._dtype is None else held.typed(self._dtype)
        return held if self.shift is None else held.shifted(self.shift)

    @property
    def seconds_waiting(self) -> float:
        return self._waited[0]

    def _rows_of(self, n_bytes: float) -> int:
        return max(int(n_bytes / max(self._stored_bytes, 1)), 1)

    def _in_order(self, n_bytes: float) -> Iterator[tuple[slice, Any]]:
        """All chunks; what is read first is checked."""
        start = 0
        for chunk in self.store.chunks(self._rows_of(n_bytes)):
            self._check(chunk, range(start, start + chunk.shape[0]))
            part = slice(start, start + chunk.shape[0])
            yield part, chunk
            start = part.stop
        if start != self.n_rows:
            raise ValueError(f"{self.n_rows} rows were announced, but {start} were read; was the file changed?")
        self._checked[0] = True

    def _at_random(self, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, Any]]:
        """Chunks of pieces from all over the file, others each time."""
        step = self._rows_of(self._visit_bytes)
        size = max(min(step // PIECES_PER_CHUNK, self._rows_of(PIECE_BYTES)), 1)
        places = rng.permutation(-(-self.n_rows // size))
        for first in range(0, len(places), max(step // size, 1)):
            some = np.sort(places[first : first + max(step // size, 1)])
            index = (some[:, None] * size + np.arange(size)).reshape(-1)
            index = index[index < self.n_rows]
            yield index, self._check(self.store.take(index), index)

    def _check(self, chunk: Any, rows: Sequence[int] | np.ndarray) -> Any:
        """The chunk, which has these rows; what no model can use in it is refused, once."""
        cell = None if self._checked[0] else unusable_cell(chunk)
        if cell is None:
            return chunk
        row, column = cell
        place = column if self._places is None else int(self._places[column])
        raise ValueError(refusal(self._name, chunk[cell], int(rows[row]), place, self._columns, self._all_needed))

    def blocks(self, rows_per_block: int) -> Iterator[tuple[slice, Rows]]:
        with closing(read_ahead(self._in_order(self.block_limit), self._waited)) as chunks:
            for part, chunk in chunks:
                for rows, block in self._kind(chunk).blocks(rows_per_block):
                    yield slice(part.start + rows.start, part.start + rows.stop), block
                    del block
                del chunk

    def visits(self, rng: np.random.Generator | None = None) -> Iterator[tuple[slice | np.ndarray, Rows]]:
        """Chunks in memory: of pieces drawn at random where any rows can be read, else in the order of the file."""
        is_random = rng is not None and self.store.has_random_access
        chunks: Any = self._at_random(rng) if is_random and rng else self._in_order(self._visit_bytes)
        with closing(read_ahead(chunks, self._waited)) as ahead:
            for part, chunk in ahead:
                yield part, self._kind(chunk)
                del chunk

    def part(self, rows: slice) -> Rows:
        held = self._kind(self._check(self.store.read(rows.start, rows.stop), range(rows.start, rows.stop)))
        return held.part(slice(0, held.n_rows))

    def take(self, index: np.ndarray) -> Rows:
        """A copy of the rows named by an integer array; one pass over all rows where they cannot be found at once."""
        index = np.asarray(index)
        if not len(index):
            return self._empty
        held = self._kind(self._check(self.store.take(index), index))
        return held.part(slice(0, held.n_rows))

    def _with_shift(self, shift: Array) -> ChunkedRows:
        return self._like(shift=shift)

    def transformed(self, function: Callable[[Any], Any]) -> ChunkedRows:
        return self._like(store=Transformed(self.store, function), _first=function(self._first))

    def typed(self, dtype: Any) -> ChunkedRows:
        return self._like(_dtype=dtype)

    def gram_sum(self) -> GramSum:
        return self._empty.gram_sum()

    def select(self, columns: np.ndarray) -> Rows:
        shift = None if self.shift is None else self.shift[columns]
        places = (np.arange(self.n_features) if self._places is None else self._places)[columns]
        first = self._first[:, columns]
        return self._like(
            store=Transformed(self.store, itemgetter((slice(None), columns))), shift=shift, _first=first, _places=places
        )

    def _whole(self) -> Rows:
        needed = self.n_rows * self.row_bytes
        if needed > self.most_bytes:
            raise MemoryError(
                f"This would hold all {self.n_rows} rows of a file at once ({told(needed)}); raise memory_limit, or "
                "use an estimator that reads them in blocks (GLMClassifier, CalibratedLeastSquaresClassifier)."
            )
        return self.part(slice(0, self.n_rows))


def read_ahead(items: Any, waited: list[float]) -> Generator[Any]:
    """The items, each made in a thread of its own while the one before is in use; errors are raised where it is asked.

    `items` is a generator. There are never more than two: the one in use, and the next. The thread ends when the
    generator is closed. The seconds that computations stood still because nothing had been read yet are added to the
    only one of `waited`.
    """
    with closing(items), ThreadPoolExecutor(1, thread_name_prefix="manyclass-reader") as reader:
        ahead = reader.submit(list, islice(items, 1))
        while True:
            started = time.perf_counter()
            box = ahead.result()  # which alone has the item, so that it is gone once it has been used
            waited[0] += time.perf_counter() - started
            if not box:
                return
            ahead = reader.submit(list, islice(items, 1))
            yield box.pop()
